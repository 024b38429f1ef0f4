"""Every frame: bytes written by hand, and every rule that a body can break."""

from __future__ import annotations

import pytest

from voicestream.codepoints import ErrorCode, FrameType
from voicestream.errors import ProtocolError
from voicestream.wire.buffer import encode_varint
from voicestream.wire.datagram import decode_datagram
from voicestream.wire.frames import (
    AnchorFrame,
    AudioFrame,
    ClearedFrame,
    ClearFrame,
    CopyFrame,
    Frame,
    MissingFrame,
    PaddingFrame,
    PlayoutEntry,
    ProbeFrame,
    ProgressFrame,
    RepairFrame,
    ReportFrame,
    RetransmissionFrame,
    UnknownFrame,
    decode_media_flags,
    encode_frame,
    encode_media_flags,
    frame_size,
)
from voicestream.wire.messages import Clear, Cleared, Progress

BY_HAND: list[tuple[str, Frame]] = [
    ("90 0001 02 aabb", AudioFrame(pts=1, payload=b"\xaa\xbb")),
    (
        "fe ffff 01 00",
        AudioFrame(track=3, pts=0xFFFF, payload=b"\0", clear_number=2, talkspurt_start=True, talkspurt_end=True),
    ),
    ("000000", PaddingFrame(size=3)),
    ("01 05 0102 0304 00", ReportFrame(newest=0x0102, arrival=0x0304)),
    (
        "01 0d 0000 ffff 05 00 01 02 03 80010000",
        ReportFrame(newest=0, arrival=0xFFFF, statuses=(None, 0, -1, 1, -32768)),
    ),
    (
        "01 10 0001 0002 00 00 0102 10 20 03 ffff 00 4040",
        ReportFrame(
            newest=1,
            arrival=2,
            playout=(
                PlayoutEntry(track=0, playhead=0x0102, level_units=16, target_units=32),
                PlayoutEntry(track=3, playhead=0xFFFF, level_units=0, target_units=64),
            ),
        ),
    ),
    ("02 01 07", ProbeFrame(cluster=7)),
    ("02 05 4100 000000", ProbeFrame(cluster=256, size=3)),
    ("10 08 ff 0010 00 00010203", RepairFrame(key=255, newest_pts=16, symbol=b"\0\1\2\3")),
    (
        "13 0c 01 0010 02 0508 0110 deadbeef",
        RepairFrame(track=3, key=1, newest_pts=16, runs=((5, 8), (1, 16)), symbol=b"\xde\xad\xbe\xef"),
    ),
    ("15 04 09 1234 78", CopyFrame(track=1, pts=0x1234, payload=b"x", clear_number=1, talkspurt_start=True)),
    ("18 05 04 0008 7879", RetransmissionFrame(pts=8, payload=b"xy", talkspurt_end=True)),
    ("1c 05 00 8001 0000", AnchorFrame(pts=0x10000)),
    ("1f 02 01 00", AnchorFrame(track=3, pts=0, ahead=True)),
    ("20 04 01 00 10 20", ClearFrame(message=Clear(number=1, from_pts=16, to_pts=32))),
    ("22 04 02 01 3f 3f", ClearFrame(message=Clear(track=2, number=2, from_receiver=True, from_pts=63, to_pts=63))),
    ("25 02 01 18", ClearedFrame(message=Cleared(track=1, number=1, heard_pts=24))),
    ("28 02 4040", ProgressFrame(message=Progress(played_pts=64))),
    ("2c 03 0010 08", MissingFrame(ranges=((16, 8),))),
    ("2e 09 0010 08 ffff 80007fff", MissingFrame(track=2, ranges=((16, 8), (0xFFFF, 0x7FFF)))),
    ("3d 00", UnknownFrame(type=0x3D, payload=b"")),
    ("7f 02 0102", UnknownFrame(type=0x7F, payload=b"\x01\x02")),
]


@pytest.mark.parametrize(("encoded", "frame"), BY_HAND, ids=[type(frame).__name__ + str(n) for n, (_, frame) in enumerate(BY_HAND)])
def test_a_frame_is_written_and_read_as_by_hand(encoded: str, frame: Frame) -> None:
    data = bytes.fromhex(encoded)
    assert encode_frame(frame) == data
    assert frame_size(frame) == len(data)
    assert decode_datagram(bytes(4) + data).frames == (frame,)


