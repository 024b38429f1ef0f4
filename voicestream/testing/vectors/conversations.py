"""The conversations of the test vectors: handshakes, clears and resumptions as they should go, and where a peer breaks a rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from voicestream.codepoints import ErrorCode
from voicestream.config import Track
from voicestream.testing.vectors.stage import AUTHORITY, Stage
from voicestream.wire import (
    Accept,
    AnchorFrame,
    AudioFrame,
    Clear,
    Confirm,
    Datagram,
    Finish,
    Finished,
    Hello,
    Message,
    Parameters,
    Progress,
    ReportFrame,
    Resume,
    UnknownMessage,
)

__all__ = ["conversations"]

Script = Callable[[Stage], None]
HELLO: Final = Parameters(authority=AUTHORITY, path="/agent", tracks=(Track(),))
ACCEPT: Final = Parameters(session_id=bytes(16), resume_token=b"sealed", generation=0, lifetime_ms=60000, tracks=(Track(),))


def _frame(serial: int) -> str:
    """An Opus packet of 20 ms."""
    return f"08{serial:02x}"


def call(stage: Stage) -> None:
    """HELLO and ACCEPT."""
    stage.do("server", "wait")
    stage.do("client", "call")
    stage.exchange()


def talk(stage: Stage, side: str, count: int, *, start: bool = True, serial: int = 0) -> None:
    """So many frames, one every 20 ms."""
    for index in range(count):
        stage.do(side, "send", payload=_frame(serial + index), talkspurt_start=start and index == 0)
        stage.exchange()
        stage.wait(20)


def close(stage: Stage, side: str = "client") -> None:
    """The call ends as intended."""
    stage.do(side, "close")
    stage.exchange()


# ----------------------------------------------------------------------------- as it should go


def _hello_accept_close(stage: Stage) -> None:
    call(stage)
    close(stage)


def _server_closes(stage: Stage) -> None:
    call(stage)
    talk(stage, "client", 2)
    stage.do("server", "close", code=int(ErrorCode.HANDLER_ERROR), reason="the agent failed")
    stage.exchange()


def _rejected(**answer: Any) -> Script:
    def script(stage: Stage) -> None:
        stage.do("server", "answer", **{"with": {"do": "reject", **answer}})
        call(stage)

    return script


def _greased(stage: Stage) -> None:
    stage.do("server", "wait")
    lists = Parameters(authority=AUTHORITY, path="/agent", tracks=(Track(),), unknown=((0x3D, b"\x01"), (0x1F * 9 + 0x3D, b"")))
    stage.say("client", Hello(parameters=lists))
    stage.say("client", UnknownMessage(type=0x3D, payload=b"any"))
    stage.exchange()


def _event_and_finish(stage: Stage) -> None:
    call(stage)
    stage.do("client", "event", payload=b'{"turn":1}'.hex())
    talk(stage, "client", 2)
    stage.do("client", "finish")
    stage.exchange()
    stage.do("server", "play", pts=16)
    stage.exchange()
    close(stage)


def _cleared_by_sender(stage: Stage) -> None:
    call(stage)
    talk(stage, "server", 3)
    stage.do("client", "play", pts=8)
    stage.do("server", "clear", outgoing=True)
    stage.exchange()
    stage.wait(40)
    stage.do("client", "play", pts=8)
    stage.exchange()
    talk(stage, "server", 2, serial=16)
    stage.wait(100)


def _cleared_by_receiver(stage: Stage) -> None:
    call(stage)
    talk(stage, "server", 3)
    stage.do("client", "play", pts=8)
    stage.do("client", "clear", outgoing=False)
    stage.exchange()
    stage.wait(110)
    talk(stage, "server", 2, serial=16)
    stage.wait(100)


def _cleared_by_both(stage: Stage) -> None:
    call(stage)
    talk(stage, "server", 3)
    stage.do("server", "send", payload=_frame(3), talkspurt_start=False)
    stage.do("client", "clear", outgoing=False)
    stage.do("server", "clear", outgoing=True)
    stage.exchange()
    stage.wait(110)
    talk(stage, "server", 1, serial=16)
    stage.wait(100)


def _clear_overtaken(stage: Stage) -> None:
    call(stage)
    talk(stage, "server", 3)
    stage.do("server", "clear", outgoing=True)
    stage.do("server", "send", payload=_frame(16), talkspurt_start=True)
    stage.exchange(first="datagram")
    stage.wait(110)


def _resumed(stage: Stage) -> None:
    call(stage)
    talk(stage, "server", 2)
    stage.lose()
    stage.wait(500)
    stage.resume()
    stage.exchange()
    talk(stage, "server", 2, serial=2)
    talk(stage, "client", 2)
    close(stage)


def _resumed_with_a_hole(stage: Stage) -> None:
    call(stage)
    talk(stage, "server", 2)
    stage.lose()
    for serial in (2, 3):
        stage.do("server", "send", payload=_frame(serial), talkspurt_start=False)
        stage.wait(20, quiet=True)
    stage.resume()
    stage.exchange()
    stage.wait(200)
    talk(stage, "server", 1, start=False, serial=4)
    close(stage)


def _resumed_twice(stage: Stage) -> None:
    _resumed_until_lost(stage)
    stage.resume()
    stage.exchange()
    close(stage)


def _resumed_until_lost(stage: Stage) -> None:
    call(stage)
    for _ in range(2):
        stage.lose()
        stage.wait(300)
        if _ == 0:
            stage.resume()
            stage.exchange()
            stage.wait(100)


def _answer_lost(stage: Stage) -> None:
    """RESUMED does not reach the client: the older token is still good."""
    call(stage)
    stage.lose()
    stage.wait(300)
    stage.resume()
    stage.exchange_one("client")
    stage.lose()
    stage.wait(300)
    stage.resume()
    stage.exchange()
    close(stage)


VALID: Final[list[tuple[str, str, list[str], Script]]] = [
    ("handshake", "a call is taken and ended by its client", ["VS-5.1-1", "VS-5.5-2", "VS-13.2-1"], _hello_accept_close),
    ("handshake", "a server ends a call with a reason", ["VS-5.5-2", "VS-13.2-2"], _server_closes),
    ("handshake", "a server is full", ["VS-5.5-2"], _rejected(code=int(ErrorCode.BUSY), reason="full", retry_after_ms=2000)),
    ("handshake", "a server sends its client elsewhere", ["VS-5.2.3-1"], _rejected(code=int(ErrorCode.REDIRECT), uri="voicestream://b.example/")),
    ("handshake", "unknown parameters and messages are skipped", ["VS-5.1-2", "VS-5.3-1", "VS-12.1-3"], _greased),
    ("handshake", "an event, and a track that is played to its end", ["VS-7.3-1", "VS-8.6-2"], _event_and_finish),
    ("clear", "the sender takes back what it said", ["VS-8.1-1", "VS-8.1-6", "VS-8.2-1", "VS-8.4-1"], _cleared_by_sender),
    ("clear", "the receiver interrupts", ["VS-8.1-1", "VS-8.1-3", "VS-8.2-1", "VS-8.2-3"], _cleared_by_receiver),
    ("clear", "both begin at once", ["VS-8.1-4", "VS-8.2-1"], _cleared_by_both),
    ("clear", "audio overtakes the message", ["VS-8.1-7", "VS-8.1-8", "VS-8.2-1"], _clear_overtaken),
    ("resume", "a connection breaks in silence", ["VS-11.3-6", "VS-6.1-1"], _resumed),
    ("resume", "what was said in the break is sent again", ["VS-11.3-10", "VS-6.5-3"], _resumed_with_a_hole),
    ("resume", "twice, each time with the newest token", ["VS-11.3-5", "VS-11.3-6"], _resumed_twice),
    ("resume", "the answer is lost, and the older token still good", ["VS-11.3-5"], _answer_lost),
]

# ----------------------------------------------------------------------------- where a rule is broken


def _after(before: Script, side: str, *values: Message | Datagram | bytes) -> Script:
    def script(stage: Stage) -> None:
        before(stage)
        for value in values:
            stage.say(side, value)

    return script


def _waiting(stage: Stage) -> None:
    stage.do("server", "wait")


def _calling(stage: Stage) -> None:
    stage.do("server", "wait")
    stage.do("client", "call")
    stage.exchange_one("client", deliver=False)


def _heard(stage: Stage) -> None:
    call(stage)
    talk(stage, "client", 1)
    stage.wait(110)


def _finished(stage: Stage) -> None:
    call(stage)
    talk(stage, "client", 1)
    stage.do("client", "finish")
    stage.exchange()


def _resuming(stage: Stage) -> None:
    call(stage)
    stage.lose()
    stage.do("server", "wait")


def _taken_over(stage: Stage) -> None:
    """The server has answered RESUMED; CONFIRM has not come."""
    call(stage)
    stage.lose()
    stage.resume()
    stage.exchange_one("client")
    stage.exchange_one("server", deliver=False)


def _bad_token(stage: Stage, *, session_id: bytes | None = None) -> None:
    _resuming(stage)
    accept = next(step for step in stage.steps if step.get("value", {}).get("message") == "ACCEPT")
    known = bytes.fromhex(accept["value"]["parameters"]["session_id"])
    lists = Parameters(session_id=known if session_id is None else session_id, resume_token=b"never sealed", generation=0)
    uses = {"session_id": stage.steps.index(accept)} if session_id is None else {}
    stage.say("client", Resume(parameters=lists), **({"uses": uses} if uses else {}))


def _audio(number: int, **values: Any) -> Datagram:
    frame = AudioFrame(**{"pts": 0, "payload": bytes.fromhex(_frame(0)), "talkspurt_start": True, **values})
    return Datagram(number=number, send_tick=0, frames=(frame,))


def _framed(number: int, *frames: Any) -> Datagram:
    return Datagram(number=number, send_tick=0, frames=frames)


_T1: Final = Track(track_id=1)
INVALID: Final[list[tuple[str, str, str, str, Script]]] = [
    ("handshake", "a datagram before ACCEPT", "AUDIO_BEFORE_ACCEPT", "VS-5.5-3", _after(_waiting, "client", _audio(0))),
    ("handshake", "a call does not begin with CONFIRM", "UNEXPECTED_MESSAGE", "VS-5.5-1",
     _after(_waiting, "client", Confirm(generation=0))),
    ("handshake", "HELLO twice", "UNEXPECTED_MESSAGE", "VS-5.5-1", _after(call, "client", Hello(parameters=HELLO))),
    ("handshake", "an unknown version", "VERSION_UNSUPPORTED", "VS-3.1-2",
     _after(_waiting, "client", Hello(version=2, parameters=Parameters()))),
    ("handshake", "no track in common", "TRACK_ERROR", "VS-5.2.2-2",
     _after(_waiting, "client", Hello(parameters=Parameters(authority=AUTHORITY, path="/", tracks=(Track(codec=0x3F),))))),
    ("handshake", "the control stream ends without CLOSE", "CONTROL_STREAM_ERROR", "VS-5.1-5", _after(call, "client", b"")),
    ("handshake", "ACCEPT of a track that was not offered", "TRACK_ERROR", "VS-5.2.2-2",
     _after(_calling, "server", Accept(parameters=Parameters(session_id=bytes(16), resume_token=b"sealed", generation=0, lifetime_ms=60000,
                                                             tracks=(_T1,))))),
    ("handshake", "ACCEPT twice", "UNEXPECTED_MESSAGE", "VS-5.5-1", _after(call, "server", Accept(parameters=ACCEPT))),
    ("handshake", "a message of the other side", "UNEXPECTED_MESSAGE", "VS-5.5-1", _after(call, "server", Confirm(generation=0))),
    ("handshake", "media of a track that was not agreed", "TRACK_ERROR", "VS-5.2-2", _after(call, "client", _audio(0, track=2))),
    ("handshake", "a coded frame that is none", "MEDIA_ERROR", "VS-6.4-1", _after(call, "client", _audio(0, payload=b"\x0b"))),
    ("handshake", "a pts beyond all reason", "TRACK_ERROR", "VS-6.1-3", _after(call, "server", _framed(0, AnchorFrame(pts=1 << 60)))),
    ("handshake", "a report of what was never sent", "REPORT_ERROR", "VS-9.3-1",
     _after(_heard, "server", _framed(7, ReportFrame(newest=40, arrival=0)))),
    ("handshake", "audio after the end", "TRACK_ERROR", "VS-8.6-3", _after(_finished, "client", _audio(9, pts=8))),
    ("handshake", "a second end", "UNEXPECTED_MESSAGE", "VS-8.6-4", _after(_finished, "client", Finish(pts=8))),
    ("handshake", "FINISHED of what goes on", "UNEXPECTED_MESSAGE", "VS-8.6-4", _after(_heard, "server", Finished(played_pts=8))),
    ("clear", "a number beyond all reason", "PARAMETER_ERROR", "VS-8.1-10",
     _after(_heard, "client", Clear(number=1025, from_pts=0, to_pts=8))),
    ("clear", "a request for audio far ahead", "PARAMETER_ERROR", "VS-8.1-10",
     _after(_heard, "server", Clear(number=1, from_receiver=True, from_pts=0, to_pts=8 + 4001))),
    ("clear", "of a track that was not agreed", "TRACK_ERROR", "VS-5.2-2",
     _after(_heard, "client", Clear(track=1, number=1, from_pts=0, to_pts=8))),
    ("resume", "a token that was never sealed", "TOKEN_INVALID", "VS-11.3-4", _bad_token),
    ("resume", "a session that nobody has", "SESSION_UNKNOWN", "VS-11.3-4", lambda stage: _bad_token(stage, session_id=bytes(16))),
    ("resume", "CONFIRM of another generation", "TOKEN_INVALID", "VS-11.3-7", _after(_taken_over, "client", Confirm(generation=2))),
    ("resume", "a message before CONFIRM", "UNEXPECTED_MESSAGE", "VS-11.3-6", _after(_taken_over, "client", Progress(played_pts=0))),
]  # fmt: skip


def _linked(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Say which steps carry what the other side chose before: session id and token."""
    given: dict[str, int] = {}
    for index, step in enumerate(steps):
        value = step.get("value", {})
        lists = value.get("parameters", {})
        if value.get("message") == "RESUME" and "uses" not in step and step.get("must"):
            step["uses"] = {name: given[name] for name in ("session_id", "resume_token")}
        if value.get("message") in ("ACCEPT", "RESUMED"):
            given |= {name: index for name in ("session_id", "resume_token") if name in lists}
    return steps


def conversations(kind: str) -> list[dict[str, Any]]:
    """The groups of a file: "handshake", "clear" or "resume"."""
    valid, invalid = [], []
    for of, comment, requirements, script in VALID:
        if of == kind:
            stage = Stage(comment)
            script(stage)
            valid.append({"comment": comment, "requirements": requirements, "steps": _linked(stage.steps)})
    for of, comment, error, breaks, script in INVALID:
        if of == kind:
            stage = Stage(comment)
            script(stage)
            invalid.append({"comment": comment, "error": error, "breaks": breaks, "steps": _linked(stage.steps)})
    return [*valid, *invalid]
