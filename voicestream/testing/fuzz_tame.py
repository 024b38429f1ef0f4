"""Hostile input that keeps within the rules, or just beside them, so that a session lives long and gets into rare states."""

from __future__ import annotations

import random
from collections.abc import Callable

from voicestream import wire
from voicestream.testing.fuzz_inputs import FuzzInput, InputMaker

__all__ = ["TameMaker"]


class TameMaker(InputMaker):
    """Makes inputs for one session: plausible numbers, repeated, out of order and at odds with each other.

    Mutated ones are valid datagrams with another number, time, flag or pts, and valid messages and events given twice, cut in
    two or late.
    """

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._past: dict[str, list[bytes]] = {"datagram": [], "control": [], "stream": []}
        self._order = 0
        self._clears = 0

    def make(self, channel: str) -> FuzzInput:
        """One input; half are mutated."""
        rng = self._rng
        channel = rng.choice(("datagram", "datagram", "datagram", channel))
        data = self.valid(channel)
        past = self._past[channel]
        past.append(data)
        del past[:-50]
        if rng.random() < 0.4:
            return FuzzInput(channel=channel, origin="valid", data=data, fin=channel == "stream")
        if channel != "datagram" or rng.random() < 0.3:
            data = rng.choice(past)
        if channel == "datagram":
            data = self._nudge(data)
        return FuzzInput(channel=channel, origin="mutated", data=data, fin=channel == "stream" and rng.random() < 0.9)

    def valid(self, channel: str) -> bytes:
        """A well-formed input that a session may well accept."""
        rng = self._rng
        if channel == "datagram":
            self._datagram_number += rng.choice((1, 1, 1, 2, 40))
            number, frames = self._datagram_number, tuple(rng.choice(_FRAMES)(self) for _ in range(rng.choice((0, 1, 1, 1, 2, 3))))
            while True:
                try:
                    return wire.encode_datagram(wire.Datagram(number=number & 0xFFFF, send_tick=number * 80 & 0xFFFF, frames=frames))
                except ValueError:  # together too large
                    frames = frames[:-1]
        if channel == "control":
            return wire.encode_message(rng.choice(_MESSAGES)(self))
        self._order += rng.choice((0, 1, 1, 1, 2))
        order = rng.choice((0, self._order, self._order))
        header = wire.EventHeader(kind=rng.choice((0, 1, 2, 9)), event_id=rng.randrange(100), order=order)
        return wire.encode_event_header(header) + b'{"n": %d}' % self._order

    def _nudge(self, data: bytes) -> bytes:
        """Another number, time, flag or pts."""
        out, rng = bytearray(data), self._rng
        for _ in range(rng.choice((1, 1, 2))):
            at = rng.randrange(min(len(out), 7))
            if at == 4:
                out[at] ^= rng.choice((1, 2, 3, 4, 8)) if out[at] & 0x80 else 0
            elif at < 4 or out[4] & 0x80:
                out[at] = (out[at] + rng.choice((1, -1, 8, -8, rng.randrange(256)))) & 0xFF
        return bytes(out)

    def _near(self) -> int:
        return max(0, self._pts + self._rng.choice((0, 8, -8, -80, 80, -400, 400, 3000, -3000)))

    def _audio(self, build: Callable[..., wire.Frame], back: int = 0) -> wire.Frame:
        rng = self._rng
        self._pts += rng.choice((8, 8, 8, 16, 24, 400)) if not back else 0
        return build(
            track=0,
            pts=max(0, self._pts - back) & 0xFFFF,
            payload=self._codec.encode(self._pts, rng.choice((8, 8, 8, 24)), size_bytes=40),
            clear_number=(self._clears + rng.choice((0, 0, 0, 0, 1, 3))) & 3,
            talkspurt_start=rng.random() < 0.1,
            talkspurt_end=rng.random() < 0.1,
        )

    def _void(self, *, asked: bool) -> wire.Clear:
        low, high = sorted((self._near(), self._near()))
        self._clears += self._rng.choice((0, 1, 1, 2))
        return wire.Clear(number=self._clears, from_receiver=asked, from_pts=low, to_pts=high)


_FRAMES: tuple[Callable[[TameMaker], wire.Frame], ...] = (
    *(lambda maker: maker._audio(wire.AudioFrame),) * 8,
    lambda maker: maker._audio(wire.AudioFrame, maker._rng.choice((8, 80, 800))),
    lambda maker: maker._audio(wire.RetransmissionFrame, maker._rng.choice((8, 16, 800))),
    lambda maker: maker._audio(wire.CopyFrame, 8),
    lambda maker: maker._repair(),
    lambda maker: maker._missing(),
    lambda maker: wire.AnchorFrame(pts=maker._near(), ahead=maker._rng.random() < 0.5),
    lambda maker: wire.ClearFrame(message=maker._void(asked=False)),
    lambda maker: wire.ClearFrame(message=wire.Clear(number=1, from_receiver=True, from_pts=0, to_pts=maker._rng.choice((0, 8, 80)))),
    lambda maker: wire.ClearedFrame(message=wire.Cleared(number=maker._rng.randrange(3), heard_pts=maker._rng.choice((0, 8, 80)))),
    lambda maker: wire.ProgressFrame(message=wire.Progress(played_pts=maker._rng.choice((0, 8, 16, 24)))),
    lambda maker: wire.ReportFrame(newest=maker._rng.randrange(3), arrival=maker._rng.randrange(1 << 16)),
)

_MESSAGES: tuple[Callable[[TameMaker], wire.Message], ...] = (
    lambda maker: wire.Settings(parameters=wire.Parameters(lookahead_ms=maker._rng.choice((None, 0, 20, 500)))),
    lambda maker: wire.Settings(parameters=wire.Parameters(max_rate_bps=maker._rng.choice((0, 1, 9000, 1 << 61)))),
    lambda maker: maker._void(asked=False),
    lambda maker: wire.Clear(number=maker._rng.randrange(4), from_receiver=True, from_pts=0, to_pts=maker._rng.choice((0, 8, 80, 4000))),
    lambda maker: wire.Cleared(number=maker._rng.randrange(3), heard_pts=maker._rng.choice((0, 8, 80))),
    lambda maker: wire.Progress(played_pts=maker._rng.choice((0, 8, 16, 24))),
    lambda maker: wire.UnknownMessage(type=0x5C, payload=bytes(9)),
    lambda maker: wire.Finish(pts=maker._near() + (0 if maker._rng.random() < 0.1 else 100_000)),
    lambda maker: wire.Finished(played_pts=maker._rng.choice((0, 8, 16))),
)
