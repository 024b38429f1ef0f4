"""What flows after a break besides live media: what the far end misses, and what this end wants to have once more."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from voicestream.core.allocator import WIRE_OVERHEAD
from voicestream.core.recovery.catchup import CAPACITY_SHARE, CatchUp
from voicestream.core.recovery.retain import RetainedMedia
from voicestream.core.timeline import MAX_PTS, Anchors
from voicestream.media import MediaFrame
from voicestream.session.coded import coded
from voicestream.session.hub import Hub
from voicestream.session.sender import ANCHOR_KEY, Bundle
from voicestream.wire.datagram import HEADER_SIZE
from voicestream.wire.frame_values import AnchorFrame, RetransmissionFrame
from voicestream.wire.frames import frame_size
from voicestream.wire.parameters import Held

__all__ = ["MAX_REACH_UNITS", "Replay", "ReplayWindow"]

MAX_REACH_UNITS: Final = 30000
"""How far behind the present a frame is sent again (75 s): 16 bits of pts name no more than 82 s."""

MAX_FRAMES: Final = 32
"""Frames of one datagram."""

LEAST_RATE_BPS: Final = 4000.0
"""What the past gets where live media takes everything, so that it comes to an end."""

DEAD_PATH_PAUSE: Final = 0.1

QUESTION_HOLDS: Final = 0.25
"""Seconds for which a question shows that the far end hears us, when no report says so yet."""

INTERVAL: Final = 0.04
"""Seconds between two datagrams of owed media, so that each carries several frames."""


class ReplayWindow:
    """Media that this end has had and asked for once more."""

    __slots__ = ("_first", "_seen", "_to")

    def __init__(self) -> None:
        self._first = self._to = 0
        self._seen: set[int] = set()

    def expect(self, to_pts: int, units: int) -> None:
        """The last `units` before `to_pts` were asked for; nothing else is taken from now on."""
        self._first, self._to = max(0, to_pts - units), to_pts
        self._seen.clear()

    def takes(self, pts: int) -> bool:
        """Whether a frame with this pts was asked for; once for each."""
        if not self._first <= pts < self._to or pts in self._seen:
            return False
        self._seen.add(pts)
        return True


class Replay:
    """Sends what is owed after a resume, as datagrams of their own.

    Attributes:
        frames_sent: Frames sent again.
    """

    __slots__ = ("_asked_at", "_hub", "_next_at", "_owed", "frames_sent")

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._owed: dict[int, CatchUp] = {}
        self._next_at = 0.0
        self._asked_at = -math.inf
        self.frames_sent = 0

    def __len__(self) -> int:
        return sum(map(len, self._owed.values())) if self._owed else 0

    def owe(self, held: Held, retained: RetainedMedia, replay_units: int, now: float) -> None:
        """The far end holds this of a track, and wants `replay_units` before it once more; it gets the rest, as far as it was kept."""
        first = max(0, held.next_pts - replay_units)
        frames = [frame for frame in retained.within(first, MAX_PTS) if not _holds(held, frame)]
        newest = frames[-1].pts if frames else 0
        frames = [frame for frame in frames if frame.pts > newest - MAX_REACH_UNITS]
        self._owed.setdefault(held.track, CatchUp()).begin(frames, now)
        self._next_at = now
        self._hub.record(now, "resume:owed", track=held.track, next_pts=held.next_pts, frames=len(frames))

    def owe_more(self, track: int, frames: Iterable[MediaFrame], now: float) -> None:
        """The far end has asked for so much that a break must have swallowed it, on a connection that outlived it."""
        self._owed.setdefault(track, CatchUp()).add(frames, now)
        if now - self._asked_at > QUESTION_HOLDS:
            self._next_at = now
        self._asked_at = now

    def hold(self, now: float) -> None:
        """Nothing leaves for a moment."""
        self._next_at = now + DEAD_PATH_PAUSE

    @property
    def was_used(self) -> bool:
        """Whether anything was ever owed."""
        return bool(self._owed)

    @property
    def is_active(self) -> bool:
        """Whether anything is owed, or on its way."""
        return bool(self._owed) and any(owed.is_busy for owed in self._owed.values())

    def is_busy(self, track: int) -> bool:
        """Whether something is on its way to the far end."""
        return track in self._owed and self._owed[track].is_busy

    def void(self, track: int) -> None:
        """A clear: what was sent on the track is not wanted."""
        if track in self._owed:
            self._owed[track].clear()

    def acked(self, media: Iterable[tuple[int, int]]) -> None:
        """A datagram with this media has arrived."""
        for track, pts in media if self._owed else ():
            if track in self._owed:
                self._owed[track].acked(pts)

    def lost(self, media: Iterable[tuple[int, int]]) -> None:
        """A datagram with this media has not arrived."""
        for track, pts in media if self._owed else ():
            if track in self._owed:
                self._owed[track].lost(pts)

    def bundles(
        self,
        now: float,
        capacity_bps: float,
        live_bps: float,
        anchors: dict[int, Anchors],
        *,
        answered: bool = True,
        rtt: float | None = None,
    ) -> list[Bundle]:
        """Datagrams that leave now.

        Args:
            now: Monotonic seconds.
            capacity_bps: What the path carries.
            live_bps: What live media takes of it.
            answered: Reports come: nothing is sent once more into a path that is dead again. Who asks has heard of us, too.
            rtt: Round trip in seconds, if it is known.
            anchors: Of each track: the far end must know where the present is before it is told of the past.
        """
        found: list[Bundle] = []
        if now < self._next_at or not self.is_active:
            return found
        if not answered and now - self._asked_at > QUESTION_HOLDS:
            self._next_at = now + DEAD_PATH_PAUSE
            return found
        for track, owed in self._owed.items():
            if owed.is_busy:
                spare_bps = max(LEAST_RATE_BPS, capacity_bps - live_bps)
                owed.refill(now, min(capacity_bps, spare_bps / CAPACITY_SHARE) / len(self._owed), rtt)
                while (bundle := self._bundle(owed, anchors[track], track)) is not None:
                    found.append(bundle)
        if found:
            self._next_at = now + INTERVAL
        return found

    def _bundle(self, owed: CatchUp, anchors: Anchors, track: int) -> Bundle | None:
        bundle = Bundle()
        overhead = WIRE_OVERHEAD + HEADER_SIZE
        limit = self._hub.peer.max_datagram_size
        while (media := owed.peek(overhead)) is not None:
            frame = coded(RetransmissionFrame, media)
            size = frame_size(frame)
            if bundle.media and bundle.size + size > limit:
                break
            owed.pop(overhead)
            overhead = 0
            bundle.frames.append(frame)
            bundle.size += size
            bundle.media.append((media.track, media.pts))
            self.frames_sent += 1
            if len(bundle.media) == MAX_FRAMES:
                break
        if not bundle.media:
            return None
        if anchors.current is not None:  # VS-11.3-12
            anchor, version = anchors.current
            frame_of = AnchorFrame(track=track, pts=anchor.pts, ahead=anchor.ahead)
            if bundle.size + frame_size(frame_of) <= limit:
                bundle.frames.insert(0, frame_of)
                bundle.size += frame_size(frame_of)
                bundle.tokens.append(((ANCHOR_KEY, track), version))
        return bundle

    def next_timer(self) -> float | None:
        """When the next datagram may leave, or None."""
        if not self._owed:
            return None
        timers = [timer for owed in self._owed.values() if (timer := owed.next_timer(WIRE_OVERHEAD + HEADER_SIZE)) is not None]
        return max(self._next_at, min(timers)) if timers else None


def _holds(held: Held, frame: MediaFrame) -> bool:
    return any(first <= frame.pts < first + units for first, units in held.ranges)
