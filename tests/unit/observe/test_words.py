"""The wire in words: every field is said, and what breaks a rule is found as the decoders find it, at the right byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicestream.codepoints import ErrorCode
from voicestream.config import Track
from voicestream.errors import ProtocolError
from voicestream.observe.words import Words, control_words, datagram_words, event_words, parameter_words
from voicestream.observe.words_control import MESSAGE_SECTIONS
from voicestream.observe.words_frames import SECTIONS
from voicestream.observe.words_trace import EVENTS, header_words, record_words
from voicestream.testing import strategies as wire
from voicestream.wire import EventParser, MessageParser, decode_datagram, decode_parameters, encode_datagram, encode_event_header
from voicestream.wire import encode_parameters as encode_list

SPEC = Path(__file__).resolve().parents[3] / "spec"


def code_of(act: Callable[[], object]) -> ErrorCode | None:
    try:
        act()
    except ProtocolError as error:
        return error.code
    return None


def vectors(kind: str) -> list[Any]:
    found = []
    for path in sorted((SPEC / "vectors").glob("*.json")):
        file = json.loads(path.read_text(encoding="utf-8"))
        if file["type"] == kind:
            found += [(test, group.get("params", {})) for group in file["groups"] for test in group["tests"]]
    return [pytest.param(*one, id=one[0]["id"]) for one in found]


def check(test: dict[str, Any], words: Words) -> None:
    if test["result"] == "valid":
        assert words.fault is None, words.text()
        assert words.unread == 0
        return
    assert words.fault is not None, words.text()
    assert words.fault.code.name == test["error"]
    assert 0 <= words.fault.offset <= words.size
    assert test["error"] in words.text()
    assert words.fault.rule == test["breaks"]


@pytest.mark.parametrize(("test", "params"), vectors("datagram"))
def test_a_datagram_vector_is_judged_as_it_says(test: dict[str, Any], params: dict[str, Any]) -> None:
    check(test, datagram_words(bytes.fromhex(test["input"])))


@pytest.mark.parametrize(("test", "params"), vectors("message"))
def test_a_message_vector_is_judged_as_it_says(test: dict[str, Any], params: dict[str, Any]) -> None:
    check(test, control_words(bytes.fromhex(test["input"])))


@pytest.mark.parametrize(("test", "params"), vectors("parameters"))
def test_a_parameter_vector_is_judged_as_it_says(test: dict[str, Any], params: dict[str, Any]) -> None:
    check(test, parameter_words(bytes.fromhex(test["input"])))


@pytest.mark.parametrize(("test", "params"), vectors("event-stream"))
def test_an_event_vector_is_judged_as_it_says(test: dict[str, Any], params: dict[str, Any]) -> None:
    check(test, event_words(bytes.fromhex(test["input"]), max_size=params["max_event_size"]))


DATAGRAMS = wire.datagrams().map(encode_datagram)
CONTROL = wire.control_streams().map(lambda drawn: drawn[1])
LISTS = wire.parameters().map(encode_list)
EVENTS_SENT = st.builds(lambda header, payload: encode_event_header(header) + payload, wire.event_headers(), st.binary(max_size=40))


def near(valid: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return valid | wire.mutated(valid) | st.binary(max_size=80)


@given(near(DATAGRAMS))
def test_the_same_datagrams_are_refused_as_by_the_decoder(data: bytes) -> None:
    words = datagram_words(data)
    assert (words.fault.code if words.fault else None) == code_of(lambda: decode_datagram(data)), words.text()
    assert words.fault is not None or sum(item.size for item in words.items if item.depth == 0) >= 4


@given(near(CONTROL))
def test_the_same_messages_are_refused_as_by_the_decoder(data: bytes) -> None:
    words = control_words(data)
    assert (words.fault.code if words.fault else None) == code_of(lambda: MessageParser().feed(data)), words.text()


@given(near(LISTS))
def test_the_same_parameters_are_refused_as_by_the_decoder(data: bytes) -> None:
    words = parameter_words(data)
    assert (words.fault.code if words.fault else None) == code_of(lambda: decode_parameters(data)), words.text()


@given(near(EVENTS_SENT), st.booleans())
def test_the_same_events_are_refused_as_by_the_decoder_or_are_no_json(data: bytes, fin: bool) -> None:
    words = event_words(data, fin=fin, max_size=30)
    code = code_of(lambda: EventParser(30).feed(data, fin))
    if words.fault is not None and words.fault.rule == "VS-7.2-2":  # the application's decoder finds that
        assert code is None
    else:
        assert (words.fault.code if words.fault else None) == code, words.text()


def test_a_datagram_is_said_field_by_field_with_units_names_and_sections() -> None:
    words = datagram_words(bytes.fromhex("01020fa0" "010e01054e200401000403000080" "1010" "8800084801"), sender="client")
    assert words.lines() == [
        "datagram of the client, 25 bytes (section 4.1)",
        "   0  Number: 258",
        "   2  Send Time: 4000 ticks (1000 ms, modulo 16.384 s)",
        "   4  REPORT (0x01) 14 bytes (section 4.4)",
        "   6    Newest: datagram 261",
        "   8    Arrival: 20000 ticks (5000 ms, modulo 16.384 s)",
        "  10    Status Count: 4",
        "  11    Status: datagram 260 arrived, with the same delay",
        "  12    Status: datagram 259 not received",
        "  13    Status: datagram 258 arrived, 0.5 ms quicker",
        "  14    Status: datagram 257 arrived, 0.25 ms slower",
        "  15    Playout Entry: track 0",
        "  16      Playhead Pts: 128 (16 low bits; 320 ms + n * 163.84 s)",
        "  18      Level: 16 units (40 ms)",
        "  19      Target: 16 units (40 ms)",
        "  20  AUDIO (0x88) track 0, start of a talkspurt, clear number 0 modulo 4 (section 4.2)",
        "  21    Pts: 8 (16 low bits; 20 ms + n * 163.84 s)",
        "  23    Payload: 2 bytes: 4801; if Opus, 20 ms, mono",
    ]
    assert "\n" not in words.brief()
    assert "AUDIO (0x88) track 0" in words.brief()


@pytest.mark.parametrize(
    ("data", "offset", "rule"),
    [
        ("010203", 3, "VS-4.1-2"),
        ("0000000001", 5, "VS-4.1-3"),
        ("0000000080000a", 7, "VS-4.2-1"),
        ("00000000" "1c020001" "2c03000800", 13 - 1, "VS-4.10-2"),
        ("00000000" "2005010005" "0400", 8, "VS-4.9-2"),
        ("00000000" "0106000000000005", 11, "VS-4.4-2"),
        ("00000000" "3d02aa", 6, "VS-4.1-3"),
    ],
)
def test_a_fault_is_found_at_its_byte(data: str, offset: int, rule: str) -> None:
    words = datagram_words(bytes.fromhex(data))
    assert words.fault is not None
    assert (words.fault.offset, words.fault.rule) == (offset, rule), words.text()
    assert words.lines()[-1].endswith(f"breaks {rule} (section {rule[3:].rsplit('-', 1)[0]})")


def test_a_message_of_the_other_side_and_a_stream_that_ends_in_one_are_faults() -> None:
    reject = bytes.fromhex("0303" + "153d00")
    words = control_words(reject, sender="client")
    assert words.fault is not None
    assert words.fault.code is ErrorCode.UNEXPECTED_MESSAGE
    assert control_words(reject, sender="server").fault is None
    cut = control_words(reject[:3], sender="server")
    assert (cut.fault, cut.unread) == (None, 3)
    assert "begin something that is not complete" in cut.text()
    ended = control_words(reject[:3], sender="server", fin=True)
    assert ended.fault is not None
    assert (ended.fault.code, ended.fault.offset) == (ErrorCode.CONTROL_STREAM_ERROR, 3)


def test_a_frame_of_a_known_codec_is_checked() -> None:
    track = {0: Track()}
    assert datagram_words(bytes.fromhex("0000000080000048aabb"), tracks=track).fault is None
    broken = datagram_words(bytes.fromhex("000000008000004b"), tracks=track)
    assert broken.fault is not None
    assert (broken.fault.code, broken.fault.offset) == (ErrorCode.MEDIA_ERROR, 7)


def test_secrets_are_not_said_and_a_peers_text_is_harmless() -> None:
    hello = bytes.fromhex("01180101016802022f0a0306736563726574050900018000bb80010300")
    said = control_words(hello).text()
    assert "736563726574" not in said
    assert "secret" not in said
    assert '"/\\n"' in said


def test_the_sections_are_those_of_the_registries() -> None:
    def registered(name: str) -> dict[str, str]:
        file = json.loads((SPEC / "registries" / f"{name}.json").read_text(encoding="utf-8"))
        return {entry["name"]: entry["section"] for entry in file["entries"]}

    assert registered("frame-types") == SECTIONS
    assert registered("message-types") == MESSAGE_SECTIONS


def test_every_event_of_a_trace_has_words() -> None:
    text = (SPEC / "trace.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z]+:[a-z_]+)` \|", text, re.M)) == set(EVENTS)


def test_records_are_said_with_units_and_unknown_ones_are_shown() -> None:
    header = {"trace": {"common_fields": {"group_id": "ab"}, "vantage_point": {"type": "client"}}}
    assert header_words(header) == "trace of the client, session ab, from an unknown time on"
    assert header_words({"trace": 3}).startswith("trace of the unknown side")
    data = {"pts": 8, "made_units": 4, "reason": "dry", "late_ms": 2.5}
    said = record_words({"time": 1500.25, "name": "voicestream:playout_silence_end", "data": data})
    assert said == "     1.500 s  playout:silence_end: silence ends; pts 8 (20 ms), made 4 units (10 ms), reason dry, late 2.5 ms"
    closed = record_words({"time": 1, "name": "voicestream:session_closed", "data": {"code": 2, "remote": True}})
    assert closed.endswith("code 0x02 FRAME_ENCODING_ERROR, remote yes")
    assert 'an event of another kind; x "\\x1b"' in record_words({"name": "other:thing", "data": {"x": "\x1b"}})
