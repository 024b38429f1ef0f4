"""The test vectors of the specification, in both directions: bytes to values, and values to the same bytes."""

from __future__ import annotations

import json
import random
import re
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from voicestream.codepoints import ErrorCode, FrameType, MessageType
from voicestream.core.recovery.fec import Repair, RepairDecoder, Source
from voicestream.errors import ProtocolError
from voicestream.testing.vectors import files, main
from voicestream.testing.vectors.behaviour_run import CHECKS
from voicestream.testing.vectors.replay import Mismatch, Replay
from voicestream.testing.vectors.values import (
    to_datagram,
    to_event,
    to_fields,
    to_message,
    to_parameters,
    to_track,
)
from voicestream.wire import (
    AudioFrame,
    Close,
    Datagram,
    EventParser,
    MessageParser,
    Parameters,
    PlayoutEntry,
    Reader,
    Reject,
    RepairFrame,
    ReportFrame,
    decode_datagram,
    decode_parameters,
    encode_datagram,
    encode_event_header,
    encode_message,
    encode_parameters,
    encode_varint,
    frame_units,
    opus_channels,
    opus_duration_units,
    opus_is_celt,
    tick_delta,
    ticks,
    unwrap,
)

VECTORS = Path(__file__).resolve().parents[2] / "spec" / "vectors"
FILES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(VECTORS.glob("*.json"))}
SCHEMA = json.loads((VECTORS / "schema" / "vectors.json").read_text(encoding="utf-8"))

ROLES = ("client", "server")


# ----------------------------------------------------------------------------- running a vector


class Runner:
    """One method for each type of vector: decodes the input and returns what must equal the expectation; encodes it again."""

    def __init__(self, params: dict[str, Any], canonical: bool) -> None:
        self.params = params
        self.canonical = canonical

    def same(self, encoded: bytes, data: bytes) -> None:
        assert (encoded == data) is self.canonical, f"encoded again as {encoded.hex()}"

    def varint(self, hexadecimal: str) -> tuple[Any, Any]:
        data = bytes.fromhex(hexadecimal)
        reader = Reader(data, ErrorCode.FRAME_ENCODING_ERROR)
        value = reader.varint()
        reader.end("the vector")
        self.same(encode_varint(value), data)
        return value, int

    def datagram(self, hexadecimal: str) -> tuple[Any, Any]:
        data = bytes.fromhex(hexadecimal)
        datagram = decode_datagram(data)
        self.same(encode_datagram(datagram), data)
        return datagram, to_datagram

    def parameters(self, hexadecimal: str) -> tuple[Any, Any]:
        data = bytes.fromhex(hexadecimal)
        parameters = decode_parameters(data)
        self.same(encode_parameters(parameters), data)
        return parameters, to_parameters

    def message(self, hexadecimal: str) -> tuple[Any, Any]:
        data = bytes.fromhex(hexadecimal)
        (message,) = MessageParser().feed(data)
        self.same(encode_message(message), data)
        return message, to_message

    def event_stream(self, hexadecimal: str) -> tuple[Any, Any]:
        data = bytes.fromhex(hexadecimal)
        parser = EventParser(self.params["max_event_size"])
        event = parser.feed(data, fin=True)
        if event is None:
            return {"ignored": parser.ignored}, dict
        self.same(encode_event_header(event[0]) + event[1], data)
        return event, to_event

    def opus_packet(self, hexadecimal: str) -> tuple[Any, Any]:
        data = bytes.fromhex(hexadecimal)
        units = opus_duration_units(data)
        return {"units": units, "channels": opus_channels(data), "celt": opus_is_celt(data)}, dict

    def frame_duration(self, value: dict[str, Any]) -> tuple[Any, Any]:
        payload = bytes.fromhex(value["payload"]) if "payload" in value else bytes(value["payload_size"])
        return frame_units(to_track(value["track"]), payload), int

    def sequence(self, value: dict[str, Any]) -> tuple[Any, Any]:
        operation = self.params["operation"]
        if operation == "unwrap":
            return unwrap(value["value"], value["reference"]), int
        if operation == "tick":
            return ticks(value["seconds"]), int
        return tick_delta(value["a"], value["b"]), int

    def repair(self, value: dict[str, Any]) -> tuple[Any, Any]:
        symbol = repair_symbol(value["key"], value["sources"])
        check_recovery(value["key"], value["sources"], bytes.fromhex(symbol))
        return symbol, str

    def conversation(self, value: dict[str, Any]) -> tuple[Any, Any]:
        return run_conversation(value["steps"]), str



def multiply(a: int, b: int) -> int:
    """Product in GF(256) with the polynomial 0x11d. VS-10.2-1"""
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = a << 1 ^ (0x11D if a & 0x80 else 0)
        b >>= 1
    return product


