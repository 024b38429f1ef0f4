"""What a call has done, in numbers: frozen, with the units in the names."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from voicestream.config import PTS_UNIT_MS
from voicestream.session.latency_stats import DelayStats, LatencyStats
from voicestream.session.stats import RecoveryStats

if TYPE_CHECKING:
    from voicestream.call_parts import CallParts
    from voicestream.core.playout import OrderedAccount, Playout
    from voicestream.session import SessionStats, TrackStats

__all__ = [
    "CallStats",
    "DelayStats",
    "LatencyStats",
    "OrderedStats",
    "PathStats",
    "PlayoutStats",
    "ReceivedStats",
    "RecoveryStats",
    "SentStats",
    "collect_stats",
]

DATAGRAM_OVERHEAD: Final = 58
"""Bytes of IPv4, UDP and QUIC around one datagram."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PathStats:
    """The network between the two ends; None before the first report.

    Attributes:
        rtt_ms: Smoothed round-trip time, the far end's waiting taken off.
        min_rtt_ms: Smallest sample of it.
        one_way_delay_ms: From the far end to this one, of the newest datagram.
        one_way_delay_error_ms: How far off that may be: without a common clock, half of the best round trip.
        loss_share: Lost part of the datagrams sent, as the far end reports, 0 to 1.
        state: "connected"; "degraded" when nothing has been heard of the far end for 0.6 s, "lost" when it has not for 2 s or the
            connection broke, until it is heard again. At the end that was called "degraded" does not occur.
        lost_ms: How long the path has been lost; None while it is not.
    """

    rtt_ms: float | None = None
    min_rtt_ms: float | None = None
    one_way_delay_ms: float | None = None
    one_way_delay_error_ms: float | None = None
    loss_share: float = 0.0
    state: str = "connected"
    lost_ms: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SentStats:
    """What this end said, on all tracks.

    Attributes:
        frames: Coded frames that left.
        datagrams: Datagrams that left.
        datagrams_lost: Of these, reported as lost.
        payload_bytes: Coded audio in them.
        wire_bytes: Bytes of the datagrams on the wire, IP, UDP and QUIC headers included; events and control are not in it.
        wire_bps: Mean of that over the call.
        bitrate_bps: What the codec is told at present.
        frame_ms: Frame length at present.
        target_bps: What the path is believed to carry, with all headers.
        delivered_bps: What of it arrives at present.
        queue_delay_ms: Standing queue on the path toward the far end.
        quality: "good", "limited", "poor" or "paused" (no audio leaves, since the path does not carry any).
        frames_queued: Frames that wait to leave.
        frames_expired: Frames dropped since they had waited beyond the deadline.
        frames_overdue: Frames that left although they had waited beyond the deadline: none, if all is well.
        frames_lost: Frames whose datagram the far end reports as lost.
        frames_overflowed: Frames dropped since the queue was full, oldest first.
        frames_cleared: Frames dropped by a clear before they left.
        discarded_ms: Audio that ``send(ahead=True)`` did not send because of a clear.
        events: Application events given to `Call.send_event`.
        event_bytes: Their payload.
        events_waiting: Of these, not sent completely yet.
        played_ms: How far the far end has played the voice track.
        far_level_ms: What the far end holds of it.
        far_target_ms: What the far end wants to hold of it.
    """

    frames: int = 0
    datagrams: int = 0
    datagrams_lost: int = 0
    payload_bytes: int = 0
    wire_bytes: int = 0
    wire_bps: float = 0.0
    bitrate_bps: int = 0
    frame_ms: int = 0
    target_bps: float = 0.0
    delivered_bps: float = 0.0
    queue_delay_ms: float = 0.0
    quality: str = "good"
    frames_queued: int = 0
    frames_expired: int = 0
    frames_overdue: int = 0
    frames_lost: int = 0
    frames_overflowed: int = 0
    frames_cleared: int = 0
    discarded_ms: float = 0.0
    events: int = 0
    event_bytes: int = 0
    events_waiting: int = 0
    played_ms: float = 0.0
    far_level_ms: float = 0.0
    far_target_ms: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceivedStats:
    """What the far end said, on all tracks.

    Attributes:
        frames: Coded frames that came and were handed on.
        datagrams: Datagrams that came.
        payload_bytes: Coded audio in them.
        wire_bytes: As in `SentStats`.
        wire_bps: Mean of that over the call.
        frames_duplicate: Frames that came again.
        frames_cleared: Frames that a clear had voided when they came.
        frames_unheard: Frames dropped since nobody listened.
        events: Application events, requests for silence and the like.
        event_bytes: Payload of the application events.
        events_dropped: Events that the application did not fetch in time, oldest first.
        played_ms: How far this end has played the voice track.
    """

    frames: int = 0
    datagrams: int = 0
    payload_bytes: int = 0
    wire_bytes: int = 0
    wire_bps: float = 0.0
    frames_duplicate: int = 0
    frames_cleared: int = 0
    frames_unheard: int = 0
    events: int = 0
    event_bytes: int = 0
    events_dropped: int = 0
    played_ms: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PlayoutStats:
    """Listening in real time (`Call.read` and iteration); all zero while nobody has.

    Attributes:
        frames_received: Frames that the buffer took.
        frames_played: Of these, played.
        frames_concealed: Frames that were never played, estimated.
        frames_copied: Of the frames played, low-rate copies in place of lost ones.
        frames_inband: Lost frames made of the in-band redundancy of the frame after them.
        frames_late: Frames that came after their time.
        frames_discarded: Frames dropped because of a clear or the bound of the buffer.
        frames_duplicate: Frames that were there already.
        frames_expired: Frames that had become too old to be played.
        played_ms: Media of the frames played.
        concealed_ms: Audio made in place of what was missing.
        silent_concealed_ms: Of this, faded to silence.
        spoken_ms: All that was given out within speech, concealment included.
        concealed_share: Concealment's part of all that was given out within speech, 0 to 1.
        concealments: Stretches of concealment.
        dropouts: Of these, of 150 ms or more.
        inserted_ms: Audio gained by stretching.
        removed_ms: Audio lost by stretching.
        level_ms: Audio held at present.
        target_ms: Audio that should be held.
        mean_delay_ms: Mean time from a frame's arrival to its playing.
    """

    frames_received: int = 0
    frames_played: int = 0
    frames_concealed: int = 0
    frames_copied: int = 0
    frames_inband: int = 0
    frames_late: int = 0
    frames_discarded: int = 0
    frames_duplicate: int = 0
    frames_expired: int = 0
    played_ms: float = 0.0
    concealed_ms: float = 0.0
    silent_concealed_ms: float = 0.0
    spoken_ms: float = 0.0
    concealed_share: float = 0.0
    concealments: int = 0
    dropouts: int = 0
    inserted_ms: float = 0.0
    removed_ms: float = 0.0
    level_ms: float = 0.0
    target_ms: float = 0.0
    mean_delay_ms: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderedStats:
    """Listening in order (`Call.frames`), on all tracks; all zero while nobody has.

    Attributes:
        frames_received: Frames that the buffer took.
        frames_delivered: Of these, given out.
        frames_late: Frames that came after their gap had been given out.
        frames_discarded: Frames dropped because of a clear or the bound of the buffer.
        gaps: Gaps given out.
        lost_ms: Media in them.
    """

    frames_received: int = 0
    frames_delivered: int = 0
    frames_late: int = 0
    frames_discarded: int = 0
    gaps: int = 0
    lost_ms: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CallStats:
    """A call up to now, seen from this end.

    Attributes:
        duration_s: Seconds since the call was opened, until now or its end.
        close_code: Registry code of its end; None while it lives.
        close_reason: Words of the side that closed.
        path: See `PathStats`; likewise for the rest.
        recovery: What both directions have done against loss, by tool.
        latency: How late speech was: mouth to ear, and turns.
    """

    duration_s: float
    close_code: int | None
    close_reason: str
    path: PathStats
    sent: SentStats
    received: ReceivedStats
    playout: PlayoutStats
    ordered: OrderedStats
    recovery: RecoveryStats = field(default_factory=RecoveryStats)
    latency: LatencyStats = field(default_factory=LatencyStats)

    def to_dict(self) -> dict[str, Any]:
        """The same as nested dictionaries of JSON values."""
        plain: dict[str, Any] = _plain(dataclasses.asdict(self))
        return plain


