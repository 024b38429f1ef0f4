"""The live line."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from voicestream.call_stats import CallStats, OrderedStats, PathStats, PlayoutStats, ReceivedStats, SentStats
from voicestream.cli.meter import Meter, ProgressBar, meter_line


def stats(rtt_ms: float | None = 61.4) -> CallStats:
    return CallStats(
        duration_s=67.25,
        close_code=None,
        close_reason="",
        path=PathStats(rtt_ms=rtt_ms, loss_share=0.021),
        sent=SentStats(bitrate_bps=40000),
        received=ReceivedStats(),
        playout=PlayoutStats(level_ms=43.2, target_ms=40.0, concealed_share=0.0031),
        ordered=OrderedStats(),
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Call:
    def stats(self) -> CallStats:
        return stats()


def test_it_says_what_matters_with_units() -> None:
    assert meter_line(stats()) == "01:07.2  rtt 61 ms  40 kbps  buffer 43/40 ms  lost 2.1 %  concealed 0.31 %"
    assert "rtt – ms" in meter_line(stats(None))
    assert len(meter_line(stats())) < 80


def test_a_path_that_is_lost_is_said() -> None:
    def line(**path: object) -> str:
        return meter_line(replace(stats(), path=PathStats(rtt_ms=61.4, **path)))

    assert line(state="lost", lost_ms=3210.0) == "01:07.2  PATH LOST for 3 s  40 kbps  buffer 43/40 ms  lost 0.0 %  concealed 0.31 %"
    assert "no answer" in line(state="degraded")
    assert "rtt 61 ms" in line()


async def test_a_log_gets_whole_lines_and_the_last_state() -> None:
    stream = io.StringIO()
    async with Meter(Call(), stream):
        pass
    assert stream.getvalue() == meter_line(stats()) + "\n"


async def test_a_terminal_has_one_line_rewritten_and_never_a_wrapped_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    stream = Terminal()
    async with Meter(Call(), stream):
        pass
    assert stream.getvalue() == "\r" + meter_line(stats())[:29] + "\x1b[K\n"


def test_the_bar_grows_to_its_end_and_not_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    with ProgressBar(20.0, stream) as bar:
        for at in (0.0, 10.0, 10.01, 10.02):
            bar.show(at, stats())
    lines = stream.getvalue().split("\r")[1:]
    assert [line.count("█") for line in lines] == [0, 9, 18]
    assert "20.0 of 20 s" in lines[-1]
