"""``voicestream demo``: a call through an imperfect link, to look at and to listen to."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from voicestream.audio.files import read_wav, write_wav
from voicestream.audio.speech import sample_speech
from voicestream.cli.conversation import Pcm
from voicestream.cli.demo.report import DemoRecord, make_page, summarise, summary_rows, table_text
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
        help="a call through an imperfect link, as WAV files and a page",
        description="Run a real client and a real server that talk to each other through an emulated link, in real time, and "
        "write what was said, what was heard and a page about it.",
    )
    parser.add_argument("--wav", type=Path, metavar="FILE", help="what the client says (synthesised speech)")
    parser.add_argument("--out", type=Path, default=Path("demo-out"), metavar="DIR", help="folder for the results (demo-out)")
    parser.add_argument("--seconds", type=bounded(1, 600, "s"), default=20, metavar="S", help="length of what is said, at most (20)")
    parser.add_argument("--rtt-ms", type=bounded(0, 2000, "ms"), default=60, metavar="MS", help="round trip of the link (60)")
    parser.add_argument("--loss", type=bounded(0, 50, "percent"), default=2, metavar="PERCENT", help="packets lost each way (2)")
    parser.add_argument("--seed", type=bounded(0, 2**31), default=1, metavar="N", help="of the losses (1)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Make the call, write the results, print the table."""
    client_says = _speech(options.wav, options.seconds)
    server_says = sample_speech(len(client_says) / SAMPLE_RATE_HZ, SAMPLE_RATE_HZ, seed=1)
    plan = DemoPlan(
        client_says=client_says,
        server_says=server_says,
        sample_rate_hz=SAMPLE_RATE_HZ,
        rtt_ms=options.rtt_ms,
        loss=options.loss / 100,
        seed=options.seed,
    )
    options.out.mkdir(parents=True, exist_ok=True)
    seconds = len(client_says) / SAMPLE_RATE_HZ
    print(f"A call of {seconds:.0f} s through a link with a round trip of {options.rtt_ms} ms and {options.loss} % loss")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="voicestream-") as folder, ProgressBar(seconds, sys.stderr) as bar:
        record = asyncio.run(run_demo(plan, Path(folder), bar.show))
    _write(record, options.out)
    return 0


def _speech(path: Path | None, seconds: int) -> Pcm:
    if path is None:
        return sample_speech(seconds, SAMPLE_RATE_HZ)
    pcm = read_wav(path, sample_rate_hz=SAMPLE_RATE_HZ)
    return np.asarray(pcm[: seconds * SAMPLE_RATE_HZ], np.int16)


def _write(record: DemoRecord, folder: Path) -> None:
    recordings = {
        "client-said.wav": record.client.said,
        "server-heard.wav": record.server.heard_pcm,
        "server-said.wav": record.server.said,
        "client-heard.wav": record.client.heard_pcm,
    }
    for name, pcm in recordings.items():
        write_wav(folder / name, pcm, record.sample_rate_hz)
    figures = summarise(record)
    page = folder / "index.html"
    page.write_text(render_page(make_page(record, figures, version())), encoding="utf-8")
    print(f"\n{table_text(summary_rows(figures))}\n")
    print(f"Recordings: {', '.join(str(folder / name) for name in recordings)}")
    print(f"Page:       {page.resolve().as_uri()}")
