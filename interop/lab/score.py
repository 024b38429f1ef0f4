"""The judge: what was said against what was played, and what the link carried.

Everything is computed at 16 kHz. The first --skip seconds are warm-up and count for nothing, nor does the last 0.6 s, which a
jitter buffer that moves only when packets come never lets out.

delay_ms      Mouth to ear: for each second of speech (every half) the lag of the highest normalised cross-correlation, kept over 0.45;
              one that fails (time-stretched, recoded) is kept where its mel spectrogram correlates over 0.8. Median and P95.
matched       Share of those seconds that was found.
silent        Share of the playing time that the sound card filled with silence.
lost          Share of the speech (10 ms frames over the threshold) that comes out more than 25 dB quieter.
unheard       Share of the speech that is not there, whatever plays in its place: pieces of 100 ms of which half is lost, or whose
              waveform (50-1000 Hz, correlation < 0.6) and spectrum (< 0.75) both differ.
concealed     Share of the playing time that the system says it made up.
pesq, stoi    PESQ-WB and STOI after two alignments, one lag for all or each second at its own; the better counts. Where PESQ exceeds the
              mean of its values over the thirds by more than 0.5 that mean counts: over seconds of gaps its alignment can break.
plcmos        PLCMOS v2 of what was played, without a reference.
kbps          IP bytes offered to the link in each direction.
queue_ms      Delay in the link above the least, P50 and P95.
own_queue_ms  P95 of the queueing that the system itself caused; see voicestream.testing.own_queueing_ms.
cpu           Per cent of one core on each host.
"""

from __future__ import annotations

import csv
import json
import os
from typing import Any, Final

import numpy as np
import soundfile
import soxr

from interop.lab.align import RATE, ROW, Signal, best_lag, best_row, level_of, realign, segment_lags, spectra
from voicestream.testing.link import own_queueing_ms
from voicestream.testing.profile import NetworkProfile

__all__ = ["score"]

TAIL_S: Final = 0.6
PIECE: Final = RATE // 10
STEP: Final = RATE // 20
REACH: Final = RATE * 8 // 100
DROP: Final = 10 ** (-25 / 20)


def score(
    said: str, sent: str, heard: str, *, link: str, profile: str, direction: str = "up", skip: float = 2.0, max_delay: float = 4.0
) -> dict[str, Any]:
    """Judge one direction of a call.

    Args:
        said: WAV of what was said.
        sent: The microphone's JSON file.
        heard: WAV of what was played, its JSON file beside it.
        link: The link's log.
        profile: JSON file of the link.
        direction: "up", the client spoke, or "down".
        skip: Seconds of warm-up.
        max_delay: Seconds to search.

    Returns:
        The figures named above; "failed" with the reason where there is nothing to judge.
    """
    with open(sent) as one, open(heard + ".json") as other:
        microphone, card = json.load(one), json.load(other)
    speaker, listener = ("client", "server") if direction == "up" else ("server", "client")
    result: dict[str, Any] = {f"cpu_{speaker}": microphone.get("cpu_percent"), f"cpu_{listener}": card.get("cpu_percent")}
    result.update(_link_figures(link, profile, direction, skip))
    if not card.get("playout_start") or not os.path.exists(heard):
        return {**result, "failed": "nothing was played"}
    if not microphone.get("capture_start"):
        return {**result, "failed": "nothing was said"}
    seconds = microphone["seconds"] - TAIL_S
    ref, out = _load(said)[: int(seconds * RATE)], _load(heard)
    offset = round((card["playout_start"] - microphone["capture_start"]) * RATE)
    lags, total = segment_lags(ref, out, offset, skip=skip, max_delay=max_delay)
    result.update(matched=round(len(lags) / max(1, total), 3), concealed=card.get("concealed_share"))
    result.update(_heard_figures(ref, out, offset, lags, skip) if lags else {"lost": 1.0, "unheard": 1.0})
    if lags:
        result["silent"] = _silent_share(card, result["delay_ms_p50"], offset, skip, seconds)
    result["plcmos"] = _plcmos(out, int(max(0, skip * RATE - offset)), int(seconds * RATE - offset))
    return result


def _load(path: str) -> Signal:
    data, rate = soundfile.read(path, dtype="float32", always_2d=True)
    mono: Signal = data.mean(axis=1)
    return np.asarray(soxr.resample(mono, rate, RATE)) if rate != RATE and len(mono) else mono


def _heard_figures(ref: Signal, out: Signal, offset: int, lags: list[tuple[int, int]], skip: float) -> dict[str, Any]:
    from pystoi import stoi

    delays = np.array([delay for _, delay in lags]) * 1e3 / RATE
    middle = float(np.median(delays))
    spoken, aligned = ref[int(skip * RATE) :], realign(ref, out, offset, lags, skip=skip)
    whole = realign(ref, out, offset, [(0, int(middle * RATE / 1e3))], skip=skip)
    return {
        "delay_ms_p50": round(middle, 1),
        "delay_ms_p95": round(float(np.percentile(delays, 95)), 1),
        "lost": round(_lost_share(spoken, aligned), 4),
        "unheard": round(_unheard_share(spoken, aligned), 4),
        "pesq": max(_pesq(spoken, whole), _pesq(spoken, aligned)),
        "stoi": round(max(float(stoi(spoken, whole, RATE)), float(stoi(spoken, aligned, RATE))), 4),
    }


