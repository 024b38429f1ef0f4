"""Section 5: the control stream, its messages, their parameters and their order."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from interop.cases.tools import alive, failed, message, number, parameter, passed, refusals, refused, takes
from interop.model import Outcome, case
from interop.peers.meeting import Met
from interop.peers.raw import CONTROL, OPUS_SILENCE
from voicestream.codepoints import ErrorCode, MessageType, ParameterId
from voicestream.wire import (
    Accept,
    AudioFrame,
    Cleared,
    Confirm,
    Finish,
    Hello,
    Parameters,
    Progress,
    ReportFrame,
    Resume,
    Settings,
    encode_parameters,
)

E, M, P = ErrorCode, MessageType, ParameterId
SERVER, CLIENT = ("server",), ("client",)

# 5.1 and 5.2

refusals(
    ("first-settings", "VS-5.5-1 VS-5.1-1", "SETTINGS before HELLO", lambda p: p.send(Settings())),
    ("first-confirm", "VS-5.5-1 VS-5.1-1", "CONFIRM before HELLO", lambda p: p.send(Confirm(generation=1))),
    code=E.UNEXPECTED_MESSAGE, roles=SERVER, opened=False,
)  # fmt: skip
refusals(
    ("before-accept", "VS-5.5-1", "SETTINGS before ACCEPT", lambda p: p.send(Settings())),
    ("hello-to-client", "VS-5.5-1", "HELLO instead of ACCEPT", lambda p: p.send(Hello(parameters=_hello_parameters()))),
    code=E.UNEXPECTED_MESSAGE, roles=CLIENT, opened=False,
)  # fmt: skip
refusals(
    ("second-hello", "VS-5.5-1", "a second HELLO", lambda p: p.send(Hello(parameters=_hello_parameters()))),
    ("confirm-unasked", "VS-5.5-1", "CONFIRM in a call that was not resumed", lambda p: p.send(Confirm(generation=1))),
    ("second-accept", "VS-5.5-1", "ACCEPT in an open call", lambda p: p.control(message(M.ACCEPT, number(1) + _accept_parameters()))),
    ("resume-in-call", "VS-5.5-1", "RESUME in an open call", lambda p: p.send(Resume(parameters=_resume_parameters()))),
    code=E.UNEXPECTED_MESSAGE,
)
takes(
    ("message-unknown", "VS-5.1-2 VS-12.1-3", "a message of an unknown type", lambda p: p.control(message(0x5C, b"anything"))),
    ("message-unknown-4096", "VS-5.1-3", "an unknown message of 4096 bytes", lambda p: p.control(message(0x3D, bytes(4096)))),
    ("settings-repeated", "VS-11.3-13", "SETTINGS twice", lambda p: p.send(*[Settings(parameters=Parameters(max_rate_bps=64000))] * 2)),
)
refusals(
    ("message-4097", "VS-5.1-3", "4097 bytes of SETTINGS announced", lambda p: p.control(number(M.SETTINGS) + number(4097))),
    ("unknown-4097", "VS-5.1-3", "4097 bytes of an unknown message announced", lambda p: p.control(number(0x5C) + number(4097))),
    code=E.MESSAGE_TOO_LARGE,
)
refusals(
    ("hello-8193", "VS-5.1-3", "8193 bytes of HELLO announced", lambda p: p.control(number(M.HELLO) + number(8193))),
    code=E.MESSAGE_TOO_LARGE, roles=SERVER, opened=False,
)  # fmt: skip
refusals(
    ("message-cut", "VS-5.1-4", "a CLEAR that ends inside a field", lambda p: p.control(message(M.CLEAR, b"\x00\x01\x00"))),
    ("message-trailing", "VS-5.1-4", "a PROGRESS with a byte behind it", lambda p: p.control(message(M.PROGRESS, b"\x00\x00\x00"))),
    ("cleared-message-trailing", "VS-5.1-4", "a CLEARED with two bytes behind it", lambda p: p.control(message(M.CLEARED, b"\0\0\0\0\0"))),
    ("track-4", "VS-5.2-1", "PROGRESS for track 4", lambda p: p.control(message(M.PROGRESS, b"\x04\x00"))),
    ("clear-backwards", "VS-5.2.8-1", "CLEAR from pts 9 to pts 8", lambda p: p.control(message(M.CLEAR, b"\x00\x01\x00\x09\x08"))),
    (
        "reason-1025",
        "VS-5.2.14-1",
        "CLOSE with a reason of 1025 bytes",
        lambda p: p.control(message(M.CLOSE, b"\0\0" + number(1025) + bytes(1025))),
    ),
    ("reason-not-text", "VS-5.2.14-1", "CLOSE with a reason that is no UTF-8", lambda p: p.control(message(M.CLOSE, b"\0\0\x02\xff\xfe"))),
    code=E.MESSAGE_ENCODING_ERROR,
)
refusals(
    ("end-inside", "VS-5.1-5", "the end of the stream inside a message", lambda p: p.control(b"\x07\x05\x08", fin=True)),
    ("end-without-close", "VS-5.1-5", "the end of the stream without CLOSE", lambda p: p.control(b"", fin=True)),
    ("control-reset", "VS-5.1-5", "a reset of the control stream", lambda p: p.reset(CONTROL)),
    code=E.CONTROL_STREAM_ERROR,
)
refusals(
    ("progress-of-no-track", "VS-5.2-2", "PROGRESS for a track that was not agreed", lambda p: p.send(Progress(track=3, played_pts=0))),
    ("finish-of-no-track", "VS-5.2-2", "FINISH for a track that was not agreed", lambda p: p.send(Finish(track=2, pts=0))),
    (
        "audio-of-no-track",
        "VS-5.2-2",
        "audio of a track that was not agreed",
        lambda p: p.say(AudioFrame(track=3, pts=0, payload=OPUS_SILENCE)),
    ),
    (
        "cleared-of-no-track",
        "VS-5.2-2",
        "CLEARED for a track that was not agreed",
        lambda p: p.send(Cleared(track=3, number=0, heard_pts=0)),
    ),
    code=E.TRACK_ERROR,
)


# 5.3 and 5.4: lists that the suite makes of good ones.


def _hello_parameters() -> Parameters:
    from voicestream.config import Track

    return Parameters(authority="suite", path="/", tracks=(Track(),))


def _accept_parameters() -> bytes:
    from voicestream.config import Track

    own = Parameters(session_id=os.urandom(16), resume_token=b"token", generation=0, lifetime_ms=60000, tracks=(Track(),))
    return encode_parameters(own)


def _resume_parameters() -> Parameters:
    return Parameters(session_id=os.urandom(16), resume_token=b"token", generation=0)


def _good(peer: Met, without: int | None) -> bytes:
    """The peer's own list, perhaps without a parameter."""
    if without is None:
        return encode_parameters(peer.parameters())
    name = P(without).name.lower()
    return encode_parameters(peer.parameters(**{"tracks" if without == P.TRACK else name: () if without == P.TRACK else None}))


