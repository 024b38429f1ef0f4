"""The joint choice of bitrate, frame length, bundling and redundancy. The only place with that policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from voicestream.config import FRAME_MS_CHOICES, SessionConfig

__all__ = ["DATAGRAM_BYTES", "WIRE_OVERHEAD", "SendPlan", "allocate", "wire_rate_bps"]

WIRE_OVERHEAD: Final = 58
"""Bytes of IPv4, UDP and QUIC around one datagram in a packet of its own."""

DATAGRAM_BYTES: Final = 7
"""VoiceStream's own bytes of a datagram with one audio frame."""

BUNDLED_BYTES: Final = 4
"""VoiceStream's own bytes of each further audio frame of a datagram."""

SPEECH_FLOOR_BPS: Final = 16000
"""Below this a longer frame, which saves headers, is worth more than its delay costs."""

MAX_BUNDLE_MS: Final = 120  # VS-4.2-4


@dataclass(frozen=True, kw_only=True, slots=True)
class SendPlan:
    """How a session sends.

    Attributes:
        bitrate_bps: Of the codec.
        frame_ms: Length of a frame.
        bundle: Consecutive frames of a track in one datagram.
        repair_interval: Frames a repair frame covers; 0 for none.
        copy_bps: Bitrate of low-rate copies; 0 for none.
        inband_fec_percent: Loss that the codec's own FEC is told of; 0 turns it off.
    """

    bitrate_bps: int
    frame_ms: int
    bundle: int = 1
    repair_interval: int = 0
    copy_bps: int = 0
    inband_fec_percent: int = 0


def wire_rate_bps(plan: SendPlan) -> float:
    """Bits per second that the audio of one track takes on the wire, headers included."""
    datagram_ms = plan.frame_ms * plan.bundle
    own = WIRE_OVERHEAD + DATAGRAM_BYTES + BUNDLED_BYTES * (plan.bundle - 1)
    return plan.bitrate_bps + own * 8 * 1000 / datagram_ms


def allocate(config: SessionConfig, *, wire_bps: float | None = None) -> SendPlan:
    """Choose the plan.

    Args:
        config: What the application wants and allows.
        wire_bps: Bits per second on the wire that may be used, headers included; None when no bound is known.
    """
    rate = config.rate
    wanted = min(max(config.bitrate_bps, rate.min_bitrate_bps), rate.max_bitrate_bps)
    if wire_bps is None:
        return SendPlan(bitrate_bps=wanted, frame_ms=config.frame_ms)
    worth = min(wanted, max(SPEECH_FLOOR_BPS, rate.min_bitrate_bps))
    plan = SendPlan(bitrate_bps=rate.min_bitrate_bps, frame_ms=config.frame_ms)
    for frame_ms, bundle in _steps(config.frame_ms):
        headers = wire_rate_bps(SendPlan(bitrate_bps=0, frame_ms=frame_ms, bundle=bundle))
        bitrate = int(min(wanted, wire_bps - headers))
        plan = SendPlan(bitrate_bps=max(bitrate, rate.min_bitrate_bps), frame_ms=frame_ms, bundle=bundle)
        if bitrate >= worth:
            break
    return plan


def _steps(frame_ms: int) -> list[tuple[int, int]]:
    """(frame_ms, bundle) from least delay to least overhead."""
    longer = [choice for choice in FRAME_MS_CHOICES if choice >= frame_ms]
    return [*((choice, 1) for choice in longer), (longer[-1], MAX_BUNDLE_MS // longer[-1])]
