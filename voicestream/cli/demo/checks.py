"""What the demo has to show, checked on what was recorded: each check says in words what was found, and whether that is enough."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from voicestream.cli.charts import Band
from voicestream.cli.conversation import BLOCK_MS
from voicestream.cli.demo.record import Beat, DemoRecord, EndRecord

__all__ = ["Verdict", "gaps", "verdicts"]

NARROW_BPS: Final = 16000
NARROW_WITHIN_S: Final = 3.0
FULL_BPS: Final = 64000

GAP_S: Final = 0.15
"""Silence of this length is a gap that people notice; less than that concealment hides more or less."""

EDGE_S: Final = 0.4
"""How much later than the link an ear may notice a break and its end: delay, buffer, and the ramp back in."""

MOST_S: Final = 300.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """One check.

    Attributes:
        title: What was checked, in a few words.
        passed: Whether it holds.
        finding: What was found, with figures.
    """

    title: str
    passed: bool
    finding: str


def verdicts(record: DemoRecord, took_s: float) -> list[Verdict]:
    """All checks.

    Args:
        record: Of the call.
        took_s: How long the whole demo took, set-up included.
    """
    return [
        _narrow(record),
        _full(record),
        _session(record),
        _received(record),
        _overdue(record),
        Verdict(
            title="Done in five minutes",
            passed=took_s < MOST_S,
            finding=f"{took_s:.0f} s in all, of which the call took {record.seconds:.0f} s.",
        ),
    ]


def gaps(end: EndRecord) -> list[Band]:
    """When nothing that was received was heard, for `GAP_S` or more, between the first sound and the last; in loop seconds."""
    found: list[Band] = []
    covered_to: float | None = None
    for index, (before, beat) in enumerate(_pairs(end.beats)):
        played_ms = beat.played_ms - before.played_ms
        if played_ms <= 0:
            continue
        at = end.beat_at(index)
        if covered_to is not None and at - covered_to >= GAP_S:
            found.append(Band(start=covered_to, end=at))
        # A frame longer than a block is decoded with its first block and lasts for some more.
        covered_to = at + max(played_ms, BLOCK_MS) / 1e3
    return found


def _pairs(beats: Sequence[Beat]) -> list[tuple[Beat, Beat]]:
    nothing = Beat(0, 0, 0.0, 0.0)
    return list(zip([nothing, *beats], beats, strict=False))


def _ends(record: DemoRecord) -> tuple[EndRecord, EndRecord]:
    return record.client, record.server


def _first(record: DemoRecord, end: EndRecord, key: str, least_bps: int, most_bps: int) -> float | None:
    """Seconds from the beginning of a phase until the bitrate was within bounds, or None."""
    span = record.span(key)
    if span is None:
        return None
    for index, beat in enumerate(end.beats):
        at = end.beat_at(index) - record.began
        if span.start <= at < span.end and least_bps <= beat.bitrate_bps <= most_bps:
            return at - span.start
    return None


def _each(record: DemoRecord, values: Sequence[float | None], never: str) -> str:
    words = [
        f"{end.name.lower()} {never}" if value is None else f"{end.name.lower()} after {value:.1f} s"
        for end, value in zip(_ends(record), values, strict=True)
    ]
    return ", ".join(words)


def _narrow(record: DemoRecord) -> Verdict:
    values = [_first(record, end, "narrow", 0, NARROW_BPS) for end in _ends(record)]
    return Verdict(
        title="Down to 16 kbps within 3 s of the narrow link",
        passed=all(value is not None and value <= NARROW_WITHIN_S for value in values),
        finding=f"At or below 16 kbps: {_each(record, values, 'never')}.",
    )


def _full(record: DemoRecord) -> Verdict:
    values = [_first(record, end, "again", FULL_BPS, FULL_BPS) for end in _ends(record)]
    stays = [_settled(record, end) for end in _ends(record)]
    words = _each(record, values, "not again")
    settled = " and ".join("–" if bps is None else f"{bps / 1e3:.0f}" for bps in stays)
    return Verdict(
        title="64 kbps again in the last phase",
        passed=all(value is not None for value in values) and all(bps == FULL_BPS for bps in stays),
        finding=f"First at 64 kbps: {words} of the last phase; median of its second half {settled} kbps.",
    )


def _settled(record: DemoRecord, end: EndRecord) -> float | None:
    """Median of the bitrate in the second half of the last phase."""
    span = record.span("again")
    if span is None:
        return None
    middle = (span.start + span.end) / 2
    numbered = ((end.beat_at(index) - record.began, beat) for index, beat in enumerate(end.beats))
    found = [beat.bitrate_bps for at, beat in numbered if middle <= at < span.end]
    return statistics.median_low(found) if found else None


def _session(record: DemoRecord) -> Verdict:
    names = {name for end in _ends(record) for name in end.sessions}
    calls = [len(end.sessions) for end in _ends(record)]
    span = record.span("break")
    resumed = [n for n in record.client.notices if n.kind == "resumed" and span is not None and n.at - record.began >= span.start]
    passed = len(names) == 1 and calls == [1, 1] and bool(resumed)
    if passed and span is not None:
        late = resumed[0].at - record.began - span.end
        text = f"Session {next(iter(names))[:8]} on both sides, before and after; resumed {late:.1f} s after the link was back."
    elif not resumed:
        text = f"The session was not resumed; {len(names)} session(s) in {max(calls)} call(s)."
    else:
        text = f"{len(names)} sessions; the client had {calls[0]} call(s), the server {calls[1]}."
    return Verdict(title="The same session after the break", passed=passed, finding=text)


def _hole(record: DemoRecord) -> tuple[Band | None, float | None]:
    """The break together with the outage that the call reports, in loop seconds, and the length of the latter."""
    span = record.span("break")
    if span is None:
        return None, None
    start, end = record.began + span.start, record.began + span.end
    for notice in record.client.notices:
        if notice.kind == "resumed" and notice.outage_s is not None and notice.at >= start:
            return Band(start=min(start, notice.at - notice.outage_s), end=max(end, notice.at)), notice.outage_s
    return Band(start=start, end=end), None


def _received(record: DemoRecord) -> Verdict:
    hole, outage_s = _hole(record)
    elsewhere, within = [], {end.name.lower(): 0.0 for end in _ends(record)}
    for end in _ends(record):
        for gap in gaps(end):
            if hole is not None and gap.start >= hole.start - EDGE_S and gap.end <= hole.end + EDGE_S:
                within[end.name.lower()] += gap.end - gap.start
            else:
                length_ms = 1e3 * (gap.end - gap.start)
                elsewhere.append(f"the {end.name.lower()} {length_ms:.0f} ms at {gap.start - record.began:.1f} s")
    words = ", ".join(f"the {name} for {length:.1f} s" for name, length in within.items())
    told = "the call reports no outage" if outage_s is None else f"the call reports an outage of {outage_s:.1f} s"
    more = f"Elsewhere: {', '.join(elsewhere)}." if elsewhere else f"Elsewhere no gap of {1e3 * GAP_S:.0f} ms."
    return Verdict(
        title="No gap but the break",
        passed=not elsewhere and all(end.heard for end in _ends(record)),
        finding=f"Nothing heard in the break: {words}; {told}. {more}",
    )


def _overdue(record: DemoRecord) -> Verdict:
    last = [end.readings[-1][1].sent for end in _ends(record) if end.readings]
    overdue, expired = sum(sent.frames_overdue for sent in last), sum(sent.frames_expired for sent in last)
    frames = sum(sent.frames for sent in last)
    return Verdict(
        title="No stale frame sent",
        passed=bool(last) and overdue == 0,
        finding=f"{overdue} of {frames} frames left after their deadline; {expired} were dropped unsent when it had passed.",
    )
