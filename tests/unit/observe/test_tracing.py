"""Traces of calls: bounded, complete, in qlog's form, and off the path of the audio."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from voicestream.observe import EVENT_SCHEMA, CallTrace, Traces, read_trace, tracing
from voicestream.observe.writing import Background

CheckQlog = Callable[[Mapping[str, Any], list[dict[str, Any]]], None]

SESSION_ID = "0123456789abcdef0123456789abcdef"


def opened(traces: Traces, now: float = 100.0) -> CallTrace:
    trace = traces.begin()
    trace.record(now, "session:state", {"old": "idle", "new": "offered"})
    trace.record(now + 0.05, "session:opened", {"session_id": SESSION_ID})
    return trace


def test_a_trace_has_the_fields_that_the_main_schema_requires(tmp_path: Path, check_qlog: CheckQlog) -> None:
    trace = opened(Traces(tmp_path, "server"))
    trace.record(100.5, "playout:decode", {"track": 0, "pts": 8, "reason": "due"})
    trace.flush()
    path = tmp_path / f"{SESSION_ID}-server.sqlog"
    header, events = read_trace(path)
    check_qlog(header, events)
    assert header["trace"]["common_fields"]["group_id"] == SESSION_ID
    assert header["trace"]["event_schemas"] == [EVENT_SCHEMA]
    assert [(event["time"], event["name"]) for event in events] == [
        (0, "voicestream:session_state"),
        (50, "voicestream:session_opened"),
        (500, "voicestream:playout_decode"),
    ]
    raw = path.read_bytes()
    assert raw.startswith(b'\x1e{"file_schema"')
    assert raw.endswith(b"}\n")
    assert raw.index(b"serialization_format") < 256
    for part in raw.split(b"\x1e")[1:]:
        assert part.count(b"\n") == 1
        json.loads(part)


def test_what_comes_later_is_added_and_written_by_itself(tmp_path: Path) -> None:
    trace = opened(Traces(tmp_path, "client"))
    trace.flush()
    for index in range(50):
        trace.record(101 + index, "bwe:estimate", {"target_bps": index})
    trace.flush()
    assert [event["data"]["target_bps"] for event in read_trace(trace.path)[1][2:]] == list(range(50))


def test_records_that_nobody_has_written_are_bounded_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Background, "due", lambda job: None)
    traces = Traces(tmp_path, "server")
    trace = opened(traces)
    for index in range(tracing.MAX_WAITING + 10):
        trace.record(101 + index / 1000, "playout:decode", {"pts": index})
    assert trace.dropped == 12
    trace.flush()
    events = read_trace(trace.path)[1]
    assert len(events) == tracing.MAX_WAITING + 1
    assert events[-1]["name"] == "voicestream:trace_dropped"
    assert events[-1]["data"] == {"records": 12}
    assert traces.waiting == 0
    trace.record(200.0, "playout:decode", {"pts": 1})
    trace.flush()
    assert read_trace(trace.path)[1][-1]["data"] == {"pts": 1}


def test_all_calls_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Background, "due", lambda job: None)
    monkeypatch.setattr(tracing, "MAX_WAITING_ALL", 100)
    traces = Traces(tmp_path, "server")
    calls = [opened(traces) for _ in range(10)]
    for index in range(30):
        for call in calls:
            call.record(101, "playout:decode", {"pts": index})
    assert traces.waiting == 100
    assert sum(call.dropped for call in calls) == 20 + 300 - 100


def test_a_server_keeps_nothing_of_those_whom_it_has_not_taken(tmp_path: Path) -> None:
    traces = Traces(tmp_path, "server")
    for _ in range(100):
        trace = traces.begin()
        for index in range(1000):
            trace.record(1.0, "session:state", {"new": str(index)})
        trace.record(1.0, "session:closed", {"code": 0})
        trace.flush()
    Background.finish()
    assert list(tmp_path.iterdir()) == []
    assert traces.waiting == 0


def test_a_client_keeps_what_it_has_of_a_call_that_never_came_about(tmp_path: Path, check_qlog: CheckQlog) -> None:
    trace = Traces(tmp_path, "client").begin()
    trace.record(1.0, "session:failed", {"reason": "nobody answers"})
    trace.end()
    trace.flush()
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("unopened-")
    assert path.name.endswith("-client.sqlog")
    header, events = read_trace(path)
    check_qlog(header, events)
    assert "group_id" not in header["trace"]["common_fields"]
    assert events[0]["data"]["reason"] == "nobody answers"


def test_a_client_may_name_the_file_and_further_calls_get_a_number(tmp_path: Path) -> None:
    traces = Traces(tmp_path / "call.sqlog", "client")
    traces.check()
    for _ in range(2):
        opened(traces).flush()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["call-2.sqlog", "call.sqlog"]


@pytest.mark.parametrize(
    ("target", "vantage", "words"),
    [
        ("missing/", "client", "there is no folder .*missing for the traces"),
        ("missing/call.sqlog", "client", "there is no folder .*missing for the trace call.sqlog"),
        ("missing", "server", "there is no folder .*missing for the traces"),
        ("file", "server", "there is no folder .*file for the traces"),
    ],
)
def test_where_nothing_can_be_written_one_sentence_says_so(tmp_path: Path, target: str, vantage: Any, words: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=words):
        Traces(f"{tmp_path}/{target}", vantage).check()


def test_a_disk_that_fails_ends_the_trace_with_one_line_in_the_log_and_no_exception(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    traces = Traces(folder, "server")
    folder.rmdir()
    trace = opened(traces)
    trace.flush()
    for index in range(10):
        trace.record(200.0, "playout:decode", {"pts": index})
        trace.flush()
    assert trace.dropped >= 10
    lines = [record for record in caplog.records if record.name == "voicestream"]
    assert len(lines) == 1
    assert lines[0].levelno == logging.WARNING
    assert lines[0].getMessage().startswith('trace_failed reason="No such file or directory"')


def test_a_file_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "MAX_FILE_BYTES", 5000)
    trace = opened(Traces(tmp_path, "server"))
    for index in range(200):
        trace.record(101.0 + index, "playout:decode", {"pts": index})
        trace.flush()
    assert trace.path is not None
    assert 4000 < trace.path.stat().st_size <= 5000
    read_trace(trace.path)
    assert trace.dropped > 100


def test_what_is_no_json_value_is_named_by_its_type_and_never_spelt_out(tmp_path: Path) -> None:
    trace = opened(Traces(tmp_path, "server"))
    trace.record(101.0, "event:sent", {"payload": b"secret", "pts": 1})
    trace.record(101.0, "event:sent", {"rate": float("nan")})
    trace.flush()
    _, events = read_trace(trace.path)
    assert events[2]["data"] == {"payload": "bytes", "pts": 1}
    assert events[3]["name"] == "voicestream:trace_dropped"


def test_an_observer_beside_gets_every_record(tmp_path: Path) -> None:
    seen: list[str] = []

    class Ear:
        def record(self, now: float, name: str, data: Mapping[str, object]) -> None:
            seen.append(name)

    trace = Traces(tmp_path, "server").begin(Ear())
    trace.record(1.0, "session:state", {})
    trace.record(1.0, "session:opened", {"session_id": SESSION_ID})
    assert seen == ["session:state", "session:opened"]
    trace.flush()


def test_a_file_that_was_cut_off_can_be_read_but_for_its_last_record(tmp_path: Path) -> None:
    trace = opened(Traces(tmp_path, "server"))
    trace.flush()
    assert trace.path is not None
    trace.path.write_bytes(trace.path.read_bytes()[:-5])
    assert len(read_trace(trace.path)[1]) == 1
    (tmp_path / "other").write_text("{}")
    with pytest.raises(ValueError, match="not a JSON text sequence"):
        read_trace(tmp_path / "other")