def _silent_share(card: dict[str, Any], delay_ms: float, offset: int, skip: float, seconds: float) -> float:
    ticks = np.zeros(card["ticks"])
    for tick, lack in zip(card["underflow_ticks"], card["underflow_ms"], strict=True):
        ticks[tick] = lack / 20
    shift = delay_ms - offset * 1e3 / RATE
    return round(float(np.mean(ticks[int(max(0, (skip * 1e3 + shift) / 20)) : int((seconds * 1e3 + shift) / 20) - 1])), 4)


def _frames(signal: Signal) -> Signal:
    """Level of each 10 ms."""
    count = len(signal) // (RATE // 100)
    return np.asarray(np.sqrt(np.mean(signal[: count * (RATE // 100)].reshape(count, -1) ** 2, axis=1) + 1e-12))


def _lost_share(ref: Signal, out: Signal) -> float:
    count = min(len(ref), len(out))
    a, b = _frames(ref[:count]), _frames(out[:count])
    speech = a > 0.1 * np.sqrt(np.mean(ref**2))
    return float(np.mean(b[speech] < a[speech] * DROP))


def _unheard_share(ref: Signal, out: Signal) -> float:
    count = min(len(ref), len(out))
    ref, out = ref[:count], out[:count]
    level = 0.1 * level_of(ref)
    said, played = spectra(ref, out)
    f = np.fft.rfftfreq(count, 1 / RATE)
    voice = (f >= 50) & (f <= 1000)
    a, b = (np.fft.irfft(np.fft.rfft(one) * voice, count).astype(np.float32) for one in (ref, out))
    b, full, around, reach = np.pad(b, REACH), np.pad(out, REACH), PIECE // ROW, REACH // ROW
    missing = []
    for start in range(0, count - PIECE + 1, STEP):
        piece = ref[start : start + PIECE]
        if level_of(piece) < level:
            continue
        at, value = best_lag(a[start : start + PIECE], b[start : start + PIECE + 2 * REACH])
        own, theirs = _frames(piece), _frames(full[start + at : start + at + PIECE])
        quiet = bool(np.mean((theirs < own * DROP)[own > level]) >= 0.5)
        if not quiet and value < 0.6:
            row, end = max(0, start // ROW - around), (start + PIECE) // ROW + around
            value = best_row(said[row:end], played[max(0, row - reach) : end + reach])[1] - 0.15
        missing.append(quiet or value < 0.6)
    return float(np.mean(missing)) if missing else 0.0


def _pesq(ref: Signal, out: Signal) -> float:
    from pesq import PesqError, pesq

    def value(a: Signal, b: Signal) -> float:
        return max(1.0, float(pesq(RATE, a, b, "wb", on_error=PesqError.RETURN_VALUES)))

    whole, third = value(ref, out), len(ref) // 3
    thirds = sum(value(ref[i : i + third], out[i : i + third]) for i in (0, third, 2 * third)) / 3
    return round(thirds if whole > thirds + 0.5 else whole, 3)


def _plcmos(heard: Signal, begin: int, end: int, piece: int = 8 * RATE) -> float | None:
    """Mean over pieces of 8 s; seeded, since the model averages random raters."""
    from speechmos import plcmos

    np.random.seed(1)
    played = np.clip(heard[begin:end], -1, 1)
    values = [plcmos.run(played[i : i + piece].astype(np.float32), sr=RATE)["plcmos"] for i in range(0, len(played) - 2 * RATE, piece)]
    return round(float(np.mean(values)), 3) if values else None


def _link_figures(log: str, profile: str, direction: str, skip: float) -> dict[str, Any]:
    side = "b2a" if direction == "up" else "a2b"
    with open(log) as file:
        rows = [(float(r["s"]), r["direction"], int(r["bytes"]), r["verdict"], r["delay_ms"]) for r in csv.DictReader(file)]
    if not rows:
        return {}
    low, high = rows[0][0] + skip + 1, max(rows[-1][0] - 2, rows[0][0] + skip + 2)
    scored = [row for row in rows if low <= row[0] <= high]
    mine = [row for row in scored if row[1] == side]
    delays = np.array([float(row[4]) for row in mine if row[3] == "ok"] or [0.0])
    delays -= delays.min()
    network = NetworkProfile.from_json(profile)
    link = network.b2a if side == "b2a" else network.a2b
    queued = [(row[0], row[2]) for row in rows if row[1] == side and row[3] in ("ok", "queue")]
    own = own_queueing_ms(link, queued, since=low, until=high)
    return {
        **{f"kbps_{way}": round(sum(row[2] for row in scored if row[1] == name) * 8e-3 / (high - low), 1) for way, name in _WAYS},
        "packets_per_s": round(len(mine) / (high - low), 1),
        "queue_ms_p50": round(float(np.median(delays)), 1),
        "queue_ms_p95": round(float(np.percentile(delays, 95)), 1),
        "link_loss": round(float(np.mean([row[3] != "ok" for row in mine])) if mine else 0.0, 4),
        "own_queue_ms_p95": round(own.percentile(95), 1) if len(own) else 0.0,
    }


_WAYS: Final = (("up", "b2a"), ("down", "a2b"))
