"""What the demo notes while the call goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from voicestream.call_stats import CallStats
from voicestream.cli.conversation import BLOCK_MS, Pcm
from voicestream.cli.demo.phases import Span
from voicestream.cli.demo.relay import Crossing

__all__ = ["Beat", "DemoRecord", "EndRecord", "Notice"]


@dataclass(frozen=True, slots=True)
class Beat:
    """State of one end as a block of 20 ms was heard: how it sends, and totals of what it has played and made up."""

    bitrate_bps: int
    frame_ms: int
    played_ms: float
    concealed_ms: float


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the call told its application: loop seconds, kind of event, and for "resumed" the outage in seconds."""

    at: float
    kind: str
    outage_s: float | None = None


@dataclass(kw_only=True, slots=True)
class EndRecord:
    """One end of the call. All times are seconds on the loop's clock.

    What is bulky is left out of its repr, which asyncio makes when a run ends.

    Attributes:
        name: "Client" or "Server".
        said: What it says.
        said_at: When the first sample was spoken.
        heard: Blocks that its loudspeaker played.
        heard_at: When the first of them was played.
        beats: One for each of them.
        readings: (time, figures), a few a second.
        notices: What the call told.
        sessions: Name of the session of each call that this end got, in order; one, if all is well.
    """

    name: str
    said: Pcm = field(repr=False)
    said_at: float = 0.0
    heard: list[Pcm] = field(default_factory=list, repr=False)
    heard_at: float = 0.0
    beats: list[Beat] = field(default_factory=list, repr=False)
    readings: list[tuple[float, CallStats]] = field(default_factory=list, repr=False)
    notices: list[Notice] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)

    @property
    def heard_pcm(self) -> Pcm:
        """All of `heard` in one piece."""
        return np.concatenate(self.heard) if self.heard else np.zeros(0, np.int16)

    def beat_at(self, index: int) -> float:
        """When a block was due, in loop seconds."""
        return self.heard_at + index * BLOCK_MS / 1e3


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoRecord:
    """All that a demo call left behind.

    Attributes:
        client: The client's end.
        server: The server's end.
        log: Packets that entered the link.
        flows: Ports from which the client called.
        began: When the call was accepted and the first phase began, in loop seconds.
        seconds: How long it lasted.
        spans: What the link did when.
        sample_rate_hz: Of all PCM.
        rtt_ms: Round trip of the emulated link.
        seed: Of its random numbers.
    """

    client: EndRecord
    server: EndRecord
    log: Sequence[Crossing] = field(repr=False)
    flows: int
    began: float
    seconds: float
    spans: Sequence[Span]
    sample_rate_hz: int
    rtt_ms: float
    seed: int

    def span(self, key: str) -> Span | None:
        """When the phase of this name was."""
        return next((span for span in self.spans if span.phase.key == key), None)
