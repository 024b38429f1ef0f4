"""Where received media go."""

from __future__ import annotations

from voicestream.config import PlayoutConfig
from voicestream.core.playout import OrderedReader, Playout
from voicestream.media import MediaFrame, SourceKind
from voicestream.session.delivery import MAX_KEPT, Delivery


def frame(pts: int, units: int = 8) -> MediaFrame:
    return MediaFrame(pts=pts, units=units, payload=b"x")


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
