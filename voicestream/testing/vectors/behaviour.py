"""Behaviour for the test vectors: what happens to a peer, and what must come of it. Expectations are written from the specification."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["echoes", "losses", "playouts", "rates", "reports", "timings"]

Test = dict[str, Any]


# ----------------------------------------------------------------------------- contents of reports (sections 4.4 and 9.2)


def _signed(value: int) -> int:
    return (value + 0x8000) % 0x10000 - 0x8000


def _truth(arrivals: list[list[int]]) -> dict[str, Any]:
    """The report that says everything, by the words of section 4.4: statuses down to datagram 0, or 255 of them."""
    first: dict[int, list[int]] = {}
    newest = -1
    newest_tick = 0
    for number, send, arrival in arrivals:
        first.setdefault(number, [send, arrival])
        if number > newest:
            newest, newest_tick = number, arrival
    statuses: list[int | None] = []
    later = newest
    for number in range(newest - 1, max(-1, newest - 256), -1):
        if number not in first:
            statuses.append(None)
            continue
        difference = {n: first[n][1] - first[n][0] for n in (number, later)}
        statuses.append(_signed(difference[number] - difference[later]))
        later = number
    return {"newest": newest % 0x10000, "arrival": newest_tick, "statuses": statuses}


def _report(comment: str, arrivals: list[list[int]], told: int = 0) -> Test:
    """A report after these arrivals ([number, send tick, arrival tick]), the first `told` of which an earlier one has described."""
    newest = max(number for number, _, _ in arrivals)
    known = {number for number, _, _ in arrivals[:told]}
    fresh = {number for number, _, _ in arrivals[told:]} - known
    # Everything that no report has described: what came since, and the numbers above the newest of the earlier report.
    oldest = min([*fresh, max(known) + 1 if known else 0])
    # A first report need not look back more than 16 numbers before the first datagram that arrived.
    oldest = max(oldest, arrivals[0][0] - 16) if not told else oldest
    expect = {**_truth(arrivals), "at_least": min(255, max(0, newest - oldest))}
    return {"comment": comment, "input": {"arrivals": arrivals, "told": told}, "result": "valid", "expect": expect}


def reports() -> list[Test]:
    """What a report has to say."""
    steady = [[n, n * 80 % 65536, (n * 80 + 200) % 65536] for n in range(20)]
    jitter = [[n, n * 80, n * 80 + 200 + (n * 37 % 50)] for n in range(12)]
    holes = [one for one in steady if one[0] not in (3, 4, 9, 18)]
    swapped = [*steady[:5], steady[6], steady[5], *steady[7:9]]
    wrapped = [[n, (65400 + n * 80) % 65536, (65500 + n * 80 + n % 3) % 65536] for n in range(8)]
    far = [[n, n * 80 % 65536, (n * 80 + 100) % 65536] for n in (0, 1, 2, 300, 301)]
    late = [*holes[:12], steady[4]]
    return [
        _report("one datagram", [steady[0]]),
        _report("twenty, each with the same delay", steady),
        _report("delays that change", jitter),
        _report("some are missing", holes),
        _report("two in the wrong order", swapped),
        _report("one comes twice: its second coming is not described", [*steady[:6], [3, 240, 900]]),
        _report("ticks that wrap", wrapped),
        _report("a jump: no more than 255 statuses", far),
        _report("the first datagram to arrive is number 40", [[n, n * 80, n * 80 + 7] for n in (40, 41)]),
        _report("the second report describes what came since", steady[:14], told=9),
        _report("one that was described as missing has come", late, told=12),
    ]


# ----------------------------------------------------------------------------- use of reports (section 9.3)


def _echo(comment: str, sent_ms: float, arrival_tick: int, reply_tick: int, now_ms: float) -> Test:
    hold = (reply_tick - arrival_tick) % 0x10000 / 4
    rtt = now_ms - sent_ms - hold
    given = {"sent_ms": sent_ms, "arrival_tick": arrival_tick, "reply_tick": reply_tick, "now_ms": now_ms}
    test = {"comment": comment, "input": given}
    if hold > 8000 or rtt < -0.5:
        return {**test, "result": "valid", "expect": {"used": False}}
    offset = ((arrival_tick + hold * 2) / 4 - (sent_ms + now_ms) / 2 + 8192) % 16384 - 8192
    return {**test, "result": "valid", "expect": {"used": True, "rtt_ms": rtt, "offset_ms": offset, "tolerance_ms": 0.75}}


def echoes() -> list[Test]:
    """Round trip and offset of one echo. Clocks begin at 0 ms = tick 0."""
    return [
        _echo("no hold, equal clocks", 1000, 4080, 4080, 1040),
        _echo("a hold of 50 ms", 1000, 4080, 4280, 1090),
        _echo("the far clock is 5 s ahead", 1000, 24080, 24080, 1040),
        _echo("the far clock is 5 s behind", 6000, 4080, 4120, 6050),
        _echo("ticks wrap in the hold", 2000, 65500, 64, 2065),
        _echo("no round trip at all", 1000, 4000, 4000, 1000),
        _echo("held for more than 8 s: not used", 1000, 4080, 4080 + 32004, 9041),
        _echo("a round trip below 0: not used", 1000, 4000, 4400, 1050),
    ]


def _loss(comment: str, sent: int, reported: list[dict[str, Any]], acked: list[int], lost: list[int]) -> Test:
    given = {"sent": sent, "reports": reported}
    return {"comment": comment, "input": given, "result": "valid", "expect": {"acked": acked, "lost": lost}}


def _unsent(comment: str, sent: int, reported: dict[str, Any]) -> Test:
    given = {"sent": sent, "reports": [reported]}
    return {"comment": comment, "input": given, "result": "invalid", "error": "REPORT_ERROR", "breaks": "VS-9.3-1"}


def losses() -> list[Test]:
    """Which datagrams arrived and which count as lost."""
    return [
        _loss("all arrived", 4, [{"newest": 3, "statuses": [0, 0, 0]}], [0, 1, 2, 3], []),
        _loss("lost when one three newer has come", 6, [{"newest": 5, "statuses": [0, 0, None, 0, 0]}], [0, 1, 3, 4, 5], [2]),
        _loss("not yet lost", 6, [{"newest": 5, "statuses": [None, None, 0, 0, 0]}], [0, 1, 2, 5], []),
        _loss("a later report finds it", 8, [{"newest": 5, "statuses": [0, 0, None, 0, 0]}, {"newest": 6, "statuses": [0, 0, 0, 0]}],
              [0, 1, 2, 3, 4, 5, 6], []),
        _loss("numbers that wrap", 65540, [{"newest": 2, "statuses": [0, 0, 0, None, 0]}],
              [65533, 65535, 65536, 65537, 65538], [65534]),
        _unsent("the next number", 4, {"newest": 4, "statuses": []}),
        _unsent("far ahead", 4, {"newest": 30000, "statuses": [0]}),
        _unsent("one that would be before the first has come", 2, {"newest": 1, "statuses": [0, 0]}),
        _unsent("nothing was sent", 0, {"newest": 0, "statuses": []}),
    ]  # fmt: skip


# ----------------------------------------------------------------------------- when reports leave (section 9.1)


def timings() -> list[Test]:
    """When a side reports. It has no audio of its own."""
    flow = [[n * 20, "audio"] for n in range(50)]
    return [
        {"comment": "audio is reported within 100 ms, again and again", "input": {"datagrams": flow, "until_ms": 1200}, "result": "valid",
         "expect": {"reports": [[0, 100], [100, 300], [300, 500], [500, 700], [700, 900], [900, 1080]], "silent": [[1200, 1300]]}},
        {"comment": "a single datagram", "input": {"datagrams": [[0, "audio"]], "until_ms": 1000}, "result": "valid",
         "expect": {"reports": [[0, 100]], "silent": [[200, 1000]]}},
        {"comment": "one without frames is answered as well", "input": {"datagrams": [[0, "none"]], "until_ms": 1000}, "result": "valid",
         "expect": {"reports": [[0, 100]], "silent": [[200, 1000]]}},
        {"comment": "a report alone causes none", "input": {"datagrams": [[0, "audio"], [500, "report"]], "until_ms": 1500},
         "result": "valid", "expect": {"reports": [[0, 100]], "silent": [[200, 1500]]}},
        {"comment": "padding alone causes none", "input": {"datagrams": [[0, "audio"], [500, "padding"]], "until_ms": 1500},
         "result": "valid", "expect": {"reports": [[0, 100]], "silent": [[200, 1500]]}},
    ]  # fmt: skip


# ----------------------------------------------------------------------------- playout (section 16)

S: Final = 8
E: Final = 4


def _flow(count: int, *, delay: int = 40, first: int = 0, begin_ms: int = 0, clear: int = 0) -> list[list[int]]:
    """Live frames of 20 ms: [pts, units, sent ms, arrives ms, flags]."""
    return [
        [first + n * 8, 8, begin_ms + n * 20, begin_ms + n * 20 + delay, clear | (S if n == 0 else 0) | (E if n == count - 1 else 0)]
        for n in range(count)
    ]


def _playout(comment: str, frames: list[list[int]], until_ms: int, expect: dict[str, Any], **more: Any) -> Test:
    given = {"lookahead_ms": 150, "frames": frames, "until_ms": until_ms, **more}
    return {"comment": comment, "input": given, "result": "valid", "expect": expect}


def playouts() -> list[Test]:
    """What is played of what comes. The device takes 20 ms at a time, at 0, 20, 40 ms and so on."""
    plain = _flow(100)
    every = [frame[0] for frame in plain]
    lost = [frame for frame in plain if frame[0] != 400]
    swapped = [[*f[:3], f[3] + (30 if f[0] // 8 % 5 == 0 else 0), f[4]] for f in plain]
    late = [[*f[:3], f[3] + (600 if f[0] == 400 else 0), f[4]] for f in plain]
    jitter = [[*f[:3], f[3] + f[0] * 7919 % 41, f[4]] for f in plain]
    pause = [*_flow(40), *_flow(40, first=40 * 8 + 400, begin_ms=1800)]
    held = [[n * 8, 8, n * 3, 40 + n * 3, (S if n == 0 else 0) | (E if n == 59 else 0)] for n in range(60)]
    cleared = [*_flow(50), *_flow(30, first=400, begin_ms=1040, clear=1)]
    stale = [[392, 8, 980, 1200, 0]]
    without = [pts for pts in every if pts != 400]
    return [
        _playout("a steady flow", plain, 2600, {"played": every, "concealed_ms": [0, 0], "delay_ms": [40, 210]}),
        _playout("one frame is lost", lost, 2600, {"played": without, "never": [400], "concealed_ms": [10, 60], "delay_ms": [40, 210]}),
        _playout("one frame comes 600 ms late", late, 2600, {"played": without, "never": [400], "concealed_ms": [10, 60]}),
        _playout("every fifth comes 30 ms later", swapped, 2800, {"played_at_least": 95, "delay_ms": [40, 230], "concealed_ms": [0, 150]}),
        _playout("delays vary by 40 ms", jitter, 2800, {"played_at_least": 95, "delay_ms": [40, 230], "concealed_ms": [0, 150]}),
        _playout("each comes twice and is played once", sorted([*plain, *([*f[:3], f[3] + 25, f[4]] for f in plain)], key=lambda f: f[3]),
                 2600, {"played": every, "concealed_ms": [0, 0]}),
        _playout("a pause is neither lost nor concealed", pause, 3200, {"played": [f[0] for f in pause], "concealed_ms": [0, 0]}),
        _playout("sent ahead: played in full and no quicker", held, 1600,
                 {"played": [f[0] for f in held], "concealed_ms": [0, 0], "takes_ms": [1150, 1250]}, ahead=[[0, 0]]),
        _playout("a clear voids what is held, and what comes late", sorted([*cleared, *stale], key=lambda f: f[3]), 2200,
                 {"never": [392], "void": [1000, 400], "played_at_least": 70}, clear=[990, 0, 400, 1]),
        _playout("finished", _flow(20), 1000, {"played": [n * 8 for n in range(20)], "concealed_ms": [0, 0], "finished": True},
                 finish=[420, 160]),
    ]  # fmt: skip


# ----------------------------------------------------------------------------- rate (section 9.3)


def _rate(comment: str, path: dict[str, Any], expect: dict[str, Any]) -> Test:
    return {"comment": comment, "input": {"path": path, "until_ms": 40000}, "result": "valid", "expect": expect}


def rates() -> list[Test]:
    """What a sender of speech puts on a path, one way; the way back is free. Bits of IP packets, headers included."""
    free: dict[str, Any] = {"delay_ms": 40, "queue_ms": 300}
    return [
        _rate("a wide path", {**free, "rate_kbps": [[0, 1000]]}, {"sent_kbps": [[10000, 40000, 16, 400]], "late_ms": [[10000, 40000, 60]]}),
        _rate("narrow from the start", {**free, "rate_kbps": [[0, 40]]},
              {"sent_kbps": [[15000, 40000, 16, 42]], "late_ms": [[15000, 40000, 200]]}),
        _rate("the capacity drops at 15 s", {**free, "rate_kbps": [[0, 200], [15, 36]]},
              {"sent_kbps": [[20000, 40000, 16, 38]], "late_ms": [[20000, 40000, 250]]}),
        _rate("less than speech needs from 15 s on", {**free, "rate_kbps": [[0, 200], [15, 5]]}, {"sent_kbps": [[25000, 40000, 0, 7]]}),
        _rate("nothing gets through from 15 to 25 s", {**free, "rate_kbps": [[0, 200]], "outages": [[15, 10]]},
              {"sent_kbps": [[18000, 25000, 0, 26], [32000, 40000, 16, 400]]}),
    ]  # fmt: skip
