"""Live lines on the terminal: the figures of a call, the progress of the demo."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from types import TracebackType
from typing import Final, Protocol, TextIO

from voicestream.call_stats import CallStats

__all__ = ["Meter", "ProgressBar", "meter_line"]

TTY_STEP_S: Final = 0.25
LOG_STEP_S: Final = 1.0
BAR_WIDTH: Final = 18


class Measured(Protocol):
    """What is needed of a call."""

    def stats(self) -> CallStats: ...


def meter_line(stats: CallStats) -> str:
    """The state of a call in one line that fits a terminal of 80 columns."""
    playout = stats.playout
    minutes, seconds = divmod(stats.duration_s, 60)
    return (
        f"{minutes:02.0f}:{seconds:04.1f}  {_rtt(stats)}  {stats.sent.bitrate_bps / 1e3:.0f} kbps  "
        f"buffer {playout.level_ms:.0f}/{playout.target_ms:.0f} ms  {_quality(stats)}"
    )


def _rtt(stats: CallStats) -> str:
    if stats.path.lost_ms is not None:
        return f"PATH LOST for {stats.path.lost_ms / 1e3:.0f} s"
    if stats.path.state == "degraded":
        return "no answer"
    return "rtt – ms" if stats.path.rtt_ms is None else f"rtt {stats.path.rtt_ms:.0f} ms"


def _quality(stats: CallStats) -> str:
    return f"lost {100 * stats.path.loss_share:.1f} %  concealed {100 * stats.playout.concealed_share:.2f} %"


class _Line:
    """Rewrites one line on a terminal; elsewhere writes a new one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.live = stream.isatty()

    def show(self, text: str) -> None:
        if self.live:
            # Wrapped lines cannot be rewritten.
            self._stream.write(f"\r{text[: shutil.get_terminal_size().columns - 1]}\x1b[K")
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def close(self) -> None:
        if self.live:
            self._stream.write("\n")
            self._stream.flush()


class Meter:
    """Shows a call's figures while its block runs: four times a second on a terminal, once a second elsewhere, and at the end."""

    def __init__(self, call: Measured, stream: TextIO) -> None:
        self._call = call
        self._line = _Line(stream)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Meter:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._line.show(meter_line(self._call.stats()))
        self._line.close()

    async def _run(self) -> None:
        step = TTY_STEP_S if self._line.live else LOG_STEP_S
        while True:
            await asyncio.sleep(step)
            self._line.show(meter_line(self._call.stats()))


class ProgressBar:
    """How far something of known length is, with a call's figures beside it."""

    def __init__(self, seconds: float, stream: TextIO) -> None:
        self._seconds = seconds
        self._line = _Line(stream)
        self._next = 0.0
        self._last: CallStats | None = None

    def show(self, at: float, stats: CallStats) -> None:
        """Draw the state at second `at`, unless it was drawn a moment ago."""
        self._last = stats
        if at >= self._next:
            self._next = at + (TTY_STEP_S if self._line.live else 5 * LOG_STEP_S)
            self._draw(at, stats)

    def _draw(self, at: float, stats: CallStats) -> None:
        share = min(1.0, at / max(self._seconds, 1e-9))
        done = round(share * BAR_WIDTH)
        bar = "█" * done + "░" * (BAR_WIDTH - done)
        self._line.show(f"{bar} {min(at, self._seconds):4.1f} of {self._seconds:.0f} s  {_rtt(stats)}  {_quality(stats)}")

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if kind is None and self._last is not None:
            self._draw(self._seconds, self._last)
        self._line.close()
