"""The tracks of a session: which sender or receiver a message, a frame or a verb is for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from voicestream.codepoints import ErrorCode
from voicestream.config import PTS_UNIT_MS, Track
from voicestream.core.feedback import SentDatagram
from voicestream.core.latency import Latency
from voicestream.core.recovery.fec import Source
from voicestream.errors import ProtocolError
from voicestream.media import SourceKind
from voicestream.session.delivery import LivePlayout
from voicestream.session.hub import Hub
from voicestream.session.receiver import BREAK_UNITS, Receiver
from voicestream.session.recovery import Recovery
from voicestream.session.replay import Replay
from voicestream.session.sender import ANCHOR_KEY, Sender
from voicestream.wire import messages as wire
from voicestream.wire.frame_values import AnchorFrame, AudioFrame, CopyFrame, MissingFrame, PlayoutEntry, RepairFrame, RetransmissionFrame
from voicestream.wire.frames import decode_media_flags
from voicestream.wire.opus_toc import frame_units
from voicestream.wire.parameters import Held

__all__ = ["Tracks"]


FAR_FRAMES: Final = 300
"""Frames during which a path that seemed long can turn out to be shorter."""


class Tracks:
    """Senders and receivers by track id.

    Attributes:
        senders: Tracks that this end sends.
        receivers: Tracks that this end receives.
        recovery: Repairs and retransmissions of all of them.
        replay: What is owed after a break.
        latency: How late speech is.
    """

    __slots__ = ("_hub", "latency", "receivers", "recovery", "replay", "senders")

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.senders: dict[int, Sender] = {}
        self.receivers: dict[int, Receiver] = {}
        self.recovery = Recovery(hub)
        self.replay = Replay(hub)
        self.latency = Latency()

    def open(self, agreed: Iterable[Track]) -> None:
        """Set up what was agreed."""
        for track in agreed:
            if track.send:
                self.senders[track.track_id] = Sender(self._hub, track)
            if track.receive:
                self.receivers[track.track_id] = Receiver(self._hub, track)
        self.recovery.open(sent=self.senders, received=self.receivers)
        self.latency.open(sent=min(self.senders, default=None), received=min(self.receivers, default=None))

    # For the application: a track that is not there is its mistake

    def sender(self, track: int) -> Sender:
        """The sender of a track. Raises ValueError when this end does not send it."""
        if track not in self.senders:
            raise ValueError(f"track {track} is not sent in this session; those that are: {sorted(self.senders)}")
        return self.senders[track]

    def receiver(self, track: int) -> Receiver:
        """The receiver of a track. Raises ValueError when this end does not receive it."""
        if track not in self.receivers:
            raise ValueError(f"track {track} is not received in this session; those that are: {sorted(self.receivers)}")
        return self.receivers[track]

    # For the peer: a track that is not there is its mistake. VS-5.2-2

    def outgoing(self, track: int) -> Sender:
        """The sender that the peer speaks of. Raises ProtocolError (TRACK_ERROR)."""
        sender = self.senders.get(track)
        if sender is None:
            raise ProtocolError(ErrorCode.TRACK_ERROR, f"track {track} is not one that this end sends")
        return sender

    def incoming(self, track: int) -> Receiver:
        """The receiver that the peer speaks of. Raises ProtocolError (TRACK_ERROR)."""
        receiver = self.receivers.get(track)
        if receiver is None:
            raise ProtocolError(ErrorCode.TRACK_ERROR, f"track {track} is not one that this end receives")
        return receiver

    def on_clear(self, message: wire.Clear, now: float) -> None:
        """CLEAR, from either end of the track."""
        if message.from_receiver:
            # Not on a repetition: what has been said since is still wanted.
            if self.outgoing(message.track).on_clear(message, now):
                self._void(message.track)
        else:
            receiver = self.incoming(message.track)
            receiver.on_clear(message, now)
            self.recovery.missed.voided(message.track, receiver.clears.to_pts)

    def clear(self, now: float, track: int, *, outgoing: bool) -> int:
        """Void a track from this end; returns the clear's number. Raises ValueError when the track does not go that way."""
        if outgoing:
            number = self.sender(track).clear(now)
            self._void(track)
        else:
            receiver = self.receiver(track)
            number = receiver.request_clear(now)
            self.recovery.missed.voided(track, receiver.clears.to_pts)
        return number

    def _void(self, track: int) -> None:
        """VS-8.1-2: what was sent is neither repaired nor sent again."""
        self.recovery.void(track)
        self.replay.void(track)
        self.latency.voided(track)

    def on_cleared(self, message: wire.Cleared, now: float) -> None:
        """CLEARED."""
        self.outgoing(message.track).on_cleared(message, now)

    def on_progress(self, message: wire.Progress, now: float) -> None:
        """PROGRESS."""
        self.outgoing(message.track).on_progress(message, now)

    def on_finish(self, message: wire.Finish, now: float) -> None:
        """FINISH."""
        receiver = self.incoming(message.track)
        receiver.on_finish(message, now)
        patience = receiver.patience(now)
        if patience:
            self._ask_again(receiver, receiver.wanted_from, now, patience)
        self.recovery.missed.ended(message.track, receiver.wanted_from, message.pts, now, patience=patience)

    def on_finished(self, message: wire.Finished, now: float) -> None:
        """FINISHED."""
        self.outgoing(message.track).on_finished(message, now)

    # For the datagrams

    def heard(self, now: float) -> None:
        """A datagram has come: the path lives."""
        for receiver in self.receivers.values():
            receiver.delivery.heard(now, unheard=self._hub.is_unheard)

    def asked(self, track: int, now: float) -> None:
        """A question for what is missing leaves: the far end answers, whatever it has, if the path lives."""
        ordered = self.receivers[track].delivery.ordered
        if ordered is not None:
            ordered.expect_answer(now)

    def on_media(self, frame: AudioFrame | RetransmissionFrame, now: float, send_time: float) -> None:
        """A coded frame, the first time or again; and whatever repairs bring back with its help."""
        receiver = self.incoming(frame.track)
        kind = SourceKind.RETRANSMISSION if type(frame) is RetransmissionFrame else SourceKind.AUDIO
        older_end = receiver.wanted_from
        clears = receiver.clears.number
        counts, playout = receiver.counts, receiver.delivery.playout
        if playout is not None and (not counts.is_told or (counts.is_far and counts.frames < FAR_FRAMES)):
            self._begin(receiver, playout)
        media = receiver.on_media(frame, kind, now, send_time)
        plain_end = self.recovery.missed.tracks[frame.track].plain_end
        if receiver.clears.number > clears:  # it has overtaken its clear
            self.recovery.missed.voided(frame.track, receiver.clears.to_pts)
        if media is None and kind is SourceKind.AUDIO:
            units = frame_units(receiver.track, frame.payload)
            self.recovery.missed.came_again(frame.track, receiver.media.full_pts(frame.pts), units, now)
            self._overtaken(receiver, units)
        elif media is not None:
            self.latency.came(media, send_time, first=kind is SourceKind.AUDIO)
            if kind is SourceKind.RETRANSMISSION:
                self._hub.record(now, "recovery:retransmission_received", track=media.track, pts=media.pts)
            elif receiver.delivery.playout is not None and self.recovery.missed.tells_loss(media):
                waiting = self.recovery.missed.waiting(media.track, media.units)
                if waiting is not None:
                    receiver.delivery.playout.expect_repairs(waiting.seconds, answered=waiting.answered)
            plain, patience = kind is SourceKind.AUDIO, receiver.patience(now)
            if patience:
                self._ask_again(receiver, older_end, now, patience)
            elif receiver.delivery.ordered is not None:
                patience = self.recovery.missed.answered_within()
                receiver.delivery.ordered.wait_for(patience)
            self._recovered(receiver, self.recovery.missed.arrived(media, older_end, now, patience=patience, plain=plain), now, send_time)
            if plain and media.pts < plain_end:
                self._overtaken(receiver, media.units)

    def _overtaken(self, receiver: Receiver, units: int) -> None:
        """What was missing has come by itself: where that is usual, nobody waits for repairs."""
        playout, track = receiver.delivery.playout, receiver.track.track_id
        if playout is not None and self.recovery.missed.waiting(track, units) is None:
            playout.expect_repairs(0.0, answered=False)

    def answered(self, sent_at: float, now: float, rtt: float | None) -> None:
        """What left at `sent_at` has arrived: who reads in order is done with waiting for an answer, or asks once more."""
        for receiver in self.receivers.values():
            if receiver.delivery.ordered is not None and receiver.answered(sent_at, now, rtt or 0.0):
                self._ask_again(receiver, receiver.wanted_from, now, receiver.patience(now))

    def _ask_again(self, receiver: Receiver, end_pts: int, now: float, patience: float) -> None:
        """What was missing before a break began is still waited for by whoever takes the track in order."""
        track = receiver.track.track_id
        for first, units in receiver.holes_before(end_pts):
            self._hub.record(now, "recovery:hole", track=track, pts=first, units=units)
            self.recovery.missed.tracks[track].missing.missed_still(first, units, now, now + patience)

    def _begin(self, receiver: Receiver, playout: LivePlayout) -> None:
        """Tell a playout what to expect of the path before anything got lost, and if the path turns out to be shorter.

        A handshake's large packets take long on a slow path.
        """
        counts = receiver.counts
        wait = self.recovery.missed.beginning()
        if counts.is_far != (wait is not None):
            playout.suppose(wait or 0.0)
        counts.is_told, counts.is_far = True, wait is not None

    def on_repair(self, frame: RepairFrame, now: float, send_time: float) -> None:
        """A repair, and what it brings back."""
        receiver = self.incoming(frame.track)
        self._recovered(receiver, self.recovery.missed.on_repair(frame, max(receiver.media.end_pts - 1, 0)), now, send_time)

    def on_copy(self, frame: CopyFrame, now: float, send_time: float) -> None:
        """A low-rate copy."""
        self.recovery.counts.copies_received += 1
        self.incoming(frame.track).on_copy(frame, now, send_time)

    def on_missing(self, frame: MissingFrame, now: float, rtt: float | None) -> None:
        """The far end asks for media again. What a break has swallowed comes within the bounds of what is owed after a resume."""
        timeline = self.outgoing(frame.track).timeline
        next_pts = timeline.next_pts
        # Behind the end of a track there is no audio of which redundancy could be a part.
        if timeline.finished or self.replay.is_busy(frame.track) or any(units >= BREAK_UNITS for _, units in frame.ranges):
            self.replay.owe_more(frame.track, self.recovery.asked(frame, next_pts, now), now)
        else:
            self.recovery.on_missing(frame, next_pts, now, rtt)

    def _recovered(self, receiver: Receiver, sources: list[Source], now: float, send_time: float) -> None:
        """Frames that repairs brought back are treated like the frames themselves. VS-10.3-2"""
        while sources:
            source = sources.pop(0)
            start, end, clear_number = decode_media_flags(source.flags)
            frame = RetransmissionFrame(
                track=receiver.track.track_id,
                pts=source.pts & 0xFFFF,
                payload=source.payload,
                clear_number=clear_number,
                talkspurt_start=start,
                talkspurt_end=end,
            )
            older_end = receiver.wanted_from
            try:
                media = receiver.on_media(frame, SourceKind.REPAIR, now, send_time)
            except ProtocolError:
                # Sender and receiver may differ about a source of the repair; the sum is nobody's fault then.
                self.recovery.counts.repairs_invalid += 1
                continue
            if media is not None:
                self.latency.came(media, send_time, first=False)
                self.recovery.counts.frames_repaired += 1
                self._hub.record(now, "recovery:repaired", track=media.track, pts=media.pts)
                sources += self.recovery.missed.arrived(media, older_end, now)

    def on_anchor(self, frame: AnchorFrame) -> None:
        """The full pts of what follows."""
        self.incoming(frame.track).on_anchor(frame)
        self.latency.anchored(frame.track, frame.pts, ahead=frame.ahead)

    def on_playout(self, entries: Iterable[PlayoutEntry], now: float, rtt: float | None, far_time: float) -> None:
        """Playout entries of a report, which left at `far_time` on the far end's clock; of a track that is not sent they mean nothing."""
        for entry in entries:
            sender = self.senders.get(entry.track)
            if sender is not None:
                playhead = sender.on_playout(entry, now, rtt)
                if playhead is not None:
                    self.latency.heard_there(entry.track, playhead, far_time)

    # Between two connections

    def detached(self, now: float) -> None:
        """Nothing leaves for now: what waits is kept for the resume."""
        for sender in self.senders.values():
            frames = sender.queue.take_dropped()
            while len(sender.queue):
                frames.append(sender.queue.pop().frame)
            self.recovery.keep(sender.track.track_id, frames, now)

    def nothing_comes(self, now: float) -> None:
        """The connection is gone, or is left: what is missing comes on the next one."""
        for receiver in self.receivers.values():
            receiver.delivery.nothing_comes(now)

    def held(self, now: float) -> tuple[Held, ...]:
        """What this end has of the tracks that it receives."""
        return tuple(receiver.held(now) for receiver in self.receivers.values())

    def expect(self, held: Iterable[Held], replay_ms: int) -> None:
        """Of what this end had, the last `replay_ms` are to be sent once more."""
        for one in held:
            self.receivers[one.track].replay.expect(one.next_pts, round(replay_ms / PTS_UNIT_MS))

    def resumed(self, held: Iterable[Held], replay_ms: int, now: float) -> None:
        """On a new connection: what the far end misses, and what it may not know.

        Raises:
            ProtocolError: TRACK_ERROR, for a track that this end does not send.
        """
        for receiver in self.receivers.values():
            receiver.resumed(now)
        for sender in self.senders.values():
            sender.restate(now)
        for one in held:
            self.outgoing(one.track)
            self.replay.owe(one, self.recovery.outgoing[one.track].retained, round(replay_ms / PTS_UNIT_MS), now)

    def on_acked(self, datagram: SentDatagram) -> None:
        """A datagram of ours has arrived, with all that is repeated until it does."""
        self.replay.acked(datagram.media)
        for key, version in datagram.tokens:
            if isinstance(key, tuple) and key[0] == ANCHOR_KEY:
                self.senders[key[1]].anchors.confirm(version)
            else:
                self._hub.outgoing.repeats.confirm(key, version)

    def on_lost(self, datagram: SentDatagram) -> None:
        """A datagram of ours is lost. What a retransmission would bring is in its `media`."""
        self.replay.lost(datagram.media)
        for track, _pts in datagram.media:
            self.senders[track].counts.frames_lost += 1

    def on_found(self, datagram: SentDatagram) -> None:
        """A datagram of ours that was held for lost has come after all."""
        for track, _pts in datagram.media:
            self.senders[track].counts.frames_lost -= 1

    def playout_entries(self) -> tuple[PlayoutEntry, ...]:
        """How the playouts stand, for a report."""
        entries = [receiver.playout_entry() for receiver in self.receivers.values()]
        return tuple([entry for entry in entries if entry is not None])

    def handle_timer(self, now: float) -> None:
        """Let every receiver do what is due."""
        for receiver in self.receivers.values():
            receiver.handle_timer(now)

    def next_timer(self, bundle: int | None, hold_until: float) -> float | None:
        """When something will be due, or None. No `bundle` for a pause of the audio; none of it before `hold_until`."""
        first: float | None = None
        for receiver in self.receivers.values():
            if (timer := receiver.played.next_timer()) is not None and (first is None or timer < first):
                first = timer
        if bundle is not None:
            for sender in self.senders.values():
                if not sender.queue.is_idle and (timer := sender.next_timer(bundle)) is not None:
                    timer = max(timer, hold_until)
                    first = timer if first is None else min(first, timer)
        return first
