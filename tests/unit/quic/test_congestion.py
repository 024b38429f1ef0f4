"""The controller counts and bounds, and decides no rate."""

from __future__ import annotations

import pytest
from aioquic.quic.congestion.base import create_congestion_control
from aioquic.quic.packet import QuicPacketType
from aioquic.quic.packet_builder import QuicSentPacket
from aioquic.tls import Epoch

from voicestream.quic import congestion
from voicestream.quic.congestion import MAX_IN_FLIGHT, MIN_IN_FLIGHT, VoiceCongestion


def packet(size: int, at: float = 0.0) -> QuicSentPacket:
    return QuicSentPacket(
        epoch=Epoch.ONE_RTT,
        in_flight=True,
        is_ack_eliciting=True,
        is_crypto_packet=False,
        packet_number=0,
        packet_type=QuicPacketType.ONE_RTT,
        sent_time=at,
        sent_bytes=size,
    )


@pytest.fixture
def controller() -> VoiceCongestion:
    congestion.register()
    made = create_congestion_control(congestion.ALGORITHM, max_datagram_size=1200)
    assert isinstance(made, VoiceCongestion)
    return made


def test_loss_and_persistent_congestion_leave_the_window_alone(controller: VoiceCongestion) -> None:
    before = controller.congestion_window
    for _ in range(100):
        sent = packet(100)
        controller.on_packet_sent(packet=sent)
        controller.on_packets_lost(now=0.0, packets=[sent])
        controller.on_persistent_congestion()
    assert controller.congestion_window == before == MIN_IN_FLIGHT


def test_every_packet_ends_as_acked_lost_or_expired(controller: VoiceCongestion) -> None:
    sent = [packet(100) for _ in range(6)]
    for one in sent:
        controller.on_packet_sent(packet=one)
    assert controller.bytes_in_flight == 600
    controller.on_packet_acked(now=0.0, packet=sent[0])
    controller.on_packets_lost(now=0.0, packets=sent[1:3])
    controller.on_packets_expired(packets=sent[3:])
    assert controller.bytes_in_flight == 0
    assert (controller.packets_sent, controller.packets_acked, controller.packets_lost, controller.packets_expired) == (6, 1, 2, 3)
    assert controller.bytes_sent == 600


def test_the_window_is_four_round_trips_of_what_is_granted(controller: VoiceCongestion) -> None:
    controller.on_rtt_measurement(now=0.0, rtt=1.0)
    controller.grant(800_000)
    assert controller.congestion_window == 400_000
    controller.grant(8_000)
    assert controller.congestion_window == MIN_IN_FLIGHT
    controller.grant(1e12)
    assert controller.congestion_window == MAX_IN_FLIGHT
    with pytest.raises(ValueError, match="negative"):
        controller.grant(-1)


def test_one_quick_round_trip_does_not_shrink_the_window_at_once(controller: VoiceCongestion) -> None:
    controller.grant(800_000)
    controller.on_rtt_measurement(now=0.0, rtt=2.0)
    assert controller.rtt_latest == 2.0
    wide = controller.congestion_window
    controller.on_rtt_measurement(now=0.1, rtt=0.05)
    assert controller.congestion_window > 0.9 * wide
    for _ in range(500):
        controller.on_rtt_measurement(now=0.1, rtt=0.05)
    assert controller.congestion_window == 200_000


def test_a_dead_path_can_be_asked_for_minutes(controller: VoiceCongestion) -> None:
    sent = [packet(150, number / 10) for number in range(3000)]
    for one in sent:
        controller.on_packet_sent(packet=one)
        assert controller.bytes_in_flight <= 150 * 102 < MIN_IN_FLIGHT
    controller.on_packets_lost(now=300.0, packets=sent)
    assert (controller.bytes_in_flight, controller.packets_lost) == (0, 3000)
