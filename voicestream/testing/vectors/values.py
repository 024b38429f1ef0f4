"""Values of the wire as JSON, in the form of the test vectors, and back."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from voicestream.config import Track
from voicestream.wire import (
    Accept,
    AnchorFrame,
    AudioFrame,
    Clear,
    Cleared,
    ClearedFrame,
    ClearFrame,
    Close,
    Confirm,
    CopyFrame,
    Datagram,
    EventHeader,
    Finish,
    Finished,
    Frame,
    GoingAway,
    Held,
    Hello,
    Message,
    MissingFrame,
    PaddingFrame,
    Parameters,
    PlayoutEntry,
    ProbeFrame,
    Progress,
    ProgressFrame,
    Reject,
    RepairFrame,
    ReportFrame,
    Resume,
    Resumed,
    RetransmissionFrame,
    Settings,
    UnknownFrame,
    UnknownMessage,
)

__all__ = [
    "datagram_json",
    "event_json",
    "frame_json",
    "message_json",
    "to_datagram",
    "to_event",
    "to_fields",
    "to_message",
    "to_parameters",
    "to_track",
]

FRAMES: Final[dict[str, Any]] = {
    "AUDIO": AudioFrame,
    "PADDING": PaddingFrame,
    "REPORT": ReportFrame,
    "PROBE": ProbeFrame,
    "REPAIR": RepairFrame,
    "COPY": CopyFrame,
    "RETRANSMISSION": RetransmissionFrame,
    "ANCHOR": AnchorFrame,
    "MISSING": MissingFrame,
    "UNKNOWN": UnknownFrame,
}
MESSAGE_FRAMES: Final[dict[str, Any]] = {"CLEAR": ClearFrame, "CLEARED": ClearedFrame, "PROGRESS": ProgressFrame}
MESSAGES: Final[dict[str, Any]] = {
    "HELLO": Hello,
    "ACCEPT": Accept,
    "REJECT": Reject,
    "RESUME": Resume,
    "RESUMED": Resumed,
    "CONFIRM": Confirm,
    "SETTINGS": Settings,
    "CLEAR": Clear,
    "CLEARED": Cleared,
    "PROGRESS": Progress,
    "FINISH": Finish,
    "FINISHED": Finished,
    "GOING_AWAY": GoingAway,
    "CLOSE": Close,
    "UNKNOWN": UnknownMessage,
}
BYTE_FIELDS: Final = {"payload", "symbol", "token", "metadata", "session_id", "resume_token", "route_token"}
_NAMES: Final = {build: name for table in (FRAMES, MESSAGE_FRAMES, MESSAGES) for name, build in table.items()}


# ----------------------------------------------------------------------------- JSON to values


def to_fields(value: dict[str, Any], *without: str) -> dict[str, Any]:
    """Members of a JSON value as arguments: hexadecimal to bytes, lists to tuples."""
    converted = {}
    for name, content in value.items():
        if name in without:
            continue
        if name in BYTE_FIELDS:
            content = bytes.fromhex(content)
        elif isinstance(content, list):
            content = tuple(tuple(item) if isinstance(item, list) else item for item in content)
        converted[name] = content
    return converted


def to_track(value: dict[str, Any]) -> Track:
    """The description of a track."""
    return Track(track_id=value["track"], **to_fields(value, "track"))


def to_parameters(value: dict[str, Any]) -> Parameters:
    """A list of parameters."""
    return Parameters(
        **to_fields(value, "tracks", "held", "unknown"),
        tracks=tuple(to_track(track) for track in value.get("tracks", ())),
        held=tuple(Held(**to_fields(held)) for held in value.get("held", ())),
        unknown=tuple((number, bytes.fromhex(content)) for number, content in value.get("unknown", ())),
    )


def to_message(value: dict[str, Any]) -> Message:
    """A control message."""
    arguments = to_fields(value, "message", "parameters")
    if "parameters" in value:
        arguments["parameters"] = to_parameters(value["parameters"])
    message: Message = MESSAGES[value["message"]](**arguments)
    return message


def to_frame(value: dict[str, Any]) -> Frame:
    """A frame."""
    name = value["frame"]
    if name in MESSAGE_FRAMES:
        frame: Frame = MESSAGE_FRAMES[name](message=MESSAGES[name](**to_fields(value, "frame")))
        return frame
    arguments = to_fields(value, "frame")
    if "playout" in arguments:
        arguments["playout"] = tuple(PlayoutEntry(**entry) for entry in value["playout"])
    frame = FRAMES[name](**arguments)
    return frame


def to_datagram(value: dict[str, Any]) -> Datagram:
    """A datagram."""
    return Datagram(**to_fields(value, "frames"), frames=tuple(to_frame(frame) for frame in value["frames"]))


def to_event(value: dict[str, Any]) -> tuple[EventHeader, bytes]:
    """An event: header and payload."""
    return EventHeader(**to_fields(value, "payload")), bytes.fromhex(value["payload"])


# ----------------------------------------------------------------------------- values to JSON


def _members(value: Any) -> dict[str, Any]:
    """Members that are not as by default."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        content = getattr(value, field.name)
        if content is None or (field.default is not dataclasses.MISSING and content == field.default):
            continue
        found[field.name] = _plain(content)
    return found


def _plain(content: Any) -> Any:
    if isinstance(content, bytes):
        return content.hex()
    if isinstance(content, Track):
        plain = dataclasses.asdict(content)
        return {"track": plain.pop("track_id"), **plain}
    if isinstance(content, Held | PlayoutEntry):
        return _members(content)
    if isinstance(content, Parameters):
        return _members(content)
    if isinstance(content, tuple):
        return [_plain(item) for item in content]
    return int(content) if isinstance(content, int) and not isinstance(content, bool) else content


def message_json(message: Message) -> dict[str, Any]:
    """A message as in the vectors."""
    version = {"version": message.version} if isinstance(message, Hello | Accept | Resume) else {}
    return {"message": _NAMES[type(message)], **version, **_members(message)}


def frame_json(frame: Frame) -> dict[str, Any]:
    """A frame as in the vectors."""
    if isinstance(frame, ClearFrame | ClearedFrame | ProgressFrame):
        return {"frame": _NAMES[type(frame)], **_members(frame.message)}
    return {"frame": _NAMES[type(frame)], **_members(frame)}


def datagram_json(datagram: Datagram) -> dict[str, Any]:
    """A datagram as in the vectors."""
    frames = [frame_json(frame) for frame in datagram.frames]
    return {"number": datagram.number, "send_tick": datagram.send_tick, "frames": frames}


def event_json(header: EventHeader, payload: bytes) -> dict[str, Any]:
    """An event as in the vectors."""
    return {**_members(header), "payload": payload.hex()}