def _greet(extra: bytes = b"", without: int | None = None) -> Callable[[Met], Any]:
    """HELLO or ACCEPT with something behind its list."""

    def send(peer: Met) -> None:
        kind = M.HELLO if peer.against == "server" else M.ACCEPT
        peer.control(message(kind, number(1) + _good(peer, without) + extra))

    return send


def _track(*values: int, rest: bytes = b"") -> bytes:
    return parameter(P.TRACK, b"".join(map(number, values)) + rest)


refusals(
    ("no-authority", "VS-5.2.1-1", "HELLO without AUTHORITY", _greet(without=P.AUTHORITY)),
    ("no-path", "VS-5.2.1-1", "HELLO without PATH", _greet(without=P.PATH)),
    ("path-no-slash", "VS-5.4-1 VS-5.3-5", "a PATH that does not begin with a slash", _greet(parameter(P.PATH, b"x"), P.PATH)),
    ("path-empty", "VS-5.4-1 VS-5.3-5", "an empty PATH", _greet(parameter(P.PATH, b""), P.PATH)),
    ("authority-not-text", "VS-5.4-2 VS-5.3-5", "an AUTHORITY that is no UTF-8", _greet(parameter(P.AUTHORITY, b"\xff"), P.AUTHORITY)),
    ("authority-256", "VS-5.4-1 VS-5.3-5", "an AUTHORITY of 256 bytes", _greet(parameter(P.AUTHORITY, b"a" * 256), P.AUTHORITY)),
    ("token-2049", "VS-5.4-1 VS-5.3-5", "a TOKEN of 2049 bytes", _greet(parameter(P.TOKEN, bytes(2049)))),
    ("duplicate-path", "VS-5.3-5 VS-5.3-4", "PATH twice", _greet(parameter(P.PATH, b"/"))),
    code=E.PARAMETER_ERROR, roles=SERVER, opened=False,
)  # fmt: skip
refusals(
    ("no-session-id", "VS-5.2.2-1", "ACCEPT without SESSION_ID", _greet(without=P.SESSION_ID)),
    ("no-resume-token", "VS-5.2.2-1", "ACCEPT without RESUME_TOKEN", _greet(without=P.RESUME_TOKEN)),
    ("no-generation", "VS-5.2.2-1", "ACCEPT without GENERATION", _greet(without=P.GENERATION)),
    ("no-lifetime", "VS-5.2.2-1", "ACCEPT without LIFETIME_MS", _greet(without=P.LIFETIME_MS)),
    ("session-id-15", "VS-5.4-1 VS-5.3-5", "a SESSION_ID of 15 bytes", _greet(parameter(P.SESSION_ID, bytes(15)), P.SESSION_ID)),
    ("duplicate-generation", "VS-5.3-5 VS-5.3-4", "GENERATION twice", _greet(parameter(P.GENERATION, b"\0"))),
    code=E.PARAMETER_ERROR, roles=CLIENT, opened=False,
)  # fmt: skip
refusals(
    ("no-track", "VS-5.2.1-1 VS-5.2.2-1", "HELLO or ACCEPT without TRACK", _greet(without=P.TRACK)),
    ("list-cut", "VS-5.3-5", "a list that ends inside a parameter", _greet(b"\x0a\x04\x80")),
    ("duplicate-lookahead", "VS-5.3-5 VS-5.3-4", "LOOKAHEAD_MS twice", _greet(parameter(P.LOOKAHEAD_MS, number(150)))),
    ("duplicate-track", "VS-5.3-5", "track 0 twice", _greet(_track(0, 1, 48000, 1, 3, 0))),
    ("lookahead-501", "VS-5.4-1 VS-5.3-5", "a LOOKAHEAD_MS of 501", _greet(parameter(P.LOOKAHEAD_MS, number(501)), P.LOOKAHEAD_MS)),
    ("number-trailing", "VS-5.3-5", "a number with a byte behind it", _greet(parameter(P.RETAIN_MS, b"\x05\x05"))),
    ("number-empty", "VS-5.3-5", "a number without bytes", _greet(parameter(P.RETAIN_MS, b""))),
    ("datagram-size-255", "VS-5.4-1 VS-5.3-5", "a MAX_DATAGRAM_SIZE of 255", _greet(parameter(P.MAX_DATAGRAM_SIZE, number(255)))),
    ("metadata-4097", "VS-5.4-1 VS-5.3-5", "METADATA of 4097 bytes", _greet(parameter(P.METADATA, bytes(4097)))),
    ("track-number-4", "VS-5.4-5", "a TRACK with number 4", _greet(_track(4, 1, 48000, 1, 3, 0))),
    ("track-channels-9", "VS-5.4-5", "a TRACK with 9 channels", _greet(_track(1, 1, 48000, 9, 3, 0))),
    ("track-direction-0", "VS-5.4-5", "a TRACK without direction", _greet(_track(1, 1, 48000, 1, 0, 0))),
    ("track-units-49", "VS-5.4-5", "a TRACK with frames of 49 units", _greet(_track(1, 1, 48000, 1, 3, 49))),
    ("track-cut", "VS-5.3-5", "a TRACK that ends inside its fields", _greet(_track(1, 1, 48000, 1, 3))),
    ("private-without-units", "VS-5.4-4 VS-5.4-5", "a TRACK of a private codec without units", _greet(_track(1, 0x41, 8000, 1, 3, 0))),
    code=E.PARAMETER_ERROR, opened=False,
)  # fmt: skip
refusals(
    (
        "settings-out-of-range",
        "VS-5.3-5",
        "SETTINGS with a LOOKAHEAD_MS of 501",
        lambda p: p.control(message(M.SETTINGS, b"\x08\x02\x41\xf5")),
    ),
    (
        "settings-duplicate",
        "VS-5.3-5 VS-5.3-4",
        "SETTINGS with MAX_RATE_BPS twice",
        lambda p: p.control(message(M.SETTINGS, b"\x0a\x02\x7f\xff" * 2)),
    ),
    code=E.PARAMETER_ERROR,
)
takes(
    ("settings-of-hello", "VS-5.3-2", "SETTINGS with a PATH", lambda p: p.control(message(M.SETTINGS, parameter(P.PATH, b"/")))),
    (
        "settings-unknown",
        "VS-5.3-1 VS-12.1-3",
        "SETTINGS with an unknown parameter",
        lambda p: p.control(message(M.SETTINGS, b"\x3d\x02zz")),
    ),
)


