"""Control messages as values (specification section 5.2). Their wire form is in `voicestream.wire.messages`."""

from __future__ import annotations

from dataclasses import dataclass

from voicestream.codepoints import VERSION
from voicestream.wire.parameters import Parameters

__all__ = [
    "Accept",
    "Clear",
    "Cleared",
    "Close",
    "Confirm",
    "Finish",
    "Finished",
    "GoingAway",
    "Hello",
    "Message",
    "Progress",
    "Reject",
    "Resume",
    "Resumed",
    "Settings",
    "UnknownMessage",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Hello:
    """A client asks for a call. Needs authority, path and at least one track."""

    version: int = VERSION
    parameters: Parameters


@dataclass(frozen=True, kw_only=True, slots=True)
class Accept:
    """The server takes the call. Needs session_id, resume_token, generation, lifetime_ms and at least one track."""

    version: int = VERSION
    parameters: Parameters


@dataclass(frozen=True, kw_only=True, slots=True)
class Reject:
    """The server declines. `code` may be one that this version does not know."""

    code: int
    parameters: Parameters = Parameters()  # noqa: RUF009 - frozen


@dataclass(frozen=True, kw_only=True, slots=True)
class Resume:
    """A client takes up a broken session. Needs session_id, resume_token and generation."""

    version: int = VERSION
    parameters: Parameters


@dataclass(frozen=True, kw_only=True, slots=True)
class Resumed:
    """The server agrees to resume. Needs resume_token and generation."""

    parameters: Parameters


@dataclass(frozen=True, kw_only=True, slots=True)
class Confirm:
    """The client holds the next resume token; the older one is used up."""

    generation: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Limits of the sender that have changed during the call."""

    parameters: Parameters = Parameters()  # noqa: RUF009 - frozen


@dataclass(frozen=True, kw_only=True, slots=True)
class Clear:
    """Audio of `track` in [from_pts, to_pts) is void; what follows starts at `to_pts`.

    Attributes:
        track: 0 to 3.
        number: Clear number that the audio from `to_pts` on carries.
        from_receiver: The side that listens asks for it ("stop talking"), not the one that sends the track.
        from_pts: First void pts.
        to_pts: First pts that counts again, at least `from_pts`.
    """

    track: int = 0
    number: int
    from_receiver: bool = False
    from_pts: int
    to_pts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Cleared:
    """The receiver of `track` has done clear `number`; the device had played up to `heard_pts`."""

    track: int = 0
    number: int
    heard_pts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """The receiver of `track` has played up to `played_pts`."""

    track: int = 0
    played_pts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Finish:
    """No audio at or after `pts` follows on `track`."""

    track: int = 0
    pts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """The receiver of `track` has played it to its end, up to `played_pts`."""

    track: int = 0
    played_pts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GoingAway:
    """The sender will close soon; the parameters may say where to call instead."""

    parameters: Parameters = Parameters()  # noqa: RUF009 - frozen


@dataclass(frozen=True, kw_only=True, slots=True)
class Close:
    """The session is over.

    Attributes:
        code: Registry code, or one that this version does not know.
        reason: For people, at most 1024 bytes of UTF-8.
        may_resume: Whether the sender keeps the session for a resume.
    """

    code: int
    reason: str = ""
    may_resume: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class UnknownMessage:
    """A message of a type that this version does not define; to be skipped."""

    type: int
    payload: bytes


Message = (
    Hello
    | Accept
    | Reject
    | Resume
    | Resumed
    | Confirm
    | Settings
    | Clear
    | Cleared
    | Progress
    | Finish
    | Finished
    | GoingAway
    | Close
    | UnknownMessage
)
