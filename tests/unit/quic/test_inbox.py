"""What waits to be looked at, in virtual time."""

from __future__ import annotations

from voicestream.quic.inbox import HANDSHAKE_EVERY, MAX_AGE, MAX_HANDSHAKE_AGE, MAX_PACKETS, Inbox

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


def test_a_packet_that_has_waited_for_too_long_is_dropped_and_counted() -> None:
    inbox = Inbox()
    inbox.put(SHORT, ADDRESS, 1.0)
    inbox.put(SHORT + b"new", ADDRESS, 1.0 + MAX_AGE)
    assert drained(inbox, 1.01 + MAX_AGE) == [SHORT + b"new"]
    assert inbox.dropped == 1


def test_handshakes_may_wait_longer_than_audio() -> None:
    inbox = Inbox()
    inbox.put(SHORT, ADDRESS, 1.0)
    inbox.put(LONG, ADDRESS, 1.0)
    assert drained(inbox, 1.01 + MAX_AGE) == [LONG]
    inbox.put(LONG, ADDRESS, 2.0)
    assert drained(inbox, 2.01 + MAX_HANDSHAKE_AGE) == []
    assert inbox.dropped == 2


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
    """A packet a millisecond comes, and each costs two: half is dropped, and what is served has waited for 200 ms at most."""
    inbox, now, arrived, waits = Inbox(), 0.0, 0, []
    while now < 5.0:
        while arrived * 0.001 <= now:
            inbox.put(SHORT, ADDRESS, arrived * 0.001)
            arrived += 1
        packet = inbox.take(now)
        assert packet is not None
        waits.append(now - packet.at)
        now += 0.002
    assert max(waits) <= MAX_AGE + 1e-9
    assert len(waits) >= 2490
    assert inbox.dropped + len(waits) + len(inbox) == arrived
