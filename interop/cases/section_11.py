"""Section 11: going away and resumption."""

from __future__ import annotations

import asyncio

from interop.cases.tools import alive, audio_comes, failed, passed, refused
from interop.model import Outcome, Unsupported, case
from interop.peers.meeting import Met
from voicestream.codepoints import ErrorCode
from voicestream.wire import (
    Accept,
    AnchorFrame,
    AudioFrame,
    Confirm,
    GoingAway,
    Hello,
    Parameters,
    Reject,
    Resume,
    Resumed,
    Settings,
)

E = ErrorCode
SERVER, CLIENT = ("server",), ("client",)


async def _resume(peer: Met, accept: Accept, **changes: object) -> Met:
    """A further connection on which RESUME was sent."""
    other = await peer.again()
    own = accept.parameters
    fields = {
        "session_id": own.session_id, "resume_token": own.resume_token, "generation": own.generation,
        "token": peer.token, "authority": peer.authority, "path": peer.path,
    }  # fmt: skip
    other.send(Resume(parameters=Parameters(**{**fields, **changes})))  # type: ignore[arg-type]
    return other


async def _answer(peer: Met) -> Resumed | None:
    await peer.until(lambda: peer.hello or peer.end, 5.0)
    return peer.hello if isinstance(peer.hello, Resumed) else None


def _accept(peer: Met) -> Accept:
    if not isinstance(peer.answer, Accept):
        raise Unsupported("no ACCEPT")
    return peer.answer


@case("VS-11.3-2", "VS-5.2.5-1", title="RESUME with the token of ACCEPT: RESUMED with the next generation and another token", roles=SERVER)
async def resume_is_taken(peer: Met) -> Outcome:
    accept = _accept(peer)
    other = await _resume(peer, accept)
    answer = await _answer(other)
    if answer is None:
        return failed(f"{other.end or other.hello}")
    other.send(Confirm(generation=answer.parameters.generation or 0))
    if answer.parameters.generation != (accept.parameters.generation or 0) + 1:
        return failed(f"generation {answer.parameters.generation}")
    if answer.parameters.resume_token == accept.parameters.resume_token:
        return failed("the same token")
    other.behave()
    outcome = await alive(other)
    old = await peer.ended(3.0)
    if old is None or old.code != E.SUPERSEDED:
        return failed(f"the old connection: {old or 'stays open'}; SUPERSEDED was due")
    await other.leave()
    return outcome


@case("VS-11.3-5", title="RESUME twice before CONFIRM: the older token is taken again, and gives the same next one", roles=SERVER)
async def resume_before_confirm(peer: Met) -> Outcome:
    accept = _accept(peer)
    first = await _resume(peer, accept)
    one = await _answer(first)
    second = await _resume(peer, accept)
    two = await _answer(second)
    if one is None or two is None:
        return failed(f"first {first.end or 'RESUMED'}, second {second.end or 'RESUMED'}")
    own = [(answer.parameters.generation, answer.parameters.resume_token) for answer in (one, two)]
    second.send(Confirm(generation=two.parameters.generation or 0))
    second.behave()
    outcome = await alive(second)
    await second.leave()
    if own[0][0] != own[1][0]:
        return failed(f"generations {own[0][0]} and {own[1][0]}")
    return outcome if own[0] == own[1] else failed("another token for the same generation")


@case("VS-11.3-5", "VS-11.3-4", title="a token that was used up by CONFIRM: TOKEN_USED", roles=SERVER)
async def token_used(peer: Met) -> Outcome:
    accept = _accept(peer)
    other = await _resume(peer, accept)
    answer = await _answer(other)
    if answer is None:
        return failed(f"{other.end}")
    other.send(Confirm(generation=answer.parameters.generation or 0))
    other.behave()
    await alive(other)
    third = await _resume(peer, accept)
    outcome = await refused(third, E.TOKEN_USED)
    await other.leave()
    return outcome


