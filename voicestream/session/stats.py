"""What a session did, in numbers: frozen, with units in the names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from voicestream.config import PTS_UNIT_MS
from voicestream.core.recovery.budget import Tool
from voicestream.session.latency_stats import LatencyStats, collect_latency

if TYPE_CHECKING:
    from voicestream.session.app_events import AppEvents
    from voicestream.session.hub import Hub
    from voicestream.session.link import Link
    from voicestream.session.planner import Planner
    from voicestream.session.tracks import Tracks

__all__ = ["RecoveryStats", "SessionStats", "TrackStats", "collect"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackStats:
    """One track. What concerns a direction that the track does not have is zero; pts count units of 2.5 ms.

    Attributes:
        track: 0 to 3.
        frames_sent: Frames that left.
        payload_bytes_sent: Their coded bytes.
        frames_lost: Sent frames whose datagram the far end reports as lost.
        frames_expired: Frames dropped in the send queue because their deadline had passed.
        frames_overdue: Frames that left although their deadline had passed: none, if all is well.
        frames_overflowed: Frames dropped because the send queue was full.
        frames_cleared: Frames dropped in the send queue by a clear.
        frames_queued: Frames that wait in the send queue.
        frames_received: Frames handed to the application, or kept for it.
        payload_bytes_received: Their coded bytes.
        frames_duplicate: Frames that came again.
        frames_stale: Frames that a clear had voided when they came.
        frames_unheard: Frames dropped because nobody listened for 10 s.
        frames_retransmitted: Frames that came as a retransmission.
        next_pts: Pts of the next frame to send.
        received_pts: End of the latest media received.
        played_pts: How far this end has played what it receives.
        far_played_pts: How far the far end has played what this end sends.
        far_level_ms: Media held by the far end's playout, in milliseconds.
        far_target_ms: Media that the far end's playout wants to hold, in milliseconds.
        clears_sent: Clear number of the sending direction.
        clears_received: Clear number of the receiving direction.
    """

    track: int
    frames_sent: int = 0
    payload_bytes_sent: int = 0
    frames_lost: int = 0
    frames_expired: int = 0
    frames_overdue: int = 0
    frames_overflowed: int = 0
    frames_cleared: int = 0
    frames_queued: int = 0
    frames_received: int = 0
    payload_bytes_received: int = 0
    frames_duplicate: int = 0
    frames_stale: int = 0
    frames_unheard: int = 0
    frames_retransmitted: int = 0
    next_pts: int = 0
    received_pts: int = 0
    played_pts: int = 0
    far_played_pts: int = 0
    far_level_ms: float = 0.0
    far_target_ms: float = 0.0
    clears_sent: int = 0
    clears_received: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RecoveryStats:
    """What was done against loss, in both directions.

    Attributes:
        redundancy_share: Part of the bytes on the wire that repairs, copies, retransmissions, in-band copies and pairs of this end have
            taken.
        repair_bytes_sent: Bytes of repairs.
        retransmission_bytes_sent: Bytes of retransmissions, with the headers of datagrams that carry nothing else.
        copy_bytes_sent: Bytes of low-rate copies.
        inband_bytes_sent: Estimated bytes of the codec's in-band copies.
        pair_bytes_sent: Bytes of frames sent twice right behind others, to measure the path with something useful.
        repairs_sent: Repairs that left.
        retransmissions_sent: Frames sent again.
        retransmissions_received: Frames that came as a retransmission and were still wanted.
        copies_sent: Low-rate copies that left.
        copies_received: Low-rate copies that came.
        repairs_received: Repairs that came.
        repairs_unneeded: Those of whose frames none was missing.
        repairs_invalid: Those that contradict what is known, and recovered frames that are none.
        frames_repaired: Lost frames that repairs brought back.
        frames_asked: Pieces of missing media asked for, repeats included.
        frames_given_up: Pieces that could not have come in time.
    """

    redundancy_share: float = 0.0
    repair_bytes_sent: int = 0
    retransmission_bytes_sent: int = 0
    copy_bytes_sent: int = 0
    inband_bytes_sent: int = 0
    pair_bytes_sent: int = 0
    repairs_sent: int = 0
    retransmissions_sent: int = 0
    retransmissions_received: int = 0
    copies_sent: int = 0
    copies_received: int = 0
    repairs_received: int = 0
    repairs_unneeded: int = 0
    repairs_invalid: int = 0
    frames_repaired: int = 0
    frames_asked: int = 0
    frames_given_up: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionStats:
    """A session up to now.

    Attributes:
        state: Name of its state.
        rtt_ms: Smoothed round-trip time in milliseconds, None before the first report; likewise the next two.
        latest_rtt_ms: Newest sample.
        min_rtt_ms: Smallest sample.
        clock_offset_ms: The far end's clock less ours, modulo 16384 ms; None before the first report.
        clock_error_ms: Bound of that offset's error; None before the first report.
        path_delay_ms: One-way delay of the newest datagram that came, good to `clock_error_ms`; None before the first report.
        datagrams_sent: Datagrams that left.
        bytes_sent: Bytes of VoiceStream in them.
        datagrams_received: Datagrams that came.
        bytes_received: Bytes of VoiceStream in them.
        datagrams_duplicate: Datagrams that came again, or much too late.
        datagrams_acked: Sent datagrams that the far end reports as arrived.
        datagrams_lost: Sent datagrams that it reports as lost.
        datagrams_unreported: Sent datagrams of which it never said anything.
        loss_share: Lost part of the reported ones, 0 to 1.
        early_datagrams_dropped: Datagrams that came before ACCEPT, too many to keep.
        reports_sent: Reports that left.
        report_bytes_sent: Their bytes.
        reports_received: Reports that came.
        keepalives_sent: Datagrams sent only to keep the path.
        messages_sent: Control messages sent.
        messages_received: Control messages received.
        messages_unknown: Control messages of a type that this version does not know.
        frames_unknown: Datagram frames of a type that this version does not know.
        frames_unused: Datagram frames that this version knows and makes no use of.
        events_sent: Application events given to `send_event`.
        event_bytes_sent: Their payload.
        events_waiting: Application events that have not left completely.
        events_received: Application events received.
        event_bytes_received: Their payload.
        events_duplicate: Application events that came again.
        events_dropped: Events that the owner of the session did not fetch in time.
        event_rate_bps: Bits per second that application events get at present.
        target_bps: Bits per second that this end may send, with all headers, as estimated from the far end's reports.
        wire_rate_bps: Bits per second that it sends, with all headers, over the last second.
        delivered_bps: Bits per second of that which arrive.
        queue_delay_ms: Standing queue on the path toward the far end, in milliseconds.
        recent_loss_share: Lost part of the last hundred datagrams or so, 0 to 1.
        loss_burst_datagrams: Datagrams lost in a row, in the mean.
        quality: "good", "limited", "poor" or "paused"; see `events.QualityChanged`.
        resumes: How often the session was taken up on a new connection.
        frames_replayed: Frames that left once more since a break had swallowed them.
        recovery: What was done against loss.
        latency: How late speech was.
        tracks: The tracks, by ascending id.
    """

    state: str
    rtt_ms: float | None
    latest_rtt_ms: float | None
    min_rtt_ms: float | None
    clock_offset_ms: float | None
    clock_error_ms: float | None
    path_delay_ms: float | None
    datagrams_sent: int
    bytes_sent: int
    datagrams_received: int
    bytes_received: int
    datagrams_duplicate: int
    datagrams_acked: int
    datagrams_lost: int
    datagrams_unreported: int
    loss_share: float
    early_datagrams_dropped: int
    reports_sent: int
    report_bytes_sent: int
    reports_received: int
    keepalives_sent: int
    messages_sent: int
    messages_received: int
    messages_unknown: int
    frames_unknown: int
    frames_unused: int
    events_sent: int
    event_bytes_sent: int
    events_waiting: int
    events_received: int
    event_bytes_received: int
    events_duplicate: int
    events_dropped: int
    event_rate_bps: float
    target_bps: float
    wire_rate_bps: float
    delivered_bps: float
    queue_delay_ms: float
    recent_loss_share: float
    loss_burst_datagrams: float
    quality: str
    resumes: int
    frames_replayed: int
    recovery: RecoveryStats
    latency: LatencyStats
    tracks: tuple[TrackStats, ...]


def collect(hub: Hub, link: Link, tracks: Tracks, app_events: AppEvents, planner: Planner, now: float) -> SessionStats:
    """Gather the numbers from the parts of a session."""
    reports, counts = link.reports, hub.counts
    clock, sent, estimator = reports.clock, reports.sent, planner.estimator
    offset = clock.offset()
    return SessionStats(
        state=hub.lifecycle.state.value,
        rtt_ms=_ms(clock.rtt),
        latest_rtt_ms=_ms(clock.latest_rtt),
        min_rtt_ms=_ms(clock.min_rtt),
        clock_offset_ms=_ms(offset),
        clock_error_ms=None if offset is None else _ms(clock.error(now)),
        path_delay_ms=_ms(reports.path_delay),
        datagrams_sent=counts.datagrams_sent,
        bytes_sent=counts.bytes_sent,
        datagrams_received=counts.datagrams_received,
        bytes_received=counts.bytes_received,
        datagrams_duplicate=reports.arrivals.duplicates,
        datagrams_acked=sent.acked,
        datagrams_lost=sent.lost,
        datagrams_unreported=sent.unreported,
        loss_share=sent.lost / max(1, sent.lost + sent.acked),
        early_datagrams_dropped=counts.early_datagrams_dropped,
        reports_sent=reports.schedule.sent,
        report_bytes_sent=reports.schedule.sent_bytes,
        reports_received=counts.reports_received,
        keepalives_sent=counts.keepalives_sent,
        messages_sent=counts.messages_sent,
        messages_received=counts.messages_received,
        messages_unknown=counts.messages_unknown,
        frames_unknown=counts.frames_unknown,
        frames_unused=counts.frames_unused,
        events_sent=counts.events_sent,
        event_bytes_sent=counts.event_bytes_sent,
        events_waiting=app_events.outbox.waiting,
        events_received=counts.events_received,
        event_bytes_received=counts.event_bytes_received,
        events_duplicate=app_events.inbox.duplicates,
        events_dropped=hub.events.dropped,
        event_rate_bps=app_events.outbox.rate_bps(),
        target_bps=estimator.target_bps,
        wire_rate_bps=estimator.sent_bps(now),
        delivered_bps=estimator.delivered_bps(),
        queue_delay_ms=estimator.queue_delay * 1000,
        recent_loss_share=estimator.loss.share,
        loss_burst_datagrams=estimator.loss.mean_burst,
        quality=planner.quality.value,
        resumes=counts.resumes,
        frames_replayed=tracks.replay.frames_sent,
        recovery=_recovery(tracks),
        latency=collect_latency(tracks.latency),
        tracks=tuple(_track(tracks, track) for track in sorted(tracks.senders.keys() | tracks.receivers.keys())),
    )


def _recovery(tracks: Tracks) -> RecoveryStats:
    recovery = tracks.recovery
    budget, counts, incoming = recovery.budget, recovery.counts, recovery.missed.tracks.values()
    return RecoveryStats(
        redundancy_share=sum(budget.spent.values()) / max(1, budget.wire_bytes),
        repair_bytes_sent=budget.spent[Tool.REPAIR],
        retransmission_bytes_sent=budget.spent[Tool.RETRANSMISSION],
        copy_bytes_sent=budget.spent[Tool.COPY],
        inband_bytes_sent=budget.spent[Tool.INBAND],
        pair_bytes_sent=budget.spent[Tool.PAIR],
        repairs_sent=counts.repairs_sent,
        retransmissions_sent=counts.retransmissions_sent,
        retransmissions_received=sum(receiver.counts.retransmissions for receiver in tracks.receivers.values()),
        copies_sent=counts.copies_sent,
        copies_received=counts.copies_received,
        repairs_received=counts.repairs_received,
        repairs_unneeded=sum(one.decoder.unneeded for one in incoming),
        repairs_invalid=counts.repairs_invalid + sum(one.decoder.unusable for one in incoming),
        frames_repaired=counts.frames_repaired,
        frames_asked=sum(one.missing.asked for one in incoming),
        frames_given_up=sum(one.missing.given_up for one in incoming),
    )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _track(tracks: Tracks, track: int) -> TrackStats:
    values: dict[str, float] = {}
    sender = tracks.senders.get(track)
    if sender is not None:
        counts = sender.counts
        values |= {
            "frames_sent": counts.frames,
            "payload_bytes_sent": counts.payload_bytes,
            "frames_lost": counts.frames_lost,
            "frames_expired": sender.queue.expired,
            "frames_overdue": counts.frames_overdue,
            "frames_overflowed": sender.queue.overflowed,
            "frames_cleared": sender.queue.cleared,
            "frames_queued": len(sender.queue),
            "next_pts": sender.timeline.next_pts,
            "far_played_pts": counts.played_pts,
            "far_level_ms": counts.far_level_units * PTS_UNIT_MS,
            "far_target_ms": counts.far_target_units * PTS_UNIT_MS,
            "clears_sent": sender.clears.number,
        }
    receiver = tracks.receivers.get(track)
    if receiver is not None:
        values |= {
            "frames_received": receiver.counts.frames,
            "payload_bytes_received": receiver.counts.payload_bytes,
            "frames_duplicate": receiver.counts.duplicates,
            "frames_stale": receiver.counts.stale,
            "frames_unheard": receiver.delivery.dropped,
            "frames_retransmitted": receiver.counts.retransmissions,
            "received_pts": receiver.media.end_pts,
            "played_pts": receiver.played.played_pts or 0,
            "clears_received": receiver.clears.number,
        }
    return TrackStats(track=track, **values)  # type: ignore[arg-type]  # counts are whole, milliseconds are not
