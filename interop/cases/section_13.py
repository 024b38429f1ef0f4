"""Section 13: how a session ends."""

from __future__ import annotations

import asyncio

from interop.cases.tools import failed, passed, refused
from interop.model import Outcome, Unsupported, case
from interop.peers.meeting import Met
from voicestream.codepoints import ErrorCode
from voicestream.wire import Close

E = ErrorCode


@case("VS-13.1-2", "VS-13.1-1", "VS-13.2-1", title="CLOSE with an unknown code: is a CLOSE; the connection is closed with NO_ERROR")
async def close_with_unknown_code(peer: Met) -> Outcome:
    peer.send(Close(code=0x3D, reason="grease"))
    peer.is_closing = True
    await peer.until(lambda: peer.gone, 3.0)
    if peer.close_message is not None:
        return failed(f"answers with {peer.close_message}")
    return await refused(peer, E.NO_ERROR)


@case("VS-13.2-2", title="after CLOSE: the far end sends nothing more")
async def nothing_after_close(peer: Met) -> Outcome:
    await asyncio.sleep(0.2)
    peer.is_closing = True
    peer.send(Close(code=E.NO_ERROR))
    await asyncio.sleep(0.25)
    since = len(peer.log)
    await asyncio.sleep(0.5)
    late = [one for one in peer.log[since:] if not one.sent and one.kind in ("datagram", "message", "event")]
    return failed(f"{len(late)} things more: {late[0].told()}") if late else passed()


async def _broken_rule(peer: Met) -> Close | None:
    peer.raw_datagram(b"\0")
    await peer.until(lambda: peer.gone, 4.0)
    return next((value for _, value in peer.seen(Close)), None)


@case("VS-13.2-4", title="CLOSE after an error of encoding: MAY_RESUME is not set")
async def error_is_not_resumable(peer: Met) -> Outcome:
    close = await _broken_rule(peer)
    if close is None:
        raise Unsupported("no CLOSE came before the connection was closed")
    return failed("MAY_RESUME is set") if close.may_resume else passed()


@case("VS-13.1-3", title="an error: CLOSE and CONNECTION_CLOSE carry the same code")
async def codes_agree(peer: Met) -> Outcome:
    close = await _broken_rule(peer)
    if peer.gone is None:
        return failed("the connection stays open after an error")
    if close is None:
        raise Unsupported("no CLOSE came before the connection was closed")
    return passed() if close.code == peer.gone.code else failed(f"CLOSE {close.code}, CONNECTION_CLOSE {peer.gone.code}")


@case("VS-13.1-4", title="a datagram whose last frame is malformed: none of its frames is acted on")
async def malformed_is_not_acted_on(peer: Met) -> Outcome:
    from voicestream.wire import Clear, Cleared, ClearedFrame, ClearFrame, encode_frame

    peer.frame(encode_frame(ClearFrame(message=Clear(number=1, from_pts=0, to_pts=8))) + b"\x3d\x05a")
    await peer.ended(3.0)
    if peer.seen(Cleared) or peer.seen(ClearedFrame):
        return failed("a CLEAR in it was confirmed")
    return await refused(peer, E.FRAME_ENCODING_ERROR)
