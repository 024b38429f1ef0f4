"""One side of a simulated call, whatever joins it to the other: what it speaks, hears and reports."""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from voicestream.config import PlayoutConfig
from voicestream.core.playout import OrderedReader, Playout, PlayoutAccount
from voicestream.events import ClearRequested, Event
from voicestream.session import Session
from voicestream.testing.device import SimulatedDevice
from voicestream.testing.fake_codec import FakeCodec
from voicestream.testing.listener import OrderedListener
from voicestream.testing.measure import Samples
from voicestream.testing.sim import Simulation
from voicestream.testing.source import AheadSource, LiveSource, SentFrame, Talker

__all__ = ["CallSide", "FrameFate", "Heard"]

E = TypeVar("E")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFate:
    """What became of one frame that the far end spoke.

    Attributes:
        sent: The frame as it was given to the far session.
        played_at: When its first sample left the device, in virtual seconds; None if it was never played.
        how: Name of the playout's decision, or "" if it was never played.
    """

    sent: SentFrame
    played_at: float | None
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What one side heard of the other on one track.

    Attributes:
        fates: One per frame that the far end spoke, in order of pts.
        delay_ms: From the end of a frame's capture to the start of its playing.
        account: The playout's own account.
        concealed_share: Units made up for what was lost or late, as a share of the units spoken.
        alien: Frames played that the far end never spoke, or with other bytes (must be 0).
        repeated: Frames played more than once (must be 0).
    """

    fates: tuple[FrameFate, ...]
    delay_ms: Samples
    account: PlayoutAccount
    concealed_share: float
    alien: int
    repeated: int

    @property
    def played(self) -> int:
        """Frames played."""
        return sum(fate.played_at is not None for fate in self.fates)


class CallSide(abc.ABC):
    """A session with its application.

    Attributes:
        session: The session under test.
        other: The far side.
        events: All that the session reported, with the virtual time.
        on_event: Called with each event.
        talkers: What this side has spoken, by track.
        devices: What this side plays on, by track.
    """

    def __init__(self, sim: Simulation, name: str, session: Session) -> None:
        self.name = name
        self.session = session
        self.other: CallSide | None = None
        self.events: list[tuple[float, Event]] = []
        self.on_event: list[Callable[[Event], None]] = []
        self.talkers: dict[int, Talker] = {}
        self.devices: dict[int, tuple[SimulatedDevice, Playout]] = {}
        self.sim = sim
        self._digest = hashlib.blake2b(digest_size=16)

    @abc.abstractmethod
    def flush(self) -> None:
        """Carry away everything that the session has to say; to be called after every verb of it."""

    def flush_control(self) -> None:
        """The same after a verb that can at most have led to a control message; may be cheaper."""
        self.flush()

    def record(self, event: Event) -> None:
        """The session reported something."""
        self.events.append((self.sim.now, event))
        self._digest.update(f"{self.sim.now:.6f} {event!r}".encode())
        for handler in self.on_event:
            handler(event)

    def seen(self, kind: type[E]) -> list[tuple[float, E]]:
        """The events of one kind, with their times."""
        return [(at, event) for at, event in self.events if isinstance(event, kind)]

    def talker(self, track: int = 0, *, codec: FakeCodec | None = None) -> Talker:
        """The voice of this side on `track`, made on first use."""
        if track not in self.talkers:
            own = codec or FakeCodec(seed=self.sim.rng(f"{self.name}/{track}/codec").getrandbits(32))
            self.talkers[track] = Talker(self.sim, self.session, self.flush, own, track=track)
        return self.talkers[track]

    def speak(self, *, track: int = 0, frame_units: int = 8, stop: float | None = None, lump_frames: int = 1,
              pattern: tuple[tuple[float, float], ...] = (), follow: bool = False) -> LiveSource:  # fmt: skip
        """Begin to talk now, live; see `LiveSource`."""
        return LiveSource(
            self.talker(track),
            frame_units=frame_units,
            start=self.sim.now,
            stop=stop,
            pattern=pattern,
            lump_frames=lump_frames,
            follow=follow,
        )

    def synthesiser(self, *, track: int = 0, frame_units: int = 8) -> AheadSource:
        """A source that talks ahead of time; falls silent when the far end asks for it."""
        source = AheadSource(self.talker(track), frame_units=frame_units)
        self.on_event.append(lambda event: source.be_silent() if isinstance(event, ClearRequested) and event.track == track else None)
        return source

    def listen(
        self,
        *,
        track: int = 0,
        drift_ppm: float = 0.0,
        config: PlayoutConfig | None = None,
        phase_s: float = 0.0,
        block_units: int = 8,
        playout: Playout | None = None,
    ) -> SimulatedDevice:
        """Play what the other side sends on `track`, on a device that takes blocks of so many units; `playout` in place of a new one."""
        playout = playout or Playout(config or PlayoutConfig(), track=track)
        self.session.receivers[track].attach_playout(playout)

        name = f"{self.name}/{track}/device"
        start = self.sim.now + phase_s
        device = SimulatedDevice(
            self.sim, playout, on_block=self.reporter(track), block_units=block_units, drift_ppm=drift_ppm, start=start, name=name
        )
        self.devices[track] = (device, playout)
        return device

    def read(self, *, track: int = 0, lookahead_ms: float = 150) -> OrderedListener:
        """Take what the other side sends on `track` in order and as it comes, instead of playing it."""
        reader = OrderedReader(lookahead_ms)
        self.session.receivers[track].attach_ordered(reader)
        return OrderedListener(self.sim, reader, on_progress=self.reporter(track))

    def reporter(self, track: int) -> Callable[[int], None]:
        """What tells the far end how far `track` has been played or read."""

        def report(pts: int) -> None:
            if not self.session.is_closed and self.session.report_played(pts, self.sim.now, track=track):
                self.flush_control()

        return report

    def heard(self, *, track: int = 0) -> Heard:
        """What became of everything that the other side has spoken on `track` so far."""
        device, playout = self.devices[track]
        talkers = self.other.talkers if self.other is not None else {}
        sent = talkers[track].sent if track in talkers else {}
        played: dict[int, tuple[float, str]] = {}
        alien = repeated = 0
        for entry in device.played:
            pts = entry.frame.pts
            if pts not in sent or entry.frame.payload != (sent[pts].copy if entry.is_copy else sent[pts].payload):
                alien += 1
            elif pts in played:
                repeated += 1
            else:
                played[pts] = (entry.at, entry.how)
        unplayed = (None, "")
        fates = tuple(
            FrameFate(sent=sent[pts], played_at=played.get(pts, unplayed)[0], how=played.get(pts, unplayed)[1]) for pts in sorted(sent)
        )
        spoken_units = sum(fate.sent.units for fate in fates)
        return Heard(
            fates=fates,
            delay_ms=Samples((fate.played_at - fate.sent.at) * 1e3 for fate in fates if fate.played_at is not None),
            account=playout.account.snapshot(),
            concealed_share=(device.units["conceal"] + device.units["waiting"]) / max(1, spoken_units),
            alien=alien,
            repeated=repeated,
        )

    def digest(self) -> str:
        """Hash of everything that this side received, reported and played, with the times."""
        whole = self._digest.copy()
        for track in sorted(self.devices):
            whole.update(self.devices[track][0].digest.digest())
        return whole.hexdigest()
