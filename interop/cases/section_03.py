"""Section 3: ALPN, version, transport, streams. With them what section 1.3 says of all fields."""

from __future__ import annotations

import asyncio

from interop.cases.tools import alive, audio_comes, failed, message, number, passed, refusals, refused, takes
from interop.model import Outcome, Unsupported, case
from interop.peers.meeting import Met
from voicestream.codepoints import ALPN, ErrorCode, MessageType, ParameterId
from voicestream.wire import Accept, Hello, encode_parameters

E, P = ErrorCode, ParameterId


@case("VS-3.1-1", title="a connection with another ALPN token only: carries no VoiceStream", roles=("server",), opened=False)
async def alpn_other(peer: Met) -> Outcome:
    try:
        other = await peer.again(alpn="other/1")  # type: ignore[call-arg]
    except (ConnectionError, TimeoutError):
        return passed("the handshake is refused")
    await other.open(reports=False)
    return failed("ACCEPT on a connection of another protocol") if isinstance(other.answer, Accept) else passed("no call")


@case("VS-3.1-1", title="the ALPN token of the connection", roles=("client",), opened=False)
async def alpn_offered(peer: Met) -> Outcome:
    chosen = peer._quic.tls.alpn_negotiated
    return passed(f"{chosen}") if chosen == ALPN else failed(f"{chosen} instead of {ALPN}")


def _hello(version: int, rest: bytes) -> bytes:
    return message(MessageType.HELLO, number(version) + rest)


@case("VS-3.1-2", title="HELLO of version 2: REJECT VERSION_UNSUPPORTED", roles=("server",), opened=False)
async def hello_version_2(peer: Met) -> Outcome:
    peer.control(_hello(2, encode_parameters(peer.parameters())))
    return await refused(peer, E.VERSION_UNSUPPORTED)


@case("VS-3.1-3", title="HELLO of version 2 with what version 1 forbids behind it: REJECT all the same", roles=("server",), opened=False)
async def hello_version_2_unreadable(peer: Met) -> Outcome:
    peer.control(_hello(2, b"\xff\xff\xff"))
    return await refused(peer, E.VERSION_UNSUPPORTED)


@case("VS-3.1-3", title="ACCEPT of version 3 with what version 1 forbids behind it: VERSION_UNSUPPORTED", roles=("client",), opened=False)
async def accept_version_3(peer: Met) -> Outcome:
    peer.control(message(MessageType.ACCEPT, number(3) + b"\xff\xff\xff"))
    return await refused(peer, E.VERSION_UNSUPPORTED)


@case("VS-3.2-1", title="the max_datagram_frame_size that is advertised")
async def datagram_frame_size(peer: Met) -> Outcome:
    size = peer._quic._remote_max_datagram_frame_size or 0
    return passed(f"{size} bytes") if size >= 1200 else failed(f"{size} bytes, 1200 is the least")


@case("VS-3.2-1", title="a connection without datagrams: is closed", roles=("server",), opened=False, datagrams=None)
async def no_datagrams(peer: Met) -> Outcome:
    if peer.end is None:
        peer.send(peer.greeting())
    return await refused(peer, E.INTERNAL_ERROR, harmless=True)


@case("VS-3.2-2", "VS-5.4-3", title="datagrams of the far end when MAX_DATAGRAM_SIZE is 256", opened=False)
async def small_datagrams(peer: Met) -> Outcome:
    if not await peer.open(max_datagram_size=256):
        return failed("no ACCEPT")
    await audio_comes(peer, 20)
    sizes = [one.size for one in peer.log if one.kind == "datagram" and not one.sent]
    return passed(f"at most {max(sizes)} bytes") if max(sizes) <= 256 else failed(f"one of {max(sizes)} bytes")


@case("VS-3.2-2", title="datagrams of the far end without a MAX_DATAGRAM_SIZE: at most 1160 bytes")
async def datagram_size(peer: Met) -> Outcome:
    await audio_comes(peer, 20)
    sizes = [one.size for one in peer.log if one.kind == "datagram" and not one.sent]
    return passed(f"at most {max(sizes)} bytes") if max(sizes) <= 1160 else failed(f"one of {max(sizes)} bytes")


takes(("datagram-of-1200", "VS-3.2-3", "a datagram of 1200 bytes", lambda p: p.frame(b"\0" * 1196)))

