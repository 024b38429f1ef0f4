"""What a call costs: the profile's owners, the bars, and a real server under a small load."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import pytest

from interop.lab.load.__main__ import PORT, measure, verdicts
from interop.lab.load.gauge import Shares
from voicestream.wire.datagram import Datagram, encode_datagram
from voicestream.wire.frames import AudioFrame


def test_a_sampled_profile_tells_whose_code_ran() -> None:
    datagram = Datagram(number=1, send_tick=2, frames=(AudioFrame(pts=3, payload=bytes(50)),) * 10)
    shares = Shares()
    shares.start()
    began = time.process_time()
    while time.process_time() - began < 0.3:
        for _ in range(50):  # the clock is a system call, which costs more than an encoding where the kernel is sandboxed
            encode_datagram(datagram)
    found = shares.stop()
    assert found["voicestream"] > 0.5, found
    assert sum(found.values()) == pytest.approx(1.0)


def row(system: str, calls: int, *, codec: bool, cpu: float, lag: float = 1.0, shares: dict[str, float] | None = None) -> dict[str, object]:
    figures = {"cpu_percent_per_call": cpu, "callers_cpu_percent": 50.0, "lag_ms_p99": lag, "shares": shares}
    return {"system": system, "calls": calls, "codec": codec, **figures}


def test_the_bars_are_judged_on_runs_without_samples() -> None:
    rows = [
        row("aiortc", 10, codec=True, cpu=8.0),
        row("voicestream", 10, codec=True, cpu=4.0),
        row("voicestream", 60, codec=False, cpu=2.0, lag=25.0),
        row("voicestream", 10, codec=True, cpu=99.0, shares={"voicestream": 0.2, "aioquic": 0.3, "libopus": 0.5}),
    ]
    assert verdicts(rows) == [
        "voicestream, with codec at 10 calls: 0.50 of aiortc's CPU a call (bar 0.70)",
        "voicestream, without codec at 60 calls: 2.00 % of a core a call (bar 1.5)",
        "voicestream, 60 calls without codec: loop lag P99 25.0 ms (bar 20)",
        "voicestream, 10 calls with codec: ours 40 % of ours and aioquic (bar 30)",
    ]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it reads /proc and holds processes on cores")
def test_a_server_under_load_is_measured(tmp_path: Path) -> None:
    options = argparse.Namespace(work=tmp_path, uvloop=False, compiled=None, window=1.0)
    found = measure("voicestream", 1, options, codec=False, profile=False, port=PORT + 300)
    assert found["cpu_percent"] > 0
    assert found["frames_out_per_s"] > 10
    assert found["frames_in_per_s"] > 10
