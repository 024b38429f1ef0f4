"""Barge-ins at random in virtual time, and how soon and how exactly they work::

    python -m voicestream.testing.barge_in --trials 200 --seed 1

A client listens on a simulated device and interrupts at random moments; the server talks, ahead of time or live, stops, and begins a
reply. Every other interruption comes from the server, which takes its words back. The calls differ in round trip (20 to 200 ms),
loss, jitter and order of arrival. Measured are, from the moment of each clear:

* samples of old speech that the device was given afterwards;
* when the last datagram with old speech left the far end, beyond the time that the clear needed to get there;
* what either end was told of the heard position, beside the device's own count;
* when the first sample of the reply was played, beyond the time that its datagram needed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from voicestream import events
from voicestream.config import PTS_UNIT_MS
from voicestream.testing.endpoint_sim import EndpointWorld
from voicestream.testing.measure import Samples
from voicestream.testing.profile import LinkProfile
from voicestream.testing.session_sim import SessionCall
from voicestream.testing.side import CallSide
from voicestream.testing.sim import Simulation
from voicestream.wire.datagram import decode_datagram
from voicestream.wire.frame_values import AudioFrame, CopyFrame, RepairFrame, RetransmissionFrame
from voicestream.wire.sequence import unwrap

__all__ = ["BargeIns", "Figures", "main"]

PER_CALL: Final = 10
UNIT_S: Final = PTS_UNIT_MS / 1000
SAMPLES_PER_UNIT: Final = 120
BLOCK_S: Final = 0.02


class _Tap:
    """A session whose datagrams are looked at as they leave."""

    def __init__(self, session: Any, sim: Simulation) -> None:
        self._session = session
        self._sim = sim
        self.sent: list[tuple[float, bytes]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def datagrams_to_send(self, now: float) -> list[bytes]:
        datagrams: list[bytes] = self._session.datagrams_to_send(now)
        self.sent += [(now, data) for data in datagrams]
        return datagrams

    def last_old(self, number: int, to_pts: int) -> float | None:
        """When the last datagram left that carried speech from before the clear of this number."""
        return max((at for at, data in self.sent if _is_old(data, number, to_pts)), default=None)


def _is_old(data: bytes, number: int, to_pts: int) -> bool:
    for frame in decode_datagram(data).frames:
        if isinstance(frame, AudioFrame | RetransmissionFrame | CopyFrame):
            if frame.clear_number != number & 3 or unwrap(frame.pts, to_pts) < to_pts:
                return True
        elif isinstance(frame, RepairFrame) and unwrap(frame.newest_pts, to_pts) < to_pts:
            return True
    return False


@dataclass(slots=True)
class Figures:
    """What was measured, one number a barge-in.

    Attributes:
        old_samples: Samples of old speech (at 48 kHz) that the device was given after the clear.
        last_old_ms: From the clear to the last old datagram of the far end, without the way there (the link's delay); the listener's
            clears only. Negative where the last one had left before.
        heard_error_ms: What the listener's own clear told it, against the device's own count.
        told_error_ms: What the talker was told, whoever cleared, against the same.
        reply_ms: From the first datagram of a reply sent ahead to its first sample on the device, without the way.
        unconfirmed: Clears that were never confirmed.
    """

    old_samples: Samples = field(default_factory=Samples)
    last_old_ms: Samples = field(default_factory=Samples)
    heard_error_ms: Samples = field(default_factory=Samples)
    told_error_ms: Samples = field(default_factory=Samples)
    reply_ms: Samples = field(default_factory=Samples)
    unconfirmed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Median, 95th percentile and the largest of each, as JSON values."""
        numbers = {
            name: {"p50": _round(one.percentile(50)), "p95": _round(one.percentile(95)), "max": _round(one.percentile(100)), "n": len(one)}
            for name in ("old_samples", "last_old_ms", "heard_error_ms", "told_error_ms", "reply_ms")
            if len(one := getattr(self, name))
        }
        return {**numbers, "unconfirmed": self.unconfirmed}


class BargeIns:
    """One call with interruptions.

    Args:
        seed: Of everything.
        depth: 1 for sessions alone, 2 with QUIC.
        figures: Takes what is measured.
        profile: The path both ways; drawn by the seed if None.
        ahead: The server talks ahead of time; drawn by the seed if None.
    """

    def __init__(
        self, seed: int, *, depth: int = 2, figures: Figures, profile: LinkProfile | None = None, ahead: bool | None = None
    ) -> None:
        self.rng = rng = random.Random(f"barge-in/{seed}")
        drawn = LinkProfile(
            delay_ms=rng.uniform(10, 100),
            jitter_ms=rng.choice((0.0, 5.0, 15.0)),
            loss=rng.choice((0.0, 0.01, 0.03)),
            reorder=rng.random() < 0.5,
        )
        self.profile = profile or drawn
        self.ahead = rng.random() < 0.7 if ahead is None else ahead
        self.figures = figures
        self.listener, self.talker = self._sides(seed, depth)
        self.sim = self.listener.sim
        self.device = self.listener.listen(phase_s=rng.uniform(0, BLOCK_S), block_units=rng.choice((3, 4, 8)))
        self.playout = self.listener.devices[0][1]
        self._truths: dict[int, tuple[float, float]] = {}
        self._given_at = 0.0
        self.listener.on_event.append(self._note_own)
        if self.ahead:
            self.voice = self.talker.synthesiser()
            self.voice.say(60)
        else:
            self.talker.speak()

    def _sides(self, seed: int, depth: int) -> tuple[CallSide, CallSide]:
        if depth == 1:
            call = SessionCall(self.profile, seed=seed)
            call.open()
            peer = call.server
            self.tap = _Tap(peer.session, call.sim)
            peer.session = self.tap  # type: ignore[assignment]
            return call.client, peer
        world = EndpointWorld(seed=seed)
        client = world.client(self.profile)
        world.open()
        side = world.server.sides[0]
        self.tap = _Tap(side.session, world.sim)
        side.connection.adopt(self.tap)
        return client, side

    def run(self, count: int) -> None:
        """`count` interruptions."""
        self._pass(1.0)
        for number in range(count):
            self._pass(self.rng.uniform(0.3, 1.5))
            self.tap.sent.clear()
            if number % 2:
                self._taken_back()
            else:
                self._interrupted()

    def _pass(self, seconds: float) -> None:
        self.sim.run(self.sim.now + seconds)

    def _note_own(self, event: events.Event) -> None:
        """The talker's clear has come: the device's own count at this moment is the truth."""
        if isinstance(event, events.RemoteCleared):
            self._truths[event.number] = self.device.own_count()
            self._given_at = self.device.given_units

    def _interrupted(self) -> None:
        """The listener's user begins to speak."""
        listener, talker, figures = self.listener, self.talker, self.figures
        at, truth, given = self.sim.now, self.device.own_count(), self.device.given_units
        figures.heard_error_ms.add(_error_ms(self.playout.heard_now, truth))
        number = listener.session.clear(at, outgoing=False)
        listener.flush()
        self._pass(self._patience)
        asked = [event for _, event in talker.seen(events.ClearRequested) if event.number == number]
        self.sim.check(len(asked) == 1, f"clear {number} was asked for {len(asked)} times")
        last = self.tap.last_old(number, asked[0].to_pts)
        figures.last_old_ms.add(((last if last is not None else at) - at) * 1e3 - self.profile.delay_ms)
        self._confirmed(number, truth)
        self._old(given, asked[0].to_pts)
        self._reply(asked[0].to_pts)

    def _taken_back(self) -> None:
        """The talker's words have become wrong."""
        talker = self.talker
        if self.ahead:
            self.voice.be_silent()
        number = talker.session.clear(self.sim.now, outgoing=True)
        talker.flush()
        self._pass(self._patience)
        truth = self._truths.get(number)
        if truth is None:
            self.sim.fail(f"clear {number} never came")
        self._confirmed(number, truth)
        to_pts = self.listener.session.receivers[0].clears.to_pts
        self._old(self._given_at, to_pts)
        self._reply(to_pts)

    @property
    def _patience(self) -> float:
        return 0.6 + 4 * self.profile.delay_ms / 1e3

    def _confirmed(self, number: int, truth: tuple[float, float]) -> None:
        told = [event for _, event in self.talker.seen(events.Cleared) if event.number == number]
        if not told:
            self.figures.unconfirmed += 1
            return
        self.figures.told_error_ms.add(_error_ms(told[0].heard_pts, truth))

    def _old(self, given: float, to_pts: int) -> None:
        """Count what the device was given of the old after `given` units."""
        old = 0.0
        for entry in reversed(self.device.played):
            end = entry.position + entry.made_units
            if end <= given:
                break
            if entry.frame.pts < to_pts and entry.frame.pts not in self.device.cut_short:
                old += end - max(given, entry.position)
        self.figures.old_samples.add(old * SAMPLES_PER_UNIT)

    def _reply(self, to_pts: int) -> None:
        """What is said after the clear is heard at once."""
        if self.ahead:
            self.voice.say(60)
        self._pass(self._patience)
        sent = [(frame.at, pts) for pts, frame in self.talker.talkers[0].sent.items() if pts >= to_pts]
        played = {entry.frame.pts: entry.at for entry in self.device.played if entry.frame.pts >= to_pts}
        self.sim.check(bool(played), f"nothing of the reply from pts {to_pts} on was played")
        if self.ahead:
            self.figures.reply_ms.add((min(played.values()) - min(sent)[0]) * 1e3 - self.profile.delay_ms)


def _error_ms(told: float, truth: tuple[float, float]) -> float:
    least, most = truth
    return max(0.0, least - told, told - most) * PTS_UNIT_MS


def _round(value: float) -> float:
    return round(value, 2)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m voicestream.testing.barge_in", description="Barge-ins at random in virtual time.")
    parser.add_argument("--trials", type=int, default=200, help="interruptions (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of everything (default: %(default)s)")
    parser.add_argument("--depth", type=int, choices=(1, 2), default=2, help="1: sessions alone; 2: with QUIC (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    figures = Figures()
    for call in range(-(-options.trials // PER_CALL)):
        BargeIns(options.seed * 10_000 + call, depth=options.depth, figures=figures).run(min(PER_CALL, options.trials - call * PER_CALL))
    numbers = figures.to_dict()
    if options.json:
        print(json.dumps(numbers, indent=2))
        return 0
    print(f"{options.trials} barge-ins, seed {options.seed}, depth {options.depth}; half of them by the listener")
    print(f"{'':52}{'P50':>9}{'P95':>9}{'max':>9}")
    for name, words in _WORDS.items():
        one = numbers.get(name)
        if one is None:
            continue
        print(f"{words:52}{one['p50']:9.2f}{one['p95']:9.2f}{one['max']:9.2f}")
    print(f"not confirmed: {numbers['unconfirmed']}")
    return 0


_WORDS: Final = {
    "old_samples": "old samples played after the clear",
    "last_old_ms": "last old datagram, after RTT/2, ms",
    "heard_error_ms": "heard position at the listener, error in ms",
    "told_error_ms": "heard position told to the talker, error in ms",
    "reply_ms": "first sample of a reply sent ahead, after RTT/2, ms",
}


if __name__ == "__main__":
    sys.exit(main())
