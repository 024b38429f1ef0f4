"""What a client does about its path in virtual time: the same decisions as in a real client, with simulated dials."""

from __future__ import annotations

from voicestream.core.path_watch import PathWatch
from voicestream.quic.path_keeper import LOOK_INTERVAL, PathKeeper, Step
from voicestream.session import ClientSession
from voicestream.testing.endpoint_sim import ClientHost

__all__ = ["SimKeeper"]


class SimKeeper:
    """A node that looks after a client's path.

    Args:
        client: An open call.
        replay_ms: How much is wanted once more after a break.
        timeout: Seconds after which a session without a path is given up.

    Attributes:
        steps: (virtual time, step) of everything that was done.
    """

    def __init__(self, client: ClientHost, *, replay_ms: int = 0, timeout: float | None = None) -> None:
        session = client.session
        assert isinstance(session, ClientSession)
        chance = client.sim.rng(f"{client.name}/keeper").random
        self.steps: list[tuple[float, Step]] = []
        self._client = client
        self._keeper = PathKeeper(session, chance=chance, replay_ms=replay_ms, timeout=timeout)
        self._next_look = client.sim.now
        client.connection.keeps_session = True
        client.sim.update(self)

    @property
    def watch(self) -> PathWatch:
        """What is thought of the path."""
        return self._keeper.watch

    def seen(self, step: Step) -> list[float]:
        """When a step was done."""
        return [at for at, one in self.steps if one is step]

    def next_timer(self) -> float | None:
        """When it looks again."""
        return self._next_look

    def handle_timer(self, now: float) -> None:
        """Look, and do what is to be done."""
        self._next_look = now + LOOK_INTERVAL
        self._do(self._keeper.look(now, self._client.connection))

    def network_changed(self) -> None:
        """The client has another address, and is told."""
        client = self._client
        client.move()
        self._do(self._keeper.network_changed(client.sim.now, client.connection))

    def _do(self, steps: list[Step]) -> None:
        client = self._client
        for step in steps:
            self.steps.append((client.sim.now, step))
            if step is Step.DIAL:
                client.redial(keeper=self._keeper)
            elif step is Step.STOP_DIAL:
                client.give_up_dial()
        client.flush()
