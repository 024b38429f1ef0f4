"""The command line as its user meets it: separate processes, real sockets, files in and out. Every wait is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voicestream import read_wav
from voicestream.audio.files import write_wav
from voicestream.audio.speech import sample_speech

RATE = 16000
PATIENCE_S = 60
COMMAND = (sys.executable, "-m", "voicestream.cli")


class Finished:
    """How a process ended."""

    def __init__(self, status: int, out: bytes, err: bytes) -> None:
        self.status, self.out, self.err = status, out.decode(), err.decode()

    def failed_in_one_sentence(self) -> str:
        assert self.status == 1, (self.status, self.err)
        assert "Traceback" not in self.err
        line = self.err.splitlines()[-1]
        assert line.startswith("voicestream: ")
        assert self.err.count("voicestream: ") == 1
        return line


async def start(*words: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*COMMAND, *words, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe)


async def end(process: asyncio.subprocess.Process) -> Finished:
    try:
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None
    return Finished(process.returncode, out, err)


async def run(*words: str) -> Finished:
    return await end(await start(*words))


class Serving:
    """A server process; `url` and `pin` are what it printed."""

    def __init__(self, process: asyncio.subprocess.Process, listening: dict[str, Any]) -> None:
        self.process = process
        self.port, self.pin = int(listening["port"]), str(listening["sha256"])
        self.url = f"voicestream://127.0.0.1:{self.port}/"

    async def next_line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line: dict[str, Any] = json.loads(await asyncio.wait_for(self.process.stdout.readline(), PATIENCE_S))
        return line


@contextlib.asynccontextmanager
async def serving(*words: str) -> AsyncIterator[Serving]:
    process = await start("serve", "--host", "127.0.0.1", "--port", "0", "--json", *words)
    try:
        server = Serving(process, {"port": 0, "sha256": ""})
        yield Serving(process, await server.next_line())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    """Two seconds; the last of them is spoken to its end."""
    pcm = sample_speech(4.0, RATE)
    loud = np.flatnonzero(np.abs(pcm) > 2000)
    last = int(loud[loud > 2 * RATE][0]) + RATE // 4
    write_wav(tmp_path / "speech.wav", pcm[last - 2 * RATE : last], RATE)
    return tmp_path / "speech.wav"


def likeness(piece: np.ndarray, heard: np.ndarray) -> float:
    """The highest normalised correlation of `piece` with any part of `heard`."""
    if len(heard) < len(piece):
        return 0.0
    a, b = piece.astype(float), heard.astype(float)
    products = np.correlate(b, a, "valid")
    squares = np.concatenate([[0.0], np.cumsum(b**2)])
    energy = squares[len(a) :] - squares[: -len(a)]
    return float(np.max(products / np.sqrt(np.maximum(energy, 1.0) * np.dot(a, a))))


def assert_nothing_is_missing(said: Path, heard: Path, rate: int = RATE) -> None:
    """The first and the last spoken quarter of a second are there. A loaded machine may have stretched what lies between."""
    spoken, played = read_wav(said, sample_rate_hz=8000), read_wav(heard, sample_rate_hz=8000)
    loud = np.flatnonzero(np.abs(spoken) > 500)
    for start_at in (int(loud[0]), len(spoken) - 2000):
        assert likeness(spoken[start_at : start_at + 2000], played) > 0.5, f"what was said from {start_at / 8000:.2f} s on is missing"


async def test_an_echo_comes_back_whole_and_both_ends_exit_well(speech: Path, tmp_path: Path) -> None:
    back = tmp_path / "back.wav"
    async with serving("--echo", "--once") as server:
        client = await run("call", server.url, "--pin", server.pin, "--in", str(speech), "--out", str(back), "--json")
        assert client.status == 0, client.err
        ended = await end(server.process)
        assert ended.status == 0, ended.err
    assert_nothing_is_missing(speech, back)
    stats = json.loads(client.out)
    assert stats["sent"]["frames"] >= 50  # longer ones where the machine is slow
    assert stats["playout"]["frames_played"] > 0
    assert stats["duration_s"] >= 2.0
    # The live line, one a second where stderr is no terminal, and one at the end.
    assert sum("rtt" in line and "kbps" in line and "concealed" in line for line in client.err.splitlines()) >= 2
    told = [json.loads(line) for line in ended.out.splitlines()]
    assert [line["event"] for line in told] == ["call", "end"]
    assert told[1]["ending"] == "ended"


async def test_a_file_is_played_and_the_caller_recorded(speech: Path, tmp_path: Path) -> None:
    heard, folder = tmp_path / "heard.wav", tmp_path / "recordings"
    async with serving("--play", str(speech), "--record", str(folder), "--once") as server:
        client = await run("call", server.url, "--pin", server.pin, "--in", str(speech), "--out", str(heard), "--bitrate", "24000")
        assert client.status == 0, client.err
        assert (await end(server.process)).status == 0
    assert client.out == ""
    assert_nothing_is_missing(speech, heard)
    (recorded,) = folder.iterdir()
    assert_nothing_is_missing(speech, recorded)


async def test_only_the_pinned_certificate_is_taken(speech: Path) -> None:
    async with serving("--echo") as server:
        wrong = await run("call", server.url, "--pin", "00" * 32, "--in", str(speech))
        assert "certificate" in wrong.failed_in_one_sentence()
        unknown = await run("call", server.url, "--in", str(speech))
        assert "certificate" in unknown.failed_in_one_sentence()


async def test_a_certificate_from_a_file_serves_and_is_trusted(speech: Path, tmp_path: Path) -> None:
    made = await run("cert", "--out", str(tmp_path))
    assert made.status == 0, made.err
    words = ("--cert", str(tmp_path / "cert.pem"), "--key", str(tmp_path / "key.pem"))
    async with serving("--echo", *words) as server:
        assert server.pin in made.out
        trusting = await run("call", server.url, "--cafile", str(tmp_path / "cert.pem"), "--in", str(speech))
        assert trusting.status == 0, trusting.err
        careless = await run("call", server.url, "--insecure", "--in", str(speech))
        assert careless.status == 0, careless.err
        assert "not checked" in careless.err.splitlines()[0]
        assert "Warning" not in careless.err


async def test_a_busy_port_is_one_sentence() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as busy:
        busy.bind(("127.0.0.1", 0))
        server = await run("serve", "--echo", "--host", "127.0.0.1", "--port", str(busy.getsockname()[1]))
    assert "in use" in server.failed_in_one_sentence()


async def test_a_server_that_is_not_there_is_one_sentence(speech: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
        gone.bind(("127.0.0.1", 0))
        port = gone.getsockname()[1]
    refused = await run("call", f"voicestream://127.0.0.1:{port}/", "--in", str(speech))
    assert f"127.0.0.1:{port}" in refused.failed_in_one_sentence()
    unknown = await run("call", "voicestream://no-such-host.invalid/", "--in", str(speech))
    assert "no-such-host.invalid" in unknown.failed_in_one_sentence()


async def test_a_call_that_does_not_begin_costs_no_recording(speech: Path, tmp_path: Path) -> None:
    kept, new = tmp_path / "kept.wav", tmp_path / "new.wav"
    kept.write_bytes(b"an earlier call")
    for out in (kept, new):
        failed = await run("call", "voicestream://127.0.0.1:1/", "--in", str(speech), "--out", str(out))
        failed.failed_in_one_sentence()
    assert kept.read_bytes() == b"an earlier call"
    assert not new.exists()


async def test_a_token_that_is_too_long_is_one_sentence(speech: Path) -> None:
    failed = await run("call", "voicestream://127.0.0.1:1/", "--token", "x" * 2049, "--in", str(speech))
    assert "token must have at most 2048 bytes" in failed.failed_in_one_sentence()


async def test_ctrl_c_on_the_server_lets_calls_end(speech: Path, tmp_path: Path) -> None:
    back = tmp_path / "back.wav"
    async with serving("--echo") as server:
        client = asyncio.ensure_future(run("call", server.url, "--pin", server.pin, "--in", str(speech), "--out", str(back)))
        assert (await server.next_line())["event"] == "call"
        server.process.send_signal(signal.SIGINT)
        ended = await end(server.process)
        finished = await client
    assert ended.status == 0, ended.err
    assert "Traceback" not in ended.err
    assert finished.status == 0, finished.err
    assert_nothing_is_missing(speech, back)


async def test_ctrl_c_on_an_idle_server_ends_it() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        async with serving("--echo") as server:
            server.process.send_signal(number)
            ended = await end(server.process)
        assert (ended.status, ended.err) == (0, "")


async def test_ctrl_c_on_the_client_stops_speaking_and_keeps_what_comes(tmp_path: Path) -> None:
    speech, back = tmp_path / "long.wav", tmp_path / "back.wav"
    write_wav(speech, sample_speech(60.0, RATE), RATE)
    async with serving("--echo") as server:
        client = await start("call", server.url, "--pin", server.pin, "--in", str(speech), "--out", str(back))
        assert client.stderr is not None
        first = await asyncio.wait_for(client.stderr.readline(), PATIENCE_S)
        assert b"rtt" in first
        client.send_signal(signal.SIGINT)
        ended = await end(client)
    assert ended.status == 0, ended.err
    seconds = len(read_wav(back, sample_rate_hz=RATE)) / RATE
    assert 0.5 < seconds < 50


async def test_a_second_signal_ends_the_server_at_once_and_the_client_says_why(tmp_path: Path) -> None:
    speech = tmp_path / "long.wav"
    write_wav(speech, sample_speech(60.0, RATE), RATE)
    async with serving("--record", str(tmp_path)) as server:
        client = asyncio.ensure_future(run("call", server.url, "--pin", server.pin, "--in", str(speech)))
        assert (await server.next_line())["event"] == "call"
        server.process.send_signal(signal.SIGINT)
        assert server.process.stderr is not None
        assert b"waiting for calls" in await asyncio.wait_for(server.process.stderr.readline(), PATIENCE_S)
        server.process.send_signal(signal.SIGTERM)
        ended = await end(server.process)
        assert ended.status == 0
        assert "Traceback" not in ended.err
        assert "closed" in (await client).failed_in_one_sentence()


async def test_a_second_signal_hangs_the_client_up(tmp_path: Path) -> None:
    speech = tmp_path / "long.wav"
    write_wav(speech, sample_speech(60.0, RATE), RATE)
    async with serving("--echo") as server:
        client = await start("call", server.url, "--pin", server.pin, "--in", str(speech))
        assert (await server.next_line())["event"] == "call"
        # Two different signals, since two of one kind may arrive as one.
        client.send_signal(signal.SIGINT)
        client.send_signal(signal.SIGTERM)
        ended = await end(client)
    assert ended.status == 130
    assert "Traceback" not in ended.err


async def test_a_server_that_only_records_lets_the_caller_go(speech: Path, tmp_path: Path) -> None:
    async with serving("--record", str(tmp_path / "kept"), "--once") as server:
        client = await run("call", server.url, "--pin", server.pin, "--in", str(speech))
        assert client.status == 0, client.err
        assert (await end(server.process)).status == 0
    (recorded,) = (tmp_path / "kept").iterdir()
    assert_nothing_is_missing(speech, recorded)