def repair_symbol(key: int, sources: list[dict[str, Any]]) -> str:
    """The symbol by the words of section 10.1 and 10.2. VS-10.1-1"""
    contents = [(source["pts"], source["flags"], bytes.fromhex(source["payload"])) for source in sources]
    size = max(3 + len(payload) for _, _, payload in contents)
    symbol = bytearray(size)
    for pts, flags, payload in contents:
        coefficient = reduce(lambda power, _: multiply(power, 2), range(key * pts % 255), 1)
        source = (bytes([flags]) + len(payload).to_bytes(2, "big") + payload).ljust(size, b"\0")
        symbol = bytearray(a ^ multiply(coefficient, b) for a, b in zip(symbol, source, strict=True))
    return symbol.hex()


def check_recovery(key: int, contents: list[dict[str, Any]], symbol: bytes) -> None:
    """Whichever source is lost, the package's decoder gets it back from the others and the repair."""
    sources = [Source(**to_fields(content)) for content in contents]
    window = tuple(sorted((source.pts for source in sources), reverse=True))
    for lost in sources:
        decoder = RepairDecoder()
        for source in sources:
            if source is not lost:
                assert decoder.source(source) == []
        assert decoder.repair(Repair(key=key, window=window, symbol=symbol)) == [lost]


def run_conversation(steps: list[dict[str, Any]]) -> str:
    """Read each side's bytes as the other side would, one parser a control stream; check every value and encode it again."""
    parsers = {role: MessageParser() for role in ROLES}
    state = "open"
    for step in steps:
        if "do" in step:
            continue
        data = bytes.fromhex(step["bytes"])
        if step["channel"] == "control":
            message = to_message(step["value"])
            assert parsers[step["from"]].feed(data) == [message]
            assert encode_message(message) == data
            state = "closed" if isinstance(message, Close | Reject) else state
        elif step["channel"] == "datagram":
            assert decode_datagram(data) == to_datagram(step["value"])
            assert encode_datagram(to_datagram(step["value"])) == data
        elif step["channel"] == "event":
            header, payload = to_event(step["value"])
            assert EventParser(len(payload)).feed(data, fin=True) == (header, payload)
            assert encode_event_header(header) + payload == data
    return state


CASES = [
    pytest.param(file["type"], group.get("params", {}), test, id=test["id"])
    for file in FILES.values()
    for group in file["groups"]
    for test in group["tests"]
]


@pytest.mark.parametrize(("kind", "params", "test"), CASES)
def test_a_vector_holds(kind: str, params: dict[str, Any], test: dict[str, Any]) -> None:
    if kind in CHECKS:
        assert CHECKS[kind](test) == []
        return
    run = getattr(Runner(params, canonical="noncanonical" not in test.get("flags", ())), kind.replace("-", "_"))
    if kind == "conversation" and test["result"] == "invalid":
        run(test["input"])  # the bytes are well formed; that they come now is what is wrong
        return
    if test["result"] == "invalid":
        with pytest.raises(ProtocolError) as caught:
            run(test["input"])
        assert caught.value.code.name == test["error"], caught.value
        return
    value, convert = run(test["input"])
    assert value == convert(test["expect"]), test["comment"]


CONVERSATIONS = [
    pytest.param(role, test, id=f"{test['id']}-{role}")
    for name, file in FILES.items()
    if name.startswith("conversation-")
    for group in file["groups"]
    for test in group["tests"]
    for role in test["roles"]
]


@pytest.mark.parametrize(("role", "test"), CONVERSATIONS)
def test_a_session_with_other_random_numbers_holds_its_part_of_a_conversation(role: str, test: dict[str, Any]) -> None:
    replay = Replay(role, test["input"]["steps"], random.Random(f"another/{role}").randbytes)
    replay.run()
    assert replay.errors[-1:] == ([test["error"]] if test["result"] == "invalid" else replay.errors[-1:])


def test_a_session_that_leaves_something_out_is_found() -> None:
    steps = next(param.values[1] for param in CONVERSATIONS if param.id == "conversation-clear-2-server")["input"]["steps"]
    deaf = [step for step in steps if step["from"] == "server" or "CLEAR" not in step.get("must", ())]
    for changed in (deaf, [step for step in steps if step.get("do") != "send"]):
        with pytest.raises(Mismatch):
            Replay("server", changed, random.Random(1).randbytes).run()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("behaviour-reports", {"newest": 99}),
        ("behaviour-echo", {"rtt_ms": 90.0}),
        ("behaviour-loss", {"lost": [1]}),
        ("behaviour-timing", {"silent": [[0, 200]]}),
        ("behaviour-playout", {"never": [8]}),
        ("behaviour-rate", {"sent_kbps": [[4000, 5000, 0, 1]], "late_ms": []}),
    ],
)
def test_behaviour_that_is_other_than_expected_is_found(name: str, change: dict[str, Any]) -> None:
    file = FILES[name]
    test = file["groups"][0]["tests"][0]
    given = {**test["input"], **({"until_ms": 5000} if name == "behaviour-rate" else {})}
    assert CHECKS[file["type"]]({**test, "input": given, "expect": {**test["expect"], **change}}) != []


