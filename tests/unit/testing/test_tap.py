"""Notes about arrivals do not change what is played."""

from __future__ import annotations

from voicestream.media import MediaFrame, SourceKind
from voicestream.testing.tap import TappedPlayout


def test_every_arrival_is_noted_with_its_way() -> None:
    tap = TappedPlayout(track=0)
    frame = MediaFrame(track=0, pts=8, units=8, payload=b"\x48abcdefgh")
    tap.insert(frame, 1.0)
    tap.insert(frame, 1.1, kind=SourceKind.REPAIR)
    assert tap.came == {8: [(1.0, SourceKind.AUDIO), (1.1, SourceKind.REPAIR)]}
    assert tap.account.frames_received == 2
    assert tap.account.frames_duplicate == 1
