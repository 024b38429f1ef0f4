"""Any order of calls on two honest sessions over any path: nobody closes, nobody spins, nothing is delivered twice."""

from __future__ import annotations

from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st

from voicestream.config import SessionConfig
from voicestream.errors import StateError
from voicestream.events import Cleared, Closed, EventReceived, Finished, Progress

SIDE = st.sampled_from(["client", "server"])
CALLS = st.one_of(
    st.tuples(st.just("talk"), SIDE, st.integers(1, 12)),
    st.tuples(st.just("ahead"), SIDE, st.integers(1, 6)),
    st.tuples(st.just("skip"), SIDE, st.sampled_from([1, 8, 400, 13_000, 70_000])),
    st.tuples(st.just("clear"), SIDE, st.booleans()),
    st.tuples(st.just("played"), SIDE, st.integers(0, 3000)),
    st.tuples(st.just("event"), SIDE, st.integers(0, 2500)),
    st.tuples(st.just("settings"), SIDE, st.sampled_from([5_000, 16_000, 40_000, 1_000_000])),
    st.tuples(st.just("finish"), SIDE, st.just(0)),
    st.tuples(st.just("wait"), SIDE, st.sampled_from([0.0, 0.001, 0.03, 0.4, 7.0, 40.0])),
)


def do(pair: Any, kit: Any, name: str, side: str, amount: Any) -> None:
    session = pair.side(side)
    if name == "talk":
        pair.talk(amount * 0.02, side)
    elif name == "ahead":
        for serial in range(amount):
            session.send_frame(kit.frame(serial), pair.now, ahead=True, talkspurt_start=serial == 0)
    elif name == "skip":
        session.skip(amount)
        if amount > 400:  # half a minute of silence takes time: what was under way before it has arrived
            pair.run(1.0)
    elif name == "clear":
        session.clear(pair.now, outgoing=amount)
    elif name == "played":
        session.report_played(amount, pair.now)
    elif name == "event":
        session.send_event(bytes(amount), pair.now, kind=0, ordered=amount % 3 > 0)
    elif name == "settings":
        session.update_settings(pair.now, max_rate_bps=amount)
    elif name == "finish":
        session.finish(pair.now)
    else:
        pair.run(amount)


@given(
    calls=st.lists(CALLS, max_size=25),
    seed=st.integers(0, 1000),
    loss=st.sampled_from([0.0, 0.1, 0.5]),
    jitter=st.sampled_from([0.0, 0.1]),
    control_delay=st.sampled_from([0.005, 0.02, 0.3]),
)
def test_any_order_of_calls(kit: Any, calls: list[Any], seed: int, loss: float, jitter: float, control_delay: float) -> None:
    pair = kit.Pair(
        SessionConfig(),
        SessionConfig(),
        seed=seed,
        to_server=kit.lossy(seed, loss, jitter=jitter, repeat=0.1),
        to_client=kit.lossy(seed + 1, loss, jitter=jitter, repeat=0.1),
        control_delay=control_delay,
    ).open()
    players = {name: kit.Player() for name in ("client", "server")}
    for name, player in players.items():
        pair.side(name).receivers[0].attach_playout(player)
    for call in calls:
        note(str(call))
        try:
            do(pair, kit, *call)
        except StateError:
            assert call[0] in {"talk", "ahead", "skip", "finish"}, "only a finished track refuses something here"
    pair.run(8.0)
    for name in ("client", "server"):
        check(pair, players, name)


def check(pair: Any, players: Any, name: str) -> None:
    other = "server" if name == "client" else "client"
    assert pair.of(name, Closed) == []
    pts = players[name].pts
    assert len(pts) == len(set(pts))
    mine, theirs = pair.side(name).stats(pair.now), pair.side(other).stats(pair.now)
    assert theirs.events_sent == mine.events_received + theirs.events_waiting
    orders = [one.order for one in pair.of(name, EventReceived) if one.order]
    assert orders == list(range(1, len(orders) + 1))
    sender, receiver = theirs.tracks[0], mine.tracks[0]
    assert sender.clears_sent == receiver.clears_received
    assert [one.number for one in pair.of(other, Cleared)] == list(range(1, sender.clears_sent + 1))
    assert receiver.received_pts <= sender.next_pts
    told = [one.played_pts for one in pair.of(other, Progress)]
    assert told == sorted(set(told))
    assert len(pair.of(other, Finished)) <= 1
    timer = pair.side(name).next_timer()
    assert timer is None or timer > pair.now
