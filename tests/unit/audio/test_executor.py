from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from voicestream.audio.codec import Decoder, make_decoder, make_encoder
from voicestream.audio.conceal import FADE_END_MS
from voicestream.audio.executor import Executor, Piece
from voicestream.audio.level import level_dbfs
from voicestream.audio.library import PacketError
from voicestream.audio.opus import has_inband_copy
from voicestream.audio.speech import sample_speech
from voicestream.codepoints import CodecId
from voicestream.config import AudioConfig, Track
from voicestream.core.playout import Accelerate, Conceal, Decision, Decode, Expand, Merge, Repair, Silence
from voicestream.media import MediaFrame, SourceKind

RATE = 16000
FRAME = 320
CODECS = {
    "opus": Track(),
    "pcmu": Track(codec=CodecId.PCMU, clock_rate_hz=RATE),
    "l16": Track(codec=CodecId.L16, clock_rate_hz=RATE),
    "stereo": Track(channels=2),
}
codecs = pytest.mark.parametrize("codec", CODECS)


def voice(samples: int, hz: float = 130.0) -> np.ndarray:
    t = np.arange(samples) / RATE
    return np.asarray(sum(4000 / k * np.sin(2 * np.pi * k * hz * t + 0.1 * k * k) for k in range(1, 20))).astype(np.int16)


