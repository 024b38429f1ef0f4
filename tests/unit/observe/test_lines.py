"""Lines for the log."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from voicestream.observe.lines import MAX_TEXT, line


def test_a_line_is_a_word_and_key_value_pairs() -> None:
    made = line("call_closed", code="NO_ERROR", remote=True, rtt_ms=31.26, frames=7)
    assert made == "call_closed code=NO_ERROR remote=true rtt_ms=31.3 frames=7"


def test_what_is_unknown_is_left_out() -> None:
    assert line("call_closed", rtt_ms=None, frames=0) == "call_closed frames=0"


@given(st.text(max_size=2 * MAX_TEXT))
def test_whatever_the_far_end_says_stays_one_bounded_line_of_plain_characters(text: str) -> None:
    made = line("x", reason=text)
    assert made.isascii()
    assert made.isprintable()
    assert len(made) <= len("x reason=") + 12 * MAX_TEXT + 5
    value = made.removeprefix("x reason=")
    if value.startswith('"'):
        assert json.loads(value).startswith(text[:MAX_TEXT])
    else:
        assert " " not in value
        assert "=" not in value
        assert value == text
