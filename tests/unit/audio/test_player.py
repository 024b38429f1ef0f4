from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterable

import numpy as np
import pytest

from voicestream.audio.capture import Capture
from voicestream.audio.codec import make_decoder
from voicestream.audio.level import level_dbfs
from voicestream.audio.pipeline import Player
from voicestream.audio.speech import sample_speech
from voicestream.codepoints import CodecId
from voicestream.config import AudioConfig, PlayoutConfig, Track
from voicestream.core.playout import Accelerate, Conceal, Decision, Decode, Expand, Merge, Playout, Silence
from voicestream.media import MediaFrame

PCMU = Track(codec=CodecId.PCMU, clock_rate_hz=8000)


class Script:
    """A playout that decides what it was told to, then silence; it checks the player's reports."""

    def __init__(self, decisions: Iterable[Decision] = (), piece_units: int = 8) -> None:
        self.decisions = iter(decisions)
        self.piece_units = piece_units
        self.made = 0.0
        self.held: list[float] = []
        self.open = False
        self.void = False
        self.unheard: object = None

    def take_void(self, held_units: float) -> bool:
        void, self.void = self.void, False
        if void:
            self.made -= held_units
        return void

    def next(self, now: float, held_units: float) -> Decision:
        assert not self.open, "next() before done()"
        self.open = True
        self.held.append(held_units)
        return next(self.decisions, Silence(self.piece_units))

    def done(self, made_units: float) -> None:
        assert self.open, "done() without next()"
        self.open = False
        self.made += made_units

    def heard_pts(self, held_units: float) -> int:
        return round(self.made - held_units)


def player(script: object, rate: int = 48000, channels: int = 1, track: Track | None = None) -> Player:
    track = track or Track()
    return Player(script, make_decoder(track, rate, channels), rate, channels)  # type: ignore[arg-type]


def coded(pcm: np.ndarray, rate: int = 48000, track: Track | None = None, **settings: object) -> list[MediaFrame]:
    frames, pts = [], 0
    capture = Capture(track or Track(), AudioConfig(sample_rate_hz=rate, **settings))  # type: ignore[arg-type]
    for frame in capture.push(pcm) + capture.flush():
        if frame.payload is not None:
            frames.append(
                MediaFrame(
                    pts=pts, units=frame.units, payload=frame.payload,
                    talkspurt_start=frame.talkspurt_start, talkspurt_end=frame.talkspurt_end,
                )
            )  # fmt: skip
        pts += frame.units
    return frames


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("rate", [8000, 16000, 22050, 44100, 48000, 96000])
@pytest.mark.parametrize("track", [Track(), PCMU, Track(channels=2)], ids=["opus", "pcmu", "stereo"])
def test_exactly_as_many_samples_as_asked_for_in_the_form_asked_for(track: Track, rate: int, channels: int) -> None:
    frames = coded(sample_speech(0.4, 16000), 16000, track)
    one = player(Script(map(Decode, frames)), rate, channels, track)
    for n in (0, 1, 480, 441, 7, 3000, 960):
        block = one.read(n, 0.0)
        assert block.shape == ((n,) if channels == 1 else (n, 2))
        assert block.dtype == np.int16
        assert block.flags.writeable


def test_a_negative_number_of_samples_is_refused() -> None:
    with pytest.raises(ValueError, match="not -1"):
        player(Script()).read(-1, 0.0)


def test_blocks_of_any_length_play_the_same_audio() -> None:
    frames = coded(sample_speech(1.0, 48000))
    whole = player(Script(map(Decode, frames))).read(48000, 0.0)
    for size in (1, 100, 441, 960, 7000):
        if size == 1:
            continue
        one = player(Script(map(Decode, frames)))
        parts = [one.read(min(size, 48000 - start), 0.0) for start in range(0, 48000, size)]
        assert np.array_equal(np.concatenate(parts), whole)


def test_what_was_given_out_belongs_to_the_caller() -> None:
    frames = coded(sample_speech(0.4, 48000))
    untouched, scribbled = player(Script(map(Decode, frames))), player(Script(map(Decode, frames)))
    for _ in range(20):
        block = scribbled.read(500, 0.0)
        assert np.array_equal(block, untouched.read(500, 0.0))
        block.fill(12345)


@pytest.mark.parametrize("rate", [44100, 48000])
def test_what_is_held_is_what_was_made_and_not_given_out(rate: int) -> None:
    script = Script(map(Decode, coded(sample_speech(1.0, 48000))))
    one = player(script, rate)
    for n in (100, 441, 960, 333, 2000):
        one.read(n, 0.0)
        held = script.made - one.stats().returned_samples * 400 / rate
        assert 0 <= held <= 8 + 6 * 400 / 1000 + 1
        assert one.held_samples == pytest.approx(held * rate / 400, abs=1)
        assert one.heard_pts == round(script.made - held)


