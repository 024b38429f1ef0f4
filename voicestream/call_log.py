"""A call in the log: one line when it opens, one when it closes. No token, no audio, no content of events."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Literal

from voicestream.call_options import CallInfo, CallOptions
from voicestream.call_stats import playout_stats
from voicestream.codepoints import error_name
from voicestream.observe import line

if TYPE_CHECKING:
    from voicestream.call_parts import CallParts
    from voicestream.events import Closed

__all__ = ["Journal"]

logger: Final = logging.getLogger("voicestream")


class Journal:
    """Writes the two lines of one call.

    Args:
        info: What is known of it.
        role: Which end this is.
        options: What it was opened with.
    """

    __slots__ = ("_role", "_session")

    def __init__(self, info: CallInfo, role: Literal["client", "server"], options: CallOptions) -> None:
        self._role = role
        self._session = info.session_id.hex()
        host, port = info.remote_address[:2]
        logger.info(
            "%s",
            line(
                "call_opened",
                session=self._session,
                role=role,
                peer=f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
                # A query may hold what is nobody's business.
                path=info.path.partition("?")[0],
                sample_rate_hz=options.audio.sample_rate_hz,
                channels=options.audio.channels,
                bitrate_bps=options.session.bitrate_bps,
                frame_ms=options.session.frame_ms,
                lookahead_ms=options.session.playout.lookahead_ms,
            ),
        )

    def closed(self, parts: CallParts, event: Closed) -> None:
        """The call is over."""
        if not logger.isEnabledFor(logging.INFO):
            return
        with parts.link.locked() as session:
            now = parts.link.now()
            numbers = session.stats(now)
            playout = None if parts.playout is None else playout_stats(parts.playout)
        tracks, recovery = numbers.tracks, numbers.recovery
        logger.info(
            "%s",
            line(
                "call_closed",
                session=self._session,
                role=self._role,
                code=error_name(event.code),
                by="far_end" if event.remote else "this_end",
                reason=event.reason or None,
                duration_s=parts.duration(now),
                frames_sent=sum(track.frames_sent for track in tracks),
                frames_sent_lost=sum(track.frames_lost for track in tracks),
                frames_dropped=sum(track.frames_expired + track.frames_overflowed for track in tracks),
                frames_received=sum(track.frames_received for track in tracks),
                mended_by_retransmission=sum(track.frames_retransmitted for track in tracks),
                mended_by_repair=recovery.frames_repaired,
                given_up=recovery.frames_given_up,
                frames_concealed=None if playout is None else playout.frames_concealed,
                concealed_ms=None if playout is None else playout.concealed_ms,
                bytes_sent=numbers.bytes_sent,
                bytes_received=numbers.bytes_received,
                redundancy_share=f"{recovery.redundancy_share:.3f}",
                resumes=numbers.resumes,
                rtt_ms=numbers.rtt_ms,
                mouth_to_ear_p95_ms=numbers.latency.mouth_to_ear.p95_ms,
                turn_p95_ms=(numbers.latency.answer if self._role == "server" else numbers.latency.turn).p95_ms,
                loss_share=f"{numbers.loss_share:.4f}",
            ),
        )
