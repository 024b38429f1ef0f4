"""Reports both ways: what arrived here goes out, what arrived there comes in (specification section 4.4)."""

from __future__ import annotations

from typing import Final

from voicestream.core.allocator import WIRE_OVERHEAD
from voicestream.core.clock import RemoteClock, SendTimes
from voicestream.core.feedback import ArrivalLog, Feedback, SentLog
from voicestream.core.report_schedule import GrowthWatch, ReportSchedule
from voicestream.wire.datagram import Datagram
from voicestream.wire.frame_values import AudioFrame, PaddingFrame, PlayoutEntry, ReportFrame
from voicestream.wire.frames import frame_size

__all__ = ["Reports", "is_eliciting"]

_SILENT: Final = (ReportFrame, PaddingFrame)
_FIXED: Final = 11  # type, length, newest, arrival and count, at their longest
_STATUS: Final = 4
_ENTRY: Final = 11


def is_eliciting(datagram: Datagram) -> bool:
    """Whether a datagram calls for a report: it holds more than reports and padding, or nothing at all. VS-9.1-4"""
    for frame in datagram.frames:
        if not isinstance(frame, _SILENT):
            return True
    return not datagram.frames


def _goes_on(datagram: Datagram) -> bool:
    """Whether a datagram holds speech that goes on behind it."""
    last = datagram.frames[-1] if datagram.frames else None
    return isinstance(last, AudioFrame) and not last.talkspurt_end


class Reports:
    """The two logs, the schedule and the clocks.

    Attributes:
        arrivals: What arrived here.
        schedule: When that is told.
        sent: What was sent from here.
        clock: The far end's clock.
        path_delay: One-way delay of the newest datagram that came, in seconds, good to the clock's error; None before the first echo.
        growth: Whether the delay of what arrives grows.
        times: When what arrives was sent, on the far end's clock.
        left_at: When the newest datagram that came was sent, in seconds of that clock.
    """

    __slots__ = ("arrivals", "clock", "growth", "left_at", "path_delay", "schedule", "sent", "times")

    def __init__(self) -> None:
        self.arrivals = ArrivalLog()
        self.schedule = ReportSchedule()
        self.sent = SentLog()
        self.clock = RemoteClock()
        self.path_delay: float | None = None
        self.growth = GrowthWatch()
        self.times = SendTimes()
        self.left_at = 0.0

    def arrived(self, datagram: Datagram, size: int, now: float) -> bool:
        """Note a datagram; False for one that came before."""
        if self.arrivals.arrived(datagram, now) is None:
            return False
        self.path_delay = self.clock.path_delay(datagram.send_tick, now)
        eliciting = is_eliciting(datagram)
        self.schedule.arrived(size + WIRE_OVERHEAD, now, eliciting=eliciting, keepalive=not datagram.frames)
        self.left_at = self.times.seconds(datagram.send_tick, now)
        grows = self.growth.arrived(self.left_at, now, more=_goes_on(datagram))
        if grows and eliciting:  # VS-9.1-4: two sides would go on telling each other of their reports
            self.schedule.hurry(now)
        return True

    def due_alone(self, now: float) -> bool:
        """Whether a report should leave in a datagram of its own: one is due, or what should have come has not."""
        if self.growth.due_at is not None and self.growth.overdue(now):
            self.schedule.hurry(now)
        return self.schedule.due_alone(now)

    def next_timer(self) -> float | None:
        """When a report may have to leave by itself, or None."""
        due, overdue = self.schedule.next_timer(), self.growth.due_at
        return overdue if due is None else due if overdue is None else min(due, overdue)

    def is_calm(self, until: float) -> bool:
        """Whether no report may have to leave by itself before `until`."""
        overdue = self.growth.due_at
        return (overdue is None or overdue >= until) and self.schedule.is_calm(until)

    def make(
        self, now: float, room: int, playout: tuple[PlayoutEntry, ...], *, own_bytes: int = 0, may_wait: bool = False
    ) -> tuple[ReportFrame, int] | None:
        """The report that leaves now, and its size in bytes.

        Args:
            now: Monotonic seconds.
            room: Bytes that it may take.
            playout: State of the playouts.
            own_bytes: What the datagram costs that is there for the report alone.
            may_wait: A better occasion follows, so that there need be no report when not all of it fits.
        """
        if not self.schedule.playout_due:
            playout = ()
        twice = self.schedule.twice
        statuses = (room - _FIXED - _ENTRY * len(playout)) // _STATUS
        if may_wait and statuses < self.arrivals.pending(twice=twice):
            return None
        report = self.arrivals.report(room=max(statuses, 0), twice=twice, playout=playout)
        size = frame_size(report)
        self.schedule.left(size + own_bytes, now, with_playout=bool(playout))
        return report, size

    def on_report(self, report: ReportFrame, reply_tick: int, now: float) -> Feedback:
        """Take a report of the far end, which left there at `reply_tick`.

        Raises:
            ProtocolError: REPORT_ERROR.
        """
        feedback = self.sent.reported(report, reply_tick)
        if feedback.newest is not None:
            self.clock.echo(feedback.newest.sent_at, report.arrival, reply_tick, now)
        return feedback