def test_the_playout_is_told_what_stretching_really_made() -> None:
    frames = coded(sample_speech(1.0, 48000, seed=1)[24000:])
    script = Script([Decode(frames[0]), Decode(frames[1]), Expand(frames[2], 4), Accelerate(frames[3], 4), Decode(frames[4])])
    one = player(script)
    one.read(5 * 960, 0.0)
    stats = one.stats()
    assert script.made * 120 == stats.made_samples
    assert stats.made_samples - 960 * (len(script.held)) == stats.inserted_samples - stats.removed_samples


def test_concealed_samples_are_counted_when_they_are_given_out() -> None:
    frames = coded(sample_speech(1.0, 48000))
    one = player(Script([*map(Decode, frames[:5]), Conceal(8), Expand(None, 4), Merge(frames[6]), Decode(frames[7])]))
    one.read(5 * 960, 0.0)
    assert one.concealed_samples == 0
    one.read(500, 0.0)
    assert one.concealed_samples == 500
    one.read(2000, 0.0)
    assert one.concealed_samples == 960 + 480
    assert one.stats().silent_concealed_samples == 0


def test_concealment_that_has_faded_is_counted_as_silent() -> None:
    one = player(Script([*map(Decode, coded(sample_speech(0.4, 48000))), *[Conceal(8)] * 20]), 44100)
    one.read(44100 * 8 // 10, 0.0)
    stats = one.stats()
    assert stats.concealed_samples == pytest.approx(0.4 * 44100, rel=0.05)
    assert stats.silent_concealed_samples == pytest.approx(0.28 * 44100, rel=0.1)


def test_corrupt_frames_are_counted_and_concealed() -> None:
    frames = coded(sample_speech(0.4, 48000))
    bad = MediaFrame(pts=80, units=8, payload=b"\xff\xff\xff")
    one = player(Script([*map(Decode, frames[:10]), Decode(bad), Merge(frames[11])]))
    one.read(12 * 960, 0.0)
    assert one.stats().corrupt_frames == 1
    assert one.concealed_samples == 960


def test_a_playout_that_makes_nothing_cannot_hang_the_reader() -> None:
    one = player(Script(piece_units=0))
    assert not one.read(480, 0.0).any()
    assert one.stats().returned_samples == 480
    assert one.stats().made_samples == 0
    assert one.held_samples == 0


def listen(
    frames: list[MediaFrame], *, seconds: float, lost: frozenset[int] = frozenset(), rate: int = 48000, block: int = 480
) -> tuple[np.ndarray, Player, Playout]:
    """A whole reception in virtual time: every frame arrives 30 ms after it was complete."""
    delay_s = 0.03
    playout = Playout(PlayoutConfig())
    one = player(playout, rate)
    waiting = [frame for index, frame in enumerate(frames) if index not in lost]
    out = []
    for index in range(int(seconds * rate / block)):
        now = index * block / rate
        while waiting and (waiting[0].pts + waiting[0].units) / 400 + delay_s <= now:
            frame = waiting.pop(0)
            playout.insert(frame, now, send_time=(frame.pts + frame.units) / 400)
        out.append(one.read(block, now))
    return np.concatenate(out), one, playout


def test_with_a_real_playout_a_clean_call_is_heard_whole() -> None:
    pcm = sample_speech(3.0, 48000, seed=1)
    out, one, playout = listen(coded(pcm), seconds=3.3)
    lag = int(np.argmax(np.correlate(out[48000:96000:6].astype(float), pcm[48000:81600:6].astype(float), mode="valid")))
    assert lag * 6 / 48000 < 0.12
    assert level_dbfs(out) == pytest.approx(level_dbfs(pcm), abs=1)
    assert one.heard_pts == playout.heard_pts(0)


def test_with_a_real_playout_single_losses_are_concealed_in_their_length() -> None:
    pcm = sample_speech(3.0, 48000, seed=1)
    lost = frozenset(range(20, 140, 17))
    out, one, playout = listen(coded(pcm), seconds=3.0, lost=lost)
    assert one.concealed_samples >= len(lost) * 960 * 0.8
    assert playout.account.frames_concealed >= len(lost) - 1
    assert np.abs(np.diff(out.astype(int))).max() <= 1.3 * np.abs(np.diff(pcm.astype(int))).max()


def test_with_a_real_playout_dtx_silence_is_silence_and_no_concealment() -> None:
    talk = sample_speech(1.2, 16000, seed=2)[3000:]
    pcm = np.concatenate((talk, np.zeros(32000, dtype=np.int16), talk))
    frames = coded(pcm, 16000, dtx=True, bitrate_bps=16000)
    assert any(frame.talkspurt_end for frame in frames[:-1])
    out, one, playout = listen(frames, seconds=4.3, rate=16000, block=160)
    assert playout.account.silence_units > 300
    assert one.concealed_samples < 16000 * 0.1
    assert level_dbfs(out[-20000:]) > -40


def test_reading_for_long_grows_neither_objects_nor_memory() -> None:
    frames = coded(sample_speech(0.5, 16000), 16000)

    def forever() -> Iterable[Decision]:
        while True:
            for index, frame in enumerate(frames):
                if index % 9 == 0:
                    yield Conceal(8)
                else:
                    yield Merge(frame) if index % 9 == 1 else Expand(frame, 4) if index % 7 == 0 else Decode(frame)

    one = player(Script(forever()), 16000)
    script_held = one._playout.held  # type: ignore[attr-defined]
    for _ in range(200):
        one.read(160, 0.0)
    gc.collect()
    script_held.clear()
    tracemalloc.start()
    objects, memory = len(gc.get_objects()), tracemalloc.get_traced_memory()[0]
    for _ in range(3000):
        one.read(160, 0.0)
        script_held.clear()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - memory
    tracemalloc.stop()
    assert len(gc.get_objects()) - objects < 50
    assert grown < 50_000, f"{grown} bytes more after 30 s"


L16 = Track(codec=CodecId.L16, clock_rate_hz=8000)
LEVEL = 3000


def telling(pts: int, number: int = 0, level: int = LEVEL) -> MediaFrame:
    """A frame of 20 ms whose samples tell the unit that they belong to."""
    pcm = level + np.repeat(np.arange(pts, pts + 8), 20)
    start = pts % 800 == 0
    return MediaFrame(pts=pts, units=8, payload=pcm.astype(">i2").tobytes(), clear_number=number, talkspurt_start=start)


def talk(playout: Playout, one: Player, sizes: Iterable[int], rate: int = 8000) -> np.ndarray:
    """What is given out in blocks of these sizes while frames come in time."""
    given, now, pts = [], 0.0, 0
    for size in sizes:
        while pts * 0.0025 <= now:
            playout.insert(telling(pts), now, send_time=pts * 0.0025)
            pts += 8
        given.append(one.read(size, now))
        now += size / rate
    return np.concatenate(given)


@pytest.mark.parametrize("seed", range(20))
def test_a_clear_takes_effect_with_the_next_sample_and_what_was_heard_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    playout = Playout(PlayoutConfig())
    one = player(playout, 8000, track=L16)
    given = talk(playout, one, rng.integers(1, 400, size=60))
    heard = playout.clear(0, 10_000, 1)
    assert heard == one.heard_pts
    assert heard - 1 <= int(given[-1]) - LEVEL <= heard, f"seed {seed}: the last sample tells {given[-1] - LEVEL}, not {heard}"  # VS-8.2-2
    silent = np.concatenate([one.read(int(size), 9.0) for size in rng.integers(1, 400, size=20)])
    slope = silent[:41].astype(int)
    assert not silent[41:].any()
    assert (np.diff(slope, prepend=given[-1]) <= 0).all()
    assert np.abs(np.diff(slope, prepend=given[-1])).max() < LEVEL / 10, "a click"
    assert one.heard_pts == heard
    assert one.stats().voided_samples == one.made_samples - one.stats().returned_samples - one.held_samples


@pytest.mark.parametrize("rate", [8000, 11025, 48000])
def test_after_a_clear_the_new_begins_at_once_and_the_count_goes_on(rate: int) -> None:
    playout = Playout(PlayoutConfig())
    one = player(playout, rate, track=L16)
    talk(playout, one, [rate // 50] * 60, rate)
    playout.clear(0, 8000, 1)
    for pts in range(8000, 8080, 8):
        playout.insert(telling(pts, 1, -12000), 1.2, send_time=pts * 0.0025)
    playout.set_ahead(8000, True)
    given = np.concatenate([one.read(rate // 100, 1.2 + index / 100) for index in range(16)])
    assert given[: rate // 100].max() > 0  # the slope of what was cut off
    loud = np.flatnonzero(given < -3000)
    assert loud[0] < rate * 0.006, "the new speech begins late"
    assert int(given[-1]) + 12000 == pytest.approx(one.heard_pts, abs=1 if rate == 8000 else 12)
    assert one.heard_pts == pytest.approx(8000 + 0.16 * 400, abs=1.1)


def test_what_the_device_still_holds_is_not_heard() -> None:
    playout = Playout(PlayoutConfig())
    one = player(playout, 8000, track=L16)
    talk(playout, one, [160] * 50)
    exact = one.heard_pts
    one.device_latency = 0.05
    assert playout.heard_now == one.heard_pts == exact - 20  # VS-16-6
    assert playout.clear(0, 10_000, 1) == exact - 20
    one.read(80, 1.1)
    assert one.heard_pts == exact - 16  # what the device has been given is heard all the same
    one.read(800, 1.2)
    assert one.heard_pts == exact
