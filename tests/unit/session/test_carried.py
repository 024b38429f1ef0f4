"""What a session takes along to another server."""

from __future__ import annotations

import pytest

from voicestream.config import SessionConfig
from voicestream.session.carried import CLEAR_MARGIN, EVENT_MARGIN, Carried, restore


class Everything:
    """Takes any attribute and any call, and remembers both."""

    def __init__(self) -> None:
        self.__dict__["calls"] = []

    def __getattr__(self, name: str) -> object:
        self.__dict__[name] = made = Everything()
        return made

    def __call__(self, *values: object) -> None:
        self.calls.append(values)


@pytest.mark.interpreted(reason="objects of another class take the place of parts")
def test_clears_and_events_count_on_beyond_what_the_server_before_can_have_used() -> None:  # VS-11.4-1
    carried = Carried.from_json(
        {
            "tracks": [[0, 1, 48000, 1, True, True, 0]],
            "peer": [1200, 1000, 150, 30000, None],
            "lifetime": 300.0,
            "sent": [[0, 800, 700, False, 6, 400]],
            "received": [[0, None, 900, None, 0, 0]],
            "events": [20, 5, [1, 3]],
        }
    )
    tracks, events = Everything(), Everything()
    tracks.senders, tracks.receivers = {0: Everything()}, {0: Everything()}  # type: ignore[assignment]
    restore(carried, tracks, events, 0)  # type: ignore[arg-type]
    sender = tracks.senders[0]
    assert sender.clears.number == sender.clears.confirmed == 6 + CLEAR_MARGIN > 6
    assert CLEAR_MARGIN % 4 == 0
    assert sender.timeline.next_pts == 800
    assert events.restore.calls == [(20 + EVENT_MARGIN, 5, (1, 3))]
    assert SessionConfig().limits.events_per_second * 10 < EVENT_MARGIN  # more than ten seconds' worth of what may be lost
