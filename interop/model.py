"""Cases, verdicts and results."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["CASES", "ROLES", "Case", "Outcome", "Result", "Unsupported", "Verdict", "case", "worst"]

ROLES: Final = ("server", "client")


class Verdict(enum.StrEnum):
    """What a case says. NON-STRICT: something was tolerated that had to be refused, and no harm comes of it."""

    PASS = "PASS"
    NON_STRICT = "NON-STRICT"
    FAIL = "FAIL"
    UNSUPPORTED = "UNSUPPORTED"


_RANK: Final = {Verdict.UNSUPPORTED: 0, Verdict.PASS: 1, Verdict.NON_STRICT: 2, Verdict.FAIL: 3}


def worst(verdicts: list[Verdict]) -> Verdict:
    """The worst of them; UNSUPPORTED where there is nothing else."""
    return max(verdicts, key=_RANK.__getitem__, default=Verdict.UNSUPPORTED)


class Unsupported(Exception):
    """The implementation does not do what the case is about, and need not."""


@dataclass(kw_only=True, slots=True)
class Outcome:
    """What one case found: behaviour and close code are judged apart.

    Attributes:
        behaviour: Whether it did what it had to do.
        close: Whether the code with which it closed is the right one; None where it had no reason to close.
        words: Why, in a sentence.
        measured: Figures, which are no part of the verdict; the unit is in the name.
    """

    behaviour: Verdict = Verdict.PASS
    close: Verdict | None = None
    words: str = ""
    measured: dict[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        return worst([self.behaviour] + ([] if self.close is None else [self.close]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One case of conformance.

    Attributes:
        name: Unique, as it is chosen on the command line.
        title: What the suite does or looks at.
        requirements: Ids of the specification that it tests; the first one is the one that a failure breaks.
        roles: Roles of the implementation under test in which it makes sense.
        run: Does it, with the suite's peer.
        opened: The call is open when `run` begins; otherwise only the QUIC connection is.
        harmless: Tolerating is NON-STRICT rather than FAIL.
        slow: Left out of quick runs.
        setup: Options of the suite's peer.
    """

    name: str
    title: str
    requirements: tuple[str, ...]
    roles: tuple[str, ...]
    run: Callable[[Any], Awaitable[Outcome | None]]
    opened: bool = True
    harmless: bool = False
    slow: bool = False
    setup: dict[str, Any] = field(default_factory=dict)

    @property
    def section(self) -> str:
        return self.requirements[0].split("-")[1]


CASES: Final[dict[str, Case]] = {}


def case(
    *requirements: str,
    title: str,
    roles: tuple[str, ...] = ROLES,
    opened: bool = True,
    harmless: bool = False,
    slow: bool = False,
    name: str | None = None,
    **setup: Any,
) -> Callable[[Callable[[Any], Awaitable[Outcome | None]]], Callable[[Any], Awaitable[Outcome | None]]]:
    """Register a case; see `Case`."""

    def register(run: Callable[[Any], Awaitable[Outcome | None]]) -> Callable[[Any], Awaitable[Outcome | None]]:
        own = name or run.__name__.replace("_", "-").strip("-")
        if own in CASES:
            raise ValueError(f"two cases are called {own}")
        CASES[own] = Case(
            name=own, title=title, requirements=requirements, roles=roles, run=run, opened=opened, harmless=harmless, slow=slow,
            setup=setup,
        )  # fmt: skip
        return run

    return register


@dataclass(kw_only=True, slots=True)
class Result:
    """A case that was run against one implementation (or a pair of them).

    Attributes:
        case: Its name.
        subject: The implementation, or "client x server".
        role: That it had; "pair" for two.
        seconds: That it took.
        trace: Lines of words: what was on the wire.
    """

    case: str
    title: str
    requirements: tuple[str, ...]
    subject: str
    role: str
    outcome: Outcome
    seconds: float
    trace: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        return self.outcome.verdict
