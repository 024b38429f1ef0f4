"""What stretching alone costs: clean speech, its length changed by a tenth and back again, judged by PESQ-WB against the original.

    python -m interop.lab.stretching english.flac spanish.flac

PESQ cannot follow speech that runs at another speed, so the change is undone by the same means: what is judged has been stretched
twice, once each way, and wobbles in time by up to a pitch period besides. The figure is a lower bound for either way alone. It is done
frame by frame, as a player does it, everywhere and not only in pauses: far more than a call ever asks for.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voicestream.audio.resample import resample, to_float, to_int16
from voicestream.audio.stretch import HISTORY_MS, MIN_PERIOD_MS, accelerate, expand

__all__ = ["main", "score", "stretched"]

Pcm = NDArray[np.int16]

JUDGE_RATE_HZ = 16000
MOST_MS = 10
"""Asked for at once, as by the playout."""


def stretched(pcm: Pcm, share: float, sample_rate_hz: int, frame_ms: int = 20) -> Pcm:
    """`pcm` longer (or shorter, below 0) by this share of its length, frame by frame."""
    frame, kept = sample_rate_hz * frame_ms // 1000, int(HISTORY_MS * sample_rate_hz / 1000)
    parts, history, debt = [pcm[:0]], pcm[:0], 0.0
    for start in range(0, len(pcm) - frame + 1, frame):
        made = block = pcm[start : start + frame]
        debt += share * frame
        wanted = min(int(debt if share > 0 else -debt), sample_rate_hz * MOST_MS // 1000)
        if wanted >= MIN_PERIOD_MS * sample_rate_hz / 1000:
            if share > 0:
                made = expand(block, wanted, sample_rate_hz=sample_rate_hz, history=history)
            else:
                made = accelerate(block, wanted, sample_rate_hz=sample_rate_hz)
            debt -= len(made) - len(block)
        parts.append(made)
        history = np.concatenate((history, made))[-kept:]
    return np.concatenate(parts)


def score(pcm: Pcm, share: float, sample_rate_hz: int) -> float:
    """PESQ-WB of mono speech that was stretched by `share` and back."""
    from pesq import pesq

    there = stretched(pcm, share, sample_rate_hz)
    back = stretched(there, len(pcm) / len(there) - 1, sample_rate_hz)
    length = min(len(pcm), len(back))
    before, after = (resample(to_float(x[:length]), sample_rate_hz, JUDGE_RATE_HZ) for x in (pcm, back))
    return float(pesq(JUDGE_RATE_HZ, before, after, "wb"))


def main(arguments: list[str] | None = None) -> int:
    """Prints a line a file."""
    import soundfile

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("speech", nargs="+", type=Path, help="audio files, 8 to 48 kHz")
    parser.add_argument("--seconds", type=float, default=16, help="of each")
    options = parser.parse_args(arguments)
    for path in options.speech:
        data, rate = soundfile.read(path, dtype="int16", always_2d=True)
        pcm = to_int16(resample(to_float(data[: int(options.seconds * rate), 0]), rate, 48000))
        figures = ", ".join(f"{share:+.0%} and back {score(pcm, share, 48000):.2f}" for share in (0.1, -0.1))
        print(f"{path.name}: {figures}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
