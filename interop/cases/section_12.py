"""Section 12: registries. Unknown values are also in the cases of the sections that skip them."""

from __future__ import annotations

import asyncio

from interop.cases.tools import alive, message, number
from interop.model import Outcome, case
from interop.peers.meeting import Met
from voicestream.wire import UnknownFrame


@case("VS-12.1-3", title="reserved values everywhere at once: are skipped", talk=True)
async def grease_everywhere(peer: Met) -> Outcome:
    for n in range(5):
        peer.control(message(0x3D + 0x1F * n, bytes(n)))
        peer.stream(number(0x3D + 0x1F * n) + bytes(n))
        peer.event(b"grease", kind=0x3D + 0x1F * n, event_id=100 + n)
    for kind in (0x3D, 0x5C, 0x7B):
        peer.say(UnknownFrame(type=kind, payload=b"\xff" * kind))
    await asyncio.sleep(0.2)
    return await alive(peer)
