from __future__ import annotations

import pytest

from voicestream.testing.measure import Samples


def test_percentiles_are_values_that_occurred() -> None:
    samples = Samples([3, 1, 2, 4])
    assert [samples.percentile(p) for p in (0, 25, 50, 75, 76, 100)] == [1, 1, 2, 3, 4, 4]
    assert samples.median == 2
    assert samples.mean == 2.5
    assert (samples.minimum, samples.maximum) == (1, 4)
    assert list(samples) == [3, 1, 2, 4]
    assert "P50 2.0" in repr(samples)


def test_no_samples_answer_zero() -> None:
    samples = Samples()
    assert (samples.median, samples.mean, samples.minimum, samples.maximum, len(samples)) == (0, 0, 0, 0, 0)
    assert repr(samples) == "Samples(none)"


def test_a_percentile_outside_the_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="percent"):
        Samples([1]).percentile(101)
