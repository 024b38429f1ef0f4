"""Metrics of a server with real calls on loopback."""

from __future__ import annotations

import asyncio
import socket
import urllib.request

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import voicestream
from voicestream.call_figures import CallFigures, code_label
from voicestream.codepoints import ErrorCode
from voicestream.errors import StateError
from voicestream.observe.metrics import Metrics

Samples = dict[tuple[str, str], float]


def read(text: str, label: str) -> Samples:
    return {
        (sample.name.removeprefix("voicestream_"), sample.labels.get(label, "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def echo(call: voicestream.Call) -> None:
    async for block in call:
        await call.send(block)


async def test_calls_are_counted_while_they_go_on_and_after_their_end(serve) -> None:
    async def authenticate(authority: str, path: str, token: bytes, metadata: bytes, address: tuple[str, int]) -> None:
        if path == "/no":
            raise voicestream.RejectedError(ErrorCode.BUSY, "no room")

    async with serve(echo, authenticate=authenticate) as loopback:
        registry = CollectorRegistry()
        Metrics(loopback.server.figures).register(registry)

        async def look(label: str) -> Samples:
            # As Prometheus does it, on another thread.
            return read((await asyncio.to_thread(generate_latest, registry)).decode(), label)

        with pytest.raises(voicestream.RejectedError):
            await loopback.connect("/no")
        figures = CallFigures("client")
        async with loopback.connect() as call:
            call.report_to(figures)
            with pytest.raises(StateError):
                call.report_to(figures)
            for _ in range(60):
                await call.send(np.zeros(960, dtype=np.int16))
                call.read(960)
                await asyncio.sleep(0.02)
            during = await look("state")
            frames = (await look("fate"))["frames_total", "received"]
            assert during["calls", "connected"] == during["calls_opened_total", ""] == 1
            assert frames >= 15  # of 20 to 60 ms
            for sampled in ("rtt_seconds_count", "path_delay_seconds_count", "mouth_to_ear_seconds_count", "loop_lag_seconds_count"):
                assert during[sampled, ""] >= 1, sampled
            assert figures.snapshot().numbers["frames", "sent"] >= 15
            await call.close(ErrorCode.NO_ERROR, "done")
        for _ in range(100):
            if not loopback.server.calls:
                break
            await asyncio.sleep(0.02)
        after, codes = await look("fate"), await look("code")
        assert after["frames_total", "received"] >= frames
        assert (codes["calls_closed_total", "NO_ERROR"], codes["calls_rejected_total", "BUSY"]) == (1, 1)
        assert (await look("state"))["calls", "connected"] == 0
        assert figures.snapshot().numbers["calls_closed", "NO_ERROR"] == 1


async def test_they_can_be_had_by_http_until_it_is_stopped(serve) -> None:
    async with serve(echo) as loopback:
        metrics = Metrics(loopback.server.figures)
        with pytest.raises(OSError, match=r"."):
            metrics.start(1, "203.0.113.1")
        probe = socket.socket()
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        stop = metrics.start(port)
        try:
            answer = await asyncio.to_thread(lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read())
        finally:
            await asyncio.to_thread(stop)
        assert b"voicestream_calls_opened_total" in answer
        assert b"python_gc" not in answer


def test_codes_of_the_far_ends_invention_are_one_label() -> None:
    assert code_label(int(ErrorCode.BUSY)) == "BUSY"
    assert code_label(0x1234567) == code_label(0x7654321) == "other"
