"""What is exported to Prometheus, and that the dashboard and the alerts name nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from voicestream.call_figures import CallFigures
from voicestream.observe.figures import BOUNDS, METRICS, Figures
from voicestream.observe.metrics import ALERTS, DASHBOARD, Metrics, read_package_file
from voicestream.server_shared import Shared
from voicestream.store import MemoryStore
from voicestream.store.redis import RedisStoreStats

SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


def exported() -> dict[str, str]:
    """The label of each series' name."""
    return {f"voicestream_{metric.name}{suffix}": metric.label for metric in METRICS for suffix in SUFFIXES[metric.kind]}


def dashboard_expressions() -> list[str]:
    return [target["expr"] for panel in json.loads(read_package_file(DASHBOARD))["panels"] for target in panel["targets"]]


def alert_expressions() -> list[str]:
    return re.findall(r"^\s+expr: (.+)$", read_package_file(ALERTS), re.MULTILINE)


def all_expressions() -> list[str]:
    return dashboard_expressions() + alert_expressions()


def parse(expression: str) -> Iterator[tuple[str, str]]:
    """The series of an expression and their selectors; a syntax error of the common kinds fails."""
    stack = []
    text = re.sub(r'"[^"]*"', '""', expression)
    for letter in text:
        if letter in "([{":
            stack.append(letter)
        elif letter in ")]}":
            assert stack, f"closed too often: {expression}"
            assert stack.pop() + letter in ("()", "[]", "{}"), f"closed crosswise: {expression}"
    assert not stack, f"not closed: {expression}"
    assert not re.search(r"\(\s*\)|,\s*[,)}]|[*/+-]\s*$", text), f"something is missing: {expression}"
    yield from re.findall(r"(voicestream_\w+)(?:\{([^}]*)\})?", expression)


def test_the_dashboard_and_the_alerts_name_only_what_is_exported() -> None:
    series, expressions = exported(), all_expressions()
    assert len(dashboard_expressions()) > 20
    assert len(alert_expressions()) == read_package_file(ALERTS).count("- alert:") > 5
    for expression in expressions:
        found = list(parse(expression))
        assert found, f"names no series: {expression}"
        for name, selector in found:
            assert name in series, f"{name} is not exported: {expression}"
            labels = {part.split("=")[0].strip(" !~") for part in selector.split(",") if part.strip()}
            assert labels <= {"role", "instance", series[name]}, f"{name} has no label {labels}: {expression}"
        for grouping in re.findall(r"by \(([^)]*)\)", expression):
            known = {series[name] for name, _ in found} | {"le", "instance", "role"}
            assert {label.strip() for label in grouping.split(",")} <= known, expression


def test_a_wrong_expression_would_be_found() -> None:
    for wrong in ("sum(rate(voicestream_frames_total[5m])", "sum(voicestream_frames_total[5m)]", "rate(voicestream_frames_total[5m]) /"):
        with pytest.raises(AssertionError):
            list(parse(wrong))


def test_the_bounds_of_the_house_are_lines_alerts_and_classes() -> None:
    panels = {panel["title"]: panel for panel in json.loads(read_package_file(DASHBOARD))["panels"]}

    def lines(title: str) -> list[float]:
        return [step["value"] for step in panels[title]["fieldConfig"]["defaults"]["thresholds"]["steps"] if step["value"] is not None]

    assert lines("Turn latency") == [0.185, 0.7]
    assert lines("Buffer fill") == [0.1]
    assert lines("Drop-outs") == [0.01]
    assert lines("Resumes") == [0.95]
    assert {0.1, 0.185, 0.5, 0.7, 0.8} <= set(BOUNDS)
    alerts = " ".join(alert_expressions())
    for part in ("(0.95, sum by (le, instance) (rate(voicestream_turn_seconds", "> 0.5", "(0.99", "> 0.8", "> 0.1", "> 0.01", "< 0.95"):
        assert part in alerts
    ids = [panel["id"] for panel in panels.values()]
    assert len(ids) == len(set(ids))


def values(figures: Figures) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    registry = CollectorRegistry()
    Metrics(figures).register(registry)
    text = generate_latest(registry).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_everything_that_is_promised_is_there_even_before_the_first_call() -> None:
    names = {name for name, _ in values(Figures("server"))}
    for metric in METRICS:
        if not metric.label:
            assert {f"voicestream_{metric.name}{suffix}" for suffix in SUFFIXES[metric.kind]} <= names


def test_counters_and_histograms_come_out_as_they_went_in() -> None:
    figures = Figures("server")
    figures.count("calls_rejected", "BUSY", 3)
    for seconds in (0.01, 0.185, 0.186, 9.0):
        figures.observe("turn_seconds", seconds, "this_end")
    found = values(figures)
    assert found["voicestream_calls_rejected_total", (("code", "BUSY"), ("role", "server"))] == 3
    labels = (("reply_by", "this_end"), ("role", "server"))
    buckets = {
        float(dict(key[1])["le"]): number for key, number in found.items() if key[0] == "voicestream_turn_seconds_bucket"
    }
    assert (buckets[0.02], buckets[0.185], buckets[0.25], buckets[5.0], buckets[float("inf")]) == (1, 2, 3, 3, 4)
    assert found["voicestream_turn_seconds_sum", labels] == pytest.approx(9.381)
    assert found["voicestream_turn_seconds_count", labels] == 4


def test_a_counter_never_falls_though_what_it_counts_was_taken_back() -> None:
    figures = Figures("client")
    figures.count("datagrams", "sent_lost", 5)
    assert figures.snapshot().numbers["datagrams", "sent_lost"] == 5
    figures.count("datagrams", "sent_lost", -2)
    assert figures.snapshot().numbers["datagrams", "sent_lost"] == 5
    figures.count("datagrams", "sent_lost", 3)
    assert figures.snapshot().numbers["datagrams", "sent_lost"] == 6


def test_metrics_are_of_figures_of_different_roles() -> None:
    Metrics(Figures("server"), Figures("client"))
    for wrong in ((), (Figures("server"), Figures("server"))):
        with pytest.raises(ValueError, match="one server's figures"):
            Metrics(*wrong)


def test_what_is_counted_beside_the_calls_is_exported_under_names_that_there_are() -> None:
    store = MemoryStore()
    store.stats = RedisStoreStats(failures=4, skipped=9)  # type: ignore[attr-defined]
    shared = Shared(store, on_superseded=lambda session_id: None, before_batch=lambda: None)
    shared.taken, shared.writer.batches = 2, 7
    figures = CallFigures("server")
    figures.sources += [shared.counters, lambda: {("connections", "refused"): 5.0}]
    found = values(figures)
    role = ("role", "server")
    for name, label, number in (
        ("store", "written", 7), ("store_requests", "failures", 4), ("store_requests", "skipped", 9), ("takeovers", "taken", 2),
        ("takeovers", "unreachable", 0), ("connections", "refused", 5),
    ):  # fmt: skip
        assert found[f"voicestream_{name}_total", (("outcome", label), role)] == number
    assert {name for name, _ in shared.counters()} <= {metric.name for metric in METRICS}
