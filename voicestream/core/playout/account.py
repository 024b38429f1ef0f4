"""The playout's books. Names follow NetEQ's and getStats' where those have one."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["ConcealmentRun", "PlayoutAccount"]

FADE_UNITS = 48.0
"""Concealment has faded to silence after 120 ms."""

INTERRUPTION_UNITS = 60.0
"""Concealment of 150 ms is an interruption."""


@dataclass(slots=True, kw_only=True)
class PlayoutAccount:
    """Counters since the playout began; none ever falls.

    At every moment ``frames_received`` equals ``frames_played + frames_late + frames_discarded + frames_duplicate +
    frames_expired`` and the frames still held (VS-16-5), and ``produced_units`` equals ``played_units + inserted_units -
    removed_units + concealed_units + silence_units``.

    Attributes:
        frames_received: Frames inserted.
        frames_played: Frames handed out for decoding.
        frames_copied: Of the frames played, low-rate copies that stood in for lost ones.
        frames_inband: Lost frames whose end was made of the in-band redundancy of the frame after them, as the executor tells.
        frames_late: Frames that came after the playhead had passed them.
        frames_discarded: Frames dropped because the buffer was full, because a clear covered them or because they overlap.
        frames_duplicate: Frames that were here already, or a copy whose frame is.
        frames_expired: Frames dropped because they had become too old for live playout (stalled reader, drained queue).
        frames_concealed: Frames that were never played, estimated from the length of the frame played before.
        lost_units: Media time that was never played.
        played_units: Media time of the frames played.
        produced_units: Audio made, as reported by the executor.
        concealed_units: Concealment made.
        silent_concealed_units: Part of it that had faded to silence (beyond the first 120 ms of one concealment).
        silence_units: Silence made outside talkspurts.
        concealment_events: Runs of concealment.
        interruptions: Runs of concealment of 150 ms or more.
        inserted_units: Audio added by stretching frames.
        removed_units: Audio taken away by stretching frames.
        jitter_buffer_delay: Sum over all emitted units of the seconds from the frame's arrival to the device.
        jitter_buffer_target_delay: Sum over all emitted units of the target then, in seconds.
        jitter_buffer_emitted_units: Units that the two sums cover.
    """

    frames_received: int = 0
    frames_played: int = 0
    frames_copied: int = 0
    frames_inband: int = 0
    frames_late: int = 0
    frames_discarded: int = 0
    frames_duplicate: int = 0
    frames_expired: int = 0
    frames_concealed: int = 0
    lost_units: int = 0
    played_units: int = 0
    produced_units: float = 0.0
    concealed_units: float = 0.0
    silent_concealed_units: float = 0.0
    silence_units: float = 0.0
    concealment_events: int = 0
    interruptions: int = 0
    inserted_units: float = 0.0
    removed_units: float = 0.0
    jitter_buffer_delay: float = 0.0
    jitter_buffer_target_delay: float = 0.0
    jitter_buffer_emitted_units: int = 0

    def snapshot(self) -> PlayoutAccount:
        """A copy that does not change any more."""
        return replace(self)

    @property
    def mean_delay(self) -> float:
        """Mean seconds from a frame's arrival to the device; 0 before the first."""
        return self.jitter_buffer_delay / self.jitter_buffer_emitted_units if self.jitter_buffer_emitted_units else 0.0


class ConcealmentRun:
    """Follows one run of concealment and books it.

    Args:
        account: Where to book.
    """

    def __init__(self, account: PlayoutAccount) -> None:
        self._account = account
        self.units = 0.0

    def add(self, made_units: float) -> None:
        """The run goes on with `made_units`."""
        if not made_units:
            return
        before, self.units = self.units, self.units + made_units
        self._account.concealed_units += made_units
        self._account.silent_concealed_units += max(0.0, self.units - max(before, FADE_UNITS))
        self._account.concealment_events += before == 0
        self._account.interruptions += before < INTERRUPTION_UNITS <= self.units

    def end(self) -> float:
        """The run is over; returns its length in units."""
        length, self.units = self.units, 0.0
        return length