async def _is_taken(peer: Met, extra: bytes) -> Outcome:
    _greet(extra)(peer)
    if peer.against == "server" and not isinstance(await peer.until(lambda: peer.hello or peer.end, 5.0), Accept):
        return failed(f"not accepted: {peer.end}")
    peer.behave()
    if peer.against == "client":
        await asyncio.sleep(0.3)
    return await alive(peer)


@case("VS-5.3-1", "VS-12.1-3", title="HELLO or ACCEPT with unknown parameters: is taken", opened=False)
async def parameters_unknown(peer: Met) -> Outcome:
    return await _is_taken(peer, parameter(0x3D, b"grease") + parameter(0x3FFF, b"") + parameter(0x5C, b"\xff"))


@case("VS-5.3-2", title="HELLO or ACCEPT with a parameter of REJECT: is taken", opened=False)
async def parameters_of_another_message(peer: Met) -> Outcome:
    return await _is_taken(peer, parameter(P.ROUTE_TOKEN, b"\x01"))


@case("VS-5.4-6", title="a TRACK with bytes behind its last field: is taken", opened=False, roles=SERVER)
async def track_with_more(peer: Met) -> Outcome:
    return await _is_taken(peer, _track(1, 1, 48000, 1, 3, 0, rest=b"later"))


