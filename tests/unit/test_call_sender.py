"""The talking side of a call, over a session that only notes what it is told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from voicestream.call_link import CallLink
from voicestream.call_sender import CallSender
from voicestream.call_state import Ending
from voicestream.call_voice import Voice, slices
from voicestream.config import AudioConfig, Track
from voicestream.errors import CallClosedError, CallClosedOK, StateError
from voicestream.events import Cleared, ClearRequested, Closed, Finished, PlanChanged


class NotingSession:
    """Takes the sender's verbs; `allowance` is what the far end has room for."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, int, bool]] = []
        self.calls: list[tuple[Any, ...]] = []
        self.allowance = 0.0
        self.is_closed = False
        self.next_pts = 0
        self.peer = SimpleNamespace(lookahead_ms=150)
        self.clears = 0
        self.on_allowance: Callable[[], None] = lambda: None

    def send_frame(self, payload: bytes, now: float, *, units: int | None = None, track: int = 0, ahead: bool = False, **flags: Any) -> int:
        pts = self.next_pts
        self.next_pts += units or 8
        self.sent.append((payload, pts, ahead))
        self.allowance -= (units or 8) / 400 if ahead else 0
        return pts

    def skip(self, units: int, track: int = 0) -> None:
        self.next_pts += units

    def ahead_allowance(self, now: float, track: int = 0) -> float:
        self.on_allowance()
        return self.allowance

    def clear(self, now: float, *, track: int = 0, outgoing: bool) -> int:
        self.calls.append(("clear", track, outgoing))
        self.clears = 3
        return 3

    def clear_number(self, track: int = 0) -> int:
        return self.clears

    def finish(self, now: float, track: int = 0) -> None:
        self.calls.append(("finish", track))


class FrameVoice(Voice):
    """A voice whose frame is any 20 ms of int16 samples. Loads no codec."""

    def __init__(self) -> None:
        super().__init__(Track(), AudioConfig(sample_rate_hz=8000))
        self.rest_samples = 0

    def code(self, pcm: Any) -> list[Any]:
        if not isinstance(pcm, np.ndarray):
            raise TypeError("pcm must be an array")
        if self._forget:
            self._forget, self.rest_samples = False, 0
        frames, self.rest_samples = divmod(self.rest_samples + len(pcm), 160)
        return [SimpleNamespace(payload=b"frame", units=8, talkspurt_start=False, talkspurt_end=False, copy=None)] * frames

    def rest(self) -> list[Any]:
        return self.code(np.zeros(160 - self.rest_samples)) if self.rest_samples else []


class Bench:
    """A sender with everything around it."""

    def __init__(self) -> None:
        self.session = NotingSession()
        self.ending = Ending()
        self.wakes = 0
        connection: Any = SimpleNamespace(session=self.session)
        clock = asyncio.get_running_loop().time
        owner: Any = SimpleNamespace(lock=nullcontext(), clock=clock, wake=self.wake, connection=connection)
        self.link = CallLink(owner, self.ending)
        self.sender = CallSender(self.link, self.ending, FrameVoice())

    def wake(self) -> None:
        self.wakes += 1

    def close(self, code: int) -> None:
        self.ending.set(Closed(code=code, reason="", remote=True, may_resume=False))
        self.sender.on_closed()


def pcm(samples: int) -> np.ndarray:
    return np.zeros(samples, dtype=np.int16)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_live_blocks_of_any_length_become_frames_and_never_wait() -> None:
    bench = Bench()
    for samples in (100, 100, 7, 1000, 0):
        bench.sender.live(pcm(samples))
    assert len(bench.session.sent) == 1207 // 160
    assert all(not ahead for _, _, ahead in bench.session.sent)
    assert bench.wakes > 0
    assert bench.sender.next_pts == {0: 7 * 8}


async def test_ahead_stops_when_the_far_end_holds_enough_and_goes_on_when_it_has_room() -> None:
    bench = Bench()
    bench.session.allowance = 0.1
    task = asyncio.create_task(bench.sender.ahead(pcm(160 * 10)))
    await settle()
    assert len(bench.session.sent) == 5
    assert not task.done()
    bench.session.allowance = 0.06
    bench.sender.room.notify()
    await settle()
    assert len(bench.session.sent) == 8
    bench.session.allowance = 9
    bench.sender.room.notify()
    assert await task is True
    assert len(bench.session.sent) == 10
    assert all(ahead for _, _, ahead in bench.session.sent)


async def test_ahead_finds_room_by_itself_when_no_report_comes() -> None:
    bench = Bench()
    asked = 0

    def later() -> None:
        nonlocal asked
        asked += 1
        if asked == 3:
            bench.session.allowance = 1

    bench.session.on_allowance = later
    assert await bench.sender.ahead(pcm(160)) is True


async def test_a_frame_longer_than_the_lookahead_does_not_wait_for_ever() -> None:
    bench = Bench()
    bench.session.allowance = 0.020
    await asyncio.wait_for(bench.sender.frame(b"x", units=48, track=0, talkspurt_start=False, talkspurt_end=False, ahead=True), 1)
    assert len(bench.session.sent) == 1


