"""Many calls counted together: what `voicestream.observe.metrics` exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from voicestream.call_stats import CallStats, collect_stats
from voicestream.codepoints import ErrorCode
from voicestream.observe.figures import Figures, Key, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from voicestream.call_parts import CallParts
    from voicestream.events import Closed
    from voicestream.session.latency_stats import DelayStats

__all__ = ["CallFigures", "code_label", "values_of"]

OTHER: Final = "other"


def code_label(code: int) -> str:
    """A code's name; one that is not registered is the far end's own choice, and all of those are one label."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return OTHER


def values_of(stats: CallStats) -> Values:
    """What one call has done so far, as numbers that can be added to those of others."""
    found = Values()
    sent, received, playout, recovery = stats.sent, stats.received, stats.playout, stats.recovery
    for name, label, number in (
        ("frames", "sent", sent.frames),
        ("frames", "sent_lost", sent.frames_lost),
        ("frames", "send_expired", sent.frames_expired),
        ("frames", "send_overflowed", sent.frames_overflowed),
        ("frames", "received", received.frames),
        ("frames", "unheard", received.frames_unheard),
        ("frames", "late", playout.frames_late),
        ("frames", "concealed", playout.frames_concealed),
        ("frames", "repaired", recovery.frames_repaired),
        ("frames", "retransmitted", recovery.retransmissions_received),
        ("frames", "given_up", recovery.frames_given_up),
        ("datagrams", "sent", sent.datagrams),
        ("datagrams", "sent_lost", sent.datagrams_lost),
        ("datagrams", "received", received.datagrams),
        ("wire_bytes", "sent", sent.wire_bytes),
        ("wire_bytes", "received", received.wire_bytes),
        ("redundancy_bytes", "repair", recovery.repair_bytes_sent),
        ("redundancy_bytes", "retransmission", recovery.retransmission_bytes_sent),
        ("redundancy_bytes", "copy", recovery.copy_bytes_sent),
        ("redundancy_bytes", "inband", recovery.inband_bytes_sent),
        ("redundancy_bytes", "pair", recovery.pair_bytes_sent),
        ("speech_seconds", "", playout.spoken_ms / 1000),
        ("concealed_seconds", "", playout.concealed_ms / 1000),
        ("unheard_seconds", "", playout.silent_concealed_ms / 1000),
        ("dropouts", "", playout.dropouts),
        ("ordered_lost_seconds", "", stats.ordered.lost_ms / 1000),
        ("events", "sent", sent.events),
        ("events", "received", received.events),
        ("events", "dropped", received.events_dropped),
    ):
        found.count(name, number, label)
    latency = stats.latency
    _observe(found, "mouth_to_ear_seconds", latency.mouth_to_ear)
    _observe(found, "turn_seconds", latency.turn, "far_end")
    _observe(found, "turn_seconds", latency.answer, "this_end")
    return found


def _observe(found: Values, name: str, delays: DelayStats, label: str = "") -> None:
    found.observe(name, delays.counts, delays.total_ms / 1000, label)


class CallFigures(Figures):
    """Figures of calls; a server has some, for clients see `Call.report_to`.

    Args:
        role: Label of all that is counted.

    Attributes:
        sources: Tell what else is counted beside the calls: counters by name and label.
    """

    def __init__(self, role: Literal["client", "server"]) -> None:
        super().__init__(role)
        self._live: dict[CallParts, None] = {}
        self.sources: list[Callable[[], Mapping[Key, float]]] = []

    def begun(self, parts: CallParts) -> None:
        """A call is taken."""
        with self._lock:
            self._live[parts] = None
            self._sums.count("calls_opened", 1)

    def over(self, parts: CallParts, event: Closed, *, gave_up: bool) -> None:
        """It has ended; `gave_up` if that was because it lost its path for good."""
        values = values_of(collect_stats(parts))
        with self._lock:
            if parts not in self._live:
                return
            del self._live[parts]
            self._sums.add(values)
            self._sums.count("calls_closed", 1, code_label(event.code))
            if gave_up:
                self._sums.count("resumes", 1, "given_up")

    def sample(self) -> None:
        """Look at each call once; to be done each second, if the figures are `wanted`."""
        with self._lock:
            live = list(self._live)
        for parts in live:
            with parts.link.locked() as session:
                rtt, delay, error = session.path(parts.link.now())
                far_level_s = session.far_level(parts.voice_track)
            playout = parts.playout
            with self._lock:
                for name, seconds in (("rtt_seconds", rtt), ("path_delay_seconds", delay), ("path_delay_error_seconds", error)):
                    if seconds is not None:
                        self._observe(name, seconds, "")
                if far_level_s is not None:
                    self._observe("buffer_fill_seconds", far_level_s, "there")
                if playout is not None:
                    self._observe("buffer_fill_seconds", playout.level_units * 0.0025, "here")

    def snapshot(self) -> Values:
        """See `Figures.snapshot`."""
        if self.role == "client":
            self.sample()
        with self._lock:
            live = list(self._live)
        # Not with the lock held: who ends a call holds the call's lock and wants this one.
        stats = {parts: collect_stats(parts) for parts in live}
        values = {parts: values_of(one) for parts, one in stats.items()}
        with self._lock:
            for gone in [parts for parts in values if parts not in self._live]:
                del values[gone], stats[gone]
            found = self._whole(values.values())
            for source in self.sources:
                for (name, label), number in source().items():
                    found.count(name, number, label)
            self._settle(found)
        self._gauges(found, stats)
        return found

    @staticmethod
    def _gauges(found: Values, stats: Mapping[CallParts, CallStats]) -> None:
        detached = sum(parts.link.is_detached for parts in stats)
        found.numbers["calls", "detached"] = detached
        found.numbers["calls", "connected"] = len(stats) - detached
        for what in ("bitrate_bps", "target_bps", "delivered_bps"):
            rates = [getattr(one.sent, what) for one in stats.values()]
            found.numbers["bitrate_bps", what.removesuffix("_bps").replace("bitrate", "codec")] = sum(rates) / max(1, len(rates))