def coded(pcm: np.ndarray, track: Track, *, bitrate_bps: int = 32000, fec: int = 0, first_pts: int = 0) -> list[MediaFrame]:
    encoder = make_encoder(track, AudioConfig(sample_rate_hz=RATE, bitrate_bps=bitrate_bps))
    encoder.apply(bitrate_bps, fec)
    frames = []
    for index in range(len(pcm) // FRAME):
        block = pcm[index * FRAME : (index + 1) * FRAME]
        payload, _ = encoder.encode(block if track.channels == 1 else np.stack((block, block), axis=1))
        frames.append(MediaFrame(pts=first_pts + index * 8, units=8, payload=payload))
    return frames


def decoder(codec: str) -> Decoder:
    return make_decoder(CODECS[codec], RATE, CODECS[codec].channels)


def run(executor: Executor, *decisions: Decision) -> np.ndarray:
    return np.concatenate([executor.run(decision).pcm for decision in decisions])


def largest_jump(pcm: np.ndarray) -> int:
    return int(np.abs(np.diff(pcm.astype(int), axis=0)).max())


def clean(codec: str, frames: list[MediaFrame]) -> np.ndarray:
    plain = decoder(codec)
    return np.concatenate([plain.decode(frame.payload) for frame in frames])


@codecs
def test_frames_in_order_come_out_as_the_decoder_makes_them(codec: str) -> None:
    frames = coded(voice(RATE // 2), CODECS[codec])
    out = run(Executor(decoder(codec)), *map(Decode, frames))
    assert np.array_equal(out[100:], clean(codec, frames)[100:])


@codecs
def test_a_lost_frame_is_concealed_in_its_length_and_without_a_click(codec: str) -> None:
    frames = coded(voice(RATE), CODECS[codec])
    whole = clean(codec, frames)
    executor = Executor(decoder(codec))
    before = run(executor, *map(Decode, frames[:20]))
    lost = executor.run(Conceal(8))
    after = run(executor, Merge(frames[21]), *map(Decode, frames[22:]))
    assert lost.concealed
    assert not lost.silent
    assert len(lost.pcm) == FRAME
    out = np.concatenate((before, lost.pcm, after))
    assert len(out) == len(whole)
    assert largest_jump(out) <= 1.6 * largest_jump(whole)
    assert level_dbfs(lost.pcm) == pytest.approx(level_dbfs(whole[6000:7000]), abs=4)


@codecs
def test_a_long_loss_is_silent_after_its_fade_and_speech_returns_without_a_click(codec: str) -> None:
    frames = coded(voice(RATE), CODECS[codec])
    executor = Executor(decoder(codec))
    run(executor, *map(Decode, frames[:20]))
    pieces = [executor.run(Conceal(8)) for _ in range(12)]
    at = int(FADE_END_MS / 20)
    assert not any(piece.pcm.any() for piece in pieces[at:])
    assert all(piece.silent for piece in pieces[at:])
    assert all(piece.concealed for piece in pieces)
    assert not pieces[1].silent
    levels = [level_dbfs(piece.pcm) for piece in pieces[: at + 1]]
    assert all(later <= earlier + 1.5 for earlier, later in pairwise(levels))
    back = run(executor, Merge(frames[32]), Decode(frames[33]))
    assert largest_jump(np.concatenate((pieces[-1].pcm, back))) <= 1.6 * largest_jump(clean(codec, frames))


@codecs
def test_a_late_frame_is_played_whole_and_exactly_where_it_fits(codec: str) -> None:
    frames = coded(voice(RATE), CODECS[codec])
    whole = clean(codec, frames)
    executor = Executor(decoder(codec))
    before = run(executor, *map(Decode, frames[:20]))
    waited = [executor.run(Expand(None, 4)), executor.run(Expand(None, 4))]
    late = executor.run(Merge(frames[20]))
    after = run(executor, *map(Decode, frames[21:]))
    assert all(piece.concealed and len(piece.pcm) == FRAME // 2 for piece in waited)
    # At most one pitch period later than without alignment, and from there on as if nothing had been late.
    assert 0 <= len(late.pcm) - FRAME <= RATE * 15 // 1000
    assert np.array_equal(late.pcm[-FRAME // 2 :], whole[20 * FRAME + FRAME // 2 : 21 * FRAME])
    assert np.array_equal(after, whole[21 * FRAME :])
    assert largest_jump(np.concatenate((before, *(piece.pcm for piece in waited), late.pcm, after))) <= 1.6 * largest_jump(whole)


@codecs
def test_waiting_for_a_frame_that_was_lost_is_the_same_as_concealing_it(codec: str) -> None:
    frames = coded(sample_speech(2.0, RATE, seed=1)[4000:], CODECS[codec])
    one, other = Executor(decoder(codec)), Executor(decoder(codec))
    for executor in (one, other):
        run(executor, *map(Decode, frames[:20]))
    told = run(one, Conceal(8), Merge(frames[21]), Decode(frames[22]))
    waited = run(other, Expand(None, 8), Merge(frames[21]), Decode(frames[22]))
    assert np.array_equal(told, waited)


@codecs
def test_a_loss_that_was_first_waited_for_keeps_its_length(codec: str) -> None:
    frames = coded(voice(RATE), CODECS[codec])
    executor = Executor(decoder(codec))
    out = run(executor, *map(Decode, frames[:20]), Expand(None, 3), Conceal(5), Merge(frames[21]), *map(Decode, frames[22:]))
    assert len(out) == len(frames) * FRAME
    assert largest_jump(out) <= 1.6 * largest_jump(clean(codec, frames))


def test_a_frame_that_was_waited_for_longer_than_what_is_missing_is_late_by_the_rest() -> None:
    frames = coded(voice(RATE), Track())
    executor = Executor(decoder("opus"))
    run(executor, *map(Decode, frames[:20]), Expand(None, 8), Expand(None, 4))
    late = executor.run(Merge(frames[21]))
    assert FRAME <= len(late.pcm) <= FRAME + RATE * 15 // 1000
    # The decoder went through one lost frame, not through one and a half.
    plain = decoder("opus")
    for frame in frames[:20]:
        plain.decode(frame.payload)
    plain.conceal(FRAME)
    assert np.array_equal(late.pcm[-FRAME // 2 :], plain.decode(frames[21].payload)[-FRAME // 2 :])


def in_band_frames() -> tuple[list[MediaFrame], int]:
    frames = coded(sample_speech(3.0, RATE, seed=1), Track(), bitrate_bps=24000, fec=20)
    whole = clean("opus", frames).reshape(-1, FRAME)
    lost = next(i for i in range(40, len(frames)) if has_inband_copy(frames[i + 1].payload) and level_dbfs(whole[i]) > -22)
    return frames, lost


def likeness(a: np.ndarray, b: np.ndarray) -> float:
    x, y = a.astype(float), b.astype(float)
    return float(x @ y / np.sqrt((x @ x) * (y @ y) + 1))


def test_the_in_band_copy_of_the_next_frame_replaces_concealment() -> None:
    frames, lost = in_band_frames()
    whole = clean("opus", frames)[lost * FRAME : (lost + 1) * FRAME]
    executor = Executor(decoder("opus"))
    run(executor, *map(Decode, frames[:lost]))
    piece = executor.run(Conceal(8, frames[lost + 1]))
    assert not piece.concealed
    assert executor.inband_frames == 1
    assert len(piece.pcm) == FRAME
    assert likeness(piece.pcm, whole) > 0.85


def test_after_waiting_only_the_end_of_the_lost_frame_is_taken_from_the_in_band_copy() -> None:
    frames, lost = in_band_frames()
    whole = clean("opus", frames)[lost * FRAME : (lost + 1) * FRAME]
    executor = Executor(decoder("opus"))
    before = run(executor, *map(Decode, frames[:lost]))
    waited = executor.run(Expand(None, 4))
    piece = executor.run(Conceal(4, frames[lost + 1]))
    after = run(executor, Merge(frames[lost + 1]))
    assert waited.concealed
    assert not piece.concealed
    assert likeness(piece.pcm[80:], whole[240:]) > 0.85
    out = np.concatenate((before, waited.pcm, piece.pcm, after))
    assert len(out) == (lost + 2) * FRAME
    assert largest_jump(out[-4 * FRAME :]) <= 1.6 * largest_jump(clean("opus", frames))


def test_a_next_frame_without_a_copy_leaves_the_loss_to_concealment() -> None:
    frames = coded(voice(RATE), Track())
    executor = Executor(decoder("opus"))
    run(executor, *map(Decode, frames[:20]))
    assert executor.run(Conceal(8, frames[21])).concealed
    assert executor.run(Conceal(16, frames[24])).concealed


def test_a_corrupt_frame_is_concealed_and_counted() -> None:
    frames = coded(voice(RATE), Track())
    executor = Executor(decoder("opus"))
    run(executor, *map(Decode, frames[:20]))
    piece = executor.run(Decode(MediaFrame(pts=160, units=8, payload=b"\xff\xff\xff")))
    assert piece.concealed
    assert len(piece.pcm) == FRAME
    assert executor.corrupt_frames == 1
    assert not executor.run(Merge(frames[21])).concealed


@codecs
def test_expanded_and_accelerated_frames_have_the_length_that_is_counted(codec: str) -> None:
    frames = coded(voice(RATE), CODECS[codec])
    executor = Executor(decoder(codec))
    run(executor, *map(Decode, frames[:10]))
    longer = run(executor, Expand(frames[10], 4))
    shorter = run(executor, Accelerate(frames[11], 4))
    assert len(longer) - FRAME == executor.inserted_samples
    assert FRAME - len(shorter) == executor.removed_samples
    assert 0 < executor.inserted_samples <= 240
    assert 0 < executor.removed_samples <= 200


def test_exact_repairs_are_decoded_like_the_frames_themselves() -> None:
    frames = coded(voice(RATE), Track())
    out = run(Executor(decoder("opus")), *(Repair(f, SourceKind.RETRANSMISSION if f.pts % 16 else SourceKind.REPAIR) for f in frames))
    assert np.array_equal(out[100:], clean("opus", frames)[100:])


def test_an_in_band_copy_longer_than_what_is_missing_is_left_aside() -> None:
    frames, lost = in_band_frames()
    executor = Executor(decoder("opus"))
    run(executor, *map(Decode, frames[:lost]))
    assert executor.run(Conceal(4, frames[lost + 1])).concealed


def test_an_in_band_copy_that_the_codec_refuses_is_concealed_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    frames, lost = in_band_frames()
    codec = decoder("opus")

    def refuse(payload: bytes, samples: int) -> np.ndarray:
        raise PacketError("no")

    monkeypatch.setattr(codec, "decode_fec", refuse)
    executor = Executor(codec)
    run(executor, *map(Decode, frames[:lost]))
    assert executor.run(Conceal(8, frames[lost + 1])).concealed
    assert executor.corrupt_frames == 1


def copy_run(warm: bool) -> tuple[np.ndarray, np.ndarray]:
    pcm = sample_speech(3.0, RATE, seed=3)
    frames, copies = coded(pcm, Track(), bitrate_bps=32000), coded(pcm, Track(), bitrate_bps=12000)
    executor = Executor(decoder("opus"))
    out = []
    for index, frame in enumerate(frames):
        if index > 10 and index % 9 in (0, 1):
            warmup = tuple(copies[index - 2 : index]) if warm else ()
            out.append(executor.run(Repair(copies[index], SourceKind.COPY, warmup)).pcm)
        else:
            out.append(executor.run(Decode(frame)).pcm)
    return np.concatenate(out), clean("opus", frames)


@pytest.mark.parametrize("warm", [False, True])
def test_low_rate_copies_stand_in_for_lost_frames_without_a_click(warm: bool) -> None:
    out, whole = copy_run(warm)
    assert len(out) == len(whole)
    assert largest_jump(out) <= 1.6 * largest_jump(whole)
    assert likeness(out, whole) > 0.7


def test_a_warm_copy_decoder_is_nearer_to_the_truth() -> None:
    (cold, whole), (warm, _) = copy_run(False), copy_run(True)
    assert likeness(warm, whole) > likeness(cold, whole)


def test_a_corrupt_copy_is_concealed_and_counted() -> None:
    frames = coded(voice(RATE), Track())
    executor = Executor(decoder("opus"))
    run(executor, *map(Decode, frames[:20]))
    piece = executor.run(Repair(MediaFrame(pts=160, units=8, payload=b"\xff\xff\xff"), SourceKind.COPY))
    assert piece.concealed
    assert (executor.corrupt_frames, len(piece.pcm)) == (1, FRAME)


@codecs
def test_silence_after_speech_fades_and_is_then_nothing(codec: str) -> None:
    frames = coded(voice(RATE), CODECS[codec])
    executor = Executor(decoder(codec))
    before = run(executor, *map(Decode, frames[:20]))
    silence = run(executor, Silence(8), Silence(3))
    assert len(silence) == FRAME * 11 // 8
    assert not silence[80:].any()
    assert largest_jump(np.concatenate((before, silence))) <= 1.6 * largest_jump(before)
    after = run(executor, Decode(frames[20]))
    assert largest_jump(np.concatenate((silence, after))) <= 1.6 * largest_jump(before)


@pytest.mark.parametrize("decision", [Conceal(8), Expand(None, 8), Silence(8)])
def test_before_the_first_frame_everything_is_silence(decision: Decision) -> None:
    piece = Executor(decoder("opus")).run(decision)
    assert len(piece.pcm) == FRAME
    assert not piece.pcm.any()
    assert piece.concealed is not isinstance(decision, Silence)


def test_pieces_of_no_length_are_possible() -> None:
    executor = Executor(decoder("opus"))
    for decision in (Silence(0), Conceal(0), Expand(None, 0)):
        assert len(executor.run(decision).pcm) == 0


def test_what_is_no_decision_is_refused() -> None:
    with pytest.raises(TypeError, match="not a playout decision"):
        Executor(decoder("opus")).run("decode")  # type: ignore[arg-type]


def test_a_piece_tells_what_it_is() -> None:
    piece = Piece(np.zeros(3, dtype=np.int16))
    assert (piece.concealed, piece.silent) == (False, False)
