"""What a session takes along to another server (specification section 11.3), as far as its client does not bring it along."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any, Final

from voicestream.config import UNITS_PER_SECOND, Track
from voicestream.core.timeline import MAX_PTS
from voicestream.session.app_events import AppEvents
from voicestream.session.negotiation import PeerLimits
from voicestream.session.receiver import Receiver
from voicestream.session.sender import Sender
from voicestream.session.tracks import Tracks
from voicestream.wire.parameters import Held

__all__ = ["Carried", "begin_after", "carry", "restore"]

CLEAR_MARGIN: Final = 4
"""VS-11.4-1. What was written may be a little old: clears count on from beyond all that the client may have seen. A multiple of 4, so
that audio that overtakes the word of it is taken for what it is."""

EVENT_MARGIN: Final = 4096
"""Likewise for the ids of events."""

MAX_AHEAD_UNITS: Final = 400 * UNITS_PER_SECOND
"""How far beyond what was written a client's HELD may move this end's media time: a session lives no longer without a server."""

_TRACK_FIELDS: Final = 7
_SENT_FIELDS: Final = 6
_RECEIVED_FIELDS: Final = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Carried:
    """Values of a session, as numbers and lists that JSON knows.

    Attributes:
        tracks: As this end describes them.
        peer: What the client takes.
        lifetime_s: Seconds for which the session can be resumed.
        sent: Of each sent track: id, next pts, played pts, whether it is finished, number and end of the newest clear.
        received: Of each received track: id, end of what the application has had (or None), end of what has come in one piece, finish
            (or None), number and end of the newest clear that the client knows of.
        event_id: Id of the next event of this end.
        next_order: Place of the client's next ordered event.
        recent: Ids of the client's latest unordered events.
    """

    tracks: tuple[Track, ...]
    peer: PeerLimits
    lifetime_s: float
    sent: tuple[tuple[Any, ...], ...]
    received: tuple[tuple[Any, ...], ...]
    event_id: int
    next_order: int
    recent: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        tracks = [(one.track_id, one.codec, one.clock_rate_hz, one.channels, one.send, one.receive, one.frame_units) for one in self.tracks]
        events = (self.event_id, self.next_order, self.recent)
        return {
            "tracks": tracks,
            "peer": astuple(self.peer),
            "lifetime": self.lifetime_s,
            "sent": self.sent,
            "received": self.received,
            "events": events,
        }

    @classmethod
    def from_json(cls, values: Any) -> Carried:
        """What `to_json` gave.

        Raises:
            ValueError: It is something else.
        """
        try:
            event_id, next_order, recent = values["events"]
            found = cls(
                tracks=tuple(_track(*one) for one in values["tracks"]),
                peer=_peer(*_numbers(values["peer"], 5)),
                lifetime_s=float(values["lifetime"]),
                sent=tuple(_numbers(one, _SENT_FIELDS) for one in values["sent"]),
                received=tuple(_numbers(one, _RECEIVED_FIELDS) for one in values["received"]),
                event_id=_number(event_id),
                next_order=_number(next_order),
                recent=tuple(_number(one) for one in recent),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"not the state of a session: {error}") from error
        if not found.tracks or not 0 < found.lifetime_s <= 300 or found.next_order < 1:
            raise ValueError("not the state of a session")
        if {one[0] for one in found.sent} != {one.track_id for one in found.tracks if one.send}:
            raise ValueError("the state of a session is not that of its sent tracks")
        if {one[0] for one in found.received} != {one.track_id for one in found.tracks if one.receive}:
            raise ValueError("the state of a session is not that of its received tracks")
        return found


def carry(agreed: tuple[Track, ...], peer: PeerLimits, lifetime_s: float, tracks: Tracks, events: AppEvents) -> Carried:
    """What a living session would take along now."""
    return Carried(
        tracks=agreed,
        peer=peer,
        lifetime_s=lifetime_s,
        sent=tuple(_sent(one) for one in tracks.senders.values()),
        received=tuple(_received(one) for one in tracks.receivers.values()),
        event_id=events.next_id,
        next_order=events.inbox.next_order,
        recent=events.inbox.recent,
    )


def restore(carried: Carried, tracks: Tracks, events: AppEvents, processed_pts: int) -> None:
    """Set a new session's tracks, open, and events to where another server had come.

    Args:
        carried: What it wrote.
        tracks: Of the new session.
        events: Likewise.
        processed_pts: Media of the first track up to which the application is done; 0 if it says nothing of that.
    """
    events.restore(carried.event_id + EVENT_MARGIN, carried.next_order, carried.recent)
    for track, next_pts, played_pts, finished, number, to_pts in carried.sent:
        sender = tracks.senders[track]
        sender.timeline.next_pts = next_pts
        sender.timeline.finished = bool(finished)
        sender.counts.played_pts = min(played_pts, next_pts)
        sender.clears.number = sender.clears.confirmed = number + CLEAR_MARGIN
        sender.clears.to_pts = min(to_pts, next_pts)
    for track, played_pts, held_pts, finish_pts, number, to_pts in carried.received:
        had = held_pts if played_pts is None else min(played_pts, held_pts)
        if processed_pts and track == carried.tracks[0].track_id:
            had = min(processed_pts, held_pts)
        receiver = tracks.receivers[track]
        receiver.clears.restore(number, to_pts)
        receiver.restore(had, None if played_pts is None else had, finish_pts)


def begin_after(tracks: Tracks, held: tuple[Held, ...]) -> None:
    """The client tells what it has: this end's media goes on after that, for no pts is used twice."""
    for one in held:
        sender = tracks.senders.get(one.track)
        if sender is None or sender.timeline.finished:
            continue
        reached = max([one.next_pts, *(first + units for first, units in one.ranges)])
        bound = sender.timeline.next_pts + MAX_AHEAD_UNITS
        sender.timeline.next_pts = max(sender.timeline.next_pts, min(reached, bound))


def _sent(sender: Sender) -> tuple[Any, ...]:
    timeline, clears = sender.timeline, sender.clears
    return sender.track.track_id, timeline.next_pts, sender.counts.played_pts, timeline.finished, clears.number, clears.to_pts


def _received(receiver: Receiver) -> tuple[Any, ...]:
    played = receiver.played
    number, to_pts = receiver.clears.known
    return receiver.track.track_id, played.played_pts, receiver.wanted_from, played.finish_pts, number, to_pts


def _track(track_id: int, codec: int, clock_rate_hz: int, channels: int, send: bool, receive: bool, frame_units: int) -> Track:
    return Track(
        track_id=track_id,
        codec=codec,
        clock_rate_hz=clock_rate_hz,
        channels=channels,
        send=bool(send),
        receive=bool(receive),
        frame_units=frame_units,
    )


def _peer(
    max_datagram_size: int, max_event_size: int, lookahead_ms: int, retain_ms: int, max_rate_bps: int | None
) -> PeerLimits:
    return PeerLimits(
        max_datagram_size=max_datagram_size,
        max_event_size=max_event_size,
        lookahead_ms=lookahead_ms,
        retain_ms=retain_ms,
        max_rate_bps=max_rate_bps,
    )


def _numbers(values: Any, count: int) -> tuple[Any, ...]:
    if len(values) != count:
        raise ValueError(f"{len(values)} values in place of {count}")
    return tuple(None if one is None else _number(one) for one in values)


def _number(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < MAX_PTS:
        raise ValueError(f"{value!r} is no number that could be meant")
    return value
