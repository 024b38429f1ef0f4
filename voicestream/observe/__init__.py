"""What a call did and why, for those who look at it later: a trace of each call in qlog's form, lines for the log,
and figures of all calls together for a monitoring system (`voicestream.observe.metrics`)."""

from __future__ import annotations

from voicestream.observe.lines import line
from voicestream.observe.qlog import EVENT_SCHEMA, read_trace
from voicestream.observe.tracing import CallTrace, Traces

__all__ = ["EVENT_SCHEMA", "CallTrace", "Traces", "line", "read_trace"]
