"""The records of a call's trace in words. What is in each is listed in ``spec/trace.md``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from voicestream.observe.qlog import NAMESPACE
from voicestream.observe.words_walk import code_words, pts_words, quoted, units_words

__all__ = ["EVENTS", "header_words", "record_words"]

EVENTS: Final[dict[str, str]] = {
    "session:state": "the session changes its state (section 5.5)",
    "session:opened": "the call was taken",
    "session:failed": "no call came about",
    "session:path_lost": "the session goes on without a connection",
    "session:resumed": "the session has another connection (section 11.3)",
    "session:resume_refused": "the server does not take the session up now; the client tries again",
    "session:going_away": "one side will leave (section 11.2)",
    "session:closed": "the session is over (section 13.2)",
    "path:state": "how the path looks",
    "path:dial": "another connection is dialled",
    "path:dial_failed": "a dial did not come about",
    "path:dial_stopped": "a dial is not waited for any longer",
    "path:network_changed": "the client goes on from a new socket",
    "resume:owed": "after the break so much is to be sent again",
    "allocator:plan": "how this end sends is decided anew",
    "bwe:estimate": "what the path is believed to carry",
    "bwe:state": "the rate estimator changes its state",
    "bwe:quality": "the quality changes",
    "send:overflow": "the send queue was full",
    "send:expired": "frames had waited too long to be sent",
    "send:finish": "nothing follows on the track (section 8.6)",
    "event:sent": "an application event was queued (section 7)",
    "event:received": "an application event has come (section 7)",
    "clear:sent": "this end voids what it sent (section 8.1)",
    "clear:confirmed": "the far end did the clear (section 8.2)",
    "clear:received": "what this end got is void (section 8.1)",
    "receive:stale": "audio came that a clear had voided",
    "recovery:hole": "media is missing",
    "recovery:overdue": "a frame has not come in its time",
    "recovery:asked": "the far end is asked for missing media (section 4.10)",
    "recovery:given_up": "missing media could not come in time any more",
    "recovery:retransmission_received": "a frame came as a retransmission (section 4.7)",
    "recovery:repaired": "a frame was computed from a repair (section 10.3)",
    "recovery:asked_by_peer": "the far end misses media",
    "recovery:retransmitted": "a frame was sent again (section 4.7)",
    "recovery:copy_sent": "a frame left again without being asked for",
    "recovery:copied": "a low-rate copy of a frame left (section 4.7)",
    "recovery:repair_sent": "a repair left (section 4.6)",
    "playout:target": "the delay that the playout aims at moves",
    "playout:talkspurt": "a talkspurt begins to be played",
    "playout:decode": "a frame is played",
    "playout:merge": "a frame is faded into from the concealment before it",
    "playout:copy": "a low-rate copy is played in a frame's place",
    "playout:expand": "a frame is to be made longer",
    "playout:accelerate": "a frame is to be made shorter",
    "playout:conceal": "something is made in the place of what is lost",
    "playout:wait": "something is made while a frame is awaited",
    "playout:silence": "silence begins",
    "playout:silence_end": "silence ends",
    "playout:concealed": "a stretch of concealment is over",
    "playout:late": "a frame came after its time",
    "playout:duplicate": "a frame came again",
    "playout:refused": "a frame was not taken",
    "playout:dropped": "frames that waited will not be played",
    "playout:skipped": "the playhead moves over media",
    "playout:cleared": "a clear reached the playout (section 8.1)",
    "trace:dropped": "the trace lacks so many records",
}
"""What each event means."""

_UNITS: Final = {"_ms": " ms", "_s": " s", "_bps": " bits per second", "_hz": " Hz", "_bytes": " bytes"}


def header_words(header: Mapping[str, Any]) -> str:
    """The first record of a trace, in one line."""
    trace = header.get("trace")
    trace = trace if isinstance(trace, dict) else {}
    common, vantage = (part if isinstance(part, dict) else {} for part in (trace.get("common_fields"), trace.get("vantage_point")))
    clock = common.get("reference_time")
    began = clock.get("wall_clock_time") if isinstance(clock, dict) else None
    side = _plain(vantage.get("type", "unknown side"))
    return f"trace of the {side}, session {_plain(common.get('group_id', 'without a name'))}, from {_plain(began or 'an unknown time')} on"


def record_words(record: Mapping[str, Any]) -> str:
    """One record, in one line: time, event, what it means, its values with units."""
    time, data = record.get("time"), record.get("data")
    at = f"{time / 1000:10.3f} s" if isinstance(time, int | float) else f"{'?':>10}  "
    full = str(record.get("name", ""))
    name = full.removeprefix(f"{NAMESPACE}:").replace("_", ":", 1)
    if full == f"{NAMESPACE}:{name.replace(':', '_', 1)}" and name in EVENTS:
        said = f"{name}: {EVENTS[name]}"
    else:
        said = f"{quoted(full)}: an event of another kind"
    values = ", ".join(_value(key, value) for key, value in data.items()) if isinstance(data, dict) else ""
    return f"{at}  {said}" + (f"; {values}" if values else "")


def _value(key: str, value: object) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    words = key.replace("_", " ")
    if key == "code" and whole and value >= 0:  # type: ignore[operator]
        return f"code {code_words(value)}"  # type: ignore[arg-type]
    if (key == "pts" or key.endswith("_pts")) and whole:
        return f"{words} {pts_words(value)}"  # type: ignore[arg-type]
    if (key == "units" or key.endswith("_units")) and whole:
        return f"{words.removesuffix(' units')} {units_words(value)}"  # type: ignore[arg-type]
    for suffix, unit in _UNITS.items():
        if key.endswith(suffix) and isinstance(value, int | float):
            return f"{words[: -len(suffix)]} {value:g}{unit}"
    return f"{words} {_plain(value)}"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_plain(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_plain, value)) + "]"
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() and len(value) < 200 else quoted(value)
    return {None: "none", True: "yes", False: "no"}.get(value, str(value)) if value is None or isinstance(value, bool) else str(value)
