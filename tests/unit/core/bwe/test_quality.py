from __future__ import annotations

import pytest

from voicestream.core.bwe.quality import Quality, QualityGauge


def update(gauge: QualityGauge, now: float, bitrate: int, *, wanted: int = 64000, loss: float = 0.0, paused: bool = False) -> bool:
    return gauge.update(now, bitrate_bps=bitrate, wanted_bps=wanted, loss=loss, paused=paused)


@pytest.mark.parametrize(
    ("bitrate", "loss", "paused", "level"),
    [
        (40000, 0.0, False, Quality.GOOD),
        (20000, 0.0, False, Quality.LIMITED),
        (40000, 0.08, False, Quality.LIMITED),
        (9000, 0.0, False, Quality.POOR),
        (40000, 0.2, False, Quality.POOR),
        (40000, 0.0, True, Quality.PAUSED),
    ],
)
def test_the_level_is_that_of_the_weakest_part(bitrate: int, loss: float, paused: bool, level: Quality) -> None:
    gauge = QualityGauge()
    update(gauge, 0.0, bitrate, loss=loss, paused=paused)
    assert gauge.level is level


def test_an_application_that_wants_little_has_a_good_call() -> None:
    gauge = QualityGauge()
    assert not update(gauge, 0.0, 12000, wanted=12000)
    assert gauge.level is Quality.GOOD


def test_it_gets_worse_at_once_and_better_after_two_seconds() -> None:
    gauge = QualityGauge()
    assert update(gauge, 0.0, 9000)
    assert not update(gauge, 1.0, 40000)
    assert not update(gauge, 2.5, 40000)
    assert update(gauge, 3.0, 40000)
    assert gauge.level is Quality.GOOD


def test_a_relapse_begins_the_wait_anew() -> None:
    gauge = QualityGauge()
    update(gauge, 0.0, 9000)
    update(gauge, 1.0, 40000)
    update(gauge, 2.0, 9000)
    assert not update(gauge, 3.5, 40000)
    assert gauge.level is Quality.POOR
