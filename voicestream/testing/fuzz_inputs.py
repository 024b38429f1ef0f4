"""Hostile input: valid datagrams, control messages and events of every kind, and ways to spoil them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from voicestream import wire
from voicestream.codepoints import CodecId, ErrorCode
from voicestream.config import Track
from voicestream.testing.fake_codec import FakeCodec
from voicestream.wire.buffer import peek_varint

__all__ = ["FuzzInput", "InputMaker", "mutate"]

CHANNELS = ("datagram", "control", "stream")

_EXTREMES = (0x00, 0x01, 0x3F, 0x40, 0x7F, 0x80, 0xBF, 0xC0, 0xFF)
_VARINTS = (b"\x00", b"\x3f", b"\x40\x40", b"\x7f\xff", b"\xbf\xff\xff\xff", b"\xff" * 8, b"\xc0" + b"\x00" * 7)
_NUMBERS = (0, 1, 2, 3, 63, 64, 8, 400, 4000, 16383, 16384, 65535, 65536, 1 << 20, (1 << 30) - 1, 1 << 30, (1 << 62) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzInput:
    """One input: where it goes, what it is made of ("valid", "mutated" or "random"), its bytes, and whether it ends a stream."""

    channel: str
    origin: str
    data: bytes
    fin: bool = False


def mutate(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """`data` with one to four faults; `other` is another input to splice with."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        at = rng.randrange(len(out) + 1)
        span = rng.choice((1, 1, 2, 4, 16))
        kind = rng.randrange(8)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(out):
            out[at] = rng.choice(_EXTREMES)
        elif kind == 2:
            out[at:at] = rng.randbytes(span)
        elif kind == 3:
            del out[at : at + span]
        elif kind == 4:
            out[at : at + rng.choice((1, 2, 8))] = rng.choice(_VARINTS)
        elif kind == 5:
            del out[at:]
        elif kind == 6:
            out[at:at] = out[at : at + span * 4] * rng.choice((1, 2, 50))
        else:
            out[at:] = other[rng.randrange(len(other) + 1) :]
    return bytes(out[:9000])


