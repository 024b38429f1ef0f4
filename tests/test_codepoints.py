"""The registries of the specification and the numbers in the code are the same, in both directions."""

from __future__ import annotations

import enum
import json
import re
from pathlib import Path
from typing import Any

import pytest

from voicestream import codepoints
from voicestream.codepoints import CodecId, ErrorCode, EventKind, FrameType, MessageType, ParameterId, StreamType, is_grease
from voicestream.errors import ProtocolError
from voicestream.wire import UnknownFrame, UnknownMessage, decode_datagram, decode_message
from voicestream.wire.messages import _PARAMETER_RULES
from voicestream.wire.parameters import ALL_PARAMETERS, PRIVATE_CODECS

SPEC = Path(__file__).resolve().parent.parent / "spec"
REGISTRIES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((SPEC / "registries").glob("*.json"))}
ENUMS: dict[str, type[enum.IntEnum]] = {
    "codecs": CodecId,
    "error-codes": ErrorCode,
    "event-kinds": EventKind,
    "frame-types": FrameType,
    "message-types": MessageType,
    "parameters": ParameterId,
    "stream-types": StreamType,
}
GREASED = [name for name, registry in REGISTRIES.items() if registry["grease"]]


def numbers(name: str) -> dict[str, int]:
    return {entry["name"]: int(entry["value"], 16) for entry in REGISTRIES[name]["entries"]}


def test_every_registry_is_there() -> None:
    assert set(REGISTRIES) == {*ENUMS, "alpn"}


@pytest.mark.parametrize("name", ENUMS)
def test_a_registry_and_its_enumeration_hold_the_same(name: str) -> None:
    registered = numbers(name)
    if name == "frame-types":
        assert registered.pop("AUDIO") == codepoints.AUDIO_BIT  # not an enumeration member: half of all values
    assert registered == {member.name: member.value for member in ENUMS[name]}


def test_the_alpn_token_is_the_registered_one() -> None:
    assert [entry["value"] for entry in REGISTRIES["alpn"]["entries"]] == [codepoints.ALPN]


@pytest.mark.parametrize("name", REGISTRIES)
def test_a_registry_is_complete_ordered_and_without_doubles(name: str) -> None:
    registry = REGISTRIES[name]
    assert list(registry) == ["registry", "title", "spec", "section", "policy", "grease", "fields", "entries"]
    assert (registry["registry"], registry["spec"]) == (name, codepoints.ALPN)
    assert registry["policy"]
    for entry in registry["entries"]:
        assert list(entry) == list(registry["fields"])
        assert all(entry.values()), f"{entry['name']} has an empty field"
    names = [entry["name"] for entry in registry["entries"]]
    assert len(set(names)) == len(names)
    if name != "alpn":
        values = list(numbers(name).values())
        assert values == sorted(set(values))
        assert all(entry["value"] == f"0x{int(entry['value'], 16):02x}" for entry in registry["entries"])


@pytest.mark.parametrize("name", REGISTRIES)
def test_the_sections_named_in_a_registry_exist(name: str) -> None:
    text = (SPEC / "voicestream.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^#+ (\d+(?:\.\d+)*)\.? ", text, re.MULTILINE))
    registry = REGISTRIES[name]
    assert {registry["section"], *(entry["section"] for entry in registry["entries"])} <= sections


@pytest.mark.parametrize("name", GREASED)
def test_no_grease_value_is_registered(name: str) -> None:
    grease: dict[str, Any] = REGISTRIES[name]["grease"]
    assert (int(grease["base"], 16), int(grease["step"], 16)) == (codepoints.GREASE_BASE, codepoints.GREASE_STEP)
    taken = {
        value
        for entry in REGISTRIES[name]["entries"]
        for value in range(int(entry["value"], 16), int(entry["value"], 16) + entry.get("count", 1))
    }
    # AUDIO is the upper half of the byte, so grease frame types end below it.
    assert not [value for value in taken if is_grease(value) and not (name == "frame-types" and value >= codepoints.AUDIO_BIT)]


def test_grease_values_follow_the_formula() -> None:
    assert [value for value in range(0x80) if is_grease(value)] == [0x3D, 0x5C, 0x7B]  # VS-12.1-1
    assert all(is_grease(0x1F * n + 0x3D) for n in (0, 1, 2, 1000, 1 << 50))
    assert not is_grease(0x1F * 1000 + 0x3E)


def test_the_decoders_know_the_registered_frame_types_and_no_others() -> None:
    known = {
        value
        for entry in REGISTRIES["frame-types"]["entries"]
        for value in range(int(entry["value"], 16), int(entry["value"], 16) + entry["count"])
    }
    for value in range(0x80):
        body = bytes(40)
        if value == FrameType.PADDING:
            continue
        try:
            frame = decode_datagram(bytes(4) + bytes([value, len(body)]) + body).frames[0]
        except ProtocolError:
            assert value in known
        else:
            assert isinstance(frame, UnknownFrame) == (value not in known)


def test_the_decoders_know_the_registered_message_types_and_no_others() -> None:
    known = set(numbers("message-types").values())
    for value in [*range(0x80), 0x3FFF]:
        try:
            message = decode_message(value, b"")
        except ProtocolError:
            assert value in known
        else:
            assert isinstance(message, UnknownMessage) == (value not in known)


def test_the_decoders_take_each_parameter_in_the_messages_that_its_entry_names() -> None:
    assert set(numbers("parameters").values()) == ALL_PARAMETERS
    for entry in REGISTRIES["parameters"]["entries"]:
        takes = [MessageType(message).name for message, rules in _PARAMETER_RULES.items() if int(entry["value"], 16) in rules.allowed]
        assert takes == entry["messages"]


def test_the_range_of_private_codecs_is_the_registered_one() -> None:
    assert f"0x{PRIVATE_CODECS.start:02x}-0x{PRIVATE_CODECS.stop - 1:02x}" in REGISTRIES["codecs"]["policy"]


def test_an_error_code_has_a_name_or_a_number() -> None:
    assert codepoints.error_name(ErrorCode.BUSY) == "BUSY"
    assert codepoints.error_name(0x3FFF) == "0x3fff"
