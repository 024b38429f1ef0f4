"""Section 10: repair."""

from __future__ import annotations

import asyncio
from functools import cache

from interop.cases.tools import audio_comes, failed, passed, takes
from interop.model import Outcome, Unsupported, case
from interop.peers.meeting import Met
from interop.peers.raw import OPUS_SILENCE
from voicestream.wire import AudioFrame, Finish, Finished, MissingFrame, RepairFrame


@cache
def powers() -> tuple[int, ...]:
    """2 to the power of 0 to 254 in GF(256)."""
    found, value = [], 1
    for _ in range(255):
        found.append(value)
        value = value << 1 ^ (0x11D if value & 0x80 else 0)
    return tuple(found)


def times(one: int, other: int) -> int:
    """Their product in GF(256)."""
    product = 0
    while other:
        product ^= one if other & 1 else 0
        one = one << 1 ^ (0x11D if one & 0x80 else 0)
        other >>= 1
    return product


def symbol_of(frames: list[AudioFrame], key: int) -> bytes:
    """The repair symbol over these frames (their pts being full), as section 10 has it."""
    size = 3 + max(len(frame.payload) for frame in frames)
    total = bytearray(size)
    for frame in frames:
        flags = frame.talkspurt_start << 3 | frame.talkspurt_end << 2 | frame.clear_number
        source = bytes([flags]) + len(frame.payload).to_bytes(2, "big") + frame.payload
        factor = powers()[key * frame.pts % 255]
        for at, byte in enumerate(source):
            total[at] ^= times(factor, byte)
    return bytes(total)


takes(
    ("repair-garbage", "VS-10.3-1", "a REPAIR that decodes to garbage", lambda p: _garbage(p)),
    ("repair-below-0", "VS-10.3-3", "a REPAIR with a source below pts 0",
     lambda p: p.say(RepairFrame(key=1, newest_pts=8, runs=((3, 8),), symbol=bytes(9)))),
)  # fmt: skip


def _garbage(peer: Met) -> None:
    peer.speak()
    peer.pts += 8
    peer.speak()
    peer.say(RepairFrame(key=1, newest_pts=16, runs=((2, 8),), symbol=b"\xff" * 11))


@case("VS-10.3-2", title="a lost frame with its REPAIR: is played, and not asked for")
async def repair_is_used(peer: Met) -> Outcome:
    frames = [AudioFrame(pts=8 * n, payload=OPUS_SILENCE[:-1] + bytes([n]), talkspurt_start=n == 0) for n in range(10)]
    for n, frame in enumerate(frames):
        if n == 6:
            peer.number += 1
        else:
            extra = [RepairFrame(key=5, newest_pts=56, runs=((3, 8),), symbol=symbol_of(frames[4:8], 5))] if n == 7 else []
            peer.say(*extra, frame)
        await asyncio.sleep(0.02)
    peer.pts = 80
    peer.send(Finish(pts=80))
    if await peer.first(Finished, 5.0) is None and peer.end is not None:
        return failed(str(peer.end))
    asked = [pair for _, frame in peer.seen(MissingFrame) for pair in frame.ranges if pair[0] <= 48 < pair[0] + pair[1]]
    # Asked once before the repair came would be no fault.
    return passed(asked=float(len(asked))) if len(asked) <= 2 else failed(f"asked for {len(asked)} times")


@case("VS-10.2-1", "VS-10.1-1", title="REPAIR frames of the far end, when reports name losses: combine its frames as section 10 says")
async def repairs_are_right(peer: Met) -> Outcome:
    await audio_comes(peer, 5)
    peer.losses = 4
    repairs = await peer.until(lambda: peer.seen(RepairFrame) if len(peer.seen(RepairFrame)) >= 2 else None, 8.0)
    if not repairs:
        raise Unsupported("it sends no REPAIR, which is its choice")
    spoken = {frame.pts: frame for frame in peer.audio()}
    checked = 0
    for _, repair in repairs:
        wanted, pts = [repair.newest_pts], repair.newest_pts
        for count, step in repair.runs:
            wanted += [pts := pts - step for _ in range(count)]
        if all(one in spoken for one in wanted):
            if symbol_of([spoken[one] for one in wanted], repair.key) != repair.symbol:
                return failed(f"key {repair.key} over pts {wanted}: another symbol")
            checked += 1
    if not checked:
        raise Unsupported("none of its REPAIR frames is over frames that came")
    return passed(f"{checked} repairs")