def test_the_last_audio_frame_has_no_length() -> None:
    frame = AudioFrame(track=1, pts=0x0102, payload=b"opus", talkspurt_start=True)
    assert encode_frame(frame, last=True) == bytes.fromhex("a8 0102") + b"opus"
    assert frame_size(frame, last=True) == 7


BAD_BODIES = [
    (FrameType.REPORT, "0102 0304", "bytes end inside an integer"),
    (FrameType.REPORT, "0102 03", "announced"),
    (FrameType.REPORT, "0000 0000 4100" + "01" * 256, "256 statuses"),
    (FrameType.REPORT, "0000 0000 02 01", "inside an integer"),
    (FrameType.REPORT, "0000 0000 01 80010001", "status 65537"),
    (FrameType.REPORT, "0000 0000 00 04 0000 00 00", "track 4"),
    (FrameType.REPORT, "0000 0000 00 01 0000 00 00 01 0000 00 00", "two playout entries"),
    (FrameType.REPORT, "0000 0000 00 01 0000 00", "inside an integer"),
    (FrameType.PROBE, "", "inside an integer"),
    (FrameType.REPAIR, "00 0000 00 000102", "symbol of 3 bytes"),
    (FrameType.REPAIR, "00 0000 01 00 08 00010203", "without sources or step"),
    (FrameType.REPAIR, "00 0000 01 08 00 00010203", "without sources or step"),
    (FrameType.REPAIR, "00 0000 01 4040 01 00010203", "more than 64 sources"),
    (FrameType.REPAIR, "00 0000 01 02 7fff 00010203", None),
    (FrameType.REPAIR, "00 0000 01 02 80004000 00010203", "more than 32767 units"),
    (FrameType.REPAIR, "00 0000 4040" + "0101" * 64 + "00010203", "64 runs"),
    (FrameType.REPAIR, "00 0000 02 0101", "inside an integer"),
    (FrameType.COPY, "00 0000", "without payload"),
    (FrameType.RETRANSMISSION, "00 0000", "without payload"),
    (FrameType.RETRANSMISSION, "00 00", "announced"),
    (FrameType.ANCHOR, "00", "inside an integer"),
    (FrameType.ANCHOR, "00 01 00", "1 bytes too many"),
    (FrameType.CLEAR, "01 00 02 01", "clear from 2 to 1"),
    (FrameType.CLEAR, "01 00 01 02 00", "too many"),
    (FrameType.CLEAR, "01 00 01", "inside an integer"),
    (FrameType.CLEARED, "01", "inside an integer"),
    (FrameType.CLEARED, "01 02 03", "too many"),
    (FrameType.PROGRESS, "", "inside an integer"),
    (FrameType.PROGRESS, "01 02", "too many"),
    (FrameType.MISSING, "", "0 missing ranges"),
    (FrameType.MISSING, "0000 00", "of 0 units"),
    (FrameType.MISSING, "0000 80008000", "of 32768 units"),
    (FrameType.MISSING, "000001" * 33, "33 missing ranges"),
    (FrameType.MISSING, "0000", "inside an integer"),
]


@pytest.mark.parametrize(("frame_type", "body", "reason"), BAD_BODIES)
def test_a_body_that_breaks_a_rule_is_a_frame_encoding_error(frame_type: FrameType, body: str, reason: str | None) -> None:
    content = bytes.fromhex(body)
    data = bytes(4) + bytes([frame_type]) + encode_varint(len(content)) + content
    if reason is None:
        assert len(decode_datagram(data).frames) == 1
        return
    with pytest.raises(ProtocolError, match=reason) as caught:
        decode_datagram(data)
    assert caught.value.code == ErrorCode.FRAME_ENCODING_ERROR


def test_unknown_bits_of_flags_are_ignored() -> None:
    assert decode_datagram(bytes(4) + bytes.fromhex("1c 02 fe 05")).frames == (AnchorFrame(pts=5),)
    assert decode_datagram(bytes(4) + bytes.fromhex("14 04 f0 0005 78")).frames == (CopyFrame(pts=5, payload=b"x"),)
    assert decode_datagram(bytes(4) + bytes.fromhex("20 04 01 02 05 06")).frames == (
        ClearFrame(message=Clear(number=1, from_pts=5, to_pts=6)),
    )


