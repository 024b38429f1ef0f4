"""Section 4: datagrams and their frames, whole and malformed."""

from __future__ import annotations

import asyncio

from interop.cases.tools import REACTION, alive, audio_comes, failed, message, number, passed, refusals, takes
from interop.model import Outcome, Unsupported, case
from interop.peers.meeting import Met
from interop.peers.raw import OPUS_SILENCE
from voicestream.codepoints import ErrorCode
from voicestream.wire import (
    AnchorFrame,
    AudioFrame,
    Clear,
    Cleared,
    ClearedFrame,
    ClearFrame,
    MissingFrame,
    PaddingFrame,
    ProbeFrame,
    ReportFrame,
    RetransmissionFrame,
    UnknownFrame,
    encode_frame,
)

E = ErrorCode


@case("VS-4.1-1", title="numbers of the far end's datagrams: from 0, each once")
async def numbers_grow(peer: Met) -> Outcome:
    await audio_comes(peer, 20)
    numbers = [datagram.number for _, datagram in peer.datagrams()]
    if len(set(numbers)) < len(numbers):
        return failed("a number came twice")
    if min(numbers) != 0 or max(numbers) >= len(numbers) + 3:
        return failed(f"{len(numbers)} datagrams have numbers from {min(numbers)} to {max(numbers)}")
    return passed(f"{len(numbers)} datagrams, numbers 0 to {max(numbers)}")


