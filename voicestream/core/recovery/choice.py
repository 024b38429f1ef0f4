"""Which tools against loss: what each would leave unmended, and the least redundancy that leaves little enough."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Final

__all__ = ["BURSTS", "COPY_BPS", "ENOUGH", "INBAND_PART", "Choice", "LossMemory", "Tools", "choose"]

ENOUGH: Final = 0.005
"""Share of frames concealed from which the codec's in-band copies are worth their bits."""

LITTLE: Final = 0.001
"""Share of frames concealed from which more redundancy is worth its bytes."""

SLOW_RTT: Final = 0.07
QUICK_LOSS: Final = 0.01
QUICK: Final = 0.07
"""From such a round trip and so much loss on, a repair within 70 ms is worth its bytes: a retransmission takes longer."""

SHARE_STEP: Final = 0.05
COPY_BPS: Final = 8000
"""Bitrate of the low-rate copies: the least at which wide-band speech still sounds like itself."""

FRAME_BYTES: Final = 73
"""Bytes of a datagram with one frame, headers and an acknowledgement included, without the coded payload."""

REPAIR_BYTES: Final = 14
LITTLE_REPAIR: Final = 0.04
"""Repairs for each frame that are too few to mend anything."""

COPY_HEADER: Final = 6
MARGIN: Final = 0.01
"""Seconds that must be left before the playout time."""

REPAIR_MARGIN: Final = 0.03
"""The same for repairs, of which the last in time is as often as not the one that is lost or does not suffice."""

RISE: Final = 1.0
RELEASE: Final = 15.0
"""Time constants in seconds with which losses are believed and forgotten: a burst is not yet a habit, and the next is seldom far."""

UNKNOWN_LOSS: Final = 0.02
"""Loss to be ready for in the beginning: what is lost before anything is known of the path is not mended."""

UNKNOWN_FOR: Final = 6.0
"""Seconds until it is known that nothing gets lost."""

BURSTS: Final = 1.5
"""Mean of datagrams lost together from which what is lost is sent again three times instead of twice."""

LONGEST_BURST: Final = 16
COPY_WORTH: Final = 0.25
"""What a frame played from its copy counts as, against a concealed one."""

DEAR_LOSS: Final = 0.14
DEAR_BPS: Final = 40000
"""Loss from which answers take all that redundancy may, and bits of the codec then: smaller frames are answered more often."""

INBAND_PART: Final = 0.3
"""Part of a frame's bytes that the codec's in-band copy of the frame before takes under a low hint: .26 at 36 kbps, .32 at 24."""

INBAND_USE: Final = 0.85
"""Part of the share that they may take by the mean frame: the louder ones are larger."""

INBAND_LEAST: Final = 0.4
"""Part of the frames that must have copies for them to be worth anything."""

INBAND_BPS: Final = (36000, 30000)
INBAND_FRAME_MS: Final = 20
INBAND_LEAST_BPS: Final = 14000
"""Bitrates and frames of the codec with which its in-band copies are worth their bits: with more there soon are none, and with
fewer Opus codes no more than 8 kHz, which costs as much as it brings."""

INBAND_WORTH: Final = 0.1
INBAND_QUIET: Final = 0.35
INBAND_PRICE: Final = 0.004
"""What a frame played from its in-band copy counts as, what one of the quieter ones that have none, and what having them costs in the
quality of all frames: 4.2 for 4.5 by PESQ."""