async def test_a_far_end_that_holds_nothing_ahead_gets_audio_as_it_plays() -> None:
    bench = Bench()
    bench.session.peer.lookahead_ms = 0
    clock = asyncio.get_running_loop().time
    began = clock()
    assert await bench.sender.ahead(pcm(320)) is True
    assert clock() - began >= 0.04
    assert len(bench.session.sent) == 2


async def test_cancelling_ahead_loses_only_what_was_not_sent_and_frees_the_turn() -> None:
    bench = Bench()
    bench.session.allowance = 0.04
    task = asyncio.create_task(bench.sender.ahead(pcm(1600)))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(bench.session.sent) == 2
    assert not bench.sender.room.awaited
    bench.session.allowance = 1
    assert await bench.sender.ahead(pcm(160)) is True


async def test_two_prefetching_senders_do_not_mix_their_audio() -> None:
    bench = Bench()
    bench.session.allowance = 0.02
    first = asyncio.create_task(bench.sender.ahead(pcm(320)))
    second = asyncio.create_task(bench.sender.ahead(pcm(160)))
    await settle()
    bench.session.allowance = 0.02
    bench.sender.room.notify()
    await settle()
    assert first.done()
    assert not second.done()
    bench.session.allowance = 1
    bench.sender.room.notify()
    await second


async def test_a_request_for_silence_releases_whoever_waits_and_counts_the_rest() -> None:
    bench = Bench()
    bench.session.allowance = 0.04
    first = asyncio.create_task(bench.sender.ahead(pcm(160 * 5)))
    queued = asyncio.create_task(bench.sender.ahead(pcm(160 * 2)))
    await settle()
    bench.sender.on_clear_requested(ClearRequested(track=0, number=1, to_pts=800))
    assert await first is False
    assert await queued is False
    assert bench.sender.discarded_ms == 5 * 20
    assert bench.sender.next_pts[0] == 800
    bench.session.allowance = 1
    assert await bench.sender.ahead(pcm(160)) is True


async def test_a_clear_drops_samples_that_fill_no_frame_yet() -> None:
    bench = Bench()
    bench.sender.live(pcm(100))
    bench.session.clears = 1  # the event that tells is still on its way
    bench.sender.live(pcm(100))
    assert bench.session.sent == []
    bench.sender.live(pcm(60))
    assert len(bench.session.sent) == 1


async def test_what_was_being_coded_when_a_clear_came_is_not_sent_behind_it() -> None:
    bench = Bench()
    code = bench.sender.voice.code

    def interrupted(block: Any) -> list[Any]:
        frames = code(block)
        bench.session.clears += 1  # as by another thread
        return frames

    bench.sender.voice.code = interrupted  # type: ignore[method-assign]
    bench.sender.live(pcm(320))
    assert bench.session.sent == []
    assert bench.sender.discarded_ms == 40
    bench.sender.voice.code = code  # type: ignore[method-assign]
    bench.sender.live(pcm(160))
    assert len(bench.session.sent) == 1


async def test_a_coded_frame_that_waits_is_discarded_by_a_clear_too() -> None:
    bench = Bench()
    task = asyncio.create_task(
        bench.sender.frame(b"x", units=16, track=0, talkspurt_start=False, talkspurt_end=False, ahead=True)
    )
    await settle()
    bench.sender.on_clear_requested(ClearRequested(track=0, number=1, to_pts=0))
    assert await task is False
    assert bench.session.sent == []
    assert bench.sender.discarded_ms == 40


async def test_silence_that_is_not_sent_moves_the_position_all_the_same() -> None:
    bench = Bench()
    silence = SimpleNamespace(payload=None, units=8, talkspurt_start=False, talkspurt_end=False, copy=None)
    bench.sender.voice.code = lambda block: [silence, silence]  # type: ignore[method-assign]
    bench.sender.live(pcm(320))
    assert bench.session.sent == []
    assert bench.session.next_pts == 16
    assert bench.sender.next_pts == {0: 16}


async def test_flush_sends_the_rest_and_the_talk_goes_on() -> None:
    bench = Bench()
    bench.session.allowance = 1
    bench.sender.flush()
    await bench.sender.ahead(pcm(100))
    bench.sender.flush()
    assert [ahead for _, _, ahead in bench.session.sent] == [True], "the rest goes the way of what it belongs to"
    bench.sender.live(pcm(160))
    assert len(bench.session.sent) == 2


async def test_clear_returns_what_the_far_end_heard() -> None:
    bench = Bench()
    task = asyncio.create_task(bench.sender.clear(0))
    await settle()
    assert bench.session.calls == [("clear", 0, True)]
    bench.sender.on_cleared(Cleared(track=0, number=2, heard_pts=1))
    await settle()
    assert not task.done()
    bench.sender.on_cleared(Cleared(track=0, number=3, heard_pts=44))
    assert await task == 44


