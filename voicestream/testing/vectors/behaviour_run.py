"""Runs behaviour of the test vectors against this implementation; returns what is wrong, or nothing."""

from __future__ import annotations

import random
from typing import Any

from voicestream.config import PlayoutConfig
from voicestream.core.clock import RemoteClock
from voicestream.core.feedback import ArrivalLog, SentLog
from voicestream.core.playout import Playout
from voicestream.errors import ProtocolError
from voicestream.media import MediaFrame
from voicestream.testing.device import SimulatedDevice
from voicestream.testing.profile import LinkProfile, NetworkProfile
from voicestream.testing.session_sim import SessionCall
from voicestream.testing.sim import Simulation
from voicestream.testing.vectors.stage import START, Actor
from voicestream.wire import AudioFrame, Datagram, Frame, PaddingFrame, ReportFrame, decode_datagram, encode_datagram

__all__ = ["CHECKS"]


def report(test: dict[str, Any]) -> list[str]:
    """Contents of a report."""
    log, expect = ArrivalLog(), test["expect"]
    for index, (number, send, arrival) in enumerate(test["input"]["arrivals"]):
        if index == test["input"]["told"] and index:
            log.report(twice=False)
        log.arrived(Datagram(number=number % 0x10000, send_tick=send), (arrival + 0.5) / 4000)
    said = log.report(twice=False)
    found = []
    if (said.newest, said.arrival) != (expect["newest"], expect["arrival"]):
        found.append(f"newest {said.newest}, arrival {said.arrival}")
    if not expect["at_least"] <= len(said.statuses):
        found.append(f"{len(said.statuses)} statuses, of at least {expect['at_least']}")
    if list(said.statuses) != expect["statuses"][: len(said.statuses)]:
        found.append(f"statuses {said.statuses}")
    return found


def echo(test: dict[str, Any]) -> list[str]:
    """Round trip and offset."""
    given, expect, clock = test["input"], test["expect"], RemoteClock()
    rtt = clock.echo(given["sent_ms"] / 1000, given["arrival_tick"] % 0x10000, given["reply_tick"] % 0x10000, given["now_ms"] / 1000)
    if rtt is None or not expect["used"]:
        return [] if (rtt is None) is not expect["used"] else [f"round trip {rtt}"]
    offset = clock.offset()
    assert offset is not None
    wrong = abs(rtt * 1000 - expect["rtt_ms"]) > expect["tolerance_ms"]
    wrong |= abs((offset * 1000 - expect["offset_ms"] + 8192) % 16384 - 8192) > expect["tolerance_ms"]
    return [f"round trip {rtt * 1000} ms, offset {offset * 1000} ms"] if wrong else []


def loss(test: dict[str, Any]) -> list[str]:
    """What counts as arrived and lost."""
    log = SentLog()
    for number in range(test["input"]["sent"]):
        log.sent(100, number / 50)
    arrived: set[int] = set()
    lost: set[int] = set()
    try:
        for one in test["input"]["reports"]:
            told = log.reported(ReportFrame(newest=one["newest"], arrival=0, statuses=tuple(one["statuses"])))
            arrived |= {entry.number for entry in told.acked}
            lost = (lost | {entry.number for entry in told.lost}) - arrived
    except ProtocolError as error:
        return [] if test.get("error") == error.code.name else [str(error)]
    if test["result"] == "invalid":
        return [f"no {test['error']}"]
    expect = test["expect"]
    return [] if (sorted(arrived), sorted(lost)) == (expect["acked"], expect["lost"]) else [f"arrived {arrived}, lost {lost}"]


def timing(test: dict[str, Any]) -> list[str]:
    """When reports leave."""
    actor, peer = (Actor(side, random.Random(side).randbytes) for side in ("server", "client"))
    actor.do({"do": "wait"}, START)
    peer.do({"do": "call"}, START)
    actor.receive("control", peer.unsaid[0][1], START)
    actor.unsaid = []
    left: list[float] = []

    def take(now: float) -> None:
        said, actor.unsaid = actor.unsaid, []
        for channel, data in said:
            if channel == "datagram" and any(isinstance(frame, ReportFrame) for frame in decode_datagram(data).frames):
                left.append(round((now - START) * 1000, 3))

    kinds: dict[str, tuple[Frame, ...]] = {"none": (), "padding": (PaddingFrame(size=9),), "report": (ReportFrame(newest=0, arrival=0),)}
    todo = [(START + at / 1000, kind) for at, kind in test["input"]["datagrams"]]
    for number, (at, kind) in enumerate([*todo, (START + test["input"]["until_ms"] / 1000, "")]):
        while (timer := actor.next_timer()) is not None and timer <= at:
            actor.run(timer)
            take(timer)
        if kind:
            audio = AudioFrame(pts=number * 8, payload=b"\x08\x00", talkspurt_start=number == 0)
            datagram = Datagram(number=number, send_tick=number * 80 & 0xFFFF, frames=kinds.get(kind, (audio,)))
            actor.receive("datagram", encode_datagram(datagram), at)
            take(at)
    found = [f"none from {a} to {b} ms: {left}" for a, b in test["expect"]["reports"] if not any(a <= at <= b for at in left)]
    return found + [f"one from {a} to {b} ms: {left}" for a, b in test["expect"]["silent"] if any(a <= at <= b for at in left)]


