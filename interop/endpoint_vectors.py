"""Our endpoint's answers to the test vectors: a JSON object a line in, one a line out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from voicestream.codepoints import ErrorCode
from voicestream.core.recovery.fec import RepairEncoder, Source
from voicestream.errors import ProtocolError
from voicestream.testing.vectors.values import datagram_json, event_json, message_json, to_track
from voicestream.wire import (
    EventParser,
    MessageParser,
    Reader,
    Settings,
    decode_datagram,
    decode_parameters,
    frame_units,
    opus_channels,
    opus_duration_units,
    opus_is_celt,
    tick_delta,
    ticks,
    unwrap,
)

__all__ = ["answers"]


def _varint(data: bytes, params: dict[str, Any]) -> int:
    reader = Reader(data, ErrorCode.FRAME_ENCODING_ERROR)
    value = reader.varint()
    reader.end("the vector")
    return value


def _message(data: bytes, params: dict[str, Any]) -> dict[str, Any]:
    (message,) = MessageParser().feed(data)
    return message_json(message)


def _parameters(data: bytes, params: dict[str, Any]) -> dict[str, Any]:
    own: dict[str, Any] = message_json(Settings(parameters=decode_parameters(data))).get("parameters", {})
    return own


def _event(data: bytes, params: dict[str, Any]) -> dict[str, Any]:
    parser = EventParser(params["max_event_size"])
    event = parser.feed(data, fin=True)
    return {"ignored": parser.ignored} if event is None else event_json(*event)


def _opus(data: bytes, params: dict[str, Any]) -> dict[str, Any]:
    return {"units": opus_duration_units(data), "channels": opus_channels(data), "celt": opus_is_celt(data)}


def _duration(value: dict[str, Any], params: dict[str, Any]) -> int:
    payload = bytes.fromhex(value["payload"]) if "payload" in value else bytes(value["payload_size"])
    return frame_units(to_track(value["track"]), payload)


def _sequence(value: dict[str, Any], params: dict[str, Any]) -> int:
    if params["operation"] == "unwrap":
        return unwrap(value["value"], value["reference"])
    return ticks(value["seconds"]) if params["operation"] == "tick" else tick_delta(value["a"], value["b"])


def _repair(value: dict[str, Any], params: dict[str, Any]) -> str:
    sources = [Source(pts=one["pts"], flags=one["flags"], payload=bytes.fromhex(one["payload"])) for one in value["sources"]]
    maker = RepairEncoder()
    maker._key = value["key"]
    for source in sources:
        maker.add(source)
    made = maker.repair(len(sources))
    return "" if made is None else made.symbol.hex()


OF_BYTES: Final[dict[str, Callable[[bytes, dict[str, Any]], Any]]] = {
    "varint": _varint, "message": _message, "parameters": _parameters, "event-stream": _event, "opus-packet": _opus,
    "datagram": lambda data, params: datagram_json(decode_datagram(data)),
}  # fmt: skip
OF_VALUES: Final[dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]]] = {
    "frame-duration": _duration, "sequence": _sequence, "repair": _repair,
}  # fmt: skip


def answers(lines: Iterable[str]) -> Iterator[str]:
    """A line for each line."""
    for line in lines:
        asked = json.loads(line)
        kind, given, params = asked["type"], asked["input"], asked["params"]
        try:
            value = OF_BYTES[kind](bytes.fromhex(given), params) if kind in OF_BYTES else OF_VALUES[kind](given, params)
        except ProtocolError as error:
            yield json.dumps({"id": asked["id"], "result": "invalid", "error": error.code.name})
        else:
            yield json.dumps({"id": asked["id"], "result": "valid", "expect": value})