class InputMaker:
    """Makes inputs.

    Args:
        rng: All choices come from it.
        samples: Real inputs by channel to choose from beside the invented ones, for example recorded from a call.

    Attributes:
        sly: Spoil what is inside a frame or message and leave the framing right, so that more gets past the first check.
    """

    def __init__(self, rng: random.Random, samples: dict[str, list[bytes]] | None = None) -> None:
        self.sly = False
        self._rng = rng
        self._samples = samples or {}
        self._codec = FakeCodec(seed=1)
        self._datagram_number = 0
        self._pts = 0

    def make(self, channel: str) -> FuzzInput:
        """One input: three in five mutated from a valid one, a quarter valid as it is, the others random bytes; see also `sly`."""
        rng = self._rng
        choice = rng.random()
        if choice < 0.6:
            origin = "mutated"
            data = self._inside(channel, None) if self.sly and rng.random() < 0.8 else mutate(self.valid(channel), self.valid(channel), rng)
        elif choice < 0.85:
            origin, data = "valid", self.valid(channel)
        else:
            origin, noise = "random", rng.randbytes(rng.choice((0, 1, 2, 3, 5, 8, 13, 40, 200, 1200, 1201, 3000)))
            data = self._inside(channel, noise) if self.sly and rng.random() < 0.8 else noise
        return FuzzInput(channel=channel, origin=origin, data=data, fin=rng.random() < (0.5 if channel == "stream" else 0.002))

    def _inside(self, channel: str, noise: bytes | None) -> bytes:
        """Valid framing around a spoilt inside: `noise`, or a mutation of what was there."""
        rng = self._rng
        if channel == "datagram":
            self._datagram_number += 1
            head = ((self._datagram_number & 0xFFFF) << 16 | (self._datagram_number * 80) & 0xFFFF).to_bytes(4, "big")
            encoded = wire.encode_frame(rng.choice(_FRAME_MAKERS)(self))
            return head + self._reframe(encoded, noise) + (self._reframe(encoded, None) if rng.random() < 0.2 else b"")
        if channel == "control":
            return self._reframe(self._message(), noise)
        event = self._event()
        cut = rng.randrange(min(len(event), 12) + 1)
        return event[:cut] + (mutate(event[cut:], event, rng) if noise is None else noise)

    def _reframe(self, encoded: bytes, noise: bytes | None) -> bytes:
        if encoded[0] & 0x80 or not encoded[0]:  # audio without a length, padding: every byte is the inside
            return encoded[:3] + (mutate(encoded[3:], encoded, self._rng) if noise is None else noise)
        length = peek_varint(encoded, 1)
        assert length is not None
        body = encoded[length[1] :]
        spoilt = (mutate(body, encoded, self._rng) if noise is None else noise)[:4000]
        return encoded[:1] + wire.encode_varint(len(spoilt)) + spoilt

    def valid(self, channel: str) -> bytes:
        """A well-formed datagram, run of control messages, or event stream."""
        rng = self._rng
        if self._samples.get(channel) and rng.random() < 0.4:
            return rng.choice(self._samples[channel])
        if channel == "datagram":
            return self._datagram()
        if channel == "control":
            return b"".join(self._message() for _ in range(rng.choice((1, 1, 1, 2, 3))))
        return self._event()

    def _number(self) -> int:
        rng = self._rng
        return rng.choice(_NUMBERS) if rng.random() < 0.4 else max(0, self._pts + rng.randrange(-400, 400))

    def _datagram(self) -> bytes:
        rng = self._rng
        self._datagram_number += rng.choice((1, 1, 1, 1, 2, 5, 300))
        frames: list[wire.Frame] = []
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 5))):
            frames.append(rng.choice(_FRAME_MAKERS)(self))
        datagram = wire.Datagram(
            number=self._datagram_number & 0xFFFF, send_tick=(self._datagram_number * 80) & 0xFFFF, frames=tuple(frames)
        )
        try:
            return wire.encode_datagram(datagram)
        except ValueError:  # together too large
            return wire.encode_datagram(wire.Datagram(number=1, send_tick=1))

    def _pts16(self) -> int:
        self._pts += 8
        return self._number() & 0xFFFF if self._rng.random() < 0.3 else self._pts & 0xFFFF

    def _media(self, build: Callable[..., wire.Frame]) -> wire.Frame:
        rng = self._rng
        payload = self._codec.encode(rng.randrange(1 << 16), rng.choice((4, 8, 8, 16, 24)), size_bytes=rng.choice((9, 60, 160)))
        return build(
            track=rng.choice((0, 0, 0, 1, 2)),
            pts=self._pts16(),
            payload=payload if rng.random() < 0.9 else rng.randbytes(rng.randrange(1, 30)),
            clear_number=rng.choice((0, 0, 0, 1, 2, 3)),
            talkspurt_start=rng.random() < 0.1,
            talkspurt_end=rng.random() < 0.1,
        )

    def _report(self) -> wire.Frame:
        rng = self._rng
        count = rng.choice((0, 3, 20, 255))
        entry = wire.PlayoutEntry(track=rng.randrange(4), playhead=self._pts16(), level_units=self._number(), target_units=self._number())
        return wire.ReportFrame(
            newest=rng.choice((0, 1, 5, 100, 65535)),
            arrival=rng.randrange(1 << 16),
            statuses=tuple(None if rng.random() < 0.2 else rng.choice((0, 1, -1, 400, -0x8000, 0x7FFF)) for _ in range(count)),
            playout=(entry,) * rng.randrange(2),
        )

    def _repair(self) -> wire.Frame:
        rng = self._rng
        runs = tuple((rng.randrange(1, 20), rng.choice((1, 8, 16, 400))) for _ in range(rng.choice((0, 1, 1, 2, 3))))
        return wire.RepairFrame(
            track=rng.choice((0, 0, 1, 3)),
            key=rng.randrange(256),
            newest_pts=self._pts16(),
            runs=runs,
            symbol=rng.randbytes(rng.choice((4, 63, 400))),
        )

    def _clear(self) -> wire.Clear:
        rng = self._rng
        low, high = sorted((self._number(), self._number()))
        return wire.Clear(track=rng.choice((0, 0, 1, 3)), number=self._small(), from_receiver=rng.random() < 0.5, from_pts=low, to_pts=high)

    def _small(self) -> int:
        return self._rng.choice((0, 1, 1, 2, 3, 4, 5, 1000, (1 << 62) - 1))

    def _cleared(self) -> wire.Cleared:
        return wire.Cleared(track=self._rng.choice((0, 0, 1, 3)), number=self._small(), heard_pts=self._number())

    def _progress(self) -> wire.Progress:
        return wire.Progress(track=self._rng.choice((0, 0, 1, 3)), played_pts=self._number())

    def _missing(self) -> wire.Frame:
        rng = self._rng
        ranges = tuple((self._pts16(), rng.choice((1, 8, 4000, 0x7FFF))) for _ in range(rng.choice((1, 2, 32))))
        return wire.MissingFrame(track=rng.choice((0, 0, 1, 3)), ranges=ranges)

    def _message(self) -> bytes:
        try:
            return wire.encode_message(self._rng.choice(_MESSAGE_MAKERS)(self))
        except ValueError:  # a combination that the format does not have
            return wire.encode_message(wire.Confirm(generation=self._small()))

    def _parameters(self) -> wire.Parameters:
        rng = self._rng
        known = [(0, CodecId.OPUS, 48000), (1, CodecId.PCMU, 8000), (2, CodecId.L16, 16000)]
        chosen = rng.sample(known, rng.randrange(1, 4))
        tracks = tuple(Track(track_id=track, codec=codec, clock_rate_hz=rate) for track, codec, rate in chosen)
        return wire.Parameters(
            authority="fuzz.example", path=rng.choice(("/", "/call")), token=rng.randbytes(rng.choice((0, 32, 2048))),
            metadata=rng.randbytes(rng.choice((0, 5, 4096))), tracks=tracks, max_datagram_size=rng.choice((256, 1160, 1 << 40)),
            max_event_size=self._number(), lookahead_ms=rng.choice((0, 150, 500)), retain_ms=self._number(),
            max_rate_bps=self._number(),
        )  # fmt: skip

    def _accept(self) -> wire.Message:
        rng, given = self._rng, self._parameters()
        return wire.Accept(
            parameters=wire.Parameters(
                session_id=rng.randbytes(16), resume_token=rng.randbytes(rng.choice((1, 80, 512))), generation=self._small(),
                lifetime_ms=self._number(), metadata=given.metadata, tracks=given.tracks, max_datagram_size=given.max_datagram_size,
                max_event_size=given.max_event_size, lookahead_ms=given.lookahead_ms, retain_ms=given.retain_ms,
                max_rate_bps=given.max_rate_bps,
            )
        )  # fmt: skip

    def _resume(self) -> wire.Message:
        rng = self._rng
        return wire.Resume(
            parameters=wire.Parameters(
                session_id=rng.randbytes(16), resume_token=rng.randbytes(80), generation=self._small(), next_event=self._small(),
                replay_ms=2000,
            )
        )  # fmt: skip

    def _resumed(self) -> wire.Message:
        return wire.Resumed(parameters=wire.Parameters(resume_token=self._rng.randbytes(80), generation=self._small()))

    def _elsewhere(self) -> wire.Parameters:
        rng = self._rng
        return wire.Parameters(
            reason=rng.choice(("", "moving", "x" * 1024)), uri=rng.choice((None, "voicestream://b.example/")),
            route_token=rng.choice((None, rng.randbytes(17))), retry_after_ms=rng.choice((None, 0, 500, 1 << 61)),
        )  # fmt: skip

    def _code(self) -> int:
        return self._rng.choice([*map(int, ErrorCode), 0x5C, 1 << 40])

    def _event(self) -> bytes:
        rng = self._rng
        aligned = rng.random() < 0.3
        header = wire.EventHeader(
            kind=rng.choice((0, 1, 2, 2, 2, 77)), event_id=self._small(), order=self._small(),
            track=rng.randrange(4) if aligned else None, pts=self._number() if aligned else None,
        )  # fmt: skip
        payload = rng.choice((b"", b"{}", b'{"say": "hello"}', b"\xff\xfe", b"[" * 2000, rng.randbytes(rng.choice((10, 1000, 5000)))))
        return wire.encode_event_header(header) + payload


