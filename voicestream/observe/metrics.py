"""Figures of calls for Prometheus (extra ``voicestream[metrics]``)::

    from voicestream.observe.metrics import Metrics

    async with voicestream.serve(handler, ...) as server:
        Metrics(server.figures).register()          # into prometheus_client's own registry; or
        Metrics(server.figures).start(9464)         # a small HTTP server of its own, on 127.0.0.1

The dashboard and the alert rules that go with them are beside this module; ``voicestream dashboard`` prints them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.resources import files
from itertools import accumulate
from typing import TYPE_CHECKING

from voicestream.observe.figures import BOUNDS, METRICS, Delays, Figures, Metric, Values

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family
    from prometheus_client.registry import CollectorRegistry

__all__ = ["ALERTS", "DASHBOARD", "Metrics", "read_package_file"]

DASHBOARD = "dashboard.json"
"""The package's file with a dashboard for Grafana."""

ALERTS = "alerts.yml"
"""The package's file with alert rules for Prometheus."""

_MISSING = "metrics need prometheus-client: pip install 'voicestream[metrics]'"


def read_package_file(name: str) -> str:
    """The text of `DASHBOARD` or `ALERTS`."""
    return files("voicestream.observe").joinpath(name).read_text(encoding="utf-8")


class Metrics:
    """A collector for prometheus_client over figures of calls: `Server.figures`, or a `CallFigures` that client calls report to.

    Args:
        figures: One or two of them, of different roles.

    Raises:
        ModuleNotFoundError: prometheus-client is not installed; the message says what to do.
        ValueError: Two of the same role.
    """

    def __init__(self, *figures: Figures) -> None:
        try:
            import prometheus_client  # noqa: F401
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(_MISSING) from error
        if not figures or len({one.role for one in figures}) != len(figures):
            raise ValueError("metrics are of one server's figures, of some clients', or of both")
        self._figures = figures
        for one in figures:
            one.wanted = True

    def register(self, registry: CollectorRegistry | None = None) -> Metrics:
        """Add it to a registry, prometheus_client's own by default; returns itself."""
        from prometheus_client import REGISTRY

        (registry or REGISTRY).register(self)
        return self

    def start(self, port: int, host: str = "127.0.0.1") -> Callable[[], None]:
        """Serve these metrics, and nothing else, by HTTP on a thread of its own.

        Args:
            port: TCP port.
            host: Address to listen on; whoever reaches it can read all figures.

        Returns:
            What ends it.

        Raises:
            OSError: The port is taken.
        """
        from prometheus_client import CollectorRegistry, start_http_server

        registry = CollectorRegistry()
        self.register(registry)
        server, thread = start_http_server(port, addr=host, registry=registry)

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join(timeout=5)

        return stop

    def describe(self) -> Iterator[Family]:
        """All that there is, without values: registering does not look at the calls."""
        for metric in METRICS:
            yield _family(metric)

    def collect(self) -> Iterator[Family]:
        """All values; called by prometheus_client, on a thread of its own."""
        snapshots = [(one.role, one.snapshot()) for one in self._figures]
        for metric in METRICS:
            family = _family(metric)
            for role, values in snapshots:
                _fill(family, metric, role, values)
            yield family


def _family(metric: Metric) -> Family:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    name, labels = f"voicestream_{metric.name}", ["role", *([metric.label] if metric.label else [])]
    if metric.kind == "histogram":
        return HistogramMetricFamily(name, metric.text, labels=labels)
    return (CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily)(name, metric.text, labels=labels)


def _fill(family: Family, metric: Metric, role: str, values: Values) -> None:
    own = [role]
    if metric.kind == "histogram":
        found = {label: delays for (name, label), delays in values.delays.items() if name == metric.name}
        for label, delays in sorted(found.items() if found or metric.label else {"": Delays()}.items()):
            sums = list(accumulate(delays.counts))
            buckets = [(str(bound), number) for bound, number in zip((*BOUNDS, "+Inf"), sums, strict=True)]
            family.add_metric([*own, *([label] if metric.label else [])], buckets=buckets, sum_value=delays.total)  # type: ignore[attr-defined]
        return
    numbers = {label: number for (name, label), number in values.numbers.items() if name == metric.name}
    for label, number in sorted(numbers.items() if numbers or metric.label else {"": 0.0}.items()):
        family.add_metric([*own, *([label] if metric.label else [])], number)  # type: ignore[attr-defined]
