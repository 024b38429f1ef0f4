"""What an emulated path does to packets, as values; also read from JSON profile files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voicestream.testing.loss import BurstLoss

__all__ = ["LinkProfile", "NetworkProfile"]


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _probability(name: str, value: float) -> None:
    _require(0 <= value <= 1, f"{name} must be 0 to 1, not {value}")


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkProfile:
    """What one direction of a path does to packets. The default is a perfect link.

    Attributes:
        delay_ms: Propagation delay.
        jitter_ms: Extra delay per packet, the magnitude of a normal variate with this standard deviation.
        reorder: Let a packet with less extra delay overtake; otherwise all packets keep their order.
        delay_trace_ms: Recorded extra delays, one per `delay_trace_step_ms` of time, from the beginning again at its end.
        delay_trace_step_ms: See `delay_trace_ms`.
        loss: Probability of an independent loss, 0 to 1.
        burst_loss: Losses in runs; takes the place of `loss`.
        loss_trace: Recorded fates of consecutive packets (1 = lost), from the beginning again; takes the place of both.
        rate_kbps: Rate of the bottleneck, one number or (second, kbps) steps of which the first holds from the start.
        rate_trace_ms: A mahimahi trace: each entry is a millisecond at which 1500 bytes may leave; from the beginning again.
        queue_ms: Bound of the bottleneck's drop-tail queue, as time that a packet may spend in it.
        queue_bytes: The same as bytes; takes the place of `queue_ms`.
        duplicate: Probability that a packet is delivered twice.
        outages: (second, seconds) spans in which nothing passes.
    """

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    reorder: bool = False
    delay_trace_ms: tuple[float, ...] = ()
    delay_trace_step_ms: float = 20.0
    loss: float = 0.0
    burst_loss: BurstLoss | None = None
    loss_trace: tuple[int, ...] = ()
    rate_kbps: float | tuple[tuple[float, float], ...] | None = None
    rate_trace_ms: tuple[int, ...] = ()
    queue_ms: float = 300.0
    queue_bytes: int | None = None
    duplicate: float = 0.0
    outages: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        _require(self.delay_ms >= 0, f"delay_ms must not be negative, not {self.delay_ms}")
        _require(self.jitter_ms >= 0, f"jitter_ms must not be negative, not {self.jitter_ms}")
        _require(all(extra >= 0 for extra in self.delay_trace_ms), "delay_trace_ms must not contain negative delays")
        _require(self.delay_trace_step_ms > 0, f"delay_trace_step_ms must be positive, not {self.delay_trace_step_ms}")
        _probability("loss", self.loss)
        _probability("duplicate", self.duplicate)
        _require(all(fate in (0, 1) for fate in self.loss_trace), "loss_trace must contain only 0 and 1")
        _require(self.rate_kbps is None or not self.rate_trace_ms, "rate_kbps and rate_trace_ms exclude each other")
        steps = self.rate_steps
        _require(self.rate_kbps is None or bool(steps), "rate_kbps must have at least one step")
        _require(all(kbps >= 0 for _, kbps in steps), "rate_kbps must not be negative")
        _require(all(a[0] < b[0] for a, b in itertools.pairwise(steps)), "the steps of rate_kbps must be in order of time")
        _require(all(slot >= 0 for slot in self.rate_trace_ms), "rate_trace_ms must not contain negative times")
        _require(self.queue_ms >= 0, f"queue_ms must not be negative, not {self.queue_ms}")
        _require(self.queue_bytes is None or self.queue_bytes > 0, f"queue_bytes must be positive, not {self.queue_bytes}")
        _require(all(start >= 0 and length > 0 for start, length in self.outages), "outages must be (start >= 0, length > 0)")

    @property
    def rate_steps(self) -> tuple[tuple[float, float], ...]:
        """`rate_kbps` as (second, kbps) steps, empty if there is no such limit."""
        if self.rate_kbps is None:
            return ()
        return self.rate_kbps if isinstance(self.rate_kbps, tuple) else ((0.0, self.rate_kbps),)

    @classmethod
    def from_json(cls, link: Mapping[str, Any], base: str | Path = ".") -> LinkProfile:
        """Make a profile from the JSON object of one link.

        Keys (all optional): ``delay_ms``, ``jitter_ms``, ``reorder``, ``delay_trace`` (file of one delay in ms per line),
        ``trace_step_ms``, ``loss``, ``ge`` (``{"loss": share, "burst": packets}``), ``loss_trace`` (file of 0 and 1),
        ``rate_kbps`` (number or steps), ``rate_trace`` (mahimahi file), ``queue_ms``, ``queue_bytes``, ``duplicate``,
        ``outages``.

        Args:
            link: The parsed object.
            base: Folder in which its trace files are looked up.

        Raises:
            ValueError: A key is unknown or a value out of range.
            OSError: A trace file cannot be read.
        """
        values: dict[str, Any] = {}
        for key, value in link.items():
            if key in ("delay_ms", "jitter_ms", "reorder", "loss", "queue_ms", "queue_bytes", "duplicate"):
                values[key] = value
            elif key == "trace_step_ms":
                values["delay_trace_step_ms"] = value
            elif key == "ge":
                values["burst_loss"] = BurstLoss(loss=value["loss"], burst=value["burst"])
            elif key == "delay_trace":
                values["delay_trace_ms"] = tuple(float(word) for word in _words(base, value))
            elif key == "loss_trace":
                values["loss_trace"] = tuple(int(word) for word in _words(base, value))
            elif key == "rate_trace":
                values["rate_trace_ms"] = tuple(int(word) for word in _words(base, value))
            elif key == "rate_kbps":
                values["rate_kbps"] = _pairs(value) if isinstance(value, list) else value
            elif key == "outages":
                values["outages"] = _pairs(value)
            else:
                raise ValueError(f"unknown key of a link: {key!r}")
        return cls(**values)


def _words(base: str | Path, name: str) -> list[str]:
    return (Path(base) / name).read_text().split()


def _pairs(rows: Sequence[Sequence[float]]) -> tuple[tuple[float, float], ...]:
    return tuple((first, second) for first, second in rows)


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkProfile:
    """A path between hosts A and B.

    Attributes:
        a2b: The direction from A (usually the server) to B.
        b2a: The direction from B (usually the client) to A.
        rebind: Seconds at which B's NAT forgets its flows: from then on what B sends has another source port, and what A
            sends to the old one is lost.
    """

    a2b: LinkProfile = LinkProfile()
    b2a: LinkProfile = LinkProfile()
    rebind: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _require(all(at >= 0 for at in self.rebind), "rebind must not contain negative times")

    @classmethod
    def both(cls, link: LinkProfile, *, rebind: tuple[float, ...] = ()) -> NetworkProfile:
        """The same profile in both directions."""
        return cls(a2b=link, b2a=link, rebind=rebind)

    @classmethod
    def from_json(cls, source: str | Path | Mapping[str, Any], base: str | Path = ".") -> NetworkProfile:
        """Read ``{"both": LINK}`` or ``{"a2b": LINK, "b2a": LINK}`` with an optional ``"rebind"``; see `LinkProfile.from_json`.

        Args:
            source: The parsed object, the name of a JSON file, or JSON text (which begins with a brace).
            base: Folder of trace files; a file's own folder is used for a file.

        Raises:
            ValueError: The JSON is not valid, a key is unknown, or a value is out of range.
            OSError: A file cannot be read.
        """
        if isinstance(source, Mapping):
            profile = source
        elif isinstance(source, str) and source.lstrip().startswith("{"):
            profile = json.loads(source)
        else:
            base = Path(source).parent
            profile = json.loads(Path(source).read_text())
        unknown = set(profile) - {"both", "a2b", "b2a", "rebind"}
        _require(not unknown, f"unknown keys of a profile: {sorted(unknown)}")
        links = [LinkProfile.from_json(profile.get(side, profile.get("both", {})), base) for side in ("a2b", "b2a")]
        return cls(a2b=links[0], b2a=links[1], rebind=tuple(profile.get("rebind", ())))
