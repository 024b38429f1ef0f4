"""What one end heard of the other, and by which tools."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from voicestream.config import UNITS_PER_SECOND
from voicestream.events import PlanChanged
from voicestream.media import SourceKind
from voicestream.testing.measure import Samples
from voicestream.testing.side import CallSide, FrameFate
from voicestream.testing.tap import TappedPlayout

__all__ = ["FRAME_MS", "TOOLS", "Hearing", "hearing", "late_share"]

TOOLS: Final = ("resent", "repair", "copy", "inband")
FRAME_MS: Final = (10, 20, 40, 60)

PENDING_S: Final = 1.0

_SPENT: Final = {"resent": "retransmission", "repair": "repair", "copy": "copy", "inband": "inband", "pair": "pair"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearing:
    """What became of the speech of one direction.

    Attributes:
        concealed: Share that was made up.
        unheard: Share that was never played, by no tool.
        lost: Share of the frames that did not come the plain way.
        mended: Part of those that each tool brought back.
        recovery_ms: By tool, from when a lost frame would have come to when it came.
        delay_ms: From capture to playing.
        bitrate_bps: Mean of the codec.
        lengths: Share of the time in frames of so many milliseconds.
        redundancy: Share of the bytes on the wire, whole and by tool.
        frames: Every frame: second of the world, its milliseconds, milliseconds from capture to playing or None, whether it was heard.
    """

    concealed: float = 0.0
    unheard: float = 0.0
    lost: float = 0.0
    mended: Mapping[str, float] = field(default_factory=dict)
    recovery_ms: Mapping[str, Samples] = field(default_factory=dict)
    delay_ms: Samples = field(default_factory=Samples)
    bitrate_bps: float = 0.0
    lengths: Mapping[int, float] = field(default_factory=dict)
    redundancy: Mapping[str, float] = field(default_factory=dict)
    frames: tuple[tuple[float, float, float | None, bool], ...] = ()


def hearing(speaker: CallSide, listener: CallSide) -> Hearing:
    """Judge what has been spoken so far."""
    heard = listener.heard()
    # What is under way when the case ends can still be heard.
    said, played = speaker.sim.world_time, listener.sim.world_time
    fates = tuple(fate for fate in heard.fates if said(fate.sent.at) <= listener.sim.world_time(listener.sim.now) - PENDING_S)
    if not fates:
        return Hearing(redundancy=_redundancy(speaker))
    units = sum(fate.sent.units for fate in fates)
    lost, mended, recovery = _mends(speaker, listener, fates)
    frames = tuple(
        (
            said(fate.sent.at),
            fate.sent.units * 2.5,
            None if fate.played_at is None else (played(fate.played_at) - said(fate.sent.at)) * 1e3,
            fate.played_at is not None or mended.get(fate.sent.pts) == "inband",
        )
        for fate in fates
    )
    tools = Counter(mended.values())
    lengths = Counter[int]()
    for fate in fates:
        lengths[fate.sent.units * 5 // 2] += fate.sent.units
    return Hearing(
        concealed=heard.concealed_share,
        unheard=sum(length for _, length, _, was_heard in frames if not was_heard) / (units * 2.5),
        lost=lost / len(fates),
        mended={tool: tools[tool] / lost for tool in TOOLS if lost},
        recovery_ms=recovery,
        delay_ms=Samples(delay for _, _, delay, _ in frames if delay is not None),
        bitrate_bps=sum(len(fate.sent.payload) for fate in fates) * 8 * UNITS_PER_SECOND / units,
        lengths={length: lengths[length] / units for length in sorted(lengths)},
        redundancy=_redundancy(speaker),
        frames=frames,
    )


def late_share(heard: Hearing, within_ms: float) -> float:
    """Share of the speech that was not heard within so many milliseconds of its capture."""
    whole = sum(length for _, length, _, _ in heard.frames)
    late = sum(length for _, length, delay, played in heard.frames if not played or (delay is not None and delay > within_ms))
    return late / whole if whole else 0.0


def _redundancy(speaker: CallSide) -> dict[str, float]:
    """Shares of the wire; the whole is known exactly, the parts by their bytes."""
    recovery = speaker.session.stats(speaker.sim.now).recovery
    spent = {tool: getattr(recovery, f"{name}_bytes_sent") for tool, name in _SPENT.items()}
    whole, total = recovery.redundancy_share, sum(spent.values())
    return {"": whole, **{tool: whole * count / total if total else 0.0 for tool, count in spent.items()}}


def _mends(speaker: CallSide, listener: CallSide, fates: tuple[FrameFate, ...]) -> tuple[int, dict[int, str], dict[str, Samples]]:
    """(frames that did not come the plain way, the tool by pts of those that were mended, how long that took by tool)."""
    tap = listener.devices[0][1]
    assert isinstance(tap, TappedPlayout)
    said, came_at = speaker.sim.world_time, listener.sim.world_time
    plans = [(at, plan.inband_fec_loss_percent) for at, plan in speaker.seen(PlanChanged)]
    changes = [at for at, _ in plans]
    lost, mended = 0, dict[int, str]()
    recovery: dict[str, Samples] = defaultdict(Samples)
    transit = 0.0  # of the last frame that came the plain way: so long the lost one would have taken
    for fate in fates:
        frame, arrivals = fate.sent, tap.came.get(fate.sent.pts, [])
        plain = next((at for at, kind in arrivals if kind is SourceKind.AUDIO), None)
        if plain is not None:
            transit = came_at(plain) - said(frame.at)
            continue
        lost += 1
        first = next(((at, kind) for at, kind in arrivals if kind is not SourceKind.COPY), None)
        if fate.played_at is None:
            index = bisect_right(changes, frame.at + frame.units / UNITS_PER_SECOND) - 1
            if index >= 0 and plans[index][1] and frame.pts + frame.units in tap.helped:
                mended[frame.pts] = "inband"
            continue
        if fate.how == "copy" or first is None:
            tool, at = "copy", arrivals[0][0] if arrivals else fate.played_at
        else:
            tool, at = "resent" if first[1] is SourceKind.RETRANSMISSION else "repair", first[0]
        mended[frame.pts] = tool
        recovery[tool].add(max(0.0, came_at(at) - said(frame.at) - transit) * 1e3)
    return lost, mended, recovery
