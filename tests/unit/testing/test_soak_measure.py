"""What a soak measures."""

from __future__ import annotations

import pytest

from voicestream.config import SessionConfig
from voicestream.session import ClientSession
from voicestream.testing.soak import Findings
from voicestream.testing.soak_measure import left_over, slope


def test_a_slope_is_that_of_the_line_with_its_error() -> None:
    points = [(float(x), 3.0 + 0.5 * x) for x in range(20)]
    assert slope(points) == (pytest.approx(0.5), pytest.approx(0.0, abs=1e-9))
    rough = [(x, y + (1 if x % 2 else -1)) for x, y in points]
    rise, error = slope(rough)
    assert abs(rise - 0.5) < 2 * error < 0.2
    assert slope(points[:2]) == (0.0, 0.0)
    assert slope([(1.0, 1.0)] * 5) == (0.0, 0.0)


def test_a_session_that_somebody_keeps_is_found() -> None:
    before = left_over().get("ClientSession", 0)
    kept = ClientSession(SessionConfig(), authority="a", path="/", entropy=lambda count: bytes(count))
    assert left_over()["ClientSession"] == before + 1
    del kept
    assert left_over().get("ClientSession", 0) == before


def findings(*, rise_mb_hour: float = 0.0, **after: object) -> Findings:
    base = {"tasks": 3, "descriptors": 7}
    found = Findings("server", before=base, after={**base, "left": {}, **after})
    for second in range(300):
        rss = 100e6 + second * rise_mb_hour * 20 / 3600 * 1e6
        found.note({"at": float(second), "rss": rss, "blocks": 300e3 - second, "lags": [0.03 if second < 2 else 0.002]})
    return found


def test_what_is_left_or_grows_is_a_fault_and_nothing_else_is() -> None:
    assert findings().faults(20, 300) == []
    assert findings(rise_mb_hour=0.9).faults(20, 300) == []
    assert findings(rise_mb_hour=1.2).growth(20)[0] == pytest.approx(1.2)
    assert "grows by 1.20 MB" in findings(rise_mb_hour=1.2).faults(20, 300)[0]
    assert findings(rise_mb_hour=50).faults(20, 100) == []  # too short to tell
    assert findings(tasks=4).faults(20, 300) == ["server: 4 tasks after the calls, 3 before"]
    assert findings(descriptors=8).faults(20, 300) == ["server: 8 descriptors after the calls, 7 before"]
    assert findings().lag_p99() == 0.002
    told = "\n".join(findings(rise_mb_hour=1.2).lines(20))
    assert "RSS 100.0 MB at first" in told
    assert "300 thousand blocks of Python's in use at first" in told
    assert "slope -0.18 ± 0.00 thousand" in told
    assert findings(left={"Call": 2}).faults(20, 300) == ["server: 2 Call left"]
