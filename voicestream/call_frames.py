"""The listening side of a call in order: everything, as fast as it comes, gaps marked. For recognisers and recorders."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from voicestream.call_link import CallLink
from voicestream.call_state import Ending, Signal
from voicestream.config import PTS_UNIT_MS, AudioConfig, Track
from voicestream.errors import StateError
from voicestream.media import MediaFrame

if TYPE_CHECKING:
    from voicestream.audio.ordered import DecodedBlock, OrderedDecoder
    from voicestream.core.playout import Gap, OrderedAccount, OrderedReader

__all__ = ["AudioBlock", "FrameBlocks", "FrameReader"]

MAX_FRAMES: Final = 3000
"""Frames held for a consumer that does not keep up, or behind what is still missing after a break: 60 s of 20 ms; the oldest
become a gap."""


BACKLOG_FRAMES: Final = 8
"""Frames given out before the loop gets its turn, so that a consumer who fell behind catches up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AudioBlock:
    """A stretch of received audio, in order.

    Attributes:
        pts: Media time of its first sample, in units of 2.5 ms.
        duration_ms: Its length.
        pcm: Samples, int16, of shape (n,) or (n, channels); None with ``decode=False``.
        payload: The coded frame with ``decode=False``; None otherwise and in a gap.
        replayed: It was given before, and once more since `replay_ms` was asked for and the path has been lost since.
        gap: Something of this stretch did not arrive in time: with PCM it is silence there, coded it is all missing.
    """

    pts: float
    duration_ms: float
    pcm: NDArray[np.int16] | None = field(default=None, repr=False)
    payload: bytes | None = field(default=None, repr=False)
    gap: bool = False
    replayed: bool = False

    @property
    def at(self) -> float:
        """Media time of its first sample, in seconds."""
        return self.pts * PTS_UNIT_MS / 1000


def _coded(item: MediaFrame | Gap) -> AudioBlock:
    if isinstance(item, MediaFrame):
        return AudioBlock(pts=item.pts, duration_ms=item.units * PTS_UNIT_MS, payload=item.payload, replayed=item.replayed)
    return AudioBlock(pts=item.from_pts, duration_ms=(item.to_pts - item.from_pts) * PTS_UNIT_MS, gap=True)


def _decoded(block: DecodedBlock) -> AudioBlock:
    return AudioBlock(pts=block.pts, duration_ms=block.duration_ms, pcm=block.pcm, gap=block.gap)


class FrameReader:
    """Reads one track through an ordering buffer."""

    __slots__ = ("_audio", "_ending", "_link", "_lookahead_ms", "_reader", "_seen", "_told", "arrived", "taken_pts", "track")

    def __init__(self, link: CallLink, ending: Ending, track: Track, audio: AudioConfig, lookahead_ms: int) -> None:
        self._link = link
        self._ending = ending
        self._audio = audio
        self._lookahead_ms = lookahead_ms
        self._reader: OrderedReader | None = None
        self.track = track
        self._seen = 0
        self._told = False
        self.arrived = Signal()
        self.taken_pts = 0

    @property
    def account(self) -> OrderedAccount | None:
        """The books of the ordering buffer; None before anybody has asked for frames."""
        return None if self._reader is None else self._reader.account

    def look(self) -> None:
        """Wake whoever waits for frames if there may be some: most that happens to a connection is nothing to a reader."""
        if self._reader is None or self._reader.news != self._seen or self._link.is_over:
            self.arrived.notify()

    def blocks(self, block_ms: int, decode: bool) -> FrameBlocks:
        """An iterator over what comes; see `Call.frames`."""
        self._open()
        return FrameBlocks(self, self._decoder(block_ms) if decode else None, self._decoder(block_ms) if decode else None)

    def _open(self) -> OrderedReader:
        if self._reader is None:
            from voicestream.core.playout import OrderedReader

            with self._link.locked() as session:
                if self.track.track_id not in session.receivers:
                    raise StateError(f"track {self.track.track_id} is not received in this call")
                self._reader = OrderedReader(self._lookahead_ms, MAX_FRAMES)
                session.receivers[self.track.track_id].attach_ordered(self._reader)
        return self._reader

    def _decoder(self, block_ms: int) -> OrderedDecoder:
        from voicestream.audio.codec import make_decoder
        from voicestream.audio.ordered import OrderedDecoder

        rate, channels = self._audio.sample_rate_hz, self._audio.channels
        return OrderedDecoder(make_decoder(self.track, rate, channels), rate, channels, block_ms=block_ms)

    async def next(self) -> MediaFrame | Gap | None:
        """What comes next; None when the far end has finished, or the call is over, and all has been taken."""
        reader = self._open()
        while True:
            with self._link.locked() as session:
                now = self._link.now()
                over = self._link.is_over
                self._seen = reader.news
                # When the call is over nothing that is missing will come: no gap is waited for.
                item = reader.next(math.inf if over else now)
                if isinstance(item, MediaFrame) and item.replayed:
                    return item
                if item is not None:
                    self.taken_pts = item.pts + item.units if isinstance(item, MediaFrame) else item.to_pts
                    if not over and session.report_played(self.taken_pts, now, self.track.track_id):
                        self._told = True
                    return item
                timer = reader.next_timer()
            # Only when there is nothing to give: what was taken is told to the far end in one go.
            if self._told:
                self._told = False
                self._link.wake()
            if over or reader.finished:
                return None
            await self.arrived.wait(None if timer is None else max(0.0, timer - now))

    def check_error(self) -> None:
        """Raise `CallClosedError` when the call has ended with an error before the far end finished."""
        if self._reader is None or not self._reader.finished:
            self._ending.check_error()


class FrameBlocks:
    """Iterates over blocks, or coded frames where there is no decoder. Cancelling a wait loses nothing."""

    __slots__ = ("_decoder", "_reader", "_ready", "_replayer", "_taken")

    def __init__(self, reader: FrameReader, decoder: OrderedDecoder | None, replayer: OrderedDecoder | None = None) -> None:
        self._replayer = replayer
        self._reader = reader
        self._decoder = decoder
        self._ready: deque[AudioBlock] = deque()
        self._taken = 0

    def __aiter__(self) -> FrameBlocks:
        return self

    async def __anext__(self) -> AudioBlock:
        while not self._ready:
            self._taken += 1
            if self._taken % BACKLOG_FRAMES == 0:
                # A backlog must not keep the loop from everything else.
                await asyncio.sleep(0)
            item = await self._reader.next()
            if item is not None:
                self._take(item)
            elif self._decoder is None or not self._flush(self._decoder):
                self._reader.check_error()
                raise StopAsyncIteration
        return self._ready.popleft()

    def _take(self, item: MediaFrame | Gap) -> None:
        if self._decoder is None:
            self._ready.append(_coded(item))
            return
        if isinstance(item, MediaFrame) and item.replayed:
            self._take_replayed(item)
            return
        self._ready.extend(_decoded(block) for block in self._decoder.push(item))
        if isinstance(item, MediaFrame) and item.talkspurt_end:
            # What was said last is not held back until the next words fill its block.
            self._flush(self._decoder)

    def _take_replayed(self, item: MediaFrame) -> None:
        """What comes once more has a decoder of its own: it lies in the past of the other one."""
        if self._replayer is not None:
            blocks = [*self._replayer.push(item), *self._replayer.flush()]
            self._ready.extend(replace(_decoded(block), replayed=True) for block in blocks)

    def _flush(self, decoder: OrderedDecoder) -> bool:
        blocks = decoder.flush()
        self._ready.extend(_decoded(block) for block in blocks)
        return bool(blocks)