@case("VS-12.1-3", title="HELLO with a track of an unknown codec beside a known one: the known one is taken", opened=False, roles=SERVER)
async def codec_unknown(peer: Met) -> Outcome:
    return await _is_taken(peer, _track(1, 0x3D, 48000, 1, 3, 0))


@case("VS-5.3-3", "VS-5.2.1-1", "VS-5.2.2-1", title="the parameters of HELLO or ACCEPT: those of the message, and unknown ones")
async def parameters_sent(peer: Met) -> Outcome:
    sent = peer.hello
    if not isinstance(sent, Hello | Accept):
        return failed("no HELLO or ACCEPT")
    allowed = {"tracks", "metadata", "max_datagram_size", "max_event_size", "lookahead_ms", "retain_ms", "max_rate_bps", "unknown"}
    allowed |= {"authority", "path", "token"} if isinstance(sent, Hello) else {"session_id", "resume_token", "generation", "lifetime_ms"}
    there = {name for name in Parameters.__slots__ if getattr(sent.parameters, name) not in (None, ())}
    # What is not of this message decodes as unknown; a known id among these is one too many.
    known = [hex(name) for name, _ in sent.parameters.unknown if name in tuple(P)]
    return passed(", ".join(sorted(there))) if there <= allowed and not known else failed(f"{sorted(there - allowed)} {known}")


