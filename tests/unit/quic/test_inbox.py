"""What waits to be looked at, in virtual time."""

from __future__ import annotations

from voicestream.quic.inbox import HANDSHAKE_EVERY, MAX_AGE, MAX_HANDSHAKE_AGE, MAX_PACKETS, PATIENCE, Inbox

SHORT, LONG = b"\x40", b"\xc0"
ADDRESS = ("192.0.2.1", 1)


def drained(inbox: Inbox, now: float) -> list[bytes]:
    found = []
    while (packet := inbox.take(now)) is not None:
        found.append(packet.data)
    return found


def test_packets_come_out_in_their_order() -> None:
    inbox = Inbox()
    for number in range(3):
        inbox.put(SHORT + bytes([number]), ADDRESS, 1.0)
    assert len(inbox) == 3
    assert drained(inbox, 1.0) == [SHORT + bytes([number]) for number in range(3)]
    assert inbox.take(1.0) is None


def behind() -> tuple[Inbox, float]:
    """An inbox of a machine that is too slow, and the time."""
    inbox = Inbox()
    for number in range(100):
        inbox.put(SHORT, ADDRESS, number / 100)
    inbox.take(MAX_AGE + 0.01)
    return inbox, MAX_AGE + 0.01 + PATIENCE


def test_a_packet_that_has_waited_for_too_long_is_dropped_and_counted() -> None:
    inbox, now = behind()
    inbox.take(now)
    assert inbox.dropped == 25, "the first 0.26 s of them, but for the one that was taken"
    inbox.put(SHORT + b"new", ADDRESS, 2.0)
    assert drained(inbox, 2.0) == [SHORT + b"new"]
    assert inbox.dropped == 98


def test_a_machine_that_was_held_up_for_a_moment_catches_up_and_drops_nothing() -> None:
    inbox = Inbox()
    for number in range(100):
        inbox.put(SHORT + bytes([number]), ADDRESS, 1.0)
    assert drained(inbox, 1.0 + 3 * MAX_AGE) == [SHORT + bytes([number]) for number in range(100)]
    for number in range(100):
        inbox.put(SHORT + bytes([number]), ADDRESS, 2.0)
    assert len(drained(inbox, 2.0 + 3 * MAX_AGE)) == 100, "the second time is another time"
    assert inbox.dropped == 0


def test_handshakes_may_wait_longer_than_audio() -> None:
    inbox, now = behind()
    inbox.put(LONG, ADDRESS, now - MAX_HANDSHAKE_AGE)
    inbox.put(LONG + b"new", ADDRESS, now + MAX_AGE)
    assert drained(inbox, now + MAX_HANDSHAKE_AGE) == [LONG + b"new"]
    assert inbox.dropped == 100


def test_calls_come_before_handshakes_but_handshakes_get_their_turn() -> None:
    inbox = Inbox()
    for _ in range(5):
        inbox.put(LONG, ADDRESS, 1.0)
    for _ in range(2 * HANDSHAKE_EVERY):
        inbox.put(SHORT, ADDRESS, 1.0)
    order = drained(inbox, 1.0)
    assert order[: 2 * HANDSHAKE_EVERY].count(LONG) == 2
    assert order[-3:] == [LONG] * 3


def test_memory_is_bounded_and_the_oldest_goes() -> None:
    inbox = Inbox()
    for number in range(MAX_PACKETS + 1):
        inbox.put(SHORT + number.to_bytes(2, "big"), ADDRESS, 1.0)
    assert len(inbox) == MAX_PACKETS
    assert drained(inbox, 1.0)[0] == SHORT + b"\0\1"
    assert inbox.dropped == 1


def test_an_empty_packet_is_a_packet() -> None:
    inbox = Inbox()
    inbox.put(b"", ADDRESS, 1.0)
    assert drained(inbox, 1.0) == [b""]


def test_a_machine_at_half_the_speed_needed_still_serves_as_much_as_it_can_and_nothing_stale() -> None:
    """A packet a millisecond comes, and each costs two: half is dropped, and what is served has waited for 200 ms at most.

    It takes 0.4 s until they have waited for so long, and then `PATIENCE`.
    """
    inbox, now, arrived, waits = Inbox(), 0.0, 0, []
    while now < 5.0:
        while arrived * 0.001 <= now:
            inbox.put(SHORT, ADDRESS, arrived * 0.001)
            arrived += 1
        packet = inbox.take(now)
        assert packet is not None
        waits.append(now - packet.at)
        now += 0.002
    assert max(waits[:330]) <= MAX_AGE + PATIENCE / 2 + 0.01
    assert max(waits[330:]) <= MAX_AGE + 1e-9
    assert len(waits) >= 2490
    assert inbox.dropped + len(waits) + len(inbox) == arrived
