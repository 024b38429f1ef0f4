"""The listening side of a call in real time: samples pulled by a device, or blocks paced by the loop's clock."""

from __future__ import annotations

import asyncio
from operator import index
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from voicestream.call_link import CallLink
from voicestream.call_options import as_seconds
from voicestream.call_state import Ending
from voicestream.config import AudioConfig, PlayoutConfig, Track
from voicestream.errors import StateError
from voicestream.trace import Observer

if TYPE_CHECKING:
    from voicestream.audio.codec import Decoder
    from voicestream.audio.pipeline import Player
    from voicestream.core.playout import Playout
    from voicestream.session import Session

__all__ = ["BLOCK_S", "Blocks", "CallReader"]

BLOCK_S: Final = 0.020
"""Length of the blocks that iterating over a call gives."""

MAX_BURST_BLOCKS: Final = 10
"""Blocks given out at once, at most, to a loop or a consumer that fell behind; what it missed beyond is let go."""

MAX_READ_S: Final = 10

MAX_DEVICE_LATENCY_S: Final = 2.0

MAX_LOOKAHEAD_MS: Final = 500
"""Most that LOOKAHEAD_MS can say."""


class CallReader:
    """Pulls one track through a playout buffer. `read` may be called from any thread."""

    __slots__ = ("_audio", "_device_latency", "_ending", "_left", "_link", "_observer", "_player", "_playout_config", "playout", "track")

    def __init__(
        self, link: CallLink, ending: Ending, track: Track, audio: AudioConfig, playout: PlayoutConfig, observer: Observer | None
    ) -> None:
        self._link = link
        self._ending = ending
        self._audio = audio
        self._playout_config = playout
        self._observer = observer
        self._player: Player | None = None
        # Samples to go until the end, once the end is known.
        self._left: int | None = None
        self._device_latency = 0.0
        self.playout: Playout | None = None
        self.track = track

    def read(self, samples: int) -> NDArray[np.int16]:
        """The next `samples` samples; see `Call.read`."""
        samples = index(samples)  # what is no whole number would spoil the count of what was played
        if not 0 <= samples <= MAX_READ_S * self._audio.sample_rate_hz:
            raise ValueError(f"n must be 0 to {MAX_READ_S * self._audio.sample_rate_hz} samples, not {samples}")
        # Loading the codec takes a while: not with the lock in hand, for which the loop waits.
        decoder = self._decoder() if self._player is None else None
        self._link.poll()
        with self._link.locked() as session:
            player = self._player or self._open(session, decoder or self._decoder())
            now = self._link.now()
            if self._link.is_over and self._is_dry():
                # Nothing comes any more: silence, rather than concealment of what will never arrive.
                return self._silence(samples)
            pcm = player.read(samples, now)
            if self.playout is not None:
                self.playout.account.frames_inband = player.inband_frames
            self._note_end(player, samples)
            told = not self._link.is_over and session.report_played(self._heard_pts(player), now, self.track.track_id)
        if told:
            self._link.wake()
        return pcm

    def blocks(self) -> Blocks:
        """An iterator over what comes."""
        return Blocks(self, round(BLOCK_S * self._audio.sample_rate_hz))

    def report_heard(self) -> int:
        """Tell the session how far the device has come; the pts of the sample that it hears next."""
        if self._player is None:
            return 0
        with self._link.locked() as session:
            heard = self._heard_pts(self._player)
            session.report_played(heard, self._link.now(), self.track.track_id)
            return heard

    @property
    def sample_rate_hz(self) -> int:
        """Rate of the samples given out."""
        return self._audio.sample_rate_hz

    @property
    def device_latency(self) -> float:
        """Seconds from `read` to the loudspeaker; see `Call.device_latency`."""
        return self._device_latency

    @device_latency.setter
    def device_latency(self, seconds: float) -> None:
        seconds = as_seconds("device_latency", seconds, MAX_DEVICE_LATENCY_S)
        with self._link.locked() as session:
            self._device_latency = seconds
            if self._player is not None:
                self._player.device_latency = seconds
            if not self._link.is_over:
                # The far end counts from what is heard: what the device holds must not be taken from what the buffer may hold.
                lookahead_ms = min(MAX_LOOKAHEAD_MS, self._playout_config.lookahead_ms + round(seconds * 1000))
                session.update_settings(self._link.now(), lookahead_ms=lookahead_ms)
        self._link.wake()

    def _note_end(self, player: Player, samples: int) -> None:
        """Count down what the player still holds once the playout has decided the last frame."""
        if self._left is not None:
            self._left = max(0, self._left - samples)
        elif self.playout is not None and self.playout.finished:
            self._left = player.held_samples + round(self._device_latency * self._audio.sample_rate_hz)

    def _heard_pts(self, player: Player) -> int:
        heard = player.heard_pts
        if self._left == 0 and self.playout is not None:
            # All has been heard that ever will be, also where the track's end was lost.
            return max(heard, self.playout.playhead_pts)
        return heard

    def _decoder(self) -> Decoder:
        from voicestream.audio.codec import make_decoder

        return make_decoder(self.track, self._audio.sample_rate_hz, self._audio.channels)

    def _open(self, session: Session, decoder: Decoder) -> Player:
        from voicestream.audio.pipeline import Player
        from voicestream.core.playout import Playout

        track = self.track.track_id
        if track not in session.receivers:
            raise StateError(f"track {track} is not received in this call")
        self.playout = Playout(self._playout_config, observer=self._observer, track=track)
        self._player = Player(self.playout, decoder, self._audio.sample_rate_hz, self._audio.channels)
        self._player.device_latency = self._device_latency
        session.receivers[track].attach_playout(self.playout)
        return self._player

    def _silence(self, samples: int) -> NDArray[np.int16]:
        channels = self._audio.channels
        return np.zeros(samples if channels == 1 else (samples, channels), dtype=np.int16)

    def _is_dry(self) -> bool:
        return self.playout is None or self._left == 0 or self.playout.held_frames == 0

    def check_over(self) -> bool:
        """Whether the far end's last sample has been given out, or nothing comes any more.

        Raises:
            CallClosedError: The latter, because of an error.
        """
        with self._link.locked():
            if self._left == 0:
                return True
            if not self._link.is_over or not self._is_dry():
                return False
            self._ending.check_error()
            return True


class Blocks:
    """Iterates in real time: blocks of 20 ms at absolute deadlines of the loop's clock. Cancelling a wait loses no block."""

    __slots__ = ("_block_s", "_due", "_reader", "_samples")

    def __init__(self, reader: CallReader, samples: int) -> None:
        self._reader = reader
        self._samples = samples
        # What the samples last: at 11025 Hz a block of 220 is a little shorter than 20 ms.
        self._block_s = samples / reader.sample_rate_hz
        self._due: float | None = None

    def __aiter__(self) -> Blocks:
        return self

    async def __anext__(self) -> NDArray[np.int16]:
        clock = asyncio.get_running_loop().time
        due = clock() if self._due is None else self._due
        late = clock() - due
        if late > MAX_BURST_BLOCKS * self._block_s:
            due += late - MAX_BURST_BLOCKS * self._block_s
        # Sleeping zero lets other tasks run while this one catches up.
        await asyncio.sleep(max(0.0, due - clock()))
        if self._reader.check_over():
            raise StopAsyncIteration
        block = self._reader.read(self._samples)
        self._due = due + self._block_s
        return block
