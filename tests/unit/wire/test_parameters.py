"""Parameter lists: each parameter by hand, and each rule."""

from __future__ import annotations

import pytest

from voicestream.codepoints import CodecId, ErrorCode, ParameterId
from voicestream.config import Track
from voicestream.errors import ProtocolError
from voicestream.wire.parameters import ALL_PARAMETERS, Held, Parameters, decode_parameters, encode_parameters

BY_HAND: list[tuple[str, Parameters]] = [
    ("", Parameters()),
    ("01 05 686f73743a", Parameters(authority="host:")),
    ("02 03 2fc3a9", Parameters(path="/\u00e9")),
    ("03 00", Parameters(token=b"")),
    ("04 02 0001", Parameters(metadata=b"\0\1")),
    ("05 09 00 01 8000bb80 01 03 00", Parameters(tracks=(Track(),))),
    (
        "05 09 00 01 8000bb80 01 03 00 05 07 03 02 5f40 01 02 08",
        Parameters(tracks=(Track(), Track(track_id=3, codec=CodecId.PCMU, clock_rate_hz=8000, send=False, frame_units=8))),
    ),
    ("06 02 4488", Parameters(max_datagram_size=1160)),
    ("07 04 80100000", Parameters(max_event_size=1 << 20)),
    ("08 02 4096", Parameters(lookahead_ms=150)),
    ("09 02 7530", Parameters(retain_ms=0x3530)),
    ("0a 04 8000fa00", Parameters(max_rate_bps=64000)),
    ("10 10 000102030405060708090a0b0c0d0e0f", Parameters(session_id=bytes(range(16)))),
    ("11 03 746f6b", Parameters(resume_token=b"tok")),
    ("12 01 02", Parameters(generation=2)),
    ("13 04 800493e0", Parameters(lifetime_ms=300000)),
    ("14 04 00 4064 00", Parameters(held=(Held(next_pts=100),))),
    ("14 07 01 10 02 14 08 1c 04", Parameters(held=(Held(track=1, next_pts=16, ranges=((20, 8), (28, 4))),))),
    ("15 01 07", Parameters(next_event=7)),
    ("16 02 47d0", Parameters(replay_ms=2000)),
    ("20 02 6e6f", Parameters(reason="no")),
    ("21 01 78", Parameters(uri="x")),
    ("22 08 0102030405060708", Parameters(route_token=bytes(range(1, 9)))),
    ("23 02 43e8", Parameters(retry_after_ms=1000)),
    ("3d 00 7fff 01 ff", Parameters(unknown=((0x3D, b""), (0x3FFF, b"\xff")))),
]


@pytest.mark.parametrize(("encoded", "parameters"), BY_HAND)
def test_a_list_is_written_and_read_as_by_hand(encoded: str, parameters: Parameters) -> None:
    assert encode_parameters(parameters) == bytes.fromhex(encoded)
    assert decode_parameters(bytes.fromhex(encoded)) == parameters


def test_every_registered_parameter_is_covered() -> None:
    assert set(ParameterId) == ALL_PARAMETERS
    assert {bytes.fromhex(encoded)[0] for encoded, _ in BY_HAND if encoded} >= set(ParameterId)


def test_the_order_of_a_list_means_nothing() -> None:
    assert decode_parameters(bytes.fromhex("1201 02 3d00 0300")) == Parameters(token=b"", generation=2, unknown=((0x3D, b""),))


def test_a_track_description_may_be_longer_than_this_version_knows() -> None:
    assert decode_parameters(bytes.fromhex("05 0b 00 01 8000bb80 01 03 00 ffff")).tracks == (Track(),)  # VS-5.4-6


def test_the_same_unknown_parameter_may_come_twice() -> None:
    assert decode_parameters(bytes.fromhex("3d01aa 3d01bb")).unknown == ((0x3D, b"\xaa"), (0x3D, b"\xbb"))


def test_a_parameter_that_the_message_does_not_define_is_kept_like_an_unknown_one() -> None:
    allowed = frozenset({int(ParameterId.REASON)})
    parameters = decode_parameters(bytes.fromhex("0101ff 20026e6f"), allowed)
    assert parameters == Parameters(reason="no", unknown=((1, b"\xff"),))
    assert encode_parameters(parameters, allowed) == bytes.fromhex("20026e6f 0101ff")


