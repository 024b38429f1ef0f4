"""Reports: what arrived and when, from the receiver's log to the sender's knowledge (specification sections 4.4 and 9).

Numbers on the wire have 16 bits; both logs work with full ones and hold a bounded number of them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from voicestream.codepoints import ErrorCode
from voicestream.errors import ProtocolError
from voicestream.wire.datagram import Datagram
from voicestream.wire.frame_values import PlayoutEntry, ReportFrame
from voicestream.wire.sequence import TICKS_PER_SECOND, tick_delta, ticks, unwrap

__all__ = ["Arrival", "ArrivalLog", "Feedback", "SentDatagram", "SentLog"]

MAX_STATUSES: Final = 255
"""Statuses of one report; what lies further back stays unreported."""

FIRST_STATUSES: Final = 16
"""How far before the first datagram that arrived the first report looks back."""

LOSS_THRESHOLD: Final = 3
"""A datagram counts as lost when one this much newer has arrived (RFC 9002 kPacketThreshold)."""

MAX_SENT: Final = 2048
"""Datagrams that the sender remembers until they are reported: 20 s at a hundred a second."""

KEPT_BEHIND: Final = 512
"""Datagrams remembered behind the newest one reported: twice as far as a report reaches."""


@dataclass(slots=True)
class Arrival:
    """One datagram that came for the first time: its full number, and whether an older one came after a newer one."""

    number: int
    reordered: bool


class ArrivalLog:
    """What has arrived, as the receiver reports it.

    Every datagram is covered by two reports, so that a lost report leaves no hole (VS-9.2-1).

    Attributes:
        newest: Highest number received, -1 before the first.
        duplicates: Datagrams that came again.
    """

    __slots__ = ("_delays", "_fresh_from", "_newest_tick", "_once_from", "duplicates", "newest")

    def __init__(self) -> None:
        self.newest = -1
        self.duplicates = 0
        self._newest_tick = 0
        self._delays: dict[int, int] = {}  # number: arrival tick - send tick, of the newest 256 numbers
        self._fresh_from = 0  # lowest number whose state no report has told
        self._once_from = 0  # lowest number whose state only the last report has told

    def arrived(self, datagram: Datagram, now: float) -> Arrival | None:
        """Note a datagram. None for one that came before, which carries nothing new."""
        number = unwrap(datagram.number, max(self.newest, 0))
        if number in self._delays or number < self.newest - MAX_STATUSES:
            self.duplicates += 1  # VS-9.2-2
            return None
        tick = ticks(now)
        reordered = number < self.newest
        if reordered:
            self._fresh_from = min(self._fresh_from, number)
        else:
            self._advance(number, tick)
        self._delays[number] = tick_delta(tick, datagram.send_tick)
        return Arrival(number, reordered)

    def _advance(self, number: int, tick: int) -> None:
        """A new highest number: forget what no report can tell any more."""
        if self.newest < 0:
            self._fresh_from = self._once_from = max(0, number - FIRST_STATUSES)
        if number - self.newest > MAX_STATUSES:
            self._delays.clear()
        else:
            for gone in range(self.newest - MAX_STATUSES, number - MAX_STATUSES):
                self._delays.pop(gone, None)
        self.newest = number
        self._newest_tick = tick

    def pending(self, *, twice: bool = True) -> int:
        """Statuses that `report` would give if there were room."""
        start = min(self._fresh_from, self._once_from) if twice else self._fresh_from
        return max(0, min(self.newest - start, MAX_STATUSES))

    def report(self, *, room: int = MAX_STATUSES, twice: bool = True, playout: tuple[PlayoutEntry, ...] = ()) -> ReportFrame:
        """A report of everything that no report, or only one, has told.

        Args:
            room: Statuses that fit, at most.
            twice: Cover again what the last report told.
            playout: State of the playouts, to go with it.

        Raises:
            IndexError: Nothing has arrived yet.
        """
        if self.newest < 0:
            raise IndexError("nothing has arrived, so there is nothing to report")
        count = min(self.pending(twice=twice), room)
        statuses: list[int | None] = []
        later = self._delays[self.newest]
        for number in range(self.newest - 1, self.newest - 1 - count, -1):
            delay = self._delays.get(number)
            if delay is None:
                statuses.append(None)
            else:
                statuses.append(tick_delta(delay & 0xFFFF, later & 0xFFFF))
                later = delay
        self._once_from = self._fresh_from
        self._fresh_from = self.newest + 1
        return ReportFrame(newest=self.newest & 0xFFFF, arrival=self._newest_tick, statuses=tuple(statuses), playout=playout)


@dataclass(slots=True)
class SentDatagram:
    """One datagram that left.

    Attributes:
        number: Full number.
        sent_at: Monotonic seconds.
        size: Bytes of VoiceStream.
        media: (track, pts) of the media frames in it: what a retransmission would have to bring.
        tokens: (key, version) of what is repeated until it is confirmed.
        acked: A report says that it arrived.
        lost: A report says that it did not, and something sent later did.
        delay_ticks: One-way delay in ticks plus an unknown constant, once acked.
    """

    number: int
    sent_at: float
    size: int
    media: tuple[tuple[int, int], ...] = ()
    tokens: tuple[tuple[Hashable, int], ...] = ()
    acked: bool = False
    lost: bool = False
    delay_ticks: int = 0


@dataclass(slots=True, kw_only=True)
class Feedback:
    """What one report told anew.

    Attributes:
        acked: Datagrams now known to have arrived, oldest first.
        lost: Datagrams now held for lost, oldest first.
        found: Those of `acked` that had been held for lost.
        newest: The report's newest datagram, when this report is the first to name it: the one whose echo measures the round trip.
        seen_until: When the report left, in seconds with the same unknown constant as the arrivals' times: what was sent later than the
            newest one had not come until then.
    """

    acked: list[SentDatagram] = field(default_factory=list)
    lost: list[SentDatagram] = field(default_factory=list)
    found: list[SentDatagram] = field(default_factory=list)
    newest: SentDatagram | None = None
    seen_until: float | None = None


class SentLog:
    """What was sent, until it is reported or too old. Knows nothing of media; it carries what its caller gave.

    Attributes:
        next_number: Full number of the next datagram.
        acked: Datagrams reported as arrived.
        lost: Datagrams held for lost and not reported since.
        unreported: Datagrams that were forgotten before any report named them.
    """

    __slots__ = ("_delay", "_oldest", "_sent", "acked", "lost", "next_number", "unreported")

    def __init__(self) -> None:
        self._sent: dict[int, SentDatagram] = {}
        self._delay: int | None = None
        self._oldest = 0
        self.next_number = 0
        self.acked = 0
        self.lost = 0
        self.unreported = 0

    def __len__(self) -> int:
        return len(self._sent)

    def sent(
        self, size: int, now: float, *, media: tuple[tuple[int, int], ...] = (), tokens: tuple[tuple[Hashable, int], ...] = ()
    ) -> SentDatagram:
        """Note that the datagram `next_number` leaves now."""
        entry = SentDatagram(self.next_number, now, size, media, tokens)
        self._sent[entry.number] = entry
        self.next_number += 1
        self._forget(self.next_number - MAX_SENT)
        return entry

    def _forget(self, before: int) -> None:
        """What was sent before this number is not remembered any more."""
        while self._oldest < before:
            gone = self._sent.pop(self._oldest)
            self.unreported += not (gone.acked or gone.lost)
            self._oldest += 1

    def get(self, number: int) -> SentDatagram | None:
        """The datagram of this full number, while it is remembered."""
        return self._sent.get(number)

    def reported(self, report: ReportFrame, reply_tick: int | None = None) -> Feedback:
        """Take a report, which left at `reply_tick` on the far end's clock.

        Raises:
            ProtocolError: REPORT_ERROR, for a number that was never sent.
        """
        newest = unwrap(report.newest, max(self.next_number - 1, 0))
        if newest >= self.next_number:  # VS-9.3-1
            raise ProtocolError(ErrorCode.REPORT_ERROR, f"report of datagram {newest}, of {self.next_number} sent")
        told = Feedback()
        head = self._sent.get(newest)
        delay: int | None = None
        if head is not None:
            delay = self._continuous(tick_delta(report.arrival, ticks(head.sent_at)))
            if reply_tick is not None:
                held = (reply_tick - report.arrival) & 0xFFFF
                told.seen_until = (math.floor(head.sent_at * TICKS_PER_SECOND) + delay + held) / TICKS_PER_SECOND
            if not head.acked:
                told.newest = head
                self._acknowledge(head, delay, told)
        for number, status in zip(range(newest - 1, newest - 1 - len(report.statuses), -1), report.statuses, strict=True):
            if status is None:
                if newest - number >= LOSS_THRESHOLD:
                    self._lose(number, told)
                continue
            if number < 0:
                raise ProtocolError(ErrorCode.REPORT_ERROR, "report of datagrams before the first")
            if delay is not None:
                delay += status
            entry = self._sent.get(number)
            if entry is not None and not entry.acked:
                self._acknowledge(entry, delay or 0, told)
        for found in (told.acked, told.lost, told.found):
            found.reverse()
        self._forget(newest - KEPT_BEHIND)
        return told

    def _continuous(self, delay16: int) -> int:
        """One-way delay of the newest datagram, made continuous with those before it."""
        self._delay = delay16 if self._delay is None else self._delay + tick_delta(delay16 & 0xFFFF, self._delay & 0xFFFF)
        return self._delay

    def _acknowledge(self, entry: SentDatagram, delay: int, told: Feedback) -> None:
        if entry.lost:
            entry.lost = False
            self.lost -= 1
            told.found.append(entry)
        entry.acked = True
        entry.delay_ticks = delay
        self.acked += 1
        told.acked.append(entry)

    def _lose(self, number: int, told: Feedback) -> None:
        entry = self._sent.get(number)
        if entry is not None and not entry.acked and not entry.lost:
            entry.lost = True
            self.lost += 1
            told.lost.append(entry)
