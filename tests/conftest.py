"""What tests of all kinds share.

Hypothesis profiles: `ci` is repeatable, `dev` explores anew, `nightly` explores long, `mutation` only
looks for a failure (HYPOTHESIS_PROFILE selects).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from voicestream.session import machine

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=60, print_blob=True, database=None, **_COMMON)
settings.register_profile("dev", max_examples=100, print_blob=True, **_COMMON)
settings.register_profile("nightly", max_examples=5000, print_blob=True, **_COMMON)
settings.register_profile("mutation", derandomize=True, max_examples=40, phases=[Phase.explicit, Phase.generate], database=None, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if str(machine.__file__).endswith(".py"):
        return
    for item in items:
        if (mark := item.get_closest_marker("interpreted")) is not None:
            item.add_marker(pytest.mark.skip(reason=f"compiled: {mark.kwargs['reason']}"))


def _check_qlog(header: Mapping[str, Any], events: list[dict[str, Any]]) -> None:
    """The required fields of QlogFileSeq, TraceSeq, VantagePoint, ReferenceTime and Event in the main schema's CDDL."""
    assert header["file_schema"] == "urn:ietf:params:qlog:file:sequential"
    assert header["serialization_format"] == "application/qlog+json-seq"
    assert isinstance(header.get("title", ""), str)
    trace = header["trace"]
    schemas = trace["event_schemas"]
    assert schemas
    assert all(isinstance(uri, str) and ":" in uri for uri in schemas)
    assert trace["vantage_point"]["type"] in {"client", "server", "network", "unknown"}
    common = trace["common_fields"]
    assert common["time_format"] == "relative_to_epoch"
    reference = common["reference_time"]
    assert reference["clock_type"] == "monotonic"
    assert reference["epoch"] == "unknown"  # required with a monotonic clock
    time.strptime(reference["wall_clock_time"][:19], "%Y-%m-%dT%H:%M:%S")
    assert isinstance(common.get("group_id", ""), str)
    for event in events:
        assert isinstance(event["time"], int | float)
        assert event["time"] >= 0
        namespace, _, kind = event["name"].partition(":")
        assert any(namespace in uri for uri in schemas)
        assert kind
        assert ":" not in kind
        assert isinstance(event["data"], dict)


@pytest.fixture
def check_qlog() -> Callable[[Mapping[str, Any], list[dict[str, Any]]], None]:
    """Checks header and events of a trace."""
    return _check_qlog