_FRAME_MAKERS: tuple[Callable[[InputMaker], wire.Frame], ...] = (
    lambda maker: maker._media(wire.AudioFrame),
    lambda maker: maker._media(wire.AudioFrame),
    lambda maker: maker._media(wire.AudioFrame),
    lambda maker: maker._media(wire.CopyFrame),
    lambda maker: maker._media(wire.RetransmissionFrame),
    lambda maker: maker._report(),
    lambda maker: maker._report(),
    lambda maker: maker._repair(),
    lambda maker: maker._missing(),
    lambda maker: wire.PaddingFrame(size=maker._rng.choice((1, 3, 200))),
    lambda maker: wire.ProbeFrame(cluster=maker._number(), size=maker._rng.choice((0, 1, 500))),
    lambda maker: wire.AnchorFrame(track=maker._rng.choice((0, 0, 1, 3)), pts=maker._number(), ahead=maker._rng.random() < 0.5),
    lambda maker: wire.ClearFrame(message=maker._clear()),
    lambda maker: wire.ClearedFrame(message=maker._cleared()),
    lambda maker: wire.ProgressFrame(message=maker._progress()),
    lambda maker: wire.UnknownFrame(type=maker._rng.choice((0x3D, 0x5C, 0x7B, 0x7F)), payload=maker._rng.randbytes(5)),
)

_MESSAGE_MAKERS: tuple[Callable[[InputMaker], wire.Message], ...] = (
    lambda maker: wire.Hello(version=maker._rng.choice((1, 1, 1, 2)), parameters=maker._parameters()),
    lambda maker: maker._accept(),
    lambda maker: wire.Reject(code=maker._code(), parameters=maker._elsewhere()),
    lambda maker: maker._resume(),
    lambda maker: maker._resumed(),
    lambda maker: wire.Confirm(generation=maker._small()),
    lambda maker: wire.Settings(
        parameters=wire.Parameters(lookahead_ms=maker._rng.choice((None, 0, 150, 500)), max_rate_bps=maker._number())
    ),
    lambda maker: maker._clear(),
    lambda maker: maker._clear(),
    lambda maker: maker._cleared(),
    lambda maker: maker._progress(),
    lambda maker: wire.Finish(track=maker._rng.choice((0, 0, 1, 3)), pts=maker._number()),
    lambda maker: wire.Finished(track=maker._rng.choice((0, 0, 1, 3)), played_pts=maker._number()),
    lambda maker: wire.GoingAway(parameters=maker._elsewhere()),
    lambda maker: wire.Close(code=maker._code(), reason="enough", may_resume=maker._rng.random() < 0.5),
    lambda maker: wire.UnknownMessage(type=0x3D, payload=maker._rng.randbytes(20)),
)
