"""Where received media go."""

from __future__ import annotations

from voicestream.config import PlayoutConfig
from voicestream.core.playout import Gap, OrderedReader, Playout
from voicestream.media import MediaFrame, SourceKind
from voicestream.session.delivery import MAX_KEPT, Delivery


def frame(pts: int, units: int = 8) -> MediaFrame:
    return MediaFrame(pts=pts, units=units, payload=b"x")


def still_there(reader: OrderedReader, now: float, seconds: float) -> None:
    """The far end is heard all the time, although it says nothing."""
    for step in range(round(seconds * 50) + 1):
        reader.sign_of_life(now + step / 50)


def test_kept_frames_are_bounded_by_number_too() -> None:
    delivery = Delivery()
    for pts in range(2000):
        delivery.insert(frame(pts, 1), 1.0, SourceKind.AUDIO, None)
    assert delivery.dropped == 2000 - MAX_KEPT


def test_a_clear_drops_what_was_kept_before_its_end(kit) -> None:
    delivery, player = Delivery(), kit.Player()
    for pts in range(0, 80, 8):
        delivery.insert(frame(pts), 1.0, SourceKind.AUDIO, None)
    assert delivery.clear(0, 40, 1) is None
    delivery.attach_playout(player)
    assert player.pts == [40, 48, 56, 64, 72]


def test_kept_frames_keep_the_time_at_which_they_came(kit) -> None:
    class Timed(kit.Player):
        def insert(self, frame, now, *, kind=None, send_time=None) -> None:
            super().insert(frame, now, kind=kind, send_time=send_time)
            seen.append((now, kind, send_time))

    seen: list[object] = []
    delivery = Delivery()
    delivery.insert(frame(0), 1.0, SourceKind.RETRANSMISSION, 77.0)
    delivery.attach_playout(Timed())
    assert seen == [(1.0, SourceKind.RETRANSMISSION, 77.0)]


def test_what_was_heard_is_the_playouts_word_before_the_readers(kit) -> None:
    delivery, player, reader = Delivery(), kit.Player(), kit.Reader()
    player.heard, reader.heard = 100, 200
    delivery.attach_ordered(reader)
    assert delivery.clear(0, 400, 1) == 200
    delivery.attach_playout(player)
    assert delivery.clear(0, 500, 2) == 100


def test_the_real_playout_and_reader_can_be_attached() -> None:
    delivery = Delivery()
    playout, reader = Playout(PlayoutConfig()), OrderedReader(150)
    delivery.insert(frame(0), 1.0, SourceKind.AUDIO, 1.0)
    delivery.set_ahead(0, True)
    delivery.attach_playout(playout)
    delivery.attach_ordered(reader)
    for pts in (8, 16):
        delivery.insert(frame(pts), 1.02, SourceKind.AUDIO, 1.0)
    assert reader.next(1.1) == frame(8)
    delivery.clear(0, 24, 1)
    delivery.finish(24)
    assert reader.held_frames == 0


def reading(*events: tuple[float, int, SourceKind], to_pts: int | None, clear: int = 0) -> tuple[Delivery, OrderedReader, float]:
    """A delivery that has read up to 80, and lost what follows in a break; frames come at times, 20 ms each."""
    delivery, reader = Delivery(), OrderedReader(150)
    delivery.attach_ordered(reader)
    for pts in range(0, 80, 8):
        delivery.insert(frame(pts), 1.0, SourceKind.AUDIO, None)
    while reader.next(1.0) is not None:
        pass
    delivery.catch_up(2.0, 10.0, to_pts)
    for at, pts, kind in events:
        delivery.insert(frame(pts), at, kind, None)
    if clear:
        delivery.clear(0, clear, 1)
    return delivery, reader, max(at for at, _, _ in events)


def test_what_a_break_has_swallowed_is_waited_for() -> None:
    _, reader, now = reading((2.0, 160, SourceKind.AUDIO), to_pts=160)
    assert reader.next(now + 1.0) is None


def test_patience_runs_out_behind_the_end_of_a_track_too() -> None:
    delivery, reader, now = reading((2.0, 160, SourceKind.AUDIO), to_pts=160)
    delivery.finish(168)
    for _ in range(300):
        now += 0.05
        delivery.heard(now)  # reports
        if (item := reader.next(now)) is not None:
            break
    assert item == Gap(80, 160)
    assert 4.5 < now - 2.0 < 5.5


def test_a_loss_after_a_break_is_waited_for_no_longer_than_any_other() -> None:
    events = [(2.0, 160, SourceKind.AUDIO), (2.04, 176, SourceKind.AUDIO)]
    events += [(2.1, pts, SourceKind.RETRANSMISSION) for pts in range(80, 160, 8)]
    for to_pts in (160, None):
        _, reader, now = reading(*events, to_pts=to_pts)
        still_there(reader, now, 0.3)
        given = [reader.next(now + 0.3) for _ in range(13)]
        assert given[-2:] == [Gap(168, 176), frame(176)], f"to_pts {to_pts}: {given[-2:]}"


def test_media_that_a_clear_has_voided_is_not_waited_for_after_a_break() -> None:
    delivery, reader, now = reading((2.0, 160, SourceKind.AUDIO), to_pts=160, clear=168)
    for pts in (176, 184):  # what followed the clear directly is lost
        after = MediaFrame(pts=pts, units=8, payload=b"x", clear_number=1)
        delivery.insert(after, now, SourceKind.AUDIO, None)
    assert reader.next(now) is None
    still_there(reader, now, 0.2)
    assert reader.next(now + 0.2) == Gap(168, 176)


def test_what_is_missed_while_nothing_is_heard_of_us_is_waited_for_as_long_as_that_lasts() -> None:
    delivery, reader = Delivery(60.0), OrderedReader(100, 2000)
    delivery.attach_ordered(reader)
    delivery.insert(frame(0), 0.0, SourceKind.AUDIO, None)
    assert reader.next(0.0) is not None
    delivery.catch_up(1.0, 10.0, 400)
    for number in range(800):
        now = 1.0 + number / 50
        delivery.insert(frame(400 + 8 * number), now, SourceKind.AUDIO, None, unheard=True)
        assert reader.next(now) is None, now
    for number in range(800, 1200):  # from now on it would have come
        now = 1.0 + number / 50
        delivery.insert(frame(400 + 8 * number), now, SourceKind.AUDIO, None)
    assert reader.next(25.5) == Gap(8, 400)
