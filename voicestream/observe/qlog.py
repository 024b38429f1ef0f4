"""The form of a trace: qlog's main schema (draft-ietf-quic-qlog-main-schema), a JSON text sequence (RFC 7464) for each call.

The names of the events, and what is in their data, are listed in ``spec/trace.md``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from typing import Any, Final, Literal

__all__ = ["EVENT_SCHEMA", "NAMESPACE", "SUFFIX", "encode_event", "encode_header", "parse_trace", "read_trace"]

FILE_SCHEMA: Final = "urn:ietf:params:qlog:file:sequential"
SERIALIZATION: Final = "application/qlog+json-seq"

NAMESPACE: Final = "voicestream"

EVENT_SCHEMA: Final = "urn:example:qlog:events:voicestream"
"""Stands for the events of ``spec/trace.md`` until a URI is registered for them (RFC 6963)."""

SUFFIX: Final = ".sqlog"
"""What qlog recommends for names of files of this form."""

_START: Final = b"\x1e"

Vantage = Literal["client", "server"]


def _dumps(value: object) -> bytes:
    # What is no JSON value is named by its type alone: what it holds might be nobody's business.
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=lambda other: type(other).__name__)
    return _START + text.encode(errors="replace") + b"\n"


def encode_header(*, vantage: Vantage, group_id: str, wall_clock_time: str) -> bytes:
    """The first record of a file.

    Args:
        vantage: Which end of the call.
        group_id: The session's name, or "" where there never was one.
        wall_clock_time: When the trace began, as RFC 3339 has it. Times of events count from there.
    """
    common: dict[str, object] = {
        "time_format": "relative_to_epoch",
        "reference_time": {"clock_type": "monotonic", "epoch": "unknown", "wall_clock_time": wall_clock_time},
    }
    if group_id:
        common["group_id"] = group_id
    return _dumps(
        {
            "file_schema": FILE_SCHEMA,
            "serialization_format": SERIALIZATION,
            "title": "VoiceStream call",
            "trace": {"common_fields": common, "vantage_point": {"type": vantage}, "event_schemas": [EVENT_SCHEMA]},
        }
    )


def encode_event(time_ms: float, name: str, data: Mapping[str, object]) -> bytes:
    """One event.

    Args:
        time_ms: Milliseconds since the beginning.
        name: "category:event", as an observer gets it; it becomes one name in the namespace.
        data: What there is to say.

    Raises:
        ValueError: A value that JSON does not know.
    """
    return _dumps({"time": round(time_ms, 3), "name": f"{NAMESPACE}:{name.replace(':', '_')}", "data": data})


def read_trace(path: str | PathLike[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Header and events of a trace. A last record that was cut off is left out, as RFC 7464 has it.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no JSON text sequence.
    """
    with open(path, "rb") as file:
        return parse_trace(file.read(), str(path))


def parse_trace(data: bytes, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The same of a file's bytes; `name` is for the message.

    Raises:
        ValueError: It is no JSON text sequence.
    """
    parts = data.split(_START)
    if len(parts) < 2 or parts[0]:
        raise ValueError(f"{name} is not a JSON text sequence")
    if not parts[-1].endswith(b"\n"):
        parts.pop()
    try:
        records = [json.loads(part) for part in parts[1:]]
    except RecursionError:
        raise ValueError(f"{name} holds a record that is nested too deeply") from None
    if not records:
        raise ValueError(f"{name} holds no record")
    if not all(isinstance(record, dict) for record in records):
        raise ValueError(f"{name} holds a record that is no object")
    return records[0], records[1:]