refusals(
    ("second-bidirectional", "VS-3.3-1", "a second bidirectional stream", lambda p: p.stream(b"\x07\x00", fin=False, bidirectional=True)),
    code=E.CONTROL_STREAM_ERROR,
)
takes(
    ("unknown-stream-type", "VS-3.3-2 VS-12.1-3", "a stream of an unknown type", lambda p: p.stream(number(0x3D) + b"anything")),
    ("stream-without-type", "VS-3.3-4", "a stream that ends before its type", lambda p: p.stream(b"")),
    ("stream-half-a-type", "VS-3.3-4", "a stream that ends inside its type", lambda p: p.stream(b"\x40")),
    ("stream-reset-early", "VS-3.3-4", "a stream that is reset before its type is known", lambda p: p.reset(p.stream(b"\x40", fin=False))),
)


@case("VS-3.3-3", title="a stream of an unknown type that stays open: STOP_SENDING with NO_ERROR", harmless=True)
async def unknown_stream_is_stopped(peer: Met) -> Outcome:
    own = peer.stream(number(0x3D) + b"anything", fin=False)

    def stop() -> int | None:
        stops = (one.value for one in peer.log if one.kind == "stream" and not one.sent)
        return next((code for what, stream_id, code in stops if what == "stop" and stream_id == own), None)

    code = await peer.until(stop, 2.0)
    if code is None:
        raise Unsupported("no STOP_SENDING, which is a SHOULD")
    return passed() if code == E.NO_ERROR else failed(f"STOP_SENDING with code {code}")


@case("VS-1.3-2", title="HELLO or ACCEPT and a message with long forms of integers: are taken", opened=False)
async def long_integers(peer: Met) -> Outcome:
    body = number(1, 8) + encode_parameters(peer.parameters())
    kind = MessageType.HELLO if peer.against == "server" else MessageType.ACCEPT
    peer.control(number(kind, 2) + number(len(body), 4) + body)
    if peer.against == "server" and not isinstance(await peer.until(lambda: peer.hello or peer.end, 5), Accept):
        return failed(f"not accepted: {peer.end}")
    peer.behave()
    await asyncio.sleep(0.1)
    peer.frame(number(0x3D) + number(2, 8) + b"xx")
    return await alive(peer)


takes(
    ("unknown-flags-of-anchor", "VS-1.3-4", "an ANCHOR with unknown flags", lambda p: p.frame(b"\x1c\x02\xfe\x00")),
    ("unknown-flags-of-clear", "VS-1.3-4", "a CLEAR with unknown flags", lambda p: p.control(message(8, b"\x00\x01\x3e\x00\x00"))),
)


NUMBERS = (P.MAX_DATAGRAM_SIZE, P.MAX_EVENT_SIZE, P.LOOKAHEAD_MS, P.RETAIN_MS, P.MAX_RATE_BPS, P.GENERATION, P.LIFETIME_MS)
TRACK_FIELDS = ("Track", "Codec", "Clock Rate", "Channels", "Direction", "Frame Units")


def long_forms(opening: bytes) -> list[str]:
    """The integers of a HELLO or ACCEPT that have more bytes than they need."""
    found: list[str] = []
    at = 0

    def take(what: str) -> int:
        nonlocal at
        size = 1 << (opening[at] >> 6)
        value = int.from_bytes(opening[at : at + size], "big") & (1 << 8 * size - 2) - 1
        at += size
        if size > len(number(value)):
            found.append(f"{what} {value} in {size} bytes")
        return value

    take("Type")
    length = take("Length")
    end = at + length
    take("Version")
    while at < end:
        name = take("parameter")
        size = take(f"Length of parameter 0x{name:02x}")
        behind = at + size
        for field in TRACK_FIELDS if name == P.TRACK else ("value",) if name in NUMBERS else ():
            take(f"{field} of parameter 0x{name:02x}")
        at = behind
    return found


@case("VS-1.3-1", title="the integers of HELLO or ACCEPT: have the shortest form (a SHOULD)", harmless=True)
async def short_integers(peer: Met) -> Outcome:
    if not isinstance(peer.hello, Hello | Accept):
        return failed("no HELLO or ACCEPT")
    found = long_forms(peer.opening)
    return failed("; ".join(found)) if found else passed(f"{len(peer.opening)} bytes")
