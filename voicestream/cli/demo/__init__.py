"""``voicestream demo``: a call through a link that changes, to look at and to listen to, and checks of what it has to show."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from voicestream.audio.files import write_wav
from voicestream.audio.speech import sample_speech
from voicestream.cli.conversation import Pcm, load_speech
from voicestream.cli.demo.checks import Verdict, verdicts
from voicestream.cli.demo.figures import summarise, table_rows, table_text
from voicestream.cli.demo.phases import Phase, course
from voicestream.cli.demo.record import DemoRecord
from voicestream.cli.demo.report import make_page
from voicestream.cli.demo.two_ends import DemoPlan, run_demo
from voicestream.cli.meter import ProgressBar
from voicestream.cli.options import Commands, bounded
from voicestream.cli.page import render_page
from voicestream.cli.version import version

__all__ = ["add_command", "run"]

SAMPLE_RATE_HZ: Final = 16000
"""Wideband: enough for speech, and keeps the page at a few megabytes."""


def add_command(commands: Commands) -> None:
    """Add ``demo`` to the command line."""
    parser = commands.add_parser(
        "demo",
        help="a call through a link that changes, as WAV files and a page",
        description="Run a real client and a real server that talk to each other in real time through an emulated link: good, then "
        "with 5 % loss, then 30 kbps, then dead for 3 s, then good again. Writes what was said, what was heard and a page about it, and "
        "checks that the call did what it should.",
    )
    parser.add_argument("--wav", type=Path, metavar="FILE", help="what the client says, again and again (synthesised speech)")
    parser.add_argument("--out", type=Path, default=Path("demo-out"), metavar="DIR", help="folder for the results (demo-out)")
    parser.add_argument("--seconds", type=bounded(8, 600, "s"), default=60, metavar="S", help="length of the call (60)")
    parser.add_argument("--rtt-ms", type=bounded(0, 2000, "ms"), default=60, metavar="MS", help="round trip of the link (60)")
    parser.add_argument("--seed", type=bounded(0, 2**31), default=1, metavar="N", help="of the losses (1)")
    parser.add_argument("--strict", action="store_true", help="end with status 1 when a check fails, not only when the call does")
    parser.add_argument("--begun", type=float, default=None, help=argparse.SUPPRESS)  # Unix time at which make began to set up
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Make the call, write the results, print tables and checks; 1 if a check fails and the run is strict."""
    begun = options.begun or time.time()
    phases = course(options.seconds)
    plan = DemoPlan(
        client_says=_speech(options.wav, options.seconds),
        server_says=sample_speech(options.seconds, SAMPLE_RATE_HZ, seed=1),
        sample_rate_hz=SAMPLE_RATE_HZ,
        phases=phases,
        rtt_ms=options.rtt_ms,
        seed=options.seed,
    )
    options.out.mkdir(parents=True, exist_ok=True)
    print(f"A call of {options.seconds:.0f} s through a link with a round trip of {options.rtt_ms} ms: {_words(phases)}")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="voicestream-") as folder, ProgressBar(options.seconds, sys.stderr) as bar:
        record = asyncio.run(run_demo(plan, Path(folder), bar.show))
    checks = verdicts(record, time.time() - begun)
    _write(record, checks, options.out)
    return int(options.strict and not all(check.passed for check in checks))


def _words(phases: Sequence[Phase]) -> str:
    return ", ".join(f"{phase.label.lower()} {phase.seconds:.0f} s" for phase in phases)


def _speech(path: Path | None, seconds: int) -> Pcm:
    """The whole call's worth."""
    if path is None:
        return sample_speech(seconds, SAMPLE_RATE_HZ)
    pcm = load_speech(path).converted(sample_rate_hz=SAMPLE_RATE_HZ)
    return np.resize(np.asarray(pcm, np.int16), seconds * SAMPLE_RATE_HZ)


def _write(record: DemoRecord, checks: Sequence[Verdict], folder: Path) -> None:
    recordings = {
        "client-said.wav": record.client.said,
        "server-heard.wav": record.server.heard_pcm,
        "server-said.wav": record.server.said,
        "client-heard.wav": record.client.heard_pcm,
    }
    for name, pcm in recordings.items():
        write_wav(folder / name, pcm, record.sample_rate_hz)
    ways = summarise(record)
    page = folder / "index.html"
    page.write_text(render_page(make_page(record, ways, checks, version())), encoding="utf-8")
    for way in ways:
        print(f"\n{way.name}\n{table_text(table_rows(way))}")
    print()
    for check in checks:
        print(f"{'passed' if check.passed else 'FAILED'}  {check.title}: {check.finding}")
    print(f"\nRecordings: {', '.join(str(folder / name) for name in recordings)}")
    print(f"Page:       {page.resolve().as_uri()}")