@case("VS-5.2.2-2", title="ACCEPT with a track that was not offered: TRACK_ERROR", roles=CLIENT, opened=False)
async def accept_another_track(peer: Met) -> Outcome:
    import dataclasses

    peer.send(peer.greeting(tracks=(dataclasses.replace(peer.track, track_id=3),)))
    return await refused(peer, E.TRACK_ERROR)


@case("VS-5.2.2-2", title="ACCEPT with another codec than the offered one: TRACK_ERROR", roles=CLIENT, opened=False)
async def accept_another_codec(peer: Met) -> Outcome:
    import dataclasses

    peer.send(peer.greeting(tracks=(dataclasses.replace(peer.track, codec=2, clock_rate_hz=8000),)))
    return await refused(peer, E.TRACK_ERROR)


@case("VS-5.2.2-2", title="ACCEPT with other Frame Units than the offered ones: TRACK_ERROR", roles=CLIENT, opened=False)
async def accept_other_frame_units(peer: Met) -> Outcome:
    import dataclasses

    peer.send(peer.greeting(tracks=(dataclasses.replace(peer.track, frame_units=16 if peer.track.frame_units == 8 else 8),)))
    return await refused(peer, E.TRACK_ERROR)


@case("VS-5.2.4-1", title="RESUME without SESSION_ID: PARAMETER_ERROR", roles=SERVER, opened=False)
async def resume_without_session(peer: Met) -> Outcome:
    peer.control(message(M.RESUME, number(1) + parameter(P.RESUME_TOKEN, b"token") + parameter(P.GENERATION, b"\0")))
    return await refused(peer, E.PARAMETER_ERROR)


@case("VS-5.4-7", "VS-5.3-5", title="RESUME with overlapping HELD ranges: PARAMETER_ERROR", roles=SERVER, opened=False)
async def held_overlaps(peer: Met) -> Outcome:
    held = b"\x00\x10\x02\x18\x08\x1c\x08"
    own = (
        parameter(P.SESSION_ID, bytes(16)) + parameter(P.RESUME_TOKEN, b"token") + parameter(P.GENERATION, b"\0") + parameter(P.HELD, held)
    )
    peer.control(message(M.RESUME, number(1) + own))
    return await refused(peer, E.PARAMETER_ERROR)


@case("VS-5.5-3", title="a datagram before ACCEPT: AUDIO_BEFORE_ACCEPT", roles=SERVER, opened=False)
async def audio_before_accept(peer: Met) -> Outcome:
    for _ in range(5):  # one may be lost
        peer.say(AudioFrame(pts=0, payload=OPUS_SILENCE))
        if await peer.ended(0.2) is not None:
            break
    return await refused(peer, E.AUDIO_BEFORE_ACCEPT)


@case("VS-5.5-3", title="what a client sends before ACCEPT: no datagram", roles=CLIENT, opened=False)
async def silence_before_accept(peer: Met) -> Outcome:
    await asyncio.sleep(0.5)
    early = peer.datagrams()
    return failed(f"{len(early)} datagrams") if early else passed("none in half a second")


@case("VS-5.5-4", title="audio that overtakes ACCEPT: is kept and reported", roles=CLIENT, opened=False, harmless=True)
async def audio_overtakes_accept(peer: Met) -> Outcome:
    for _ in range(3):
        peer.speak()
    await asyncio.sleep(0.05)
    await peer.open()
    if await peer.first(ReportFrame, 2.0, where=lambda report: report.newest >= 2) is None:
        return failed("no report of it") if peer.end is None else failed(str(peer.end))
    return passed("a report names it")


@case("VS-5.1-5", "VS-13.2-1", title="CLOSE, then the end of the stream: no error, no CLOSE in return")
async def close_is_taken(peer: Met) -> Outcome:
    peer.control(message(M.CLOSE, b"\x00\x00\x00"), fin=True)
    await peer.until(lambda: peer.gone, 3.0)
    if peer.close_message is not None:
        return failed(f"answers with {peer.close_message}")
    return await refused(peer, E.NO_ERROR)
