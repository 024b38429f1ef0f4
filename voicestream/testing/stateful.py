"""A machine for hypothesis that makes calls in any order over a hostile network and checks what two sessions promise.

Use it as it is, or with what your application does added (needs ``voicestream[testing]``):

    from hypothesis import strategies as st
    from hypothesis.stateful import rule
    from voicestream.config import SessionConfig
    from voicestream.testing.stateful import CallMachine

    class MyCalls(CallMachine):
        client_config = SessionConfig(bitrate_bps=16000)

        @rule(words=st.text(max_size=100))
        def the_agent_answers(self, words):
            if self.call.server.session.is_open:
                self.call.send_event(self.call.server, my_answer(words), ordered=True)

    TestMyCalls = MyCalls.TestCase      # pytest and unittest run it

What it holds, after every step and at the end: no audio and no event is delivered twice, or other than it was sent; a pts never goes
back, neither where frames are given nor where they are heard; ordered events come in order and without gaps; progress never goes
back; every frame given, sent or received has one fate that is counted; what a session holds is bounded; nothing raises; no session
ends by itself; and when the network is good again both sides come to the same end, and what was not given up has arrived. A step
that breaks one of these raises `BrokenPromise`, and hypothesis reduces the steps to the fewest that do.

All is virtual: the network's chances come from a seed that hypothesis draws, and an example takes some milliseconds a step.
"""

from __future__ import annotations

import random
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from voicestream.config import SessionConfig
from voicestream.core.lifecycle import State
from voicestream.errors import StateError
from voicestream.testing.stateful_call import BrokenPromise, Fates, HostileCall, Party, check

__all__ = ["BrokenPromise", "CallMachine", "Fates", "HostileCall", "Party"]

SIDES = st.sampled_from(["client", "server"])
CODES = st.sampled_from([0, 0, 0x16, 0x17])

TOC = {4: 0x00, 8: 0x08, 16: 0x10, 24: 0x18}
"""First byte of an Opus packet of so many units: SILK, narrowband, one frame."""

SETTLE_S = 12.0