# ----------------------------------------------------------------------------- the files themselves


def test_the_vectors_that_a_program_makes_are_current() -> None:
    stale = [name for name, text in files().items() if (VECTORS / name).read_text(encoding="utf-8") != text]
    assert stale == [], "look at the difference, then: python -m voicestream.testing.vectors --write"


def test_the_command_writes_and_says_what_is_old(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--folder", str(tmp_path)]) == 1
    assert main(["--folder", str(tmp_path), "--write"]) == 0
    assert main(["--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "all are current"


TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def faults(value: Any, schema: dict[str, Any], where: str) -> list[str]:
    """What is wrong with a value by the part of JSON Schema that the schema of the vectors uses."""
    if "$ref" in schema:
        return faults(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")], where)
    found = []
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        fits = any(isinstance(value, TYPES[name]) and (name == "boolean") == isinstance(value, bool) for name in names)
        if not fits:
            return [f"{where} is not of type {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where} is {value!r}, not one of {schema['enum']}")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{where} is less than {schema['minimum']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{where} does not match {schema['pattern']}")
    if isinstance(value, list) and "items" in schema:
        found += [fault for index, item in enumerate(value) for fault in faults(item, schema["items"], f"{where}[{index}]")]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{where} has no {name}" for name in schema.get("required", ()) if name not in value]
        for name, content in value.items():
            if name in properties:
                found += faults(content, properties[name], f"{where}.{name}")
            elif schema.get("additionalProperties", True) is False:
                found.append(f"{where} has an unknown {name}")
    if "oneOf" in schema:
        results = [faults(value, option, where) for option in schema["oneOf"]]
        if sum(not result for result in results) != 1:
            closest: list[str] = min(results, key=len)
            found += closest or [f"{where} fits several forms"]
    return found


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_vectors_conforms_to_the_schema(name: str) -> None:
    assert faults(FILES[name], SCHEMA, name) == []


def test_the_check_of_the_schema_finds_faults() -> None:
    good = {"id": "x-1", "comment": "c", "input": "00", "result": "valid", "expect": 0}
    test = SCHEMA["$defs"]["test"]
    assert faults(good, test, "t") == []
    assert faults({**good, "result": "perhaps"}, test, "t") != []
    assert faults({**good, "breaks": "VS-4"}, test, "t") != []
    assert faults({**good, "surprise": 1}, test, "t") == ["t has an unknown surprise"]
    assert faults({key: value for key, value in good.items() if key != "expect"}, test, "t") != []
    assert faults(True, {"type": "integer"}, "t") != []
    assert faults("0G", SCHEMA["$defs"]["event"]["properties"]["payload"], "t") != []
    assert faults(-1, {"minimum": 0}, "t") != []


def test_ids_are_unique_and_flags_are_explained() -> None:
    ids = [test["id"] for file in FILES.values() for group in file["groups"] for test in group["tests"]]
    assert len(set(ids)) == len(ids)
    for file in FILES.values():
        used = {flag for group in file["groups"] for test in group["tests"] for flag in test.get("flags", ())}
        assert used <= set(file["flags"])


def test_vectors_cover_every_type_and_about_half_are_invalid() -> None:
    text = json.dumps(FILES)
    for name in (*(member.name for member in FrameType), "AUDIO"):
        assert f'"frame": "{name}"' in text
    for member in MessageType:
        assert f'"message": "{member.name}"' in text
    for name in Parameters.__dataclass_fields__:
        assert f'"{name}"' in text
    wire = [name for name in FILES if FILES[name]["type"] in {"datagram", "message", "parameters", "event-stream", "conversation"}]
    results = [test["result"] for name in wire for group in FILES[name]["groups"] for test in group["tests"]]
    assert results.count("invalid") >= 0.4 * len(results)


EXAMPLES = {
    "0102 0fa0  88 0008 48": Datagram(number=258, send_tick=4000, frames=(AudioFrame(pts=8, payload=b"\x48", talkspurt_start=True),)),
    "01 0e  0105 4e20 04  01 00 04 03  00 0080 10 10": ReportFrame(
        newest=261,
        arrival=20000,
        statuses=(0, None, -2, 1),
        playout=(PlayoutEntry(playhead=128, level_units=16, target_units=16),),
    ),
    "10 0d  03 0010 01 01 08  0c008a36baeb2c": RepairFrame(key=3, newest_pts=16, runs=((1, 8),), symbol=bytes.fromhex("0c008a36baeb2c")),
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_in_the_text_of_the_specification_are_true(text: str) -> None:
    assert text in (VECTORS.parent / "voicestream.md").read_text(encoding="utf-8")
    data = bytes.fromhex(text)
    expected = EXAMPLES[text]
    if isinstance(expected, Datagram):
        assert decode_datagram(data) == expected
    else:
        assert decode_datagram(bytes(4) + data).frames == (expected,)
