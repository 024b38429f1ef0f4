"""Keeps the send plan and says when it changes. What to choose is the allocator's business alone."""

from __future__ import annotations

from voicestream.core.allocator import SendPlan, allocate
from voicestream.events import PlanChanged
from voicestream.session.hub import Hub

__all__ = ["Planner"]


class Planner:
    """The plan in force.

    Attributes:
        plan: How the session sends. The application's codec begins with what the configuration says.
    """

    __slots__ = ("_hub", "plan")

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.plan: SendPlan = allocate(hub.config)

    def update(self, now: float) -> None:
        """Choose anew after something has changed that the choice depends on."""
        plan = allocate(self._hub.config, wire_bps=self._hub.peer.max_rate_bps)
        if plan == self.plan:
            return
        self.plan = plan
        self._hub.record(now, "plan:changed", bitrate_bps=plan.bitrate_bps, frame_ms=plan.frame_ms, bundle=plan.bundle)
        self._hub.events.put(
            PlanChanged(
                bitrate_bps=plan.bitrate_bps,
                frame_ms=plan.frame_ms,
                bundle=plan.bundle,
                inband_fec_loss_percent=plan.inband_fec_percent,
            )
        )
