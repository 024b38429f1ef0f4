"""What a session tells its owner. Fetch with ``next_event()`` until it returns None."""

from __future__ import annotations

from dataclasses import dataclass, field

from voicestream.codepoints import EventKind

__all__ = [
    "Accepted",
    "ClearRequested",
    "Cleared",
    "Closed",
    "Event",
    "EventReceived",
    "Finished",
    "GoingAway",
    "HelloReceived",
    "PathLost",
    "PlanChanged",
    "Progress",
    "QualityChanged",
    "Rejected",
    "RemoteCleared",
    "RemoteFinished",
    "ResumeReceived",
    "Resumed",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class HelloReceived:
    """Server: a client asks for a call. Answer with `ServerSession.accept` or `ServerSession.reject`."""

    authority: str
    path: str
    token: bytes = field(repr=False)
    metadata: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """Client: the server took the call. Audio may flow."""

    session_id: bytes
    metadata: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejected:
    """Client: the server declined; `Closed` follows. `retry_after` in seconds."""

    code: int
    reason: str
    uri: str | None
    route_token: bytes | None = field(repr=False)
    retry_after: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class EventReceived:
    """An application event of the far end. `order` is 0 for one sent without order; `track` and `pts` align it with audio."""

    kind: EventKind | int
    event_id: int
    order: int
    payload: bytes = field(repr=False)
    track: int | None
    pts: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ClearRequested:
    """The far end, which listens to our `track`, asks us to stop talking. What was queued is gone; the next frame has `to_pts`."""

    track: int
    number: int
    to_pts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Cleared:
    """The far end confirms a clear of our `track`: it had played up to `heard_pts` (pts units of 2.5 ms)."""

    track: int
    number: int
    heard_pts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """The far end has played our `track` up to `played_pts`."""

    track: int
    played_pts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteCleared:
    """The far end took back what it sent on `track` before `to_pts`. The playout has forgotten it; the player drops what it holds."""

    track: int
    number: int
    to_pts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteFinished:
    """The far end sends no more on `track`; its last sample lies before `pts`."""

    track: int
    pts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """The far end has played our `track` to its end (`played_pts`)."""

    track: int
    played_pts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GoingAway:
    """The far end will close soon; call `uri` with `route_token` instead, after `retry_after` seconds."""

    reason: str
    uri: str | None
    route_token: bytes | None = field(repr=False)
    retry_after: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanChanged:
    """The sender's plan changed: the codec applies it from the next frame on.

    `inband_part` is the part of the frames, the louder ones, whose in-band copies the budget pays for.
    """

    bitrate_bps: int
    frame_ms: int
    bundle: int
    inband_fec_loss_percent: int
    copy_bps: int = 0
    inband_part: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class QualityChanged:
    """How well this end can send: `level` is "good", "limited", "poor" or "paused" (no audio leaves, for the path carries none).

    `target_bps` is the estimate of what the path carries, in bits per second with all headers.
    """

    level: str
    target_bps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PathLost:
    """The connection is gone, or was left. The session is kept; what is sent meanwhile goes out when it is resumed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ResumeReceived:
    """Server: a client wants to go on with a session. Answer with `ServerSession.take_over` of that session, or with `reject`.

    Attributes:
        session_id: The session's name.
        authority: What the client called, if it says so.
        path: What the client called there, if it says so.
        token: For the application's check of who it is.
    """

    session_id: bytes
    authority: str
    path: str
    token: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Resumed:
    """The session goes on on a new connection. `generation` counts how often it has."""

    generation: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Closed:
    """The session is over; the last event."""

    code: int
    reason: str
    remote: bool
    may_resume: bool


Event = (
    HelloReceived
    | Accepted
    | Rejected
    | EventReceived
    | ClearRequested
    | Cleared
    | Progress
    | RemoteCleared
    | RemoteFinished
    | Finished
    | GoingAway
    | PlanChanged
    | QualityChanged
    | PathLost
    | ResumeReceived
    | Resumed
    | Closed
)
