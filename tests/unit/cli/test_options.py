"""Options are checked while they are read."""

from __future__ import annotations

import argparse

import pytest

from voicestream.cli.options import add_coding, bitrates, bounded, fingerprint


@pytest.mark.parametrize(("text", "value"), [("20", 20), ("500", 500), (" 42 ", 42)])
def test_a_number_within_its_bounds_is_taken(text: str, value: int) -> None:
    assert bounded(20, 500)(text) == value


@pytest.mark.parametrize("text", ["19", "501", "-20", "2e2", "", "ten"])
def test_any_other_is_refused_with_the_bounds(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="20 to 500 ms"):
        bounded(20, 500, "ms")(text)


def test_a_fingerprint_may_have_colons() -> None:
    assert fingerprint(":".join(["ab"] * 32)) == bytes([0xAB] * 32)
    with pytest.raises(argparse.ArgumentTypeError, match="64 hexadecimal digits"):
        fingerprint("abcd")


@pytest.mark.parametrize("words", [["--bitrate", "7999"], ["--bitrate", "64001"], ["--frame-ms", "30"]])
def test_coding_out_of_range_is_a_usage_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_coding(parser)
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(words)
    assert words[0] in capsys.readouterr().err


def test_a_bitrate_that_the_user_names_is_the_highest_and_not_only_the_first() -> None:
    parser = argparse.ArgumentParser()
    add_coding(parser)
    bitrate_bps, rate = bitrates(parser.parse_args(["--bitrate", "32000"]))
    assert (bitrate_bps, rate.max_bitrate_bps) == (32000, 32000)
    bitrate_bps, rate = bitrates(parser.parse_args([]))
    assert (bitrate_bps, rate.max_bitrate_bps) == (40000, 64000)
