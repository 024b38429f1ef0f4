"""What must hold for every block of audio, however odd."""

from __future__ import annotations

import contextlib
import tempfile

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from voicestream.audio.capture import Capture
from voicestream.audio.codec import make_decoder
from voicestream.audio.conceal import Continuation
from voicestream.audio.executor import Executor
from voicestream.audio.files import load_wav
from voicestream.audio.g711 import alaw_decode, alaw_encode, ulaw_decode, ulaw_encode
from voicestream.audio.library import PacketError
from voicestream.audio.opus import OpusDecoder, has_inband_copy
from voicestream.audio.player import Player
from voicestream.audio.resample import Resampler
from voicestream.audio.stretch import accelerate, expand, merge
from voicestream.codepoints import CodecId
from voicestream.config import AudioConfig, Track
from voicestream.core.playout import Accelerate, Conceal, Decision, Decode, Expand, Merge, Repair, Silence
from voicestream.errors import AudioError
from voicestream.media import MediaFrame, SourceKind

PCM = arrays.arrays(np.int16, st.integers(0, 1200))
RATES = st.sampled_from([8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000])


@given(pcm=PCM, rate=RATES, step_ms=st.floats(0, 40))
def test_stretching_any_block_stays_within_its_bounds(pcm: np.ndarray, rate: int, step_ms: float) -> None:
    step = int(step_ms * rate / 1000)
    shorter = accelerate(pcm, step, sample_rate_hz=rate)
    longer = expand(pcm, step, sample_rate_hz=rate, history=pcm[::-1])
    slack = rate // 200 + rate // 8000 + 1
    assert 0 <= len(pcm) - len(shorter) <= step + slack
    assert 0 <= len(longer) - len(pcm) <= step + slack
    if len(pcm):
        # A mixture of samples, raised by at most the 3 dB that keep the power of unlike parts.
        bound = 1.5 * np.abs(pcm.astype(int)).max() + 1
        assert np.abs(shorter.astype(int)).max() <= bound
        assert np.abs(longer.astype(int)).max() <= bound


