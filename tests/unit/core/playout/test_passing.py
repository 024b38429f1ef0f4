"""A frame that comes too late once by chance is passed over; where the delay has grown it is played late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from tests.unit.core.playout.test_playout import Bench, frame, names, played
from voicestream.core.playout import Decode, Expand, Merge
from voicestream.core.playout.buffer import Entry, FrameBuffer
from voicestream.core.playout.intake import Intake
from voicestream.core.playout.passing import is_passed_over
from voicestream.media import SourceKind


def late_once(bench: Bench, pts: int, *, also_late: int = 0) -> list[object]:
    """The frame at `pts` comes one tick too late, and with it those after it but for the last `also_late`."""
    found: list[object] = list(bench.tick())
    for index in range(2 - also_late):
        bench.insert(frame(pts + 8 * index), late=0.019)
    found += bench.tick()
    return found


def test_a_single_late_frame_in_the_middle_of_talk_is_passed_over_and_the_next_keeps_its_time() -> None:
    bench = Bench()
    pts = bench.settled()
    waited, next_one = late_once(bench, pts)
    assert isinstance(waited, Expand)
    assert waited.frame is None
    assert isinstance(next_one, Merge | Decode)
    assert next_one.frame.pts == pts + 8
    account = bench.playout.account
    assert (account.frames_late, account.lost_units, account.frames_concealed) == (1, 8, 1)
    assert account.frames_received == account.frames_played + account.frames_late + bench.playout.held_frames
    assert played(bench.talk(pts + 16, 3)) == [pts + 16, pts + 24, pts + 32]


def test_a_late_frame_is_played_where_the_next_one_is_late_as_well() -> None:
    bench = Bench()
    pts = bench.settled()
    _, next_one = late_once(bench, pts, also_late=1)
    assert isinstance(next_one, Merge | Decode)
    assert next_one.frame.pts == pts
    assert bench.playout.account.frames_late == 0


def test_in_the_beginning_of_a_call_the_delay_grows_instead() -> None:
    bench = Bench()
    pts = bench.settled(20)
    decisions = late_once(bench, pts)
    assert played(decisions)[:1] == [pts], names(decisions)  # type: ignore[arg-type]
    assert bench.playout.account.frames_late == 0


@pytest.mark.parametrize(
    ("times", "early", "waited", "passed"),
    [(1, 0.0, 8.0, True), (2, 0.0, 7.0, True), (3, 0.0, 8.0, False), (1, 8.0, 8.0, False), (1, 0.0, 4.0, False)],
)
def test_what_is_late_often_or_by_its_source_or_by_less_is_played(times: int, early: float, waited: float, passed: bool) -> None:
    front = Entry(frame(80), SourceKind.AUDIO, 1.0, 1.0)
    buffer = FrameBuffer(10)
    buffer.insert(front)
    buffer.insert(Entry(frame(88), SourceKind.AUDIO, 1.0, 1.0, early))
    delay = SimpleNamespace(base=0.0, is_settled=True, late_events=lambda slack: times)
    intake = SimpleNamespace(delay=delay, buffer=buffer, gate=SimpleNamespace(is_ahead=lambda pts: False))
    assert is_passed_over(front, cast(Intake, intake), 400.0, waited) is passed
