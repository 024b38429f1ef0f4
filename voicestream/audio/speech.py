"""Synthesised sample speech: a voice that says a few words, made of numbers alone, the same on every machine.

A formant synthesiser in the additive form: the harmonics of a pitch contour, each as strong as the vocal tract lets it
through, plus noise shaped in frequency for what is not voiced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from voicestream.audio.stretch import fade

__all__ = ["sample_speech"]

Pcm = NDArray[np.int16]
Floats = NDArray[np.float64]

_STEP_S: Final = 0.005
_ACTIVE_DBFS: Final = -20.0
_HIGHEST_HARMONIC_HZ: Final = 6500.0
_BANDWIDTHS_HZ: Final = (70.0, 90.0, 140.0, 250.0)
_FOURTH_FORMANT_HZ: Final = 3500.0


@dataclass(frozen=True, slots=True)
class _Phone:
    """One sound.

    Attributes:
        ms: Its length.
        formants: First three resonances in Hz.
        voice: Strength of the voice, 0 to 1.
        noise: Strength of the noise, 0 to 1.
        centre_hz: Middle of the noise's band.
        width_hz: Width of the noise's band.
    """

    ms: float
    formants: tuple[float, float, float]
    voice: float = 0.0
    noise: float = 0.0
    centre_hz: float = 3000.0
    width_hz: float = 3000.0


_NEUTRAL: Final = (500.0, 1500.0, 2500.0)
_PHONES: Final = {
    "a": _Phone(130, (730, 1090, 2440), 1.0),
    "A": _Phone(140, (660, 1720, 2410), 1.0),
    "e": _Phone(110, (530, 1840, 2480), 1.0),
    "i": _Phone(120, (290, 2250, 2950), 0.9),
    "I": _Phone(80, (400, 1950, 2550), 0.9),
    "o": _Phone(130, (520, 880, 2410), 1.0),
    "u": _Phone(120, (310, 870, 2240), 0.9),
    "@": _Phone(65, _NEUTRAL, 0.8),
    "m": _Phone(75, (260, 1000, 2200), 0.35),
    "n": _Phone(70, (260, 1600, 2600), 0.35),
    "l": _Phone(65, (360, 1150, 2650), 0.6),
    "r": _Phone(70, (420, 1250, 1650), 0.6),
    "w": _Phone(65, (300, 700, 2200), 0.6),
    "y": _Phone(60, (280, 2200, 2950), 0.6),
    "s": _Phone(105, (400, 1700, 2600), 0.0, 0.32, 5800, 3000),
    "z": _Phone(80, (300, 1700, 2600), 0.25, 0.18, 5600, 3000),
    "S": _Phone(100, (400, 1900, 2600), 0.0, 0.36, 3100, 2000),
    "f": _Phone(85, (400, 1200, 2400), 0.0, 0.13, 4500, 6000),
    "v": _Phone(60, (300, 1200, 2400), 0.35, 0.06, 4500, 6000),
    "h": _Phone(60, _NEUTRAL, 0.05, 0.12, 1600, 2600),
    "b": _Phone(55, (250, 900, 2200), 0.12),
    "d": _Phone(50, (250, 1700, 2600), 0.12),
    "p": _Phone(65, (300, 900, 2200)),
    "t": _Phone(60, (300, 1800, 2700)),
    "k": _Phone(65, (300, 1900, 2400)),
    "P": _Phone(14, (350, 900, 2200), 0.1, 0.30, 1200, 2500),
    "T": _Phone(16, (350, 1800, 2700), 0.1, 0.40, 4200, 4000),
    "K": _Phone(18, (350, 1900, 2400), 0.1, 0.35, 2000, 1800),
    " ": _Phone(35, _NEUTRAL),
}  # fmt: skip
# A stop is closed for a while, then it bursts.
_BURSTS: Final = {"p": "P", "b": "P", "t": "T", "d": "T", "k": "K"}

_PHRASES: Final = (
    "helou Ivribadi",
    "Dis Iz @ sAmp@l @v spits",
    "wan tu fri for faiv",
    "p@l@z kol mi bAk @t ten",
    "D@ kwik braun faks dZamps ov@r",
    "jes ai kAn hir ju veri wel",
    "nau w@ sei s@mfIN loN@r tu fIl D@ laIn",
    "k@n ju r@pit D@ lAst nAmb@r",
    "fANk ju gudbai",
)
# Spellings that the table lacks are said with what comes nearest.
_NEAREST: Final = {"D": "v", "Z": "z", "N": "n", "j": "y", "g": "k"}


def sample_speech(seconds: float, sample_rate_hz: int = 48000, seed: int = 0) -> Pcm:
    """Speech of one voice with words, stresses and pauses.

    Args:
        seconds: Its length, 0 or more.
        sample_rate_hz: 8000 to 192000.
        seed: Chooses the voice and the order of the phrases; the same seed says the same at every rate, and a longer
            speech begins with the shorter one.

    Returns:
        int16, mono, about -20 dBFS while it speaks.
    """
    if seconds < 0:
        raise ValueError(f"seconds must not be negative, not {seconds}")
    if not 8000 <= sample_rate_hz <= 192000:
        raise ValueError(f"sample_rate_hz must be 8000 to 192000, not {sample_rate_hz}")
    wanted = round(seconds * sample_rate_hz)
    random = np.random.Generator(np.random.PCG64(seed))
    base_hz = float(random.uniform(100.0, 125.0) if random.random() < 0.5 else random.uniform(175.0, 215.0))
    # A shorter vocal tract goes with a higher voice.
    tract = 1.0 if base_hz < 150 else 1.12
    parts = [np.zeros(round(0.15 * sample_rate_hz), dtype=np.int16)]
    length = len(parts[0])
    while length < wanted:
        for index in random.permutation(len(_PHRASES)):
            phrase = _say(_PHRASES[int(index)], sample_rate_hz, base_hz, tract, int(random.integers(1 << 31)))
            pause = np.zeros(round(float(random.uniform(0.25, 0.6)) * sample_rate_hz), dtype=np.int16)
            parts += [phrase, pause]
            length += len(phrase) + len(pause)
            if length >= wanted:
                break
    return np.concatenate(parts)[:wanted]


def _phones(text: str) -> list[_Phone]:
    found: list[_Phone] = []
    for letter in text:
        letter = _NEAREST.get(letter, letter)
        phone = _PHONES[letter]
        found.append(phone)
        if letter in _BURSTS:
            burst = _PHONES[_BURSTS[letter]]
            found.append(burst if phone.voice == 0 else replace(burst, voice=0.3, noise=burst.noise / 3))
    return found


def _smooth(track: Floats, width: int) -> Floats:
    kernel = np.hanning(width + 2)[1:-1]
    padded = np.pad(track, (width // 2, width - 1 - width // 2), mode="edge")
    smooth: Floats = np.convolve(padded, kernel / kernel.sum(), mode="valid")
    return smooth


def _say(text: str, rate: int, base_hz: float, tract: float, seed: int) -> Pcm:
    """One phrase."""
    random = np.random.Generator(np.random.PCG64(seed))
    phones = _phones(text)
    counts = [max(1, round(phone.ms * float(random.uniform(0.88, 1.12)) / 1000 / _STEP_S)) for phone in phones]
    pick = np.repeat(np.arange(len(phones)), counts)
    steps = len(pick)
    formants = np.array([(*phone.formants, _FOURTH_FORMANT_HZ) for phone in phones])[pick] * tract
    for column in range(4):
        # The mouth moves from one sound to the next; this is what makes the sounds a word.
        formants[:, column] = _smooth(formants[:, column], 11)
    voice = _smooth(np.array([phone.voice for phone in phones])[pick], 5)
    noise = _smooth(np.array([phone.noise for phone in phones])[pick], 3)
    shape = np.array([(phone.centre_hz, phone.width_hz) for phone in phones])[pick]
    pitch = _pitch(phones, pick, base_hz, random)
    samples = round(steps * _STEP_S * rate)
    times = np.arange(samples) / (rate * _STEP_S)
    signal = _voiced(pitch, formants, voice, times, rate) + _unvoiced(noise, shape, samples, rate, random)
    active = np.interp(times, np.arange(steps), (voice + noise > 0.1).astype(float)) > 0.5
    power = float(np.mean(signal[active] ** 2)) if active.any() else 1.0
    scaled = signal * (32768.0 * 10 ** (_ACTIVE_DBFS / 20) / np.sqrt(power))
    pcm: Pcm = np.clip(np.rint(scaled), -32767, 32767).astype(np.int16)
    edge = min(round(0.004 * rate), samples)
    pcm[:edge] = fade(pcm[:edge], 0.0, 1.0)
    pcm[samples - edge :] = fade(pcm[samples - edge :], 1.0, 0.0)
    return pcm


def _pitch(phones: list[_Phone], pick: NDArray[np.intp], base_hz: float, random: np.random.Generator) -> Floats:
    """Pitch in Hz per step: it sinks through the phrase and rises at stressed vowels."""
    steps = len(pick)
    contour = np.linspace(1.12, 0.86, steps)
    for index, phone in enumerate(phones):
        if phone.voice >= 0.9 and random.random() < 0.45:
            middle = float(np.mean(np.nonzero(pick == index)[0]))
            contour += float(random.uniform(0.06, 0.2)) * np.exp(-(((np.arange(steps) - middle) / 22.0) ** 2))
    wobble = _smooth(random.standard_normal(steps), 5)
    return base_hz * _smooth(contour, 9) * (1.0 + 0.008 * wobble)


def _voiced(pitch: Floats, formants: Floats, voice: Floats, times: Floats, rate: int) -> Floats:
    steps = np.arange(len(pitch))
    phase = 2 * np.pi * np.cumsum(np.interp(times, steps, pitch)) / rate
    highest = min(_HIGHEST_HARMONIC_HZ, 0.46 * rate)
    signal = np.zeros(len(times))
    for k in range(1, int(highest / pitch.min()) + 1):
        frequency = k * pitch
        strength = voice * k**-1.1
        for column, bandwidth in enumerate(_BANDWIDTHS_HZ):
            ratio = frequency / formants[:, column]
            strength = strength / np.hypot(1 - ratio**2, ratio * bandwidth / formants[:, column])
        strength = strength * np.clip((highest - frequency) / 400.0, 0.0, 1.0)
        # Phases that grow with the square of k keep the peaks of the wave low, as in a real glottis.
        signal += np.interp(times, steps, strength) * np.sin(k * phase + 0.02 * k * k)
    return signal * 0.3


def _unvoiced(noise: Floats, shape: Floats, samples: int, rate: int, random: np.random.Generator) -> Floats:
    """Noise in overlapping pieces of 10 ms, each filtered by its spectrum."""
    hop = round(_STEP_S * rate)
    size = 2 * hop
    window = np.hanning(size + 1)[:size]
    bins = np.fft.rfftfreq(size, 1 / rate)
    steps = len(noise)
    # The same noise at every rate: its spectrum is drawn up to 24 kHz, and the part that exists is taken.
    count = round(24000 * 2 * _STEP_S) + 1
    spectrum = random.standard_normal((steps, count)) + 1j * random.standard_normal((steps, count))
    used = min(len(bins), count)
    gain = np.exp(-(((bins[np.newaxis, :used] - shape[:, :1]) / shape[:, 1:]) ** 2) * 2) * noise[:, np.newaxis]
    pieces = np.fft.irfft(np.pad(spectrum[:, :used] * gain, ((0, 0), (0, len(bins) - used))), size, axis=1) * window * size / 8
    signal = np.zeros(steps * hop + hop)
    signal[: steps * hop] += pieces[:, :hop].reshape(-1)
    signal[hop:] += pieces[:, hop:].reshape(-1)
    return np.pad(signal, (0, max(0, samples - len(signal))))[:samples]