@given(tail=PCM, fresh=PCM, rate=RATES)
def test_merging_any_two_blocks_keeps_the_fresh_one(tail: np.ndarray, fresh: np.ndarray, rate: int) -> None:
    merged = merge(tail, fresh, sample_rate_hz=rate)
    added = len(merged) - len(fresh)
    assert 0 <= added <= rate * 15 // 1000
    seam = min(rate * 5 // 1000, len(tail), len(fresh))
    assert np.array_equal(merged[added + seam :], fresh[seam:])


@given(memory=PCM, rate=RATES, counts=st.lists(st.integers(0, 500), max_size=5))
def test_any_memory_can_be_continued(memory: np.ndarray, rate: int, counts: list[int]) -> None:
    continuation = Continuation(memory, rate)
    for count in counts:
        assert len(continuation.take(count)) == count


@given(pcm=PCM)
def test_g711_of_any_samples_is_stable_after_one_round(pcm: np.ndarray) -> None:
    for encode, decode in ((ulaw_encode, ulaw_decode), (alaw_encode, alaw_decode)):
        once = decode(encode(pcm))
        assert np.array_equal(decode(encode(once)), once)


@given(have=st.integers(8000, 192000), want=st.integers(8000, 192000), blocks=st.lists(st.integers(0, 700), max_size=8))
def test_resampling_between_any_rates_keeps_the_duration(have: int, want: int, blocks: list[int]) -> None:
    resampler = Resampler(have, want)
    made = sum(len(resampler.push(np.zeros(size, dtype=np.float32))) for size in blocks)
    made += len(resampler.flush())
    assert abs(made - sum(blocks) * want / have) <= 2 + want / have


@given(packet=st.binary(max_size=120))
def test_any_bytes_are_decoded_or_refused_and_nothing_else(packet: bytes) -> None:
    decoder = OpusDecoder(16000)
    has_inband_copy(packet)
    for call in (lambda: decoder.decode(packet), lambda: decoder.decode_fec(packet, 320)):
        with contextlib.suppress(PacketError):
            assert call().dtype == np.int16


@given(
    parts=st.lists(st.integers(0, 3000), max_size=8),
    frame_ms=st.sampled_from([10, 20, 40, 60]),
    dtx=st.booleans(),
    loud=st.integers(0, 20000),
)
@settings(max_examples=30)
def test_capture_gives_all_time_in_whole_frames(parts: list[int], frame_ms: int, dtx: bool, loud: int) -> None:
    capture = Capture(Track(), AudioConfig(sample_rate_hz=16000, frame_ms=frame_ms, dtx=dtx))
    random = np.random.default_rng(loud)
    frames = [f for size in parts for f in capture.push((random.standard_normal(size) * loud).clip(-32768, 32767).astype(np.int16))]
    assert sum(frame.units for frame in frames) * 40 == sum(parts) // (16 * frame_ms) * 16 * frame_ms
    last = capture.flush()
    assert 0 <= sum(frame.units for frame in frames + last) * 40 - sum(parts) <= 2 * 16 * frame_ms + 200
    talking = False
    for frame in frames + last:
        if frame.payload is not None:
            assert frame.talkspurt_start is not talking
            talking = not frame.talkspurt_end
    assert not talking


GOOD = [frame.payload or b"" for frame in Capture(Track(), AudioConfig(sample_rate_hz=16000)).push(np.arange(16000).astype(np.int16) * 37)]
FRAMES = st.builds(
    lambda pts, payload: MediaFrame(pts=pts, units=8, payload=payload),
    st.integers(0, 200),
    st.one_of(st.sampled_from(GOOD), st.binary(min_size=1, max_size=20)),
)
UNITS = st.integers(0, 30)
DECISIONS: st.SearchStrategy[Decision] = st.one_of(
    FRAMES.map(Decode),
    FRAMES.map(Merge),
    st.builds(Repair, FRAMES, st.sampled_from(SourceKind), st.lists(FRAMES, max_size=2).map(tuple)),
    st.builds(Conceal, UNITS, st.one_of(st.none(), FRAMES)),
    st.builds(Expand, st.one_of(st.none(), FRAMES), UNITS),
    st.builds(Accelerate, FRAMES, UNITS),
    UNITS.map(Silence),
)
PCMU = Track(codec=CodecId.PCMU, clock_rate_hz=8000)


@given(decisions=st.lists(DECISIONS, max_size=25), opus=st.booleans())
def test_any_sequence_of_decisions_makes_audio(decisions: list[Decision], opus: bool) -> None:
    executor = Executor(make_decoder(Track() if opus else PCMU, 16000))
    per_unit = 40 if opus else 20
    for decision in decisions:
        piece = executor.run(decision)
        assert piece.pcm.dtype == np.int16
        if isinstance(decision, Conceal | Silence) or (isinstance(decision, Expand) and decision.frame is None):
            assert len(piece.pcm) == decision.units * per_unit


class Scripted:
    def __init__(self, decisions: list[Decision]) -> None:
        self.decisions = decisions
        self.made = 0.0

    def next(self, now: float, held_units: float) -> Decision:
        assert held_units >= -1e-6
        return self.decisions.pop(0) if self.decisions else Silence(3)

    def done(self, made_units: float) -> None:
        self.made += made_units

    def heard_pts(self, held_units: float) -> int:
        return round(self.made - held_units)

    def take_void(self, held_units: float) -> bool:
        return False


@given(
    decisions=st.lists(DECISIONS, max_size=12),
    reads=st.lists(st.integers(0, 3000), max_size=8),
    rate=RATES,
    channels=st.sampled_from([1, 2]),
)
@settings(max_examples=40)
def test_a_player_always_returns_what_was_asked_for(decisions: list[Decision], reads: list[int], rate: int, channels: int) -> None:
    script = Scripted(list(decisions))
    player = Player(script, make_decoder(Track(), rate, channels), rate, channels)  # type: ignore[arg-type]
    for n in reads:
        assert player.read(n, 0.0).shape == ((n,) if channels == 1 else (n, channels))
    stats = player.stats()
    assert stats.returned_samples == sum(reads)
    assert 0 <= stats.silent_concealed_samples <= stats.concealed_samples <= sum(reads) + 1


HEADS = [b"", b"RIFF", b"RIFF\0\0\0\0WAVE", b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0", b"RIFF\0\0\0\0WAVEdata"]


@given(head=st.sampled_from(HEADS), body=st.binary(max_size=120))
def test_any_file_is_read_or_refused_in_one_sentence(head: bytes, body: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        file.write(head + body)
        file.flush()
        words = ""
        try:
            assert len(load_wav(file.name).pcm)
        except AudioError as error:
            words = str(error)
        assert not words or file.name in words
        assert "\n" not in words