@case("VS-11.3-4", title="RESUME with a changed token: TOKEN_INVALID", roles=SERVER)
async def token_changed(peer: Met) -> Outcome:
    accept = _accept(peer)
    token = bytearray(accept.parameters.resume_token or b"")
    token[len(token) // 2] ^= 1
    return await refused(await _resume(peer, accept, resume_token=bytes(token)), E.TOKEN_INVALID)


@case("VS-11.3-4", "VS-11.3-2", title="RESUME of another session with this one's token: TOKEN_INVALID or SESSION_UNKNOWN", roles=SERVER)
async def token_of_another_session(peer: Met) -> Outcome:
    return await refused(await _resume(peer, _accept(peer), session_id=bytes(16)), E.TOKEN_INVALID, E.SESSION_UNKNOWN)


@case("VS-11.3-7", title="CONFIRM of another generation: TOKEN_INVALID", roles=SERVER)
async def confirm_of_another_generation(peer: Met) -> Outcome:
    other = await _resume(peer, _accept(peer))
    if await _answer(other) is None:
        return failed(f"{other.end}")
    other.send(Confirm(generation=77))
    return await refused(other, E.TOKEN_INVALID)


@case("VS-5.5-1", "VS-11.3-6", title="SETTINGS before CONFIRM: UNEXPECTED_MESSAGE", roles=SERVER)
async def message_before_confirm(peer: Met) -> Outcome:
    other = await _resume(peer, _accept(peer))
    if await _answer(other) is None:
        return failed(f"{other.end}")
    other.send(Settings())
    return await refused(other, E.UNEXPECTED_MESSAGE)


@case("VS-11.3-1", title="the session ids of two calls: of 16 bytes, and different", roles=SERVER)
async def session_ids(peer: Met) -> Outcome:
    other = await peer.again()
    if not await other.open():
        return failed(f"no second call: {other.end}")
    ids = [_accept(one).parameters.session_id or b"" for one in (peer, other)]
    await other.leave()
    same = sum(a == b for a, b in zip(*ids, strict=True))
    return failed(f"{same} of 16 bytes are the same") if same > 8 else passed()


async def _broken(peer: Met) -> tuple[Met, Resume]:
    """Nothing is heard of the suite any more; the one on which it resumes.

    Raises:
        Unsupported: It does not resume.
    """
    peer.mute()
    for _ in range(3):
        try:
            other = await peer.again()
        except TimeoutError as error:
            raise Unsupported("it does not call again") from error
        if isinstance(other.hello, Resume):
            return other, other.hello
        if isinstance(other.hello, Hello):
            await other.leave()
            break
    raise Unsupported("it begins a new call instead of resuming")


@case(
    "VS-11.3-6",
    "VS-5.2.4-1",
    title="a lost connection: RESUME with the newest token, CONFIRM first after RESUMED",
    roles=CLIENT,
    opened=False,
)
async def client_resumes(peer: Met) -> Outcome:
    accept = peer.greeting()
    assert isinstance(accept, Accept)
    peer.send(accept)
    peer.behave()
    spoken = await audio_comes(peer, 10)
    other, resume = await _broken(peer)
    own = (resume.parameters.session_id, resume.parameters.resume_token, resume.parameters.generation)
    if own != (accept.parameters.session_id, accept.parameters.resume_token, 0):
        return failed("RESUME does not name the session, its token and its generation")
    since = len(other.log)
    other.send(Resumed(parameters=Parameters(resume_token=b"the next one", generation=1)))
    other.behave()
    first = await other.until(lambda: next((one.value for one in other.log[since:] if one.kind == "message" and not one.sent), None), 3.0)
    if not isinstance(first, Confirm) or first.generation != 1:
        return failed(f"{type(first).__name__} instead of CONFIRM")
    await other.until(lambda: True if len(other.audio()) >= 5 else None, 4.0)
    if not other.audio():
        raise Unsupported("it does not speak after the resumption")
    again = {frame.pts for frame in other.audio()} & {frame.pts for frame in spoken}
    numbers = [datagram.number for _, datagram in other.datagrams()]
    await other.leave()
    if again:
        return failed(f"pts {min(again)} is used twice (VS-6.1-1)")
    return passed() if min(numbers) == 0 else failed(f"the first datagram has number {min(numbers)}")


@case("VS-4.8-2", title="the first audio after a resumption: has an ANCHOR beside it", roles=CLIENT, opened=False)
async def anchor_after_resume(peer: Met) -> Outcome:
    peer.send(peer.greeting())
    peer.behave()
    await audio_comes(peer, 10)
    other, _ = await _broken(peer)
    other.send(Resumed(parameters=Parameters(resume_token=b"the next one", generation=1)))
    other.behave()
    await other.until(lambda: True if len(other.audio()) >= 3 else None, 4.0)
    with_audio = [d for _, d in other.datagrams() if any(isinstance(frame, AudioFrame) for frame in d.frames)]
    await other.leave()
    if not with_audio:
        raise Unsupported("it does not speak after the resumption")
    has = any(isinstance(frame, AnchorFrame) for frame in with_audio[0].frames)
    return passed() if has else failed("the first datagram with audio has none")


@case(
    "VS-11.3-15",
    title="RESUME answered with REJECT BUSY: the session is kept, and RESUME comes again",
    roles=CLIENT,
    opened=False,
    harmless=True,
)
async def busy_is_not_the_end(peer: Met) -> Outcome:
    peer.send(peer.greeting())
    peer.behave()
    await asyncio.sleep(0.3)
    other, resume = await _broken(peer)
    other.send(Reject(code=E.BUSY, parameters=Parameters(retry_after_ms=100)))
    try:
        third = await other.again()
    except TimeoutError:
        return failed("it does not ask again")
    same = isinstance(third.hello, Resume) and third.hello.parameters.session_id == resume.parameters.session_id
    third.send(Reject(code=E.SESSION_UNKNOWN))
    return passed() if same else failed("a new call instead")


@case("VS-11.2-1", title="GOING_AWAY: the call goes on")
async def going_away(peer: Met) -> Outcome:
    peer.send(GoingAway(parameters=Parameters(reason="maintenance", retry_after_ms=60000)))
    return await alive(peer)


@case("VS-11.1-1", title="silence instead of HELLO: HANDSHAKE_TIMEOUT", roles=SERVER, opened=False, slow=True)
async def no_hello(peer: Met) -> Outcome:
    return await refused(peer, E.HANDSHAKE_TIMEOUT, timeout=14.0)


@case("VS-11.1-1", title="silence instead of ACCEPT: HANDSHAKE_TIMEOUT", roles=CLIENT, opened=False, slow=True)
async def no_accept(peer: Met) -> Outcome:
    return await refused(peer, E.HANDSHAKE_TIMEOUT, timeout=14.0)