BAD_FRAMES: list[Frame] = [
    AudioFrame(track=4, pts=0, payload=b"x"),
    AudioFrame(track=-1, pts=0, payload=b"x"),
    AudioFrame(pts=65536, payload=b"x"),
    AudioFrame(pts=-1, payload=b"x"),
    AudioFrame(pts=0, payload=b""),
    AudioFrame(pts=0, payload=b"x", clear_number=4),
    PaddingFrame(size=0),
    ReportFrame(newest=65536, arrival=0),
    ReportFrame(newest=0, arrival=-1),
    ReportFrame(newest=0, arrival=0, statuses=(None,) * 256),
    ReportFrame(newest=0, arrival=0, statuses=(32768,)),
    ReportFrame(newest=0, arrival=0, statuses=(-32769,)),
    ReportFrame(newest=0, arrival=0, playout=(PlayoutEntry(track=4, playhead=0, level_units=0, target_units=0),)),
    ReportFrame(newest=0, arrival=0, playout=(PlayoutEntry(playhead=0, level_units=0, target_units=0),) * 2),
    ReportFrame(newest=0, arrival=0, playout=(PlayoutEntry(playhead=65536, level_units=0, target_units=0),)),
    ReportFrame(newest=0, arrival=0, playout=(PlayoutEntry(playhead=0, level_units=-1, target_units=0),)),
    ProbeFrame(cluster=-1),
    ProbeFrame(cluster=0, size=-1),
    RepairFrame(key=256, newest_pts=0, symbol=bytes(4)),
    RepairFrame(key=0, newest_pts=65536, symbol=bytes(4)),
    RepairFrame(key=0, newest_pts=0, symbol=bytes(3)),
    RepairFrame(key=0, newest_pts=0, symbol=bytes(4), runs=((0, 1),)),
    RepairFrame(key=0, newest_pts=0, symbol=bytes(4), runs=((1, 0),)),
    RepairFrame(key=0, newest_pts=0, symbol=bytes(4), runs=((64, 1),)),
    RepairFrame(key=0, newest_pts=0, symbol=bytes(4), runs=((1, 32768),)),
    RepairFrame(track=4, key=0, newest_pts=0, symbol=bytes(4)),
    CopyFrame(pts=0, payload=b""),
    CopyFrame(pts=0, payload=b"x", clear_number=4),
    RetransmissionFrame(pts=65536, payload=b"x"),
    RetransmissionFrame(track=4, pts=0, payload=b"x"),
    AnchorFrame(pts=1 << 62),
    AnchorFrame(track=4, pts=0),
    ClearFrame(message=Clear(number=1, from_pts=2, to_pts=1)),
    ClearFrame(message=Clear(track=4, number=1, from_pts=1, to_pts=1)),
    ClearedFrame(message=Cleared(track=4, number=1, heard_pts=1)),
    ProgressFrame(message=Progress(track=4, played_pts=1)),
    MissingFrame(ranges=()),
    MissingFrame(ranges=((0, 1),) * 33),
    MissingFrame(ranges=((0, 0),)),
    MissingFrame(ranges=((0, 32768),)),
    MissingFrame(ranges=((65536, 1),)),
    MissingFrame(track=4, ranges=((0, 1),)),
    UnknownFrame(type=FrameType.PADDING, payload=b""),
    UnknownFrame(type=FrameType.REPORT, payload=b""),
    UnknownFrame(type=FrameType.MISSING + 3, payload=b""),
    UnknownFrame(type=0x80, payload=b""),
    UnknownFrame(type=-1, payload=b""),
]


@pytest.mark.parametrize("frame", BAD_FRAMES, ids=[f"{type(frame).__name__}{n}" for n, frame in enumerate(BAD_FRAMES)])
def test_a_frame_that_the_format_cannot_carry_is_refused(frame: Frame) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the reason differs by case
        encode_frame(frame)


@pytest.mark.parametrize("number", range(16))
def test_media_flags_come_back(number: int) -> None:
    start, end, clear_number = decode_media_flags(number)
    assert encode_media_flags(start, end, clear_number) == number
    assert (start, end, clear_number) == (number >= 8, number % 8 >= 4, number % 4)


@pytest.mark.parametrize("status", [-32768, -8193, -8192, -8000, -33, -32, -31, 30, 31, 32, 33, 8000, 8191, 8192, 32767])
def test_the_size_of_a_report_is_right_where_a_status_takes_one_more_byte(status: int) -> None:
    frame = ReportFrame(newest=9, arrival=1, statuses=(status,), playout=())
    assert frame_size(frame) == len(encode_frame(frame))