async def test_finish_sends_the_rest_then_the_end_and_waits_until_it_was_played() -> None:
    bench = Bench()
    bench.sender.live(pcm(200))
    task = asyncio.create_task(bench.sender.finish(0))
    again = asyncio.create_task(bench.sender.finish(0))
    await settle()
    assert len(bench.session.sent) == 2
    assert bench.session.calls == [("finish", 0)]
    with pytest.raises(StateError, match="finish"):
        bench.sender.live(pcm(160))
    with pytest.raises(StateError, match="finish"):
        await bench.sender.ahead(pcm(160))
    bench.sender.on_finished(Finished(track=0, played_pts=16))
    assert await asyncio.gather(task, again) == [16, 16]
    assert await bench.sender.finish(0) == 16


async def test_finish_waits_for_audio_that_is_still_being_sent_ahead() -> None:
    bench = Bench()
    sending = asyncio.create_task(bench.sender.ahead(pcm(320)))
    await settle()
    finishing = asyncio.create_task(bench.sender.finish(0))
    await settle()
    assert bench.session.calls == []
    bench.session.allowance = 1
    bench.sender.room.notify()
    assert await sending is True
    await settle()
    assert bench.session.calls == [("finish", 0)]
    assert len(bench.session.sent) == 2
    bench.sender.on_finished(Finished(track=0, played_pts=16))
    assert await finishing == 16


async def test_the_end_of_the_call_reaches_everybody_who_waits() -> None:
    bench = Bench()
    tasks = [
        asyncio.create_task(bench.sender.clear(0)),
        asyncio.create_task(bench.sender.ahead(pcm(320))),
    ]
    await settle()
    bench.close(0x17)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [CallClosedError, CallClosedError]
    with pytest.raises(CallClosedError, match="HANDLER_ERROR"):
        bench.sender.live(pcm(160))


async def test_finish_is_told_when_the_far_end_leaves_before_it_has_played_all() -> None:
    bench = Bench()
    task = asyncio.create_task(bench.sender.finish(0))
    await settle()
    bench.close(0)
    with pytest.raises(CallClosedOK):
        await task


async def test_bad_pcm_is_refused_before_anything_is_sent() -> None:
    bench = Bench()
    bench.session.allowance = 1
    with pytest.raises(TypeError, match="array"):
        bench.sender.live([1, 2, 3])
    with pytest.raises(TypeError, match="array"):
        await bench.sender.ahead("abc")
    assert bench.session.sent == []


async def test_many_threads_may_talk_at_once() -> None:
    bench = Bench()
    threads = [threading.Thread(target=lambda: [bench.sender.live(pcm(160)) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert len(bench.session.sent) == 200
    assert [pts for _, pts, _ in bench.session.sent] == list(range(0, 1600, 8))


@pytest.mark.parametrize("channels", [1, 2])
def test_slices_are_whole_samples_and_together_the_block(channels: int) -> None:
    samples = np.arange(1000 * channels, dtype=np.int16)
    block = samples.reshape(-1, channels) if channels > 1 else samples
    parts = list(slices(block, 160, channels))
    assert [len(part) for part in parts] == [160] * 6 + [40]
    assert np.array_equal(np.concatenate(parts), block)
    raw = list(slices(block.tobytes(), 160, channels))
    assert b"".join(raw) == block.tobytes()
    assert [len(part) for part in raw] == [160 * 2 * channels] * 6 + [40 * 2 * channels]


def test_what_is_no_pcm_passes_whole_for_the_coder_to_refuse() -> None:
    thing = object()
    assert list(slices(thing, 160, 1)) == [thing]


def test_a_plan_is_applied_before_the_next_frame_is_coded() -> None:
    voice = Voice(Track(), AudioConfig())
    done: list[tuple[Any, ...]] = []

    def note(name: str) -> Callable[..., list[Any]]:
        return lambda *values: done.append((name, *values)) or []

    capture: Any = SimpleNamespace(apply=note("apply"), push=lambda block: note("push")(), drop=note("drop"))
    voice._capture = capture
    voice.apply(PlanChanged(bitrate_bps=16000, frame_ms=60, bundle=2, inband_fec_loss_percent=5))
    voice.forget()
    voice.code(pcm(1))
    voice.code(pcm(1))
    assert done == [("drop",), ("apply", 16000, 60, 5, 0, 1.0), ("push",), ("push",)]


@pytest.mark.parametrize("ahead", [False, True])
async def test_a_coded_frame_that_is_not_bytes_is_named(ahead: bool) -> None:
    bench = Bench()
    bad: Any = "x"
    with pytest.raises(TypeError, match="a frame must be bytes, one packet of the track's codec, not str"):
        await bench.sender.frame(bad, units=None, track=0, talkspurt_start=False, talkspurt_end=False, ahead=ahead)
    assert bench.session.sent == []


def test_a_block_with_a_number_that_is_none_passes_whole_so_that_all_of_it_is_refused() -> None:
    block = np.zeros(1600, np.float32)
    assert len(list(slices(block, 160, 1))) == 10
    block[1500] = np.nan
    assert [len(part) for part in slices(block, 160, 1)] == [1600]