class CallMachine(RuleBasedStateMachine):
    """Two sessions, a hostile network, any order of calls.

    Attributes:
        client_config: The client's settings; override it in a subclass.
        server_config: The server's.
        call: The call: parties, network and checks.
    """

    client_config: ClassVar[SessionConfig] = SessionConfig()
    server_config: ClassVar[SessionConfig] = SessionConfig()

    def __init__(self) -> None:
        super().__init__()
        self.call: HostileCall = HostileCall(random.Random(0), self.client_config, self.server_config)
        self._serial = 0
        self._steps = 0

    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        """A call on a good path."""
        self.call = HostileCall(random.Random(seed), self.client_config, self.server_config)
        self.call.open()

    def party(self, side: str) -> Party:
        """The side of this name."""
        return self.call.client if side == "client" else self.call.server

    def _may(self, party: Party) -> bool:
        """Whether verbs work: the call is on, maybe without a connection."""
        return not party.session.is_closed and (party.session.is_open or party.session.is_detached)

    # What the applications do

    @rule(
        side=SIDES,
        units=st.sampled_from(sorted(TOC)),
        count=st.integers(1, 30),
        size=st.integers(4, 150),
        start=st.booleans(),
        end=st.booleans(),
    )
    def talk(self, side: str, units: int, count: int, size: int, start: bool, end: bool) -> None:
        """Some frames, at the pace of speech."""
        party = self.party(side)
        for index in range(count):
            if not self._may(party):
                return
            self._serial += 1
            payload = bytes([TOC[units]]) + self._serial.to_bytes(4, "big") + bytes(size)
            try:
                self.call.send(party, payload, units, start=start and index == 0, end=end and index == count - 1)
            except StateError:
                return  # the track is finished
            self.call.wait(units * 0.0025)

    @rule(side=SIDES, units=st.integers(1, 400))
    def pause(self, side: str, units: int) -> None:
        """Media time passes in silence."""
        if self._may(self.party(side)):
            try:
                self.party(side).session.skip(units)
            except StateError:
                return

    @rule(side=SIDES, payload=st.binary(max_size=60), ordered=st.booleans())
    def event(self, side: str, payload: bytes, ordered: bool) -> None:
        """An application event."""
        party = self.party(side)
        if self._may(party) and len(party.events_sent) < 40:
            self.call.send_event(party, b'"%s"' % payload.hex().encode(), ordered=ordered)

    @rule(side=SIDES, outgoing=st.booleans())
    def clear(self, side: str, outgoing: bool) -> None:
        """A barge-in, by talker or listener."""
        party = self.party(side)
        if self._may(party):
            party.session.clear(self.call.now, outgoing=outgoing)
            self.call.flush(party)

    @rule(side=SIDES, luck=st.integers(0, 4))
    def finish(self, side: str, luck: int) -> None:
        """No more audio, now and then."""
        party = self.party(side)
        if luck == 0 and self._may(party):
            try:
                party.session.finish(self.call.now)
            except StateError:
                return
            self.call.flush(party)

    @rule(side=SIDES, lookahead_ms=st.integers(0, 500), max_rate_bps=st.none() | st.integers(20_000, 200_000))
    def settings(self, side: str, lookahead_ms: int, max_rate_bps: int | None) -> None:
        """Limits change."""
        party = self.party(side)
        if self._may(party):
            party.session.update_settings(self.call.now, lookahead_ms=lookahead_ms, max_rate_bps=max_rate_bps)
            self.call.flush(party)

    @rule(side=SIDES, code=CODES, luck=st.integers(0, 12))
    def close(self, side: str, code: int, luck: int) -> None:
        """The call ends, now and then."""
        if luck == 0 and self.party(side).session.is_open and not self.party(side).session.is_detached:
            self.call.close(self.party(side), code)

    # What the network does

    @rule(
        loss=st.sampled_from([0.0, 0.0, 0.05, 0.3, 1.0]),
        duplicate=st.sampled_from([0.0, 0.2]),
        delay=st.sampled_from([0.0, 0.02, 0.2]),
        jitter=st.sampled_from([0.0, 0.03, 0.5]),
    )
    def weather(self, loss: float, duplicate: float, delay: float, jitter: float) -> None:
        """The path changes."""
        self.call.fates = Fates(loss=loss, duplicate=duplicate, delay=delay, jitter=jitter)

    @rule(seconds=st.sampled_from([0.005, 0.05, 0.3, 2.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.call.wait(seconds)

    @precondition(lambda self: self.call.client.session.state is State.OPEN and self.call.server.session.state is State.OPEN)
    @rule(seconds=st.sampled_from([0.0, 0.1, 3.0]))
    def lose(self, seconds: float) -> None:
        """The connection breaks."""
        self.call.lose()
        self.call.wait(seconds)

    @precondition(lambda self: self.call.client.session.state is State.DETACHED)
    @rule(answered=st.booleans())
    def resume(self, answered: bool) -> None:
        """The client comes back; now and then the connection is gone again before there is an answer."""
        self.call.resume()
        if answered:
            self.call.wait(1.0)
        else:
            self.call.wait(0.01)
            self.call.lose()

    # What holds

    @invariant()
    def every_frame_is_accounted_for(self) -> None:
        """See `HostileCall.check_frames`."""
        self.call.check_frames()

    @invariant()
    def memory_is_bounded(self) -> None:
        """See `HostileCall.check_memory`; every tenth step, for it takes a while."""
        self._steps += 1
        if self._steps % 10 == 0:
            self.call.check_memory()

    def settle(self) -> None:
        """The network becomes good, a broken connection is resumed, and what was said arrives."""
        call = self.call
        call.fates = Fates()
        for _ in range(3):
            call.wait(1.0)
            if call.client.session.state is State.DETACHED:
                call.resume()
        call.wait(SETTLE_S)

    def teardown(self) -> None:
        """The end: both sides agree on it, and nothing is missing that was not given up."""
        call = self.call
        if not call.client.events:
            return
        self.settle()
        call.check_close()
        if call.client.closed is None:
            for party in call.parties:
                waiting = party.session.stats(call.now).events_waiting
                got = len(call.other(party).events_got)
                said = len(party.events_sent)
                check(waiting == 0 and got == said, f"{party.name} sent {said} events, {got} came, {waiting} wait")
            call.close(call.client, 0)
            call.wait(1.0)
        call.check_close()
        call.check_frames()
        call.check_memory()
