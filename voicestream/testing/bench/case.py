"""What a case consists of."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from voicestream.testing.profile import LinkProfile
from voicestream.testing.traces import Recording

__all__ = ["DELAY_ONLY", "NEED_BPS", "Bar", "Case", "Direction", "Greedy", "Media"]

NEED_BPS: Final = 90e3
"""What 64 kbps take on the wire in frames of 20 ms, without redundancy."""

Direction = Literal["b2a", "a2b"]
"""b2a: from the client to the server; a2b: back."""

CHAT_S: Final = 6.0
"""Stretches of talk that are all shorter are those of a conversation."""

DELAY_ONLY: Final = LinkProfile(delay_ms=50)

_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = MappingProxyType({">=": operator.ge, "<=": operator.le})


@dataclass(frozen=True, slots=True)
class Bar:
    """What a figure has to keep.

    Attributes:
        figure: Name of the figure.
        sense: ">=" or "<=".
        limit: The bound.
    """

    figure: str
    sense: Literal[">=", "<="]
    limit: float

    def passed(self, value: float) -> bool:
        """Whether `value` keeps it."""
        return _COMPARE[self.sense](value, self.limit)

    def kept_by(self, figures: Mapping[str, float]) -> bool:
        """Whether its figure is there and keeps it."""
        return self.figure in figures and self.passed(figures[self.figure])

    def __str__(self) -> str:
        return f"{self.figure} {self.sense} {self.limit:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """One call.

    Attributes:
        start: When it begins, in seconds.
        stop: When it is closed; None for the end of the case.
        delay_ms: One-way delay of its path; None for that of the case's link.
        speaks: "b2a" (the client), "a2b" (the server) or "both".
        talk: (talk, pause) seconds in turn; empty for never silent.
        drift_ppm: By how much the client's clock is fast: its microphone, loudspeaker and times.
    """

    start: float = 0.0
    stop: float | None = None
    delay_ms: float | None = None
    speaks: Literal["b2a", "a2b", "both"] = "b2a"
    talk: tuple[tuple[float, float], ...] = ()
    drift_ppm: float = 0.0

    @property
    def chats(self) -> bool:
        """Its pauses are those of a conversation: they belong to what is steady."""
        return bool(self.talk) and max(talk for talk, _ in self.talk) < CHAT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy:
    """Competitors in the manner of TCP.

    Attributes:
        kind: "reno" or "cubic".
        start: When they begin.
        count: How many.
        delay_ms: One-way delay, the same back.
        transfer_kb: (least, most) of one transfer in kilobytes; None for one that never ends.
        idle: Mean seconds between two transfers.
        way: Direction.
    """

    kind: Literal["reno", "cubic"] = "reno"
    start: float = 0.0
    count: int = 1
    delay_ms: float = 50.0
    transfer_kb: tuple[float, float] | None = None
    idle: float = 10.0
    way: Direction = "b2a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One experiment.

    Attributes:
        name: What it is called on the command line.
        about: In a few words.
        seconds: Its length.
        b2a: The link toward the server. Its rate limit is shared by all flows; delay, jitter and losses are each flow's own.
        a2b: The link back.
        media: The calls.
        greedy: The competitors.
        policer_bytes: Bucket of a policer instead of a queue on b2a; None for a queue.
        settle: Seconds after each change that do not count as steady.
        queue_ms: Wait that a packet must not have some time after a drop.
        bars: What is asked of the figures.
        quick: Part of the short selection.
        group: Heading under which it stands.
        recording: A file that takes the place of the rate, or of the extra delays and losses, of b2a; the seed says where it is cut.
        synthetic: Name of a generator that does.
    """

    name: str
    about: str
    seconds: float
    b2a: LinkProfile
    a2b: LinkProfile = DELAY_ONLY
    media: tuple[Media, ...] = (Media(),)
    greedy: tuple[Greedy, ...] = ()
    policer_bytes: int | None = None
    settle: float = 5.0
    queue_ms: float = 100.0
    bars: tuple[Bar, ...] = ()
    quick: bool = False
    group: str = ""
    recording: Recording | None = None
    synthetic: str = ""

    @property
    def restless(self) -> bool:
        """The capacity changes all the time: there are no steps to answer, and no steady stretches beside others."""
        return bool(self.recording or self.synthetic)

    def profile(self, direction: Direction) -> LinkProfile:
        """The link of one direction."""
        return self.b2a if direction == "b2a" else self.a2b

    def windows(self, direction: Direction) -> list[tuple[float, float]]:
        """(begin, end) of the stretches in which nothing changes, without the first seconds of each; all of a recorded trace."""
        if self.restless:
            return [(self.settle, self.seconds)]
        marks = {0.0, self.seconds}
        marks |= {start for start, _ in self.profile(direction).rate_steps}
        for flow in self.media:
            marks |= {flow.start, self.seconds if flow.stop is None else flow.stop}
            at = flow.start
            for talk, pause in () if flow.chats else flow.talk:
                marks |= {at + talk, at + talk + pause}
                at += talk + pause
        edges = sorted(mark for mark in marks if 0 <= mark <= self.seconds)
        return [(begin + self.settle, end) for begin, end in itertools.pairwise(edges) if end - begin >= self.settle + 1]
