"""Tools to test calls without a network, for users of the package as well as for its own tests.

* `Link` emulates one direction of a bad path (delay, jitter, loss, rate, outages, recorded traces), sans-IO.
* ``session_sim.SessionCall``: two sessions in virtual time, minutes of call in seconds.
* ``endpoint_sim.EndpointWorld``: the same with real QUIC: handshake, rebinding, many clients on one server.
* ``fake_codec.FakeCodec``: packets that tell which frame they are.
* ``strategies``: hypothesis strategies for every value on the wire (needs ``voicestream[testing]``).
* ``stateful.CallMachine``: a hypothesis machine that makes calls in any order over a hostile network, and what must hold.
* ``python -m voicestream.testing.vectors``: the specification's vectors of conversations and behaviour.
* ``python -m voicestream.testing.barge_in``: interruptions at random, and how soon and how exactly they work.
* ``python -m voicestream.testing.fuzz``: hostile input in every state; ``fuzz_guided``: the same and each decoder, guided by coverage.
* ``python -m voicestream.testing.soak``: twenty real calls for a long time, and what they leave behind.
* ``python -m voicestream.testing.bench``: rate control on shared and changing links, with competitors, measured against bars.

All but the first are not imported from here, so that using a link loads neither QUIC nor hypothesis.
"""

from __future__ import annotations

from voicestream.testing.link import Link, LinkStats, own_queueing_ms
from voicestream.testing.loss import BurstLoss
from voicestream.testing.measure import Samples
from voicestream.testing.profile import LinkProfile, NetworkProfile
from voicestream.testing.sim import Node, Simulation, SimulationError

__all__ = [
    "BurstLoss",
    "Link",
    "LinkProfile",
    "LinkStats",
    "NetworkProfile",
    "Node",
    "Samples",
    "Simulation",
    "SimulationError",
    "own_queueing_ms",
]
