"""Section 6: media time, ticks, coded frames, talkspurts."""

from __future__ import annotations

import asyncio
import itertools

from interop.cases.tools import alive, audio_comes, failed, passed, refusals, takes
from interop.model import Outcome, Unsupported, case
from interop.peers.meeting import Met
from interop.peers.raw import OPUS_SILENCE
from voicestream.codepoints import ErrorCode
from voicestream.errors import ProtocolError
from voicestream.wire import AnchorFrame, AudioFrame, Clear, Finish, Finished, opus_duration_units, tick_delta

E = ErrorCode


@case("VS-6.1-2", "VS-6.1-1", title="the audio of the far end: no pts twice, no overlap")
async def audio_does_not_overlap(peer: Met) -> Outcome:
    heard = sorted({(frame.track, frame.pts): frame for frame in await audio_comes(peer, 40)}.values(), key=lambda f: (f.track, f.pts))
    if len(heard) < len(peer.audio()) - 1:
        return failed("a pts came twice as AUDIO")
    for one, following in itertools.pairwise(heard):
        if one.track == following.track and one.pts + opus_duration_units(one.payload) > following.pts:
            return failed(f"pts {one.pts} with {opus_duration_units(one.payload)} units overlaps pts {following.pts}")
    return passed(f"{len(heard)} frames")


@case("VS-6.1-4", title="the media time of live audio: does not run behind the clock")
async def media_time_keeps_up(peer: Met) -> Outcome:
    await audio_comes(peer, 10)
    await asyncio.sleep(1.5)
    spoken = peer.seen(AudioFrame)
    (begun, first), (ended, last) = spoken[0], spoken[-1]
    media, real = (last.pts - first.pts) * 0.0025, ended - begun
    if media < real - 1.0:  # a busy machine holds up the last frames
        return failed(f"{media:.2f} s of media in {real:.2f} s")
    return passed(measured_s=round(media - real, 3))


refusals(
    ("pts-too-great", "VS-6.1-3", "an ANCHOR at pts 2^60", lambda p: p.say(AnchorFrame(pts=1 << 60))),
    ("clear-too-great", "VS-6.1-3", "a CLEAR to pts 2^60", lambda p: p.send(Clear(number=1, from_pts=0, to_pts=1 << 60))),
    code=E.TRACK_ERROR,
)


@case("VS-6.3-1", title="the send times of the far end: 4000 ticks a second")
async def ticks_are_a_clock(peer: Met) -> Outcome:
    await audio_comes(peer, 10)
    await asyncio.sleep(1.5)
    sent = peer.datagrams()
    (begun, first), (ended, last) = sent[0], sent[-1]
    rate = tick_delta(last.send_tick, first.send_tick) / max(1e-3, ended - begun)
    # The first datagram may have come late on a busy machine: a wide margin still tells milliseconds from ticks.
    return passed(ticks_per_s=round(rate)) if 3200 < rate < 4800 else failed(f"{rate:.0f} ticks a second")


refusals(
    ("opus-code-1-odd", "VS-6.4-1", "an Opus packet of two equal frames in an odd number of bytes", lambda p: _packet(p, "49aabbcc00"[:8])),
    ("opus-no-count", "VS-6.4-1", "an Opus packet of code 3 without its count", lambda p: _packet(p, "4b")),
    ("opus-too-long", "VS-6.4-1", "an Opus packet of 140 ms", lambda p: _packet(p, "4b07" + "aa" * 14)),
    ("opus-no-frames", "VS-6.4-1", "an Opus packet of 0 frames", lambda p: _packet(p, "4b00aa")),
    ("opus-length-beyond", "VS-6.4-1", "an Opus packet whose first frame exceeds it", lambda p: _packet(p, "4afb00aabb"[:4])),
    code=E.MEDIA_ERROR,
)
takes(
    ("opus-stereo", "VS-6.4-2", "a packet of two channels", lambda p: p.say(AudioFrame(pts=0, payload=b"\x4c" + OPUS_SILENCE[1:]))),
    ("opus-without-content", "VS-6.4-1", "a packet of one byte", lambda p: p.say(AudioFrame(pts=0, payload=b"\x48", talkspurt_start=True))),
    ("opus-celt-2.5ms", "VS-6.4-1", "a packet of 2.5 ms", lambda p: p.say(AudioFrame(pts=0, payload=b"\xe0\x00\x00\x00"))),
)


def _packet(peer: Met, data: str) -> None:
    peer.say(AudioFrame(pts=0, payload=bytes.fromhex(data), talkspurt_start=True))


@case("VS-6.4-1", title="the packets of the far end: Opus that RFC 6716 allows")
async def packets_are_opus(peer: Met) -> Outcome:
    for frame in await audio_comes(peer, 20):
        try:
            opus_duration_units(frame.payload)
        except ProtocolError as error:
            return failed(f"pts {frame.pts}: {error.reason}")
    return passed()


@case("VS-6.5-2", title="the first frame of the far end: has S")
async def first_frame_has_s(peer: Met) -> Outcome:
    heard = await audio_comes(peer, 5)
    first = min(heard, key=lambda frame: frame.pts)
    return passed() if first.talkspurt_start else failed(f"the frame of pts {first.pts} has none")


@case("VS-6.5-4", "VS-6.5-1", title="a pause without E before it, then S: is played to the end")
async def pause_without_end(peer: Met) -> Outcome:
    for n in range(5):
        peer.speak(talkspurt_start=n == 0)
        await asyncio.sleep(0.02)
    peer.pts += 400
    await asyncio.sleep(0.3)
    for n in range(5):
        peer.speak(talkspurt_start=n == 0)
        await asyncio.sleep(0.02)
    peer.send(Finish(pts=peer.pts))
    finished = await peer.first(Finished, 5.0)
    if finished is None:
        raise Unsupported("no FINISHED: it plays nothing") if peer.end is None else AssertionError(str(peer.end))
    return await alive(peer) if finished.played_pts <= peer.pts else failed(f"FINISHED at pts {finished.played_pts}, the end is {peer.pts}")
