from __future__ import annotations

import numpy as np
import pytest

from voicestream.audio.capture import Capture
from voicestream.audio.codec import make_decoder
from voicestream.audio.ordered import DecodedBlock, OrderedDecoder
from voicestream.audio.speech import sample_speech
from voicestream.codepoints import CodecId
from voicestream.config import AudioConfig, Track
from voicestream.core.playout import Gap
from voicestream.media import MediaFrame

L16 = Track(codec=CodecId.L16, clock_rate_hz=16000)


def frames(pcm: np.ndarray, first_pts: int = 0, track: Track = L16) -> list[MediaFrame]:
    coded = Capture(track, AudioConfig(sample_rate_hz=16000)).push(pcm)
    return [MediaFrame(pts=first_pts + 8 * index, units=8, payload=frame.payload or b"") for index, frame in enumerate(coded)]


def decoder(rate: int = 16000, channels: int = 1, track: Track = L16, **settings: float) -> OrderedDecoder:
    return OrderedDecoder(make_decoder(track, rate, channels), rate, channels, **settings)  # type: ignore[arg-type]


def push(one: OrderedDecoder, *items: MediaFrame | Gap) -> list[DecodedBlock]:
    return [block for item in items for block in one.push(item)]


def test_frames_become_blocks_of_one_length_with_their_pts() -> None:
    pcm = sample_speech(1.0, 16000)
    one = decoder()
    blocks = push(one, *frames(pcm, first_pts=4000)) + one.flush()
    assert [len(block.pcm) for block in blocks] == [3200] * 5
    assert [block.pts for block in blocks] == [4000, 4080, 4160, 4240, 4320]
    assert all(block.duration_ms == 200 and not block.gap for block in blocks)
    assert np.array_equal(np.concatenate([block.pcm for block in blocks]), pcm)


def test_the_rest_is_shorter() -> None:
    one = decoder(block_ms=70)
    blocks = push(one, *frames(sample_speech(0.1, 16000))) + one.flush()
    assert [block.duration_ms for block in blocks] == [70, 30]
    assert one.flush() == []


def test_a_short_gap_is_silence_and_marked_in_every_block_that_it_touches() -> None:
    said = frames(sample_speech(1.0, 16000))
    one = decoder(block_ms=100)
    blocks = push(one, *said[:13], Gap(13 * 8, 16 * 8), *said[16:]) + one.flush()
    assert [block.gap for block in blocks] == [False, False, True, True, False, False, False, False, False, False]
    assert not blocks[2].pcm[960:].any()
    assert not blocks[3].pcm[:320].any()
    assert [block.pts for block in blocks] == [40 * i for i in range(10)]


def test_a_pause_between_talkspurts_is_silence_and_no_gap() -> None:
    said = frames(sample_speech(1.0, 16000))
    one = decoder(block_ms=100)
    blocks = push(one, *said[:10], *said[20:]) + one.flush()
    assert not any(block.gap for block in blocks)
    assert len(blocks) == 10
    assert not blocks[2].pcm.any()


@pytest.mark.parametrize("gap", [True, False])
def test_after_a_long_gap_or_pause_the_next_block_begins_with_what_follows(gap: bool) -> None:
    first, second = frames(sample_speech(0.14, 16000)), frames(sample_speech(0.4, 16000), first_pts=10_000)
    one = decoder(block_ms=100)
    items: list[MediaFrame | Gap] = [*first, *([Gap(7 * 8, 10_000)] if gap else []), *second]
    blocks = push(one, *items) + one.flush()
    assert [(block.pts, block.duration_ms) for block in blocks[:3]] == [(0, 100), (40, 40), (10_000, 100)]
    assert sum(block.duration_ms for block in blocks) == 540


def test_memory_is_bounded_however_long_the_gap() -> None:
    one = decoder()
    blocks = push(one, *frames(sample_speech(0.2, 16000)), Gap(80, 10_000_000))
    assert sum(len(block.pcm) for block in blocks) <= 3200
    assert one.flush() == []


def test_a_stream_that_begins_with_a_gap_begins_there() -> None:
    one = decoder(block_ms=20)
    blocks = push(one, Gap(0, 8), *frames(sample_speech(0.1, 16000), first_pts=8))
    assert (blocks[0].pts, blocks[0].gap) == (0, True)
    assert (blocks[1].pts, blocks[1].gap) == (8, False)


def test_a_corrupt_frame_is_a_gap_and_counted() -> None:
    one = OrderedDecoder(make_decoder(Track(), 16000), 16000, block_ms=20)
    good = frames(sample_speech(0.1, 16000), track=Track())
    blocks = push(one, good[0], MediaFrame(pts=8, units=8, payload=b"\xff\xff\xff"), good[2])
    assert [block.gap for block in blocks] == [False, True, False]
    assert one.corrupt_frames == 1


@pytest.mark.parametrize(("rate", "channels"), [(8000, 1), (44100, 2), (48000, 1)])
def test_blocks_have_the_rate_and_channels_asked_for(rate: int, channels: int) -> None:
    one = decoder(rate, channels)
    blocks = push(one, *frames(sample_speech(1.0, 16000))) + one.flush()
    assert all(len(block.pcm) == rate // 5 for block in blocks[:4])
    assert blocks[0].pcm.shape == ((rate // 5,) if channels == 1 else (rate // 5, 2))
    assert sum(len(block.pcm) for block in blocks) == pytest.approx(rate, abs=2)
    assert [block.pts for block in blocks[:4]] == [0, 80, 160, 240]


def test_a_block_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 10"):
        decoder(block_ms=5)
