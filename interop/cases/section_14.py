"""Section 14: limits. A peer may have others than the defaults: what counts is that it outlives the flood or ends the session."""

from __future__ import annotations

import asyncio

from interop.cases.tools import alive, failed, passed, refused
from interop.model import Outcome, case
from interop.peers.meeting import Met
from voicestream.codepoints import ErrorCode
from voicestream.wire import MissingFrame, Parameters, Settings

E = ErrorCode


async def _outlived(peer: Met) -> Outcome:
    """LIMIT_EXCEEDED, or it goes on as before."""
    if await peer.ended(1.0) is not None:
        return await refused(peer, E.LIMIT_EXCEEDED)
    outcome = await alive(peer, 8.0)
    return outcome if peer.end is None else await refused(peer, E.LIMIT_EXCEEDED)


@case("VS-14-1", title="3000 control messages at once: LIMIT_EXCEEDED, or taken")
async def flood_of_messages(peer: Met) -> Outcome:
    from voicestream.wire import encode_message

    peer.control(b"".join(encode_message(Settings(parameters=Parameters(max_rate_bps=64000))) for _ in range(3000)))
    return await _outlived(peer)


@case("VS-14-1", title="600 events in half a second: LIMIT_EXCEEDED, or taken", slow=True)
async def flood_of_events(peer: Met) -> Outcome:
    for n in range(600):
        peer.event(b"x", event_id=n + 1)
        if n % 120 == 119:
            await asyncio.sleep(0.1)
    return await _outlived(peer)


@case("VS-14-1", title="600 datagrams full of questions: LIMIT_EXCEEDED, or answered within bounds", slow=True)
async def flood_of_questions(peer: Met) -> Outcome:
    for n in range(600):
        peer.say(*[MissingFrame(ranges=tuple((8 * k, 8) for k in range(32)))] * 5)
        if n % 50 == 49:
            await asyncio.sleep(0.05)
    return await _outlived(peer)


@case("VS-15-4", title="a thousand random datagrams: an error with a code of section 13, and no crash", slow=True)
async def random_datagrams(peer: Met) -> Outcome:
    import random

    rng = random.Random(7)
    for n in range(1000):
        peer.frame(rng.randbytes(rng.randrange(1, 60)))
        if n % 100 == 99:
            await asyncio.sleep(0.02)
        if peer.end is not None:
            break
    end = await peer.ended(2.0)
    if end is None:
        return await alive(peer)
    return passed(str(end)) if end.code <= max(ErrorCode) and end.code != E.INTERNAL_ERROR else failed(str(end))