INBAND_RISE: Final = 0.8
INBAND_STAY: Final = 1.4
"""Parts of what the other tools leave that in-band copies must fall below to be chosen, and may rise to until they are given up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tools:
    """What a choice may use.

    Attributes:
        share: Part of the wire bytes that redundancy takes in any case.
        most: What it may take where too much would be concealed otherwise.
        copies: The source makes low-rate copies.
        inband: The codec can make in-band copies.
        inband_before: It does already, because that was the choice.
    """

    share: float
    most: float
    copies: bool = True
    inband: bool = False
    inband_before: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """Redundancy for the present.

    Attributes:
        share: Part of the wire bytes that it may take, retransmissions beyond the loss rate included.
        repair_interval: Frames from one repair to the next; 0 for none.
        copy_bps: Bitrate of low-rate copies; 0 for none.
        copy_offset_frames: Frames by which a copy follows its frame.
        retransmit: Frames sent again come in time.
        most_bps: The codec is to have no more than so many bits, because that is worth more to redundancy; 0 for no such bound.
        inband: The codec is to make in-band copies: they do better than the others.
        inband_part: Part of the frames, the louder ones, that have copies.
        concealed: Share of frames that will be concealed all the same, or of what is heard as if they were.
    """

    share: float
    repair_interval: int = 0
    copy_bps: int = 0
    copy_offset_frames: int = 0
    retransmit: bool = True
    most_bps: int = 0
    inband: bool = False
    inband_part: float = 1.0
    concealed: float = 0.0


class LossMemory:
    """Loss as it has been lately: it falls more slowly than it rises, so that redundancy outlasts a lull.

    Attributes:
        share: Share of datagrams lost.
        burst: Mean length of a loss.
        possible: Share to be ready for: in the beginning of a long path nobody knows.
    """

    __slots__ = ("_at", "_since", "burst", "possible", "share")

    def __init__(self) -> None:
        self._at = -math.inf
        self._since: float | None = None
        self.share = 0.0
        self.burst = 1.0
        self.possible = 0.0

    def update(self, now: float, share: float, burst: float, *, far: bool = False) -> None:
        """Take the present pattern; `far`: no answer comes in time, so that what is lost unprepared is lost."""
        self._since = now if self._since is None else self._since
        elapsed, self._at = max(0.0, now - self._at), now
        self.share = _follow(self.share, share, elapsed)
        self.burst = _follow(self.burst, burst if share > 0 else 1.0, elapsed)
        self.possible = max(self.share, UNKNOWN_LOSS) if far and now - self._since < UNKNOWN_FOR else self.share


def _follow(old: float, new: float, elapsed: float) -> float:
    return new + (old - new) * math.exp(-elapsed / (RISE if new > old else RELEASE))


def choose(tools: Tools, *, loss: float, burst: float, rtt: float, lookahead: float, frame_ms: int, bitrate_bps: int) -> Choice:
    """Choose.

    Args:
        tools: What may be used.
        loss: Share of datagrams lost.
        burst: Mean number of datagrams lost together.
        rtt: Round trip in seconds.
        lookahead: Seconds that the far end's playout waits at most.
        frame_ms: Length of a datagram's media.
        bitrate_bps: Of the codec.
    """
    # Coarse values, so that the same question comes again and has its answer ready.
    path = round(200 * loss), round(2 * burst), round(100 * rtt), round(100 * lookahead), frame_ms, bitrate_bps // 4000
    choice = _choose(tools.share, tools.most, tools.copies, *path)
    if choice.retransmit and loss > DEAR_LOSS:
        return replace(choice, most_bps=DEAR_BPS)
    if not tools.inband or choice.retransmit or choice.concealed <= ENOUGH or frame_ms > INBAND_FRAME_MS or bitrate_bps < INBAND_LEAST_BPS:
        return choice
    inband = _inband(max(tools.share, tools.most), *path)
    factor = INBAND_STAY if tools.inband_before else INBAND_RISE
    return inband if inband is not None and inband.concealed < factor * choice.concealed else choice


@functools.lru_cache(maxsize=512)
def _inband(most: float, loss: int, burst: int, rtt: int, lookahead: int, frame_ms: int, bitrate: int) -> Choice | None:
    """In-band copies, and repairs for what they leave of the share. None where it is not even enough for the copies."""
    for bps in INBAND_BPS:
        path = _path(loss, burst, rtt, lookahead, frame_ms, min(bitrate, bps // 4000))
        if (choice := path.inband_option(most, bps)) is not None and (choice.inband_part == 1.0 or bps == INBAND_BPS[-1]):
            return choice
    return None


def _path(loss: int, burst: int, rtt: int, lookahead: int, frame_ms: int, bitrate: int) -> _Path:
    payload = (4000 * bitrate + 2000) * frame_ms / 8000
    return _Path(loss / 200, max(1.0, burst / 2), rtt / 100, lookahead / 100, frame_ms / 1000, payload)


@functools.lru_cache(maxsize=512)
def _choose(
    least_share: float, most: float, copies: bool, loss: int, burst: int, rtt: int, lookahead: int, frame_ms: int, bitrate: int
) -> Choice:
    path = _path(loss, burst, rtt, lookahead, frame_ms, bitrate)
    retransmit = path.later_frames > 0
    quick = QUICK if rtt / 100 > SLOW_RTT and retransmit and loss / 200 >= QUICK_LOSS else math.inf
    best = path.option(least_share, 0)
    least = math.inf
    share = least_share
    while share and loss:
        for copy_bps in (0, COPY_BPS) if copies and path.frames >= 2 and path.later_frames < 2 else (0,):
            option = path.option(share, copy_bps)
            if option is None:
                continue
            sufficient = option.concealed <= LITTLE and option.repair_interval * frame_ms <= 1000 * quick
            if sufficient or best is None or option.concealed < 0.9 * least:
                best, least = option, option.concealed
            if sufficient:
                return option
        if share >= most:
            break
        share = min(most, round(share + SHARE_STEP, 3))
    return best or Choice(share=least_share, retransmit=retransmit, concealed=path.loss)


class _Path:
    """What the tools achieve under one pattern of loss."""

    def __init__(self, loss: float, burst: float, rtt: float, lookahead: float, frame: float, payload: float) -> None:
        self.loss = loss
        self.burst = burst
        self._going_on = 1 - 1 / burst
        self.frames = max(0, int((lookahead - REPAIR_MARGIN) / frame + 1e-6))
        self.later_frames = max(0, int((lookahead - rtt - MARGIN) / frame + 1e-6))
        self._frame = frame
        self._payload = payload
        self._rtt = rtt

    def option(self, share: float, copy_bps: int) -> Choice | None:
        """What so much redundancy would leave; None when the copies alone would take more."""
        room = share / (1 - share) * (FRAME_BYTES + self._payload) if share < 1 else 0.0
        offset = min(self.frames, max(2, self._offset())) if copy_bps else 0
        if copy_bps:
            room -= copy_bps * self._frame / 8 + COPY_HEADER
            if room < 0:
                return None
        repairs = min(1.0, room / (self._payload + REPAIR_BYTES))
        left = self.loss * self._not_resent() * self._not_repaired(repairs)
        if copy_bps:
            missed = min(1.0, self._going_on**offset + self.loss)
            left *= missed + COPY_WORTH * (1 - missed)
        return Choice(
            share=share,
            repair_interval=max(1, round(1 / repairs)) if repairs > 0.02 else 0,
            copy_bps=copy_bps,
            copy_offset_frames=offset,
            retransmit=self.later_frames > 0,
            concealed=left,
        )

    def inband_option(self, share: float, bps: int) -> Choice | None:
        """In-band copies with repairs beside them; None when the copies of too few frames would take it all."""
        copies, plain = INBAND_PART * self._payload, FRAME_BYTES + self._payload
        part = min(1.0, round(INBAND_USE * share * plain / copies, 2))
        if part < INBAND_LEAST:
            return None
        repairs = (INBAND_USE * share * plain - part * copies) / (1 - share) / (self._payload + REPAIR_BYTES)
        repairs = min(1.0, repairs) if repairs > LITTLE_REPAIR else 0.0
        alone = max(self.loss, self._going_on)
        heard = part * (alone + INBAND_WORTH * (1 - alone)) + (1 - part) * INBAND_QUIET
        return Choice(
            share=share,
            repair_interval=max(1, round(1 / repairs)) if repairs else 0,
            retransmit=self.later_frames > 0,
            most_bps=bps,
            inband=True,
            inband_part=part,
            concealed=self.loss * self._not_repaired(repairs) * heard + INBAND_PRICE,
        )

    def _offset(self) -> int:
        """Frames from a frame to its copy: as far from the burst as the far end waits. Where answers come in time it waits for them."""
        if self.later_frames:
            return int((self.burst * self._frame + self._rtt) / self._frame + 1e-6)
        return round(2 * self.burst)

    def _not_resent(self) -> float:
        """Share of the lost frames whose retransmission does not come, or too late."""
        if not self.later_frames:
            return 1.0
        # What is overdue is asked for though the burst goes on, and so often the answer comes until it is too late.
        answers = min(2 if self.burst < BURSTS else 3, self.later_frames)
        last = round(self._rtt / self._frame) + answers
        unanswered = max(self.loss**answers, self._going_on**last)
        return 1 - (1 - unanswered) * (1 - self.loss * max(self.loss, self._going_on))  # the question is sent twice

    def _not_repaired(self, repairs: float) -> float:
        """Share of the lost frames that repairs, so many a frame, leave."""
        if not repairs or not self.loss:
            return 1.0
        others = 1.6 * self.frames * self.loss / self.burst  # other losses among the frames that the same repairs cover
        left = 0.0
        for length in range(1, LONGEST_BURST + 1):
            weight = length * self._going_on ** (length - 1) / self.burst**2
            equations = repairs * max(0, self.frames - length) * (1 - self.loss)
            chance = math.exp(-others)
            for number in range(4):
                left += weight * chance * min(1.0, max(0.0, length + number * self.burst - equations))
                chance *= others / (number + 1)
        return min(1.0, left)