def playout(test: dict[str, Any]) -> list[str]:
    """What a playout does with what comes."""
    given, expect = test["input"], test["expect"]
    sim = Simulation(1, start=START)
    under_test = Playout(PlayoutConfig(lookahead_ms=given["lookahead_ms"]), track=0)
    device = SimulatedDevice(sim, under_test, start=START, block_units=8)
    for pts, units, sent, arrives, flags in given["frames"]:
        frame = MediaFrame(
            track=0, pts=pts, units=units, payload=b"\x08" + bytes(39), clear_number=flags & 3,
            talkspurt_start=bool(flags & 8), talkspurt_end=bool(flags & 4),
        )  # fmt: skip
        sim.at(START + arrives / 1e3, lambda frame=frame, sent=sent: under_test.insert(frame, sim.now, send_time=sent / 1e3))  # type: ignore[misc]
    for at, pts in given.get("ahead", ()):
        sim.at(START + at / 1e3, lambda pts=pts: under_test.set_ahead(pts, True))  # type: ignore[misc]
    cleared: list[int] = []
    if "clear" in given:
        at, first, last, number = given["clear"]
        sim.at(START + at / 1e3, lambda: cleared.append(under_test.clear(first, last, number)))
    if "finish" in given:
        sim.at(START + given["finish"][0] / 1e3, lambda: under_test.finish(given["finish"][1]))
    sim.run(START + given["until_ms"] / 1e3)
    return _judge(given, expect, device, under_test)


def _judge(given: dict[str, Any], expect: dict[str, Any], device: SimulatedDevice, under_test: Playout) -> list[str]:
    played = [(entry.frame.pts, (entry.at - START) * 1e3) for entry in device.played]
    order = [pts for pts, _ in played]
    sent = {frame[0]: frame[2] for frame in given["frames"]}
    concealed = (device.units["conceal"] + device.units["waiting"]) * 2.5
    delays = [at - sent[pts] for pts, at in played]
    found = [] if order == sorted(set(order)) else ["not in order, or twice"]
    if "played" in expect and order != expect["played"]:
        found.append(f"played {order}")
    if len(order) < expect.get("played_at_least", 0):
        found.append(f"played {len(order)}")
    found += [f"played {pts}" for pts in expect.get("never", ()) if pts in order]
    low, high = expect.get("concealed_ms", (0, 1e9))
    if not low <= concealed <= high:
        found.append(f"concealed {concealed} ms")
    low, high = expect.get("delay_ms", (0, 1e9))
    if delays and not low <= min(delays) <= max(delays) <= high:
        found.append(f"delays {min(delays)} to {max(delays)} ms")
    low, high = expect.get("takes_ms", (0, 1e9))
    if played and not low <= played[-1][1] - played[0][1] <= high:
        found.append(f"took {played[-1][1] - played[0][1]} ms")
    if "void" in expect:
        at_ms, before = expect["void"]
        found += [f"played {pts} at {at} ms" for pts, at in played if at > at_ms and pts < before]
    if expect.get("finished") and not under_test.finished:
        found.append("not finished")
    return found


def rate(test: dict[str, Any]) -> list[str]:
    """What a sender puts on a path."""
    given, expect = test["input"], test["expect"]
    path = given["path"]
    steps = tuple((float(at), float(kbps)) for at, kbps in path["rate_kbps"])
    outages = tuple((float(at), float(long)) for at, long in path.get("outages", ()))
    profile = LinkProfile(delay_ms=path["delay_ms"], queue_ms=path["queue_ms"], rate_kbps=steps, outages=outages)
    call = SessionCall(NetworkProfile(b2a=profile, a2b=LinkProfile(delay_ms=path["delay_ms"])), seed=1)
    call.open()
    left: list[tuple[float, int]] = []
    came: list[tuple[float, float]] = []
    link = call.links["b2a"]
    send = link.send

    def sending(now: float, size: int) -> list[float]:
        at = (now - call.start) * 1e3
        left.append((at, size))
        arrivals = send(now, size)
        came.extend((at, (arrival - now) * 1e3) for arrival in arrivals)
        return arrivals

    link.send = sending  # type: ignore[method-assign,assignment]
    call.client.speak(follow=True)
    call.server.listen()
    call.run(given["until_ms"] / 1e3)
    found = []
    for first, last, low, high in expect["sent_kbps"]:
        kbps = sum(size for at, size in left if first <= at < last) * 8 / (last - first)
        if not low <= kbps <= high:
            found.append(f"sent {kbps:.1f} kbps from {first} to {last} ms")
    for first, last, high in expect.get("late_ms", ()):
        delays = sorted(delay for at, delay in came if first <= at < last)
        if not delays or delays[len(delays) // 2] > high:
            found.append(f"median delay {delays[len(delays) // 2] if delays else None} ms from {first} to {last} ms")
    return found


CHECKS = {"report": report, "echo": echo, "loss": loss, "report-timing": timing, "playout": playout, "rate": rate}
"""What runs each type of behaviour."""