def typed(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + number(len(body)) + body


def report(statuses: list[int], rest: bytes = b"", count: int | None = None) -> bytes:
    head = b"\x00\x00\x00\x00" + number(len(statuses) if count is None else count)
    return typed(0x01, head + b"".join(map(number, statuses)) + rest)


def repair(runs: list[tuple[int, int]], symbol: bytes = b"\0\0\1\0\0", newest: int = 30000) -> bytes:
    body = b"\x03" + newest.to_bytes(2, "big") + number(len(runs))
    return typed(0x10, body + b"".join(number(count) + number(step) for count, step in runs) + symbol)


def missing(*ranges: tuple[int, int]) -> bytes:
    return typed(0x2C, b"".join(first.to_bytes(2, "big") + number(units) for first, units in ranges))


refusals(
    ("datagram-of-3", "VS-4.1-2", "a datagram of 3 bytes", lambda p: p.raw_datagram(b"\0\0\0")),
    ("datagram-of-1201", "VS-4.1-2", "a datagram of 1201 bytes", lambda p: p.frame(b"\0" * 1197)),
    ("frames-65", "VS-4.1-2", "65 frames in a datagram", lambda p: p.frame(typed(0x3D, b"") * 65)),
    ("frame-too-long", "VS-4.1-3", "a frame that extends beyond its datagram", lambda p: p.frame(b"\x3d\x05ab")),
    ("audio-too-long", "VS-4.1-3", "an AUDIO frame whose length exceeds its datagram", lambda p: p.frame(b"\x98\0\0\x20" + OPUS_SILENCE)),
    ("frame-length-cut", "VS-4.1-3", "a frame without its length", lambda p: p.frame(b"\x3d")),
    ("body-cut", "VS-4.1-4", "an ANCHOR that ends inside its pts", lambda p: p.frame(b"\x1c\x02\x00\x40")),
    ("body-trailing", "VS-4.1-4", "a PROGRESS with a byte behind its last field", lambda p: p.frame(b"\x28\x02\x00\x00")),
    ("cleared-trailing", "VS-4.1-4", "a CLEARED frame with a byte behind its last field", lambda p: p.frame(b"\x24\x03\x00\x00\x00")),
    ("audio-empty", "VS-4.2-1", "an AUDIO frame without payload", lambda p: p.frame(b"\x98\0\0\0")),
    ("audio-empty-at-end", "VS-4.2-1", "an AUDIO frame without length and payload", lambda p: p.frame(b"\x88\0\0")),
    ("statuses-256", "VS-4.4-1", "a report with 256 statuses", lambda p: p.frame(report([0] * 256))),
    ("status-65537", "VS-4.4-1", "a status of 65537", lambda p: p.frame(report([65537]))),
    ("statuses-short", "VS-4.1-4", "a report with fewer statuses than it says", lambda p: p.frame(report([1], count=3))),
    ("playout-track-4", "VS-4.4-2", "a playout entry for track 4", lambda p: p.frame(report([], b"\4\0\0\0\0"))),
    ("playout-twice", "VS-4.4-2", "two playout entries for a track", lambda p: p.frame(report([], b"\0\0\0\0\0" * 2))),
    ("repair-count-0", "VS-4.6-5 VS-4.6-1", "a REPAIR with a run of 0 sources", lambda p: p.frame(repair([(0, 8)]))),
    ("repair-step-0", "VS-4.6-5 VS-4.6-1", "a REPAIR with steps of 0 units", lambda p: p.frame(repair([(2, 0)]))),
    ("repair-65", "VS-4.6-5 VS-4.6-2", "a REPAIR with 65 sources", lambda p: p.frame(repair([(64, 8)]))),
    ("repair-span", "VS-4.6-5 VS-4.6-3", "a REPAIR over 32768 units", lambda p: p.frame(repair([(4, 8192)]))),
    ("repair-symbol", "VS-4.6-5 VS-4.6-4", "a REPAIR with a symbol of 3 bytes", lambda p: p.frame(repair([(1, 8)], b"\0\0\1"))),
    ("copy-empty", "VS-4.7-1", "a COPY without payload", lambda p: p.frame(typed(0x14, b"\0\0\0"))),
    ("retransmission-empty", "VS-4.7-1", "a RETRANSMISSION without payload", lambda p: p.frame(typed(0x18, b"\0\0\0"))),
    ("clear-frame-backwards", "VS-4.9-2", "a CLEAR frame from pts 9 to pts 8", lambda p: p.frame(typed(0x20, b"\1\0\x09\x08"))),
    ("missing-none", "VS-4.10-3 VS-4.10-1", "a MISSING without ranges", lambda p: p.frame(missing())),
    ("missing-33", "VS-4.10-3 VS-4.10-1", "a MISSING with 33 ranges", lambda p: p.frame(missing(*[(8 * n, 8) for n in range(33)]))),
    ("missing-units-0", "VS-4.10-3 VS-4.10-2", "a MISSING of 0 units", lambda p: p.frame(missing((0, 0)))),
    ("missing-units-32768", "VS-4.10-3 VS-4.10-2", "a MISSING of 32768 units", lambda p: p.frame(missing((0, 32768)))),
    code=E.FRAME_ENCODING_ERROR,
)

takes(
    ("frames-64", "VS-4.1-2", "64 frames in a datagram", lambda p: p.frame(typed(0x3D, b"") * 64)),
    ("padding-run", "VS-4.1-2", "a run of padding beside 63 frames", lambda p: p.frame(typed(0x3D, b"") * 63 + b"\0" * 300)),
    ("probe", "VS-4.5-1", "a PROBE with filler", lambda p: p.frame(encode_frame(ProbeFrame(cluster=7, size=900)))),
    ("frame-unknown", "VS-4.11-1", "a frame of the unknown type 0x70", lambda p: p.say(UnknownFrame(type=0x70, payload=b"\xff" * 20))),
    ("frame-7f", "VS-4.11-1", "a frame of the reserved type 0x7f", lambda p: p.say(UnknownFrame(type=0x7F, payload=b""))),
    ("missing-unsent", "VS-4.10-4", "a MISSING for audio that was never sent", lambda p: p.frame(missing((60000, 32767)))),
    ("datagram-number-jumps", "VS-9.1-1", "a datagram with a number 20000 ahead", lambda p: p.say(PaddingFrame(size=1), number=20000)),
)


@case("VS-4.11-1", title="audio behind frames of unknown types: is taken with them")
async def audio_behind_unknown(peer: Met) -> Outcome:
    for pts in (0, 8, 16):
        frame = AudioFrame(pts=pts, payload=OPUS_SILENCE, talkspurt_start=pts == 0)
        peer.frame(typed(0x5C, b"zz") + encode_frame(frame, True))
    peer.control(message(0x0B, b"\x00\x18"))  # FINISH track 0 pts 24
    from voicestream.wire import Finished

    if await peer.first(Finished, 5.0) is None:
        return failed("no FINISHED for three frames of audio") if peer.end is None else failed(str(peer.end))
    return passed("FINISHED came for the audio")


@case("VS-4.9-1", "VS-8.4-3", title="a CLEAR as frame, as message, and as frame again: one CLEARED")
async def clear_twice(peer: Met) -> Outcome:
    for _ in range(5):
        peer.speak()
    clear = Clear(number=1, from_pts=0, to_pts=peer.pts)
    peer.say(ClearFrame(message=clear))
    cleared = await peer.until(lambda: next((f.message for _, f in peer.seen(ClearedFrame)), None) or peer.end, REACTION)
    peer.send(clear)
    peer.say(ClearFrame(message=clear))
    await asyncio.sleep(0.3)
    if peer.end is not None:
        return failed(str(peer.end))
    if cleared is None and not peer.seen(Cleared):
        return failed("no CLEARED")
    told = {value for _, value in peer.seen(Cleared)} | {frame.message for _, frame in peer.seen(ClearedFrame)}
    numbers = {value.number for value in told}
    if numbers != {1} or len({value.heard_pts for value in told}) > 1 + (len(peer.seen(Cleared)) > 1):
        return failed(f"CLEARED says {sorted((value.number, value.heard_pts) for value in told)}")
    return await alive(peer)


@case("VS-4.7-2", title="an answer to MISSING: the frame itself, byte for byte", reports=True)
async def retransmission_is_the_frame(peer: Met) -> Outcome:
    heard = await audio_comes(peer, 10)
    wanted = heard[-2]
    peer.say(MissingFrame(ranges=((wanted.pts, 8),)))
    again = await peer.first(RetransmissionFrame, 2.0, where=lambda frame: frame.pts == wanted.pts)
    if again is None:
        raise Unsupported("it answers MISSING with nothing, which it may")
    same = (again.payload, again.clear_number, again.talkspurt_start, again.talkspurt_end)
    if same != (wanted.payload, wanted.clear_number, wanted.talkspurt_start, wanted.talkspurt_end):
        return failed(f"pts {wanted.pts} had {len(wanted.payload)} bytes and comes again with {len(again.payload)} or other flags")
    return passed()


@case("VS-4.8-1", title="an ANCHOR far ahead, then audio there: is played, reports name the new pts")
async def anchor_moves_the_pts(peer: Met) -> Outcome:
    peer.speak()
    at = 100_000
    for n in range(8):
        own = (at + 8 * n) & 0xFFFF
        peer.say(AnchorFrame(pts=at), AudioFrame(pts=own, payload=OPUS_SILENCE, talkspurt_start=n == 0))
        await asyncio.sleep(0.02)
    near = await peer.first(ReportFrame, 3.0, where=lambda r: any((e.playhead - (at & 0xFFFF)) & 0xFFFF <= 200 for e in r.playout))
    if near is None:
        if not any(report.playout for _, report in peer.seen(ReportFrame)):
            raise Unsupported("its reports have no playout entries")
        return failed("no report has a playhead behind the anchor")
    return await alive(peer)
