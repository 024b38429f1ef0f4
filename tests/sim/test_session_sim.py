"""Whole calls between two sessions in virtual time. Every failure message carries the seed."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import pytest

from voicestream import events
from voicestream.codepoints import ErrorCode
from voicestream.config import PlayoutConfig
from voicestream.media import MediaFrame
from voicestream.testing.loss import BurstLoss
from voicestream.testing.profile import LinkProfile, NetworkProfile
from voicestream.testing.session_sim import SessionCall
from voicestream.testing.side import CallSide, Heard

SEEDS = (1, 2, 3)


def duplex(profile: LinkProfile, seed: int, seconds: float) -> SessionCall:
    """A call in which both sides talk for `seconds` and then finish."""
    call = SessionCall(profile, seed=seed)
    call.open()
    for side in (call.client, call.server):
        side.listen()
        side.speak(stop=call.sim.now + seconds)
    call.run(seconds + 3)
    return call


def both_heard(call: SessionCall) -> list[Heard]:
    heard = [side.heard() for side in (call.client, call.server)]
    for one in heard:
        call.sim.check(one.alien == 0, f"{one.alien} frames were played that nobody sent")
        call.sim.check(one.repeated == 0, f"{one.repeated} frames were played twice")
    return heard


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clean_call_plays_every_frame_once_and_soon(seed: int) -> None:
    call = duplex(LinkProfile(delay_ms=20), seed, 20)
    for heard in both_heard(call):
        call.sim.check(len(heard.fates) == 1000, f"{len(heard.fates)} frames were sent")
        call.sim.check(heard.played == 1000, f"{heard.played} of 1000 frames were played")
        call.sim.check(heard.concealed_share < 0.01, f"{heard.concealed_share:.1%} was concealed")
        call.sim.check(heard.delay_ms.percentile(95) < 120, f"delay {heard.delay_ms!r} ms")


@pytest.mark.parametrize("seed", SEEDS)
def test_independent_losses_are_mended_in_time(seed: int) -> None:
    call = duplex(LinkProfile(delay_ms=20, loss=0.05), seed, 30)
    for heard in both_heard(call):
        missing = 1 - heard.played / len(heard.fates)
        call.sim.check(missing < 0.015, f"{missing:.1%} of the frames were not played")
        call.sim.check(heard.concealed_share < 0.02, f"{heard.concealed_share:.1%} was concealed")
        call.sim.check(heard.delay_ms.percentile(95) < 200, f"delay {heard.delay_ms!r} ms")


@pytest.mark.parametrize("seed", SEEDS)
def test_bursts_of_losses_are_mended_within_the_lookahead(seed: int) -> None:
    call = duplex(LinkProfile(delay_ms=40, burst_loss=BurstLoss(loss=0.05, burst=3)), seed, 30)
    for heard in both_heard(call):
        call.sim.check(heard.played > 0.97 * len(heard.fates), f"{heard.played} of {len(heard.fates)} frames were played")
        call.sim.check(heard.delay_ms.median < 40 + 20 + 150 + 20, f"delay {heard.delay_ms!r} ms")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_burst_is_asked_about_before_it_ends(seed: int) -> None:
    """With a round trip of 80 ms what is asked for only behind a burst of three comes too late for a lookahead of 150 ms."""
    call = SessionCall(LinkProfile(delay_ms=40), seed=seed)
    call.open()
    call.server.listen()
    call.client.speak(stop=call.sim.now + 20)
    link = call.links["b2a"]
    send, begun = link.send, call.sim.now
    link.send = lambda now, size: [] if (now - begun) % 2 < 0.08 else send(now, size)  # type: ignore[method-assign]
    call.run(23)
    heard = call.server.heard()
    missed = [fate for fate in heard.fates if fate.played_at is None and fate.sent.at > begun + 3]
    call.sim.check(not missed, f"{len(missed)} frames in bursts of four were not played")


@pytest.mark.parametrize(("at_s", "length_s"), [(0.9, 0.06), (15.1, 0.1)])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_frame_of_a_burst_is_answered_at_a_good_rate(seed: int, at_s: float, length_s: float) -> None:
    """Frames of 64 kbps, and what answers them, are more than what losses so far would pay for; in the beginning nothing is known."""
    call = SessionCall(LinkProfile(delay_ms=40), seed=seed)
    call.open()
    call.server.listen()
    call.client.speak(stop=call.sim.now + 20, follow=True)
    link = call.links["b2a"]
    send, begun = link.send, call.sim.now
    lossy = ((0.0, 0.0) if at_s < 1 else (14.7, 14.8), (at_s, at_s + length_s))
    link.send = lambda now, size: [] if any(a <= now - begun < b for a, b in lossy) else send(now, size)  # type: ignore[method-assign]
    call.run(23)
    heard = call.server.heard()
    missed = [fate for fate in heard.fates if fate.played_at is None and fate.sent.at - begun > at_s - 0.1]
    call.sim.check(not missed, f"{len(missed)} frames of a burst were not played")


@pytest.mark.parametrize("seed", SEEDS)
def test_bursts_on_a_long_path_are_mended_by_copies(seed: int) -> None:
    call = duplex(LinkProfile(delay_ms=100, burst_loss=BurstLoss(loss=0.04, burst=3)), seed, 30)
    heard = both_heard(call)
    copied = sum(fate.how == "copy" for one in heard for fate in one.fates)
    call.sim.check(copied > 10, f"{copied} frames were played from copies")
    for side, one in zip((call.client, call.server), heard, strict=True):
        missing = 1 - one.played / len(one.fates)
        call.sim.check(missing < 0.04, f"{missing:.1%} of the frames were not played")
        recovery = side.session.stats(call.sim.now).recovery
        call.sim.check(recovery.copy_bytes_sent > 0, "no copies were sent")
        call.sim.check(recovery.redundancy_share < 0.36, f"{recovery.redundancy_share:.1%} was redundancy")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_source_without_copies_is_not_reckoned_with(seed: int) -> None:
    call = SessionCall(LinkProfile(delay_ms=100, burst_loss=BurstLoss(loss=0.04, burst=3)), seed=seed)
    call.open()
    call.server.listen()
    call.client.talker().copies = False
    call.client.speak()
    call.run(20)
    call.sim.check(call.client.session.plan.copy_bps == 0, "copies are still in the plan")
    call.sim.check(call.client.session.stats(call.sim.now).recovery.copies_sent == 0, "copies were sent")


@pytest.mark.parametrize("seed", SEEDS)
def test_reordered_and_duplicated_datagrams_are_played_once_and_in_order(seed: int) -> None:
    call = duplex(LinkProfile(delay_ms=30, jitter_ms=15, reorder=True, duplicate=0.1), seed, 25)
    for side, heard in zip((call.client, call.server), both_heard(call), strict=True):
        played = [entry.frame.pts for entry in side.devices[0][0].played]
        call.sim.check(played == sorted(played), "frames were played out of order")
        call.sim.check(heard.played > 0.97 * len(heard.fates), f"{heard.played} of {len(heard.fates)} frames were played")


@pytest.mark.parametrize("seed", SEEDS)
def test_after_an_outage_of_three_seconds_the_call_goes_on(seed: int) -> None:
    call = duplex(LinkProfile(delay_ms=30, outages=((9, 3),)), seed, 30)
    end = call.start + 12
    for side, heard in zip((call.client, call.server), both_heard(call), strict=True):
        call.sim.check(not side.seen(events.Closed), "the session was closed")
        later = [fate for fate in heard.fates if fate.sent.at > end + 1]
        played = sum(fate.played_at is not None for fate in later)
        call.sim.check(played == len(later), f"{played} of {len(later)} frames sent after the outage were played")
        delays = sorted(fate.played_at - fate.sent.at for fate in later if fate.played_at is not None)
        call.sim.check(delays[len(delays) // 2] < 0.15, f"after the outage the delay is {delays[len(delays) // 2]:.3f} s")
        stale = [fate for fate in heard.fates if fate.played_at is not None and fate.played_at - fate.sent.at > 0.7]
        call.sim.check(not stale, f"{len(stale)} frames were played more than 700 ms late")


@pytest.mark.parametrize("seed", SEEDS)
def test_pauses_are_silence_and_not_concealment(seed: int) -> None:
    call = SessionCall(LinkProfile(delay_ms=20, jitter_ms=5), seed=seed)
    call.open()
    call.server.listen()
    call.client.speak(pattern=((1.2, 0.8), (0.4, 2.0)), stop=call.sim.now + 30)
    call.run(33)
    heard = call.server.heard()
    device = call.server.devices[0][0]
    call.sim.check(heard.played >= len(heard.fates) - 3, f"{heard.played} of {len(heard.fates)} frames were played")
    call.sim.check(heard.concealed_share < 0.01, f"{heard.concealed_share:.1%} was concealed")
    call.sim.check(device.units["silence"] > 15 * 400, f"only {device.units['silence'] / 400:.1f} s of silence in 33 s")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_source_ahead_of_time_fills_the_lookahead_and_no_more(seed: int) -> None:
    call = SessionCall(LinkProfile(delay_ms=30), seed=seed)
    call.open()
    call.server.listen(config=PlayoutConfig(lookahead_ms=150))
    said_at = call.sim.now
    call.client.synthesiser().say(10, finish=True)
    playout = call.server.devices[0][1]
    levels = []
    while call.sim.now < said_at + 9:
        call.run(0.05)
        levels.append(playout.level_units * 2.5)
    settled = sorted(levels[10:])
    call.sim.check(settled[-1] <= 230, f"{settled[-1]} ms were held at a lookahead of 150 ms")
    call.sim.check(settled[len(settled) // 2] >= 90, f"the median level is {settled[len(settled) // 2]} ms")
    call.run(5)
    heard = call.server.heard()
    call.sim.check(heard.played == 500, f"{heard.played} of 500 frames were played")
    call.sim.check(heard.concealed_share < 0.005, f"{heard.concealed_share:.2%} was concealed")
    first = heard.fates[0].played_at
    call.sim.check(first is not None and first - said_at < 0.12, f"the first sound came at {first} after {said_at}")


@pytest.mark.parametrize("seed", SEEDS)
def test_prefetched_speech_rides_out_a_short_outage(seed: int) -> None:
    call = SessionCall(LinkProfile(delay_ms=20, outages=((4, 0.08),)), seed=seed)
    call.open()
    call.server.listen()
    call.client.synthesiser().say(8, finish=True)
    call.run(12)
    heard = call.server.heard()
    lost = len(heard.fates) - heard.played
    call.sim.check(lost <= 5, f"{lost} frames were lost in an outage of 80 ms")


def old_audio_after(call: SessionCall, side: CallSide, at: float, to_pts: int) -> None:
    """No frame before `to_pts` begins to play on `side` later than one block after `at`."""
    played = side.devices[0][0].played
    old = [entry for entry in played if entry.at > at + 0.0201 and entry.frame.pts < to_pts]
    call.sim.check(not old, f"{len(old)} old frames were played after the clear, the last {old[-1].at - at if old else 0:.3f} s after")
    call.sim.check(any(entry.frame.pts >= to_pts for entry in played), "nothing was played after the clear")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_speaker_that_clears_is_not_heard_any_further(seed: int) -> None:
    call = SessionCall(LinkProfile(delay_ms=30), seed=seed)
    call.open()
    call.server.listen()
    voice = call.client.synthesiser()
    voice.say(10)
    call.run(3.0)
    voice.be_silent()
    number = call.client.session.clear(call.sim.now, outgoing=True)
    cleared_at = call.sim.now
    call.client.flush()
    new_pts = call.client.talker().say(8, start=True)
    call.client.flush()
    call.client.speak(stop=call.sim.now + 2)
    call.run(4)
    old_audio_after(call, call.server, cleared_at + 0.03, new_pts)
    confirmed = [event for _, event in call.client.seen(events.Cleared) if event.number == number]
    call.sim.check(len(confirmed) == 1, f"{len(confirmed)} confirmations of the clear")
    heard = [fate.sent.pts + fate.sent.units for fate in call.server.heard().fates if fate.played_at and fate.sent.pts < new_pts]
    call.sim.check(abs(confirmed[0].heard_pts - max(heard)) <= 24, f"told {confirmed[0].heard_pts}, played to {max(heard)}")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_listener_that_clears_hears_no_more_of_the_old(seed: int) -> None:
    call = SessionCall(LinkProfile(delay_ms=30), seed=seed)
    call.open()
    call.client.listen()
    call.server.synthesiser().say(10)
    call.run(3.0)
    call.client.session.clear(call.sim.now, outgoing=False)
    cleared_at = call.sim.now
    call.client.flush()
    call.run(0.2)
    asked = call.server.seen(events.ClearRequested)
    call.sim.check(len(asked) == 1, f"the speaker was asked {len(asked)} times")
    call.sim.check(asked[0][0] - cleared_at < 0.0301, f"the speaker was asked {asked[0][0] - cleared_at:.3f} s after")
    call.server.speak(stop=call.sim.now + 2)
    call.run(4)
    old_audio_after(call, call.client, cleared_at, asked[0][1].to_pts)


@pytest.mark.parametrize("seed", range(1, 11))
def test_clears_that_cross_and_overtake_leave_both_sides_agreed(seed: int) -> None:
    call = SessionCall(LinkProfile(delay_ms=30, jitter_ms=25, reorder=True, loss=0.1, duplicate=0.1), seed=seed)
    call.open()
    call.server.listen()
    source = call.client.speak()
    rng = call.sim.rng("clears")
    for _ in range(12):
        call.run(rng.uniform(0.02, 1.0))
        which = rng.randrange(3)
        if which != 0:
            call.client.session.clear(call.sim.now, outgoing=True)
        if which != 1:
            call.server.session.clear(call.sim.now, outgoing=False)
        call.client.flush()
        call.server.flush()
    last = call.sim.now
    call.run(5)
    call.sim.check(source.next_timer() is not None, "the source has stopped")
    heard = call.server.heard()
    recent = [fate for fate in heard.fates if last + 1.5 < fate.sent.at < call.sim.now - 0.5]
    played = sum(fate.played_at is not None for fate in recent)
    call.sim.check(played > 0.7 * len(recent), f"{played} of {len(recent)} frames after the last clear were played")
    call.sim.check(heard.alien == heard.repeated == 0, "frames were played that nobody sent, or twice")
    pts = [entry.frame.pts for entry in call.server.devices[0][0].played]
    call.sim.check(pts == sorted(pts), "old audio was played after newer audio")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_a_finish_cuts_nothing_off_and_is_confirmed(seed: int, loss: float) -> None:
    call = SessionCall(LinkProfile(delay_ms=40, loss=loss), seed=seed)
    call.open()
    call.server.listen()
    call.client.speak(stop=call.sim.now + 5)
    call.run(10)
    heard = call.server.heard()
    end = heard.fates[-1].sent.pts + heard.fates[-1].sent.units
    call.sim.check([event.pts for _, event in call.server.seen(events.RemoteFinished)] == [end], "the finish was not told once")
    finished = [event.played_pts for _, event in call.client.seen(events.Finished)]
    call.sim.check(finished == [end], f"finished at {finished}, not at {end}")
    if not loss:
        call.sim.check(heard.played == len(heard.fates), f"{heard.played} of {len(heard.fates)} frames were played")
    told = [event.played_pts for _, event in call.client.seen(events.Progress)]
    call.sim.check(told == sorted(told) and len(told) > 10, f"progress reports: {told}")


@pytest.mark.parametrize("seed", SEEDS)
def test_events_arrive_in_order_under_loss(seed: int) -> None:
    call = SessionCall(LinkProfile(delay_ms=30, jitter_ms=20, loss=0.2, reorder=True), seed=seed)
    call.open()
    call.server.listen()
    call.client.speak()
    for number in range(100):
        call.client.session.send_event(b"%d" % number + b" " * (number * 37 % 2000), call.sim.now)
        call.client.flush()
        call.run(0.1)
    call.run(20)
    arrived = [int(event.payload.split()[0]) for _, event in call.server.seen(events.EventReceived)]
    call.sim.check(arrived == list(range(100)), f"events arrived as {arrived}")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_close_reaches_the_other_side_under_loss(seed: int) -> None:
    call = duplex(LinkProfile(delay_ms=30, loss=0.2), seed, 2)
    call.server.session.close(call.sim.now, ErrorCode.NO_ERROR, "done")
    call.server.flush()
    call.run(3)
    closed = [event for _, event in call.client.seen(events.Closed)]
    call.sim.check(len(closed) == 1 and closed[0].remote and closed[0].reason == "done", f"closed: {closed}")


@pytest.mark.parametrize("drift_ppm", [-300, 300])
def test_a_device_whose_clock_drifts_is_followed(drift_ppm: float) -> None:
    call = SessionCall(LinkProfile(delay_ms=20, jitter_ms=3), seed=1)
    call.open()
    call.server.listen(drift_ppm=drift_ppm)
    call.client.speak()
    call.run(120)
    heard = call.server.heard()
    late = [fate.played_at - fate.sent.at for fate in heard.fates[-500:] if fate.played_at is not None]
    call.sim.check(len(late) > 490, f"{len(late)} of the last 500 frames were played")
    call.sim.check(max(late) < 0.15, f"after two minutes the delay is {max(late):.3f} s")
    call.sim.check(heard.concealed_share < 0.01, f"{heard.concealed_share:.1%} was concealed")


def test_a_lumpy_source_is_played_without_gaps_once_the_buffer_knows_it() -> None:
    call = SessionCall(LinkProfile(delay_ms=20), seed=1)
    call.open()
    call.server.listen()
    call.client.speak(lump_frames=5)
    call.run(60)
    heard = call.server.heard()
    call.sim.check(heard.played > 0.98 * (len(heard.fates) - 10), f"{heard.played} of {len(heard.fates)} frames were played")


def test_directions_do_not_mix() -> None:
    profile = NetworkProfile(a2b=LinkProfile(delay_ms=10), b2a=LinkProfile(delay_ms=80, loss=0.2))
    call = SessionCall(profile, seed=5)
    call.open()
    for side in (call.client, call.server):
        side.listen()
        side.speak(stop=call.sim.now + 20)
    call.run(23)
    down, up = both_heard(call)
    call.sim.check(down.played == len(down.fates), f"{down.played} of {len(down.fates)} frames were played where nothing is lost")
    call.sim.check(0.85 * len(up.fates) < up.played < len(up.fates), f"{up.played} of {len(up.fates)} at 20 % loss")


@pytest.mark.parametrize("seed", SEEDS)
def test_an_ordered_reader_gets_all_that_arrives_and_each_hole_as_a_gap(seed: int) -> None:
    call = SessionCall(LinkProfile(delay_ms=30, jitter_ms=20, reorder=True, loss=0.1, duplicate=0.1), seed=seed)
    call.open()
    listener = call.server.read()
    call.client.speak(stop=call.sim.now + 20)
    call.run(25)
    sent = call.client.talkers[0].sent
    call.sim.check(all(sent[frame.pts].payload == frame.payload for frame in listener.frames), "a frame was not what was sent")
    call.sim.check(len(listener.frames) > 0.85 * len(sent), f"{len(listener.frames)} of {len(sent)} frames arrived")
    spans = [(p.pts, p.pts + p.units) if isinstance(p, MediaFrame) else (p.from_pts, p.to_pts) for _, p in listener.pieces]
    call.sim.check(all(a[1] == b[0] for a, b in itertools.pairwise(spans)), "frames and gaps do not join")
    end = max(sent) + 8
    call.sim.check(spans[-1][1] == end, f"the last piece ends at {spans[-1][1]}, not at {end}")
    call.sim.check([event.played_pts for _, event in call.client.seen(events.Finished)] == [end], "the end was not confirmed")


PROGRAM = """
from voicestream.testing.profile import LinkProfile
from voicestream.testing.session_sim import SessionCall
for seed in (1, 1, 2):
    call = SessionCall(LinkProfile(delay_ms=20, jitter_ms=10, reorder=True, loss=0.05, duplicate=0.05), seed=seed)
    call.open()
    for side in (call.client, call.server):
        side.listen()
        side.speak()
        side.session.send_event(b"{}", call.sim.now)
        side.flush()
    call.run(5)
    print(call.digest())
"""


def test_the_same_seed_gives_the_same_run_in_every_process() -> None:
    runs = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
        runs.append(run.stdout.split())
    assert runs[0] == runs[1]
    assert runs[0][0] == runs[0][1] != runs[0][2]
