"""``voicestream inspect``: hexadecimal and traces in words; faults and what is no input are status 1."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from voicestream.cli.entry import main
from voicestream.observe.qlog import encode_event, encode_header

CLOSE = "0e050000026869"


def test_a_datagram_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "01020fa0", "88 0008 4801", "--from", "client", "--codec", "opus"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("datagram of the client, 9 bytes (section 4.1)\n")
    assert "2 bytes: 4801; 8 units (20 ms)" in out
    assert main(["inspect", "client datagram 01020fa0 88 0008 4801", "--codec", "opus"]) == 0
    assert capsys.readouterr().out == out


def test_a_broken_one_has_its_code_and_byte_and_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "00000000800008"]) == 1
    assert "FRAME_ENCODING_ERROR (0x02) at byte 7: audio frame without payload; breaks VS-4.2-1 (section 4.2)" in capsys.readouterr().out


def test_lines_of_both_sides_are_read_from_stdin_and_streams_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = f"""# a call
    client control {CLOSE[:6]}
    server datagram 0x00000000   # keeps the path
    client control {CLOSE[6:]}
    server event 01 02 00 01 00 {b'{}'.hex()}
    """
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert main(["inspect"]) == 0
    out = capsys.readouterr().out
    assert "begin something that is not complete" in out
    assert 'Reason: "hi"' in out
    assert "keeps the path open" in out
    assert 'Payload: "{}"' in out


def test_a_message_of_the_wrong_side_and_one_that_never_ends_are_faults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--as", "control", "--from", "server", "050100"]) == 1
    assert "UNEXPECTED_MESSAGE" not in capsys.readouterr().out  # RESUMED is a server's; it lacks its parameters
    assert main(["inspect", "--as", "control", "--from", "server", "060100"]) == 1
    assert "UNEXPECTED_MESSAGE (0x05) at byte 0: CONFIRM from the server; breaks VS-5.5-1" in capsys.readouterr().out
    assert main(["inspect", "--as", "control", CLOSE[:8]]) == 1
    assert "CONTROL_STREAM_ERROR (0x06) at byte 4: the stream ends inside a message" in capsys.readouterr().out


def test_an_event_is_held_to_a_size(capsys: pytest.CaptureFixture[str]) -> None:
    event = "01000000" + "00" + "aabbcc"
    assert main(["inspect", "--as", "event", event, "--max-event-size", "3"]) == 0
    assert main(["inspect", "--as", "event", event, "--max-event-size", "2"]) == 1
    assert "EVENT_TOO_LARGE (0x0d) at byte 7" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main(["inspect", "--as", "event", event, "--max-event-size", "-5"])
    assert caught.value.code == 2


def test_a_trace_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "call.sqlog"
    header = encode_header(vantage="client", group_id="5f", wall_clock_time="2026-01-01T00:00:00Z")
    path.write_bytes(header + encode_event(1250, "clear:sent", {"cause": "own", "frames_dropped": 2}))
    assert main(["inspect", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "trace of the client, session 5f, from 2026-01-01T00:00:00Z on",
        "     1.250 s  clear:sent: this end voids what it sent (section 8.1); cause own, frames dropped 2",
    ]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "holds no hexadecimal and no trace"),
        (b"# nothing\n", "holds no hexadecimal and no trace"),
        (b"00000000\n00zz", "line 2: 'z' at digit 2 is not hexadecimal"),
        (b"000", "half a byte is left over"),
        (b"\x89PNG\r\n", "is not hexadecimal"),
        (b"\x1enot json\n", "Expecting value"),
        (b"\x1e[]\n", "no object"),
    ],
)
def test_what_is_no_input_is_one_sentence(content: bytes, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "input"
    path.write_bytes(content)
    assert main(["inspect", str(path)]) == 1
    assert text in capsys.readouterr().err


def test_a_word_that_is_neither_hexadecimal_nor_a_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "nosuchfile"]) == 1
    assert "nosuchfile is neither hexadecimal nor a file" in capsys.readouterr().err