BAD_LISTS = [
    ("40", "inside an integer"),
    ("01", "inside an integer"),
    ("01 02 61", "2 bytes announced"),
    ("01 01 61 01 01 61", "authority comes twice"),
    ("12 01 01 12 01 01", "generation comes twice"),
    ("01 02 c328", "not UTF-8"),
    ("01 4100" + "61" * 256, "authority is out of its range"),
    ("02 00", "begin"),
    ("02 01 78", "begin"),
    ("02 4801 2f" + "61" * 2048, "path is out of its range"),
    ("03 4801" + "00" * 2049, "token is out of its range"),
    ("04 5001" + "00" * 4097, "metadata is out of its range"),
    ("05 09 04 01 8000bb80 01 03 00", "track_id"),
    ("05 06 00 01 00 01 03 00", "clock_rate_hz"),
    ("05 09 00 01 8005dc01 01 03 00", "clock_rate_hz"),
    ("05 09 00 01 8000bb80 00 03 00", "channels"),
    ("05 09 00 01 8000bb80 09 03 00", "channels"),
    ("05 09 00 01 8000bb80 01 00 00", "direction 0"),
    ("05 09 00 01 8000bb80 01 04 00", "direction 4"),
    ("05 09 00 01 8000bb80 01 03 31", "frame_units"),
    ("05 0a 00 4040 8000bb80 01 03 00", "private codec"),
    ("05 08 00 01 8000bb80 01 03", "inside an integer"),
    ("05 09 00 01 8000bb80 01 03 00" * 2, "only once"),
    ("05 09 00 01 8000bb80 01 03 00" * 5, "more than four"),
    ("06 02 40ff", "max_datagram_size is out of its range"),
    ("06 03 410000", "too many"),
    ("07 00", "inside an integer"),
    ("08 02 41f5", "lookahead_ms is out of its range"),
    ("10 0f" + "00" * 15, "session_id is out of its range"),
    ("10 11" + "00" * 17, "session_id is out of its range"),
    ("11 00", "resume_token is out of its range"),
    ("11 4201" + "00" * 513, "resume_token is out of its range"),
    ("14 03 04 10 00", "track 4"),
    ("14 03 00 10 01", "1 ranges announced"),
    ("14 05 00 10 01 0f 08", "overlap"),
    ("14 05 00 10 01 10 00", "empty"),
    ("14 07 00 10 02 10 08 17 01", "overlap"),
    ("14 04 00 10 00 00", "too many"),
    ("14 03 00 10 00 14 03 00 10 00", "only once"),
    ("16 02 47d1", "replay_ms is out of its range"),
    ("20 4401" + "61" * 1025, "reason is out of its range"),
    ("21 4801" + "61" * 2049, "uri is out of its range"),
    ("22 07" + "00" * 7, "route_token is out of its range"),
    ("22 15" + "00" * 21, "route_token is out of its range"),
]


@pytest.mark.parametrize(("encoded", "reason"), BAD_LISTS)
def test_a_list_that_breaks_a_rule_is_a_parameter_error(encoded: str, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason) as caught:
        decode_parameters(bytes.fromhex(encoded))
    assert caught.value.code == ErrorCode.PARAMETER_ERROR


BAD_VALUES: list[Parameters] = [
    Parameters(authority="a" * 256),
    Parameters(authority="\ud800"),
    Parameters(path="x"),
    Parameters(path=""),
    Parameters(path="/" + "\u00e9" * 1024),
    Parameters(token=bytes(2049)),
    Parameters(metadata=bytes(4097)),
    Parameters(tracks=(Track(), Track())),
    Parameters(tracks=(Track(codec=CodecId.PRIVATE),)),
    Parameters(max_datagram_size=255),
    Parameters(max_event_size=-1),
    Parameters(retain_ms=1 << 62),
    Parameters(lookahead_ms=501),
    Parameters(session_id=bytes(15)),
    Parameters(resume_token=b""),
    Parameters(held=(Held(track=4, next_pts=0),)),
    Parameters(held=(Held(next_pts=5, ranges=((4, 1),)),)),
    Parameters(held=(Held(next_pts=5, ranges=((5, 0),)),)),
    Parameters(held=(Held(next_pts=5, ranges=((6, 8), (13, 1))),)),
    Parameters(held=(Held(next_pts=5), Held(next_pts=5))),
    Parameters(replay_ms=2001),
    Parameters(route_token=bytes(7)),
    Parameters(unknown=((ParameterId.PATH, b"/"),)),
]


@pytest.mark.parametrize("parameters", BAD_VALUES)
def test_a_list_that_the_format_does_not_allow_is_refused(parameters: Parameters) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the reason differs by case
        encode_parameters(parameters)


def test_a_parameter_that_the_message_does_not_define_is_refused() -> None:  # VS-5.3-3
    with pytest.raises(ValueError, match="reason is not a parameter of this message"):
        encode_parameters(Parameters(reason="no"), frozenset())


@pytest.mark.parametrize("name", ["token", "metadata", "resume_token", "route_token"])
def test_what_is_secret_is_not_in_the_words_of_its_parameters(name: str) -> None:
    """VS-15-2"""
    assert "hushhush" not in repr(Parameters(**{name: b"hushhush"}))
