"""The cases that a call has to survive, each as a row: ``python -m voicestream.testing.breaks --cases 3``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from voicestream.testing.break_call import BreakPlan, BreakReport
from voicestream.testing.break_real import RealReport
from voicestream.testing.measure import Samples

__all__ = ["CASES", "case_plans", "percentile", "real_lines", "table"]

CASES: Final[tuple[tuple[str, dict[str, object]], ...]] = (
    ("1 s, both ways", {"seconds": 1.0}),
    ("3 s, both ways", {"seconds": 3.0}),
    ("5 s, both ways", {"seconds": 5.0}),
    ("25 s, both ways", {"seconds": 25.0}),
    ("84 s, both ways", {"seconds": 84.0}),
    ("4 min 50 s, both ways", {"seconds": 290.0}),
    ("5 s, to the server", {"seconds": 5.0, "mute": "client"}),
    ("5 s, to the client", {"seconds": 5.0, "mute": "server"}),
    ("25 s, to the server", {"seconds": 25.0, "mute": "client"}),
    ("25 s, to the client", {"seconds": 25.0, "mute": "server"}),
    ("5 s, again in the handshake for 2 s", {"seconds": 5.0, "kind": "handshake", "again_s": 2.0}),
    ("5 s, the reply lost for 3 s", {"seconds": 5.0, "kind": "reply", "again_s": 3.0}),
    ("5 s, twice, 3 s more", {"seconds": 5.0, "kind": "twice", "again_s": 3.0}),
)
"""(name, what of the plan is not as usual)."""

HEADER: Final = f"{'case':36} calls   ok    P50    P95 beyond RTT  lost   aged  again twice order"


def percentile(values: Iterable[float], share: float) -> float:
    """The value that this share of them does not exceed; NaN for none."""
    samples = Samples(values)
    return samples.percentile(100 * share) if samples else math.nan


def case_plans(each: int, seed: int) -> list[tuple[str, BreakPlan]]:
    """`each` plans for each case; both sides play live in the first, the third and so on, and the server reads in order in the others."""
    plans = []
    for name, given in CASES:
        for number in range(each):
            usual: dict[str, object] = {"kind": "plain", "mute": "both", "again_s": 1.0, "loss": 0.0, "live": number % 2 == 0}
            delay_ms = (20.0, 60.0, 100.0)[number % 3]
            plans.append((name, BreakPlan(seed=seed + number, delay_ms=delay_ms, **{**usual, **given})))  # type: ignore[arg-type]
    return plans


def beyond_rtt(report: BreakReport) -> list[float]:
    """Seconds beyond one round trip from the path's return to live speech, for each side that could not be reached."""
    return [seconds - 2 * report.plan.delay_ms / 1000 for seconds in report.to_speech_s]


def _row(name: str, reports: Sequence[BreakReport]) -> str:
    times = [seconds for report in reports for seconds in report.to_speech_s]
    beyond = percentile([seconds for report in reports for seconds in beyond_rtt(report)], 0.5)
    sums = [sum(getattr(report, key) for report in reports) for key in ("lost", "too_old", "replayed", "duplicated", "disordered")]
    counts = f"{sums[0]:>5} {sums[1]:>6} {sums[2]:>6} {sums[3]:>5} {sums[4]:>5}"
    survived = sum(report.survived for report in reports)
    return (
        f"{name:36} {len(reports):>5} {survived:>4} {percentile(times, 0.5):>6.2f} {percentile(times, 0.95):>6.2f} {beyond:>10.2f} {counts}"
    )


def table(named: Sequence[tuple[str, BreakReport]]) -> list[str]:
    """A line for each case: calls, how many went on, seconds from the path's return to live speech, frames.

    Frames: lost to a reader in order, aged (kept no more when the path came back), sent again, come twice, come out of order.
    """
    names = list(dict.fromkeys(name for name, _ in named))
    return [HEADER, *(_row(name, [report for one, report in named if one == name]) for name in names)]


def real_lines(reports: Sequence[RealReport]) -> list[str]:
    """The figures of calls on real sockets."""
    speech = [seconds for report in reports for seconds in report.to_speech_s]
    live = [seconds for report in reports for seconds in report.to_live_s]
    good = sum(report.succeeded for report in reports)
    keys = ("lost", "behind", "unsent", "duplicated", "disordered")
    lost, behind, unsent, twice, disordered = (sum(getattr(report, key) for report in reports) for key in keys)
    return [
        *(str(report) for report in reports if not report.succeeded),
        f"real sockets: {good} of {len(reports)} calls spoke again within 5 s, {sum(report.resumed for report in reports)} of them resumed",
        f"from the link's return to speech: P50 {percentile(speech, 0.5):.2f} s, P95 {percentile(speech, 0.95):.2f} s",
        f"to what was said since, all before it included: P50 {percentile(live, 0.5):.2f} s, P95 {percentile(live, 0.95):.2f} s",
        f"frames: {lost} lost, {behind} on their way at the end, {unsent} gone with a server, {twice} twice, {disordered} out of order",
    ]
