"""Where received media goes: to a playout, to an ordered reader, or to a bounded store until one of them is there."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple, Protocol

from voicestream.config import UNITS_PER_SECOND
from voicestream.core.recovery.retain import RETURN_TIME
from voicestream.core.timeline import MAX_PTS
from voicestream.media import MediaFrame, SourceKind

__all__ = ["KEPT_UNITS", "Delivery", "LivePlayout", "OrderedSink"]

KEPT_UNITS: Final = 10 * UNITS_PER_SECOND
"""Media kept while nobody listens (10 s); the oldest is dropped and counted."""

FIRST_PATIENCE: Final = 5.0
"""Seconds that an ordered reader waits for the first of what was missed in a break."""

CATCH_UP_PATIENCE: Final = 2.0
"""Seconds that it waits for the rest, from each piece on that comes: the oldest come first, so what comes after a gap does not fill it,
unless it was lost, and the report that tells of that: it is sent again after half a second and two round trips then."""

BARREN_PATIENCE: Final = 0.8
"""The same where nothing came for the gap before either: after a long break much is kept no more, a gap here and there among what came."""

MAX_KEPT: Final = 1000
"""Frames kept while nobody listens."""


STILL_ALIVE: Final = 0.2
"""Seconds between two frames beyond which the path is taken for dead."""

DEAD_PATIENCE: Final = 15.0
"""Seconds that an ordered reader waits while nothing comes at all, at least; as long as the far end keeps what it says, if that is more."""


class LivePlayout(Protocol):
    """What a session needs of a playout; `voicestream.core.playout.Playout` has it."""

    @property
    def level_units(self) -> float: ...
    @property
    def target_units(self) -> float: ...
    @property
    def heard_now(self) -> int: ...
    @property
    def is_exact(self) -> bool: ...
    def insert(self, frame: MediaFrame, now: float, *, kind: SourceKind = SourceKind.AUDIO, send_time: float | None = None) -> None: ...
    def expect_repairs(self, wait: float, *, answered: bool) -> None: ...
    def suppose(self, wait: float) -> None: ...
    def set_ahead(self, from_pts: int, ahead: bool) -> None: ...
    def clear(self, from_pts: int, to_pts: int, number: int) -> int: ...
    def finish(self, pts: int) -> None: ...


class OrderedSink(Protocol):
    """What a session needs of an ordered reader; `voicestream.core.playout.OrderedReader` has it."""

    @property
    def next_pts(self) -> int: ...
    def wait_for(self, answer: float) -> None: ...

    def outlive(self, silence: float) -> None: ...
    def sign_of_life(self, now: float) -> None: ...
    def expect_answer(self, now: float) -> None: ...
    def answered(self, sent_at: float) -> float | None: ...
    def start_at(self, pts: int) -> None: ...
    def insert(self, frame: MediaFrame, now: float) -> None: ...
    def hold_gaps(self, until: float, before_pts: int = MAX_PTS) -> None: ...
    def release_gap(self) -> None: ...
    def narrows_gap(self, pts: int) -> bool: ...
    def clear(self, from_pts: int | None = None, to_pts: int | None = None, number: int | None = None) -> int: ...
    def finish(self, pts: int | None = None) -> None: ...


class _Kept(NamedTuple):
    frame: MediaFrame
    at: float
    kind: SourceKind
    send_time: float | None


class Delivery:
    """Hands media of one track over.

    Attributes:
        playout: The attached playout, if any.
        ordered: The attached ordered reader, if any.
        dropped: Frames dropped because nobody listened for too long.
    """

    __slots__ = (
        "_ahead",
        "_catching_until",
        "_cleared",
        "_dead_patience",
        "_finish_pts",
        "_from_pts",
        "_heard_at",
        "_is_barren",
        "_kept",
        "_kept_units",
        "_missed_to",
        "_patience",
        "_step",
        "dropped",
        "ordered",
        "playout",
    )

    def __init__(self, retain_s: float = 0.0) -> None:
        """`retain_s`: how long the far end keeps what it has said."""
        self._dead_patience = max(DEAD_PATIENCE, retain_s + RETURN_TIME)
        self.playout: LivePlayout | None = None
        self.ordered: OrderedSink | None = None
        self.dropped = 0
        self._kept: deque[_Kept] = deque()
        self._kept_units = 0
        self._ahead: tuple[int, bool] | None = None
        self._cleared: tuple[int, int] | None = None
        self._finish_pts: int | None = None
        self._from_pts: int | None = None
        self._catching_until = 0.0
        self._patience: float | None = None
        self._heard_at = 0.0
        self._step = FIRST_PATIENCE
        self._is_barren = False
        self._missed_to: int | None = 0

    @property
    def attached(self) -> bool:
        """Whether anybody listens."""
        return self.playout is not None or self.ordered is not None

    def insert(
        self, frame: MediaFrame, now: float, kind: SourceKind, send_time: float | None, *, stale: bool = False, unheard: bool = False
    ) -> None:
        """Hand over a frame.

        Args:
            frame: It.
            now: Monotonic seconds.
            kind: How it came.
            send_time: When it left, on this end's clock.
            stale: After a break it is too late for whoever plays in real time.
            unheard: What this end asks for does not arrive at present, so that nothing missing can come.
        """
        if self._missed_to is None and kind is SourceKind.AUDIO:
            self._missed_to = frame.pts
        if self._patience is not None:
            self._wait(self._patience, frame.pts, now, kind, unheard=unheard)
        if self.playout is not None and not (stale and now < self._catching_until):
            self.playout.insert(frame, now, kind=kind, send_time=send_time)
        if self.ordered is not None:
            self.ordered.insert(frame, now)
        if not self.attached:
            self._kept.append(_Kept(frame, now, kind, send_time))
            self._kept_units += frame.units
            while self._kept_units > KEPT_UNITS or len(self._kept) > MAX_KEPT:
                self._kept_units -= self._kept.popleft().frame.units
                self.dropped += 1

    def heard(self, now: float, *, unheard: bool = False) -> None:
        """Something has come from the far end. While that is no media, as behind the end of a track, patience runs out all the same."""
        if self.ordered is not None:
            self.ordered.sign_of_life(now)
            if self._patience is not None:
                self._wait(self._patience, None, now, None, unheard=unheard)

    def start_from(self, pts: int) -> None:
        """The track begins in its midst, where another server has come to: a reader in order waits for what follows that."""
        self._from_pts = pts

    def set_ahead(self, from_pts: int, ahead: bool) -> None:
        """Say how the talkspurt from this pts on is sent."""
        self._ahead = (from_pts, ahead)
        if self.playout is not None:
            self.playout.set_ahead(from_pts, ahead)

    def clear(self, from_pts: int, to_pts: int, number: int) -> int | None:
        """Void the media before `to_pts`; returns the pts that was heard, or else read, if a listener knows it."""
        self._cleared = (to_pts, number)
        kept = [one for one in self._kept if one.frame.pts >= to_pts]
        self._kept_units = sum(one.frame.units for one in kept)
        self._kept = deque(kept)
        heard = None if self.ordered is None else self.ordered.clear(0, to_pts, number)
        return heard if self.playout is None else self.playout.clear(from_pts, to_pts, number)

    def catch_up(self, now: float, longest: float, to_pts: int | None = None) -> None:
        """After a break what is missing comes by and by, oldest first on a resumed session.

        Args:
            now: Monotonic seconds.
            longest: Seconds that it takes at most.
            to_pts: What lies before it is missing because of the break; None on a resumed session, where the next live audio tells.
        """
        if to_pts is None or self._patience is None:
            self._step = CATCH_UP_PATIENCE if to_pts is None else FIRST_PATIENCE
            self._patience = FIRST_PATIENCE
            self._is_barren = False
        else:
            # It broke again while the oldest was on its way, which still comes first.
            self._patience = max(self._patience, self._step)
        self._missed_to = None if to_pts is None else max(self._missed_to or 0, to_pts)
        self._catching_until = max(self._catching_until, now + longest)
        self._heard_at = now
        self._hold(now)

    def nothing_comes(self, now: float) -> None:
        """There is no connection: a reader in order gives nothing up, so that what is missing is asked for on the next one."""
        if self.ordered is not None:
            self.ordered.hold_gaps(now + self._dead_patience)

    @property
    def is_resumed(self) -> bool:
        """Whether the session has been resumed, and no live audio has come since."""
        return self._missed_to is None

    def _hold(self, now: float) -> None:
        if self.ordered is not None:
            self.ordered.hold_gaps(now + self._dead_patience, MAX_PTS if self._missed_to is None else self._missed_to)

    def _wait(self, patience: float, pts: int | None, now: float, kind: SourceKind | None, *, unheard: bool) -> None:
        """Something has come since a break. Time in which nothing comes, or nothing is heard of us, does not count: the path is dead."""
        if unheard:
            self._catching_until += now - self._heard_at
        else:
            patience -= min(now - self._heard_at, STILL_ALIVE)
        self._heard_at = now
        if self._from_pts is not None and not self.attached:
            return  # nobody waits yet; whoever will be attached has missed nothing
        if self.ordered is None or now >= self._catching_until or self._has_all:
            self._patience = None
            if self.ordered is not None:
                self.ordered.release_gap()
            return
        if kind is SourceKind.RETRANSMISSION and pts is not None and self.ordered.narrows_gap(pts):
            patience, self._is_barren = self._step, False
        elif patience <= 0:
            self.ordered.release_gap()
            patience, self._is_barren = BARREN_PATIENCE if self._is_barren else self._step, True
        self._patience = patience
        self._hold(now)

    @property
    def _has_all(self) -> bool:
        """Whether nothing is missing any more of what the break has swallowed; what a clear has voided is not."""
        void_to = 0 if self._cleared is None else self._cleared[0]
        return self._missed_to is not None and max(self.wanted_from, void_to) >= self._missed_to

    def replay(self, frame: MediaFrame, now: float) -> None:
        """Hand over a frame that was delivered before, to those who asked for it."""
        if self.ordered is not None:
            self.ordered.insert(frame, now)

    @property
    def is_live(self) -> bool:
        """Whether there is only one who plays in real time."""
        return self.playout is not None and self.ordered is None

    @property
    def wanted_from(self) -> int:
        """First pts that is of use in order."""
        return 0 if self.ordered is None else self.ordered.next_pts

    def finish(self, pts: int) -> None:
        """No media at or after this pts follows."""
        self._finish_pts = pts
        for sink in (self.playout, self.ordered):
            if sink is not None:
                sink.finish(pts)

    def attach_playout(self, playout: LivePlayout) -> None:
        """Play from now on, in place of a playout attached before; what was kept goes first."""
        self.playout = playout
        if self._cleared is not None:
            playout.clear(0, *self._cleared)
        if self._ahead is not None:
            playout.set_ahead(*self._ahead)
        for one in self._take_kept():
            playout.insert(one.frame, one.at, kind=one.kind, send_time=one.send_time)
        if self._finish_pts is not None:
            playout.finish(self._finish_pts)

    def attach_ordered(self, reader: OrderedSink) -> None:
        """Read in order from now on, in place of a reader attached before; what was kept goes first."""
        self.ordered = reader
        reader.outlive(self._dead_patience)
        if self._from_pts is not None:
            reader.start_at(self._from_pts)
            self._from_pts = None
            if self._patience is not None:
                self._hold(self._heard_at)
        if self._cleared is not None:
            reader.clear(0, *self._cleared)
        for one in self._take_kept():
            reader.insert(one.frame, one.at)
        if self._finish_pts is not None:
            reader.finish(self._finish_pts)

    def _take_kept(self) -> list[_Kept]:
        kept = list(self._kept)
        self._kept.clear()
        self._kept_units = 0
        return kept
