"""Strategies for what control messages are made of; users find them in `voicestream.testing.strategies`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from voicestream.codepoints import VERSION, CodecId, MessageType, ParameterId
from voicestream.config import Track
from voicestream.wire import (
    MAX_VARINT,
    Accept,
    Clear,
    Cleared,
    Close,
    Confirm,
    Finish,
    Finished,
    GoingAway,
    Held,
    Hello,
    Message,
    Parameters,
    Progress,
    Reject,
    Resume,
    Resumed,
    Settings,
    UnknownMessage,
)

__all__ = [
    "accept_messages",
    "clear_messages",
    "cleared_messages",
    "close_messages",
    "confirm_messages",
    "finish_messages",
    "finished_messages",
    "going_away_messages",
    "held_entries",
    "hello_messages",
    "messages",
    "parameters",
    "payloads",
    "progress_messages",
    "reject_messages",
    "resume_messages",
    "resumed_messages",
    "settings_messages",
    "texts",
    "track_ids",
    "tracks",
    "u16",
    "unknown_messages",
    "unknown_parameters",
    "varints",
]

_T = TypeVar("_T")

# ----------------------------------------------------------------------------- numbers and text


def u16() -> SearchStrategy[int]:
    """16-bit integers."""
    return st.integers(0, 0xFFFF)


def varints(low: int = 0, high: int = MAX_VARINT) -> SearchStrategy[int]:
    """Numbers of a variable-length integer, every length about equally often."""
    bounds = [(0, 63), (64, 16383), (16384, (1 << 30) - 1), (1 << 30, MAX_VARINT)]
    parts = [st.integers(max(low, first), min(high, last)) for first, last in bounds if max(low, first) <= min(high, last)]
    return st.one_of(parts)


def track_ids() -> SearchStrategy[int]:
    """0 to 3."""
    return st.integers(0, 3)


def texts(size: int) -> SearchStrategy[str]:
    """Text of at most `size` bytes of UTF-8."""
    return st.text(st.characters(codec="utf-8"), max_size=size // 4)


def payloads(size: int = 200) -> SearchStrategy[bytes]:
    """1 to `size` bytes."""
    return st.binary(min_size=1, max_size=size)


# ----------------------------------------------------------------------------- parameters


def tracks() -> SearchStrategy[Track]:
    """Descriptions of a track."""

    def with_length(codec: int, direction: int, frame_units: int, **rest: int) -> Track:
        opaque = CodecId.PRIVATE <= codec < 0x80
        send, receive = bool(direction & 1), bool(direction & 2)
        return Track(codec=codec, send=send, receive=receive, frame_units=frame_units or int(opaque), **rest)

    return st.builds(
        with_length,
        track_id=track_ids(),
        codec=st.sampled_from(list(CodecId)) | varints(),
        clock_rate_hz=st.integers(1, 384000),
        channels=st.integers(1, 8),
        direction=st.integers(1, 3),
        frame_units=st.integers(0, 48),
    )


def held_entries() -> SearchStrategy[Held]:
    """What is held of a track."""

    def ascending(track: int, next_pts: int, steps: list[tuple[int, int]]) -> Held:
        ranges = []
        end = next_pts
        for gap, units in steps:
            ranges.append((end + gap, units))
            end += gap + units
        return Held(track=track, next_pts=next_pts, ranges=tuple(ranges))

    steps = st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 1000)), max_size=20)
    return st.builds(ascending, track_ids(), varints(high=1 << 60), steps)


def unknown_parameters() -> SearchStrategy[tuple[tuple[int, bytes], ...]]:
    """Parameters that are not defined."""
    ids = varints().filter(lambda number: number not in set(ParameterId))
    return st.lists(st.tuples(ids, st.binary(max_size=50)), max_size=3).map(tuple)


def _parameter_fields() -> dict[str, SearchStrategy[Any]]:
    return {
        "authority": texts(255),
        "path": texts(400).map(lambda text: "/" + text),
        "token": st.binary(max_size=300),
        "metadata": st.binary(max_size=300),
        "tracks": st.lists(tracks(), min_size=1, max_size=4, unique_by=lambda track: track.track_id).map(tuple),
        "max_datagram_size": varints(low=256),
        "max_event_size": varints(),
        "lookahead_ms": st.integers(0, 500),
        "retain_ms": varints(),
        "max_rate_bps": varints(),
        "session_id": st.binary(min_size=16, max_size=16),
        "resume_token": st.binary(min_size=1, max_size=512),
        "generation": varints(),
        "lifetime_ms": varints(),
        "held": st.lists(held_entries(), max_size=4, unique_by=lambda held: held.track).map(tuple),
        "next_event": varints(),
        "replay_ms": st.integers(0, 2000),
        "reason": texts(300),
        "uri": texts(300),
        "route_token": st.binary(min_size=8, max_size=20),
        "retry_after_ms": varints(),
    }


def parameters(required: str = "", optional: str = "") -> SearchStrategy[Parameters]:
    """Parameter lists with all of the `required` fields and any of the `optional` ones (names between blanks); by default any at all."""
    fields = _parameter_fields()
    if not required and not optional:
        optional = " ".join(fields)
    chosen = {name: fields[name] for name in required.split()}
    for name in optional.split():
        chosen[name] = st.just(()) | fields[name] if name in ("tracks", "held") else st.none() | fields[name]
    return st.builds(Parameters, **chosen, unknown=unknown_parameters())


# ----------------------------------------------------------------------------- messages

_LIMITS = "max_datagram_size max_event_size lookahead_ms retain_ms max_rate_bps"
_ELSEWHERE = "reason uri route_token retry_after_ms"


def _versioned(build: Callable[..., _T], lists: SearchStrategy[Parameters]) -> SearchStrategy[_T]:
    other = st.builds(build, version=varints(low=VERSION + 1), parameters=st.just(Parameters()))
    return st.one_of(st.builds(build, version=st.just(VERSION), parameters=lists), other)


def hello_messages() -> SearchStrategy[Hello]:
    """HELLO, now and then of a version that is not spoken."""
    return _versioned(Hello, parameters("authority path tracks", f"token metadata {_LIMITS}"))


def accept_messages() -> SearchStrategy[Accept]:
    """ACCEPT."""
    return _versioned(Accept, parameters("session_id resume_token generation lifetime_ms tracks", f"metadata {_LIMITS}"))


def reject_messages() -> SearchStrategy[Reject]:
    """REJECT."""
    return st.builds(Reject, code=varints(), parameters=parameters(optional=_ELSEWHERE))


def resume_messages() -> SearchStrategy[Resume]:
    """RESUME."""
    return _versioned(Resume, parameters("session_id resume_token generation", "held next_event replay_ms token authority path"))


def resumed_messages() -> SearchStrategy[Resumed]:
    """RESUMED."""
    return st.builds(Resumed, parameters=parameters("resume_token generation", "held next_event metadata"))


def confirm_messages() -> SearchStrategy[Confirm]:
    """CONFIRM."""
    return st.builds(Confirm, generation=varints())


def settings_messages() -> SearchStrategy[Settings]:
    """SETTINGS."""
    return st.builds(Settings, parameters=parameters(optional="lookahead_ms max_rate_bps"))


def clear_messages() -> SearchStrategy[Clear]:
    """CLEAR."""

    def ordered(track: int, number: int, from_receiver: bool, bounds: tuple[int, int]) -> Clear:
        return Clear(track=track, number=number, from_receiver=from_receiver, from_pts=min(bounds), to_pts=max(bounds))

    return st.builds(ordered, track_ids(), varints(), st.booleans(), st.tuples(varints(), varints()))


def cleared_messages() -> SearchStrategy[Cleared]:
    """CLEARED."""
    return st.builds(Cleared, track=track_ids(), number=varints(), heard_pts=varints())


def progress_messages() -> SearchStrategy[Progress]:
    """PROGRESS."""
    return st.builds(Progress, track=track_ids(), played_pts=varints())


def finish_messages() -> SearchStrategy[Finish]:
    """FINISH."""
    return st.builds(Finish, track=track_ids(), pts=varints())


def finished_messages() -> SearchStrategy[Finished]:
    """FINISHED."""
    return st.builds(Finished, track=track_ids(), played_pts=varints())


def going_away_messages() -> SearchStrategy[GoingAway]:
    """GOING_AWAY."""
    return st.builds(GoingAway, parameters=parameters(optional=_ELSEWHERE))


def close_messages() -> SearchStrategy[Close]:
    """CLOSE."""
    return st.builds(Close, code=varints(), reason=texts(1024), may_resume=st.booleans())


def unknown_messages() -> SearchStrategy[UnknownMessage]:
    """Messages of types that are not defined."""
    types = varints().filter(lambda number: number not in set(MessageType))
    return st.builds(UnknownMessage, type=types, payload=st.binary(max_size=100))


def messages() -> SearchStrategy[Message]:
    """Messages of every type."""
    return st.one_of(
        hello_messages(),
        accept_messages(),
        reject_messages(),
        resume_messages(),
        resumed_messages(),
        confirm_messages(),
        settings_messages(),
        clear_messages(),
        cleared_messages(),
        progress_messages(),
        finish_messages(),
        finished_messages(),
        going_away_messages(),
        close_messages(),
        unknown_messages(),
    )
