"""What mends the losses: a table by tool, and the bars of recovery, in virtual time.

    python -m voicestream.testing.recovery [--seconds 60] [--seeds 1-2] [--bars-only]

Whole sessions without QUIC; one side speaks by its plan, the other plays. Frames are compared by the hash of what was played.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from voicestream.config import SessionConfig
from voicestream.events import PlanChanged
from voicestream.media import SourceKind
from voicestream.testing.device import SimulatedDevice
from voicestream.testing.loss import BurstLoss
from voicestream.testing.measure import Samples
from voicestream.testing.profile import LinkProfile
from voicestream.testing.session_sim import SessionCall
from voicestream.testing.tap import RetransmissionsOnly, TappedPlayout

__all__ = ["Outcome", "main", "measure"]

RTTS_MS = (20, 60, 120, 200)
LOSSES = (0.01, 0.05, 0.10)
BURST = 3.0


@dataclass(kw_only=True)
class Outcome:
    """What became of the frames of some calls.

    Attributes:
        frames: Frames spoken.
        lost: Frames that did not come the plain way.
        mended: Lost frames by the tool that brought what was played: "resent", "repair", "copy" or "in-band".
        concealed: Frames for which nothing was played.
        wrong: Frames played with other bytes than were sent (must be 0).
        spent: Bytes of redundancy by tool, and of the wire.
        recovery_ms: From when a lost frame would have come to when it came.
        delay_ms: From the end of a frame's capture to its playing.
    """

    frames: int = 0
    lost: int = 0
    mended: Counter[str] = field(default_factory=Counter)
    concealed: int = 0
    wrong: int = 0
    spent: Counter[str] = field(default_factory=Counter)
    recovery_ms: Samples = field(default_factory=Samples)
    delay_ms: Samples = field(default_factory=Samples)

    @property
    def redundancy_share(self) -> float:
        """Redundancy as a part of the bytes on the wire."""
        return sum(self.spent[name] for name in ("repair", "retransmission", "copy", "inband", "pair")) / max(1, self.spent["wire"])

    @property
    def concealed_share(self) -> float:
        """Concealed frames as a part of all."""
        return self.concealed / max(1, self.frames)


def measure(
    rtt_ms: float, loss: float, burst: float = 1.0, *, seeds: Iterable[int] = (1,), seconds: float = 60.0, bare: bool = False
) -> Outcome:
    """Let one side talk to the other over a lossy path; both directions lose. `bare`: with retransmissions alone."""
    outcome = Outcome()
    pattern = BurstLoss(loss=loss, burst=burst) if burst > 1 and loss else None
    profile = LinkProfile(delay_ms=rtt_ms / 2, loss=0.0 if pattern else loss, burst_loss=pattern)
    for seed in seeds:
        call = SessionCall(profile, seed=seed)
        session = call.client.session
        if bare:
            session._planner.allocator = RetransmissionsOnly(SessionConfig())
        call.open()
        tap, server = TappedPlayout(), call.server
        server.session.receivers[0].attach_playout(tap)
        device = SimulatedDevice(call.sim, tap, on_block=server.reporter(0), start=call.sim.now, name="server/0/device")
        server.devices[0] = (device, tap)
        call.client.speak(stop=call.sim.now + seconds, follow=True)
        call.run(seconds + 2)
        _account(outcome, call, tap, rtt_ms / 2000)
    return outcome


def _account(outcome: Outcome, call: SessionCall, tap: TappedPlayout, way_s: float) -> None:
    client, server = call.client, call.server
    device, _ = server.devices[0]
    sent = client.talkers[0].sent
    hashes = {pts: (_hash(frame.payload), _hash(frame.copy or b"")) for pts, frame in sent.items()}
    played = {entry.frame.pts: entry for entry in device.played}
    outcome.wrong += sum(_hash(entry.frame.payload) != hashes[pts][entry.is_copy] for pts, entry in played.items())
    plans = client.seen(PlanChanged)
    for pts, frame in sent.items():
        outcome.frames += 1
        came = tap.came.get(pts, [])
        entry = played.get(pts)
        if entry is not None:
            outcome.delay_ms.add((entry.at - frame.at) * 1000)
        if any(kind is SourceKind.AUDIO for _, kind in came):
            outcome.concealed += entry is None
            continue
        outcome.lost += 1
        first = next(((at, kind) for at, kind in came if kind is not SourceKind.COPY), None)
        if entry is None:
            inband = [plan.inband_fec_loss_percent for at, plan in plans if at <= frame.at + frame.units * 0.0025]
            if inband and inband[-1] and pts + frame.units in tap.helped:
                outcome.mended["in-band"] += 1
            else:
                outcome.concealed += 1
        elif entry.is_copy or first is None:
            outcome.mended["copy"] += 1
        else:
            outcome.mended["resent" if first[1] is SourceKind.RETRANSMISSION else "repair"] += 1
            outcome.recovery_ms.add((first[0] - frame.at - way_s) * 1000)
    stats = client.session.stats(call.sim.now)
    recovery = stats.recovery
    outcome.spent += Counter(
        repair=recovery.repair_bytes_sent,
        retransmission=recovery.retransmission_bytes_sent,
        copy=recovery.copy_bytes_sent,
        inband=recovery.inband_bytes_sent,
        pair=recovery.pair_bytes_sent,
        wire=client.session._tracks.recovery.budget.wire_bytes,
    )


def _hash(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=16).digest()


def _row(name: str, outcome: Outcome) -> str:
    lost, wire = max(1, outcome.lost), max(1, outcome.spent["wire"])
    mended = "".join(f"{outcome.mended[tool] / lost:8.1%}" for tool in ("resent", "repair", "copy", "in-band"))
    spent = "".join(f"{outcome.spent[tool] / wire:7.1%}" for tool in ("retransmission", "repair", "copy", "inband", "pair"))
    return f"{name}{outcome.lost:6d}{mended}{outcome.concealed_share:10.2%} |{outcome.redundancy_share:7.1%}{spent}  {outcome.wrong}"


def _table(seeds: list[int], seconds: float) -> None:
    print("                       of the lost frames, mended by                  | redundancy, part of the wire")
    print("RTT ms  loss  burst  lost  resent  repair    copy in-band concealed |  whole resent repair   copy in-band  pair  wrong")
    for burst in (1.0, BURST):
        for rtt_ms in RTTS_MS:
            for loss in LOSSES:
                outcome = measure(rtt_ms, loss, burst, seeds=seeds, seconds=seconds)
                print(_row(f"{rtt_ms:6d} {loss:5.0%} {burst:6.0f}", outcome), flush=True)


def _bars(seeds: list[int], seconds: float) -> None:
    for rtt_ms, loss, burst, bar in ((40, 0.05, 1.0, 0.003), (200, 0.01, 1.0, 0.0015), (80, 0.10, BURST, 0.015)):
        share = measure(rtt_ms, loss, burst, seeds=seeds, seconds=seconds).concealed_share
        print(f"RTT {rtt_ms}, {loss:.0%}, bursts of {burst:.0f}: {share:.2%} concealed (bar {bar:.2%}): {_word(share <= bar)}", flush=True)
    for loss in (0.0, 0.03):
        with_fec = measure(40, loss, seeds=seeds, seconds=seconds).delay_ms.mean
        without = measure(40, loss, seeds=seeds, seconds=seconds, bare=True).delay_ms.mean
        more = with_fec - without
        print(f"RTT 40, {loss:.0%}: repairs add {more:+.1f} ms of mean playout delay (bar 5 ms): {_word(more <= 5)}", flush=True)
    quick = measure(100, 0.03, seeds=seeds, seconds=seconds).recovery_ms.mean
    slow = measure(100, 0.03, seeds=seeds, seconds=seconds, bare=True).recovery_ms.mean
    saved = 1 - quick / slow if slow else 0.0
    print(f"RTT 100, 3%: mean recovery {quick:.0f} ms, {slow:.0f} ms by retransmission alone: {saved:.0%} less (bar 40%): ", end="")
    print(_word(saved >= 0.4))


def _word(met: bool) -> str:
    return "met" if met else "MISSED"


def main(arguments: list[str] | None = None) -> None:
    """Print the table and the bars."""
    parser = argparse.ArgumentParser(prog="python -m voicestream.testing.recovery", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=40.0, help="of speech in each call")
    parser.add_argument("--seeds", default="1", help="one number, or first-last")
    parser.add_argument("--bars-only", action="store_true", help="leave the table out")
    options = parser.parse_args(arguments)
    first, _, last = options.seeds.partition("-")
    seeds = list(range(int(first), int(last or first) + 1))
    print(f"seeds {options.seeds}, {options.seconds:.0f} s of speech a call")
    if not options.bars_only:
        _table(seeds, options.seconds)
    _bars(seeds, options.seconds)


if __name__ == "__main__":
    main()
