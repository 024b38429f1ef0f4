"""Two sides that clear the same track at random on a hostile link: in the end both agree, and nothing cleared is heard."""

from __future__ import annotations

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from voicestream.testing.profile import LinkProfile
from voicestream.testing.session_sim import SessionCall

steps = st.lists(
    st.tuples(st.sampled_from(["talker", "listener", "both", "talk on", "reply"]), st.integers(0, 400)), min_size=1, max_size=14
)
links = st.builds(
    LinkProfile,
    delay_ms=st.sampled_from([10.0, 40.0, 100.0]),
    jitter_ms=st.sampled_from([0.0, 20.0, 60.0]),
    loss=st.sampled_from([0.0, 0.1, 0.3]),
    duplicate=st.sampled_from([0.0, 0.2]),
    reorder=st.booleans(),
)


class Talk:
    """The server talks, ahead of time or live; the client listens; both clear.

    Heard is what the device was given; void is what a clear known to the listener has closed at that moment.
    """

    def __init__(self, link: LinkProfile, seed: int, ahead: bool) -> None:
        self.call = call = SessionCall(link, seed=seed)
        call.open(within=30)
        self.device = call.client.listen(block_units=3)
        self.voice = call.server.synthesiser() if ahead else None
        if self.voice is None:
            call.server.speak()
        else:
            self.voice.say(30)
        self.given = 0.0
        self.closed: list[tuple[float, int, int]] = []

    def do(self, what: str, wait_ms: int) -> None:
        call, now = self.call, self.call.sim.now
        if what in ("talker", "both"):
            call.server.session.clear(now, outgoing=True)
        if what in ("listener", "both"):
            call.client.session.clear(now, outgoing=False)
        if what == "reply" and self.voice is not None:
            self.voice.say(30)
        call.server.flush()
        call.client.flush()
        self.watch(wait_ms / 1e3)

    def watch(self, seconds: float) -> None:
        """Let time pass; note each clear of the listener with what the device had been given by then."""
        end = self.call.sim.now + seconds
        while self.call.sim.now < end:
            self.note()
            self.call.sim.run(min(end, self.call.sim.now + 0.0025))
        self.note()

    def note(self) -> None:
        clears = self.call.client.session.receivers[0].clears
        if not self.closed or self.closed[-1][1:] != (clears.number, clears.to_pts):
            self.closed.append((self.device.given_units, clears.number, clears.to_pts))

    def check(self) -> None:
        sim, device = self.call.sim, self.device
        sender = self.call.server.session._tracks.senders[0]
        receiver = self.call.client.session.receivers[0]
        sim.check(
            (sender.clears.number, sender.clears.to_pts) == (receiver.clears.number, receiver.clears.to_pts),
            f"they disagree: {sender.clears.number} to {sender.clears.to_pts}, {receiver.clears.number} to {receiver.clears.to_pts}",
        )
        sim.check(sender.clears.confirmed == sender.clears.number, "a clear was never confirmed")
        pts = [entry.frame.pts for entry in device.played]
        sim.check(pts == sorted(set(pts)), f"the pts went back: {pts}")
        # Noted every 2.5 ms: a block may have been given between a clear and the note of it, but no more.
        for entry in device.played:
            end = entry.position if entry.frame.pts in device.cut_short else entry.position + entry.made_units
            for units, number, to_pts in self.closed:
                void = entry.frame.clear_number < number and entry.frame.pts < to_pts
                sim.check(not (void and end > units + 0.01), f"pts {entry.frame.pts} was heard after clear {number}")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(links, steps, st.integers(0, 2**16), st.booleans())
@example(LinkProfile(delay_ms=100.0, loss=0.3), [("listener", 85), ("talker", 1), ("listener", 0)], 522, True)
def test_two_sides_that_clear_at_random_agree_in_the_end(link: LinkProfile, moves: list[tuple[str, int]], seed: int, ahead: bool) -> None:
    talk = Talk(link, seed, ahead)
    talk.watch(0.5)
    for what, wait_ms in moves:
        talk.do(what, wait_ms)
    talk.watch(6.0)  # longer than anything is repeated; then the control stream has said it
    talk.check()