def _plain(value: Any) -> Any:
    """JSON has lists only."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, tuple | list) else value


def collect_stats(parts: CallParts) -> CallStats:
    """Gather the numbers from the parts of a call. From any thread."""
    with parts.link.locked() as session:
        now = parts.link.now()
        lost_at, state = parts.lost_at, parts.path
        numbers, plan = session.stats(now), session.plan
        duration_s = parts.duration(now)
        playout = parts.playout
        played = PlayoutStats() if playout is None else playout_stats(playout)
        ordered = ordered_stats(parts.ordered_accounts)
    sent, received = _sent(numbers, parts, duration_s), _received(numbers, parts, duration_s)
    event = parts.ending.event
    return CallStats(
        duration_s=duration_s,
        close_code=None if event is None else event.code,
        close_reason="" if event is None else event.reason,
        path=PathStats(
            rtt_ms=numbers.rtt_ms,
            min_rtt_ms=numbers.min_rtt_ms,
            one_way_delay_ms=numbers.path_delay_ms,
            one_way_delay_error_ms=numbers.clock_error_ms,
            loss_share=numbers.loss_share,
            state=state,
            lost_ms=None if lost_at is None else (now - lost_at) * 1000,
        ),
        sent=dataclasses.replace(sent, bitrate_bps=plan.bitrate_bps, frame_ms=plan.frame_ms),
        received=received,
        playout=played,
        ordered=ordered,
        recovery=numbers.recovery,
        latency=numbers.latency,
    )


def playout_stats(playout: Playout) -> PlayoutStats:
    """The books of a playout buffer in milliseconds."""
    account = playout.account
    speech_units = account.produced_units - account.silence_units
    return PlayoutStats(
        frames_received=account.frames_received,
        frames_played=account.frames_played,
        frames_concealed=account.frames_concealed,
        frames_copied=account.frames_copied,
        frames_inband=account.frames_inband,
        frames_late=account.frames_late,
        frames_discarded=account.frames_discarded,
        frames_duplicate=account.frames_duplicate,
        frames_expired=account.frames_expired,
        played_ms=account.played_units * PTS_UNIT_MS,
        concealed_ms=account.concealed_units * PTS_UNIT_MS,
        silent_concealed_ms=account.silent_concealed_units * PTS_UNIT_MS,
        spoken_ms=max(0.0, speech_units) * PTS_UNIT_MS,
        concealed_share=account.concealed_units / speech_units if speech_units > 0 else 0.0,
        concealments=account.concealment_events,
        dropouts=account.interruptions,
        inserted_ms=account.inserted_units * PTS_UNIT_MS,
        removed_ms=account.removed_units * PTS_UNIT_MS,
        level_ms=playout.level_units * PTS_UNIT_MS,
        target_ms=playout.target_units * PTS_UNIT_MS,
        mean_delay_ms=account.mean_delay * 1000,
    )


def ordered_stats(accounts: Sequence[OrderedAccount]) -> OrderedStats:
    """The sum of the books of ordering buffers."""
    return OrderedStats(
        frames_received=sum(account.frames_received for account in accounts),
        frames_delivered=sum(account.frames_delivered for account in accounts),
        frames_late=sum(account.frames_late for account in accounts),
        frames_discarded=sum(account.frames_discarded for account in accounts),
        gaps=sum(account.gaps for account in accounts),
        lost_ms=sum(account.lost_units for account in accounts) * PTS_UNIT_MS,
    )


def _voice(numbers: SessionStats, parts: CallParts) -> TrackStats | None:
    return next((track for track in numbers.tracks if track.track == parts.voice_track), None)


def _sent(numbers: SessionStats, parts: CallParts, duration_s: float) -> SentStats:
    tracks, voice = numbers.tracks, _voice(numbers, parts)
    wire_bytes = numbers.bytes_sent + DATAGRAM_OVERHEAD * numbers.datagrams_sent
    return SentStats(
        frames=sum(track.frames_sent for track in tracks),
        datagrams=numbers.datagrams_sent,
        datagrams_lost=numbers.datagrams_lost,
        payload_bytes=sum(track.payload_bytes_sent for track in tracks),
        wire_bytes=wire_bytes,
        wire_bps=wire_bytes * 8 / duration_s if duration_s > 0 else 0.0,
        target_bps=numbers.target_bps,
        delivered_bps=numbers.delivered_bps,
        queue_delay_ms=numbers.queue_delay_ms,
        quality=numbers.quality,
        frames_queued=sum(track.frames_queued for track in tracks),
        frames_expired=sum(track.frames_expired for track in tracks),
        frames_overdue=sum(track.frames_overdue for track in tracks),
        frames_lost=sum(track.frames_lost for track in tracks),
        frames_overflowed=sum(track.frames_overflowed for track in tracks),
        frames_cleared=sum(track.frames_cleared for track in tracks),
        discarded_ms=parts.sender.discarded_ms,
        events=numbers.events_sent,
        event_bytes=numbers.event_bytes_sent,
        events_waiting=numbers.events_waiting,
        played_ms=voice.far_played_pts * PTS_UNIT_MS if voice else 0.0,
        far_level_ms=voice.far_level_ms if voice else 0.0,
        far_target_ms=voice.far_target_ms if voice else 0.0,
    )


def _received(numbers: SessionStats, parts: CallParts, duration_s: float) -> ReceivedStats:
    tracks, voice = numbers.tracks, _voice(numbers, parts)
    wire_bytes = numbers.bytes_received + DATAGRAM_OVERHEAD * numbers.datagrams_received
    return ReceivedStats(
        frames=sum(track.frames_received for track in tracks),
        datagrams=numbers.datagrams_received,
        payload_bytes=sum(track.payload_bytes_received for track in tracks),
        wire_bytes=wire_bytes,
        wire_bps=wire_bytes * 8 / duration_s if duration_s > 0 else 0.0,
        frames_duplicate=sum(track.frames_duplicate for track in tracks),
        frames_cleared=sum(track.frames_stale for track in tracks),
        frames_unheard=sum(track.frames_unheard for track in tracks),
        events=parts.inbox.received,
        event_bytes=numbers.event_bytes_received,
        events_dropped=parts.inbox.dropped + numbers.events_dropped,
        played_ms=voice.played_pts * PTS_UNIT_MS if voice else 0.0,
    )
