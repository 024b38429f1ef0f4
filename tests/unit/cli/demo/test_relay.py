"""The relay: packets cross both ways through their own links, and what is lost is noted."""

from __future__ import annotations

import asyncio
from typing import Any

from voicestream.cli.demo.relay import IP_UDP_BYTES, Relay
from voicestream.testing.link import Link, LinkProfile


class End(asyncio.DatagramProtocol):
    """A socket that keeps what it gets; `answer` sends everything back."""

    def __init__(self, *, answer: bool) -> None:
        self.answer = answer
        self.received: asyncio.Queue[bytes] = asyncio.Queue()
        self.transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.received.put_nowait(data)
        if self.answer and self.transport is not None:
            self.transport.sendto(b"re " + data, addr)


async def through(up: LinkProfile, down: LinkProfile, packets: list[bytes], wanted: int) -> tuple[Relay, End, End]:
    """Send packets to an answering server through a relay and wait for `wanted` answers."""
    loop = asyncio.get_running_loop()
    server_transport, server = await loop.create_datagram_endpoint(lambda: End(answer=True), local_addr=("127.0.0.1", 0))
    relay = Relay(Link(up, seed=1), Link(down, seed=2))
    port = await relay.start("127.0.0.1", server_transport.get_extra_info("sockname")[1])
    client_transport, client = await loop.create_datagram_endpoint(lambda: End(answer=False), remote_addr=("127.0.0.1", port))
    try:
        for packet in packets:
            client_transport.sendto(packet)
        answers = [await asyncio.wait_for(client.received.get(), 10) for _ in range(wanted)]
        assert all(answer.startswith(b"re ") for answer in answers)
    finally:
        for transport in (client_transport, server_transport):
            transport.close()
        relay.close()
    return relay, client, server


async def test_packets_cross_both_ways_in_order() -> None:
    packets = [b"packet %d" % n for n in range(20)]
    relay, _, server = await through(LinkProfile(delay_ms=5), LinkProfile(delay_ms=1), packets, 20)
    assert [server.received.get_nowait() for _ in packets] == packets
    assert sum(crossing.way == "up" for crossing in relay.log) == 20
    assert sum(crossing.way == "down" for crossing in relay.log) == 20


async def test_a_packet_takes_at_least_the_delay_of_both_links() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await through(LinkProfile(delay_ms=20), LinkProfile(delay_ms=30), [b"x"], 1)
    # The event loop may run a timer early by its clock's resolution.
    assert loop.time() - began >= 0.049


async def test_the_log_holds_ip_sizes_and_what_was_lost() -> None:
    packets = [bytes(100)] * 10
    # Every second packet up is lost, all answers arrive.
    relay, _, server = await through(LinkProfile(loss_trace=(0, 1)), LinkProfile(), packets, 5)
    up = [crossing for crossing in relay.log if crossing.way == "up"]
    assert [crossing.arrives for crossing in up] == [True, False] * 5
    assert {crossing.size_bytes for crossing in up} == {100 + IP_UDP_BYTES}
    assert server.received.qsize() == 5


async def test_a_client_that_comes_from_another_port_is_another_flow_and_gets_its_own_answers() -> None:
    loop = asyncio.get_running_loop()
    server_transport, server = await loop.create_datagram_endpoint(lambda: End(answer=True), local_addr=("127.0.0.1", 0))
    relay = Relay(Link(LinkProfile()), Link(LinkProfile()))
    port = await relay.start("127.0.0.1", server_transport.get_extra_info("sockname")[1])
    ends = [await loop.create_datagram_endpoint(lambda: End(answer=False), remote_addr=("127.0.0.1", port)) for _ in range(2)]
    for number, (transport, _) in enumerate(ends):
        transport.sendto(b"%d" % number)
    answers = [await asyncio.wait_for(end.received.get(), 10) for _, end in ends]
    assert answers == [b"re 0", b"re 1"]
    assert relay.flows == 2
    assert server.received.qsize() == 2
    for transport in (server_transport, *(transport for transport, _ in ends)):
        transport.close()
    relay.close()


async def test_links_can_be_replaced_meanwhile() -> None:
    relay, client, _ = await through(LinkProfile(), LinkProfile(), [b"a"], 1)
    relay.replace(Link(LinkProfile(loss=1.0)), Link(LinkProfile()))
    relay._from_client(b"b", next(iter(relay._flows)))
    assert [crossing.arrives for crossing in relay.log if crossing.way == "up"] == [True, False]
    assert client.received.empty()


async def test_a_closed_relay_drops_silently() -> None:
    relay = Relay(Link(LinkProfile()), Link(LinkProfile()))
    await relay.start("127.0.0.1", 9)
    relay._from_client(b"first", ("127.0.0.1", 9))
    relay.close()
    flow = relay._flows["127.0.0.1", 9]
    flow.to_server(b"late")
    relay._to_client(flow, b"late")
    assert relay.flows == 1
