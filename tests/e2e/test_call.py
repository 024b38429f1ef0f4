"""Calls over real sockets on the loopback interface."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voicestream
from voicestream import call_parts
from voicestream.audio.speech import sample_speech
from voicestream.call_link import CallLink
from voicestream.session.link import Link

RATE_HZ = 16000
"""Rate of most tests: a quarter of the work, and every path is the same."""

Pcm = np.ndarray
Serve = Callable[..., Any]


async def echo(call: voicestream.Call) -> None:
    async for block in call:
        await call.send(block)


async def listen(call: voicestream.Call) -> Pcm:
    blocks = [block async for block in call]
    return np.concatenate(blocks) if blocks else np.zeros(0, np.int16)


async def sit(call: voicestream.Call) -> None:
    """A handler that does nothing until the client leaves."""
    await call.wait_closed()


def tone(seconds: float, hertz: float = 440.0, rate_hz: int = RATE_HZ) -> Pcm:
    return (12000 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate_hz)) / rate_hz)).astype(np.int16)


def loudness(pcm: Pcm, rate_hz: int = RATE_HZ, step_ms: int = 10) -> Pcm:
    """RMS of each step."""
    step = rate_hz * step_ms // 1000
    whole = pcm[: len(pcm) // step * step].astype(float).reshape(-1, step)
    return np.sqrt((whole**2).mean(axis=1))


def spectrum(pcm: Pcm) -> Pcm:
    """Loudness in seven bands, each 10 ms."""
    step = RATE_HZ // 100
    rows = pcm[: len(pcm) // step * step].astype(float).reshape(-1, step)
    lines = np.abs(np.fft.rfft(rows * np.hanning(step), axis=1))
    edges = (1, 3, 6, 10, 16, 25, 40, 80)
    return np.sqrt(np.stack([lines[:, low:high].sum(axis=1) for low, high in itertools.pairwise(edges)], axis=1))


def likeness(said: Pcm, heard: Pcm, piece: int = 50) -> float:
    """How well each half second of what was said is found, up to 0.8 s later, in what was heard; 1 for the same.

    Piece by piece, since a playout under load stretches pauses here and there.
    """
    a, b = spectrum(said), spectrum(heard)
    found = []
    for start in range(0, len(a) - piece + 1, piece):
        want = a[start : start + piece] - a[start : start + piece].mean(axis=0)
        best = 0.0
        for place in range(max(0, start - 20), min(len(b) - piece, start + 80) + 1):
            have = b[place : place + piece] - b[place : place + piece].mean(axis=0)
            scale = np.sqrt((want**2).sum() * (have**2).sum())
            best = max(best, float((want * have).sum() / scale) if scale else 0.0)
        if a[start : start + piece].max() > 20:
            found.append(best)
    return float(np.mean(found))


async def test_speech_comes_back_from_an_echo(serve: Serve) -> None:
    said = sample_speech(2.0, RATE_HZ)
    async with serve(echo, sample_rate_hz=RATE_HZ) as loopback, loopback.connect("/echo", sample_rate_hz=RATE_HZ) as call:
        played, heard = await asyncio.gather(call.speak(said), listen(call))
        stats = call.stats()
    assert played >= 2.0
    assert likeness(said, heard) > 0.8
    assert stats.sent.frames >= 95
    assert stats.received.frames >= 95
    assert stats.playout.frames_played > 90


async def test_a_recording_goes_out_and_another_comes_back(serve: Serve, tmp_path: Path) -> None:
    """What the README shows."""
    said = sample_speech(1.0, RATE_HZ)
    voicestream.write_wav(tmp_path / "hello.wav", said, sample_rate_hz=RATE_HZ)
    async with serve(echo) as loopback, loopback.connect("/echo") as call:
        speech = voicestream.read_wav(tmp_path / "hello.wav", sample_rate_hz=48000)
        _, seconds = await asyncio.gather(call.speak(speech), call.record(tmp_path / "back.wav"))
    heard = voicestream.read_wav(tmp_path / "back.wav", sample_rate_hz=RATE_HZ)
    assert len(heard) == pytest.approx(seconds * RATE_HZ, abs=RATE_HZ // 100)
    assert likeness(said, heard) > 0.8


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_likeness_of_other_speech_is_low(seed: int) -> None:
    """The measure of the test above can fail."""
    assert likeness(sample_speech(2.0, RATE_HZ), sample_speech(2.4, RATE_HZ, seed=seed)) < 0.65


async def test_nothing_is_cut_off_at_the_end(serve: Serve) -> None:
    heard: list[Pcm] = []

    async def handler(call: voicestream.Call) -> None:
        heard.append(await listen(call))

    said = np.concatenate((tone(0.4, 300), tone(0.1, 2000)))
    async with serve(handler, sample_rate_hz=RATE_HZ) as loopback, loopback.connect(sample_rate_hz=RATE_HZ) as call:
        await call.send(said, ahead=True)
        played = await call.finish()
        await call.wait_closed()
    assert played >= 0.5
    loud = np.flatnonzero(np.abs(heard[0]) > 3000)
    tail = heard[0][loud[-1] - RATE_HZ // 20 : loud[-1]]
    crossings = np.count_nonzero(np.diff(np.signbit(tail))) / 0.05 / 2
    assert crossings == pytest.approx(2000, rel=0.1), "the last tenth of a second was not heard"
    assert (loud[-1] - loud[0]) / RATE_HZ > 0.45


async def test_a_recogniser_gets_everything_in_order_as_fast_as_it_comes(serve: Serve) -> None:
    blocks: list[voicestream.AudioBlock] = []

    async def handler(call: voicestream.Call) -> None:
        blocks.extend([block async for block in call.frames(block_ms=100)])

    async with serve(handler, sample_rate_hz=RATE_HZ) as loopback, loopback.connect(sample_rate_hz=RATE_HZ) as call:
        await call.send(tone(0.5), ahead=True)
        await call.finish()
        await call.wait_closed()
    assert not any(block.gap for block in blocks)
    assert [block.duration_ms for block in blocks[:5]] == [100] * 5
    assert sum(block.duration_ms for block in blocks) >= 500
    assert [block.at for block in blocks] == sorted(block.at for block in blocks)
    assert all(block.pcm is not None and len(block.pcm) == block.duration_ms * RATE_HZ / 1000 for block in blocks)


async def test_sending_ahead_fills_the_far_end_beyond_what_live_audio_does(serve: Serve) -> None:
    levels: list[float] = []

    async def handler(call: voicestream.Call) -> None:
        async for _ in call:
            levels.append(call.stats().playout.level_ms)

    async with serve(handler, sample_rate_hz=RATE_HZ, lookahead_ms=200) as loopback, loopback.connect(sample_rate_hz=RATE_HZ) as call:
        await call.send(tone(0.6), ahead=True)
        await call.finish()
    assert 120 <= max(levels) <= 300


async def test_large_events_both_ways_hold_up_neither_audio_nor_control(serve: Serve) -> None:
    large = "ü" * 32768  # 64 KiB
    order: list[str] = []

    async def handler(call: voicestream.Call) -> None:
        async def say_back() -> None:
            async for event in call.events():
                if event.kind == "text":
                    order.append("event")
                    await call.send_event(event.data)

        async with asyncio.TaskGroup() as group:
            talk = group.create_task(say_back())
            await echo(call)
            talk.cancel()

    async with serve(handler, sample_rate_hz=RATE_HZ) as loopback, loopback.connect(sample_rate_hz=RATE_HZ) as call:
        hearing = asyncio.create_task(listen(call))
        await call.send_event(large)
        await call.send(tone(0.1))
        await call.clear(outgoing=True)
        order.append("cleared")
        waiting = asyncio.create_task(anext(call.events()))
        while not waiting.done():
            await call.speak(tone(0.2), finish=False)
        await call.finish()
        await hearing
        stats, event = call.stats(), waiting.result()
    assert event.data == large
    assert order == ["cleared", "event"]
    assert stats.sent.frames_expired + stats.sent.frames_overflowed < stats.sent.frames / 10
    assert stats.received.event_bytes == 65536
    assert np.abs(hearing.result()).max() > 3000


async def test_events_keep_type_order_and_place(serve: Serve) -> None:
    async def handler(call: voicestream.Call) -> None:
        async for event in call.events():
            if event.kind in ("json", "text", "bytes"):
                await call.send_event(event.data, at=event.at)

    sent: list[Any] = [{"a": [1, None, "ü"]}, [1, 2], "text", b"\x00\xff", {}]
    async with serve(handler) as loopback, loopback.connect() as call:
        await call.send(tone(0.1, rate_hz=48000))
        assert call.position == pytest.approx(0.1)
        for data in sent:
            await call.send_event(data, at=call.position)
        events = call.events()
        got = [await anext(events) for _ in sent]
    assert [event.data for event in got] == sent
    assert [event.kind for event in got] == ["json", "json", "text", "bytes", "json"]
    assert [event.order for event in got] == [1, 2, 3, 4, 5]
    assert all(event.at == pytest.approx(0.1) for event in got)


@pytest.mark.parametrize("closer", ["client", "client that goes away", "handler"])
async def test_events_that_were_sent_just_before_a_good_end_arrive(serve: Serve, closer: str) -> None:
    heard: list[object] = []

    async def say(call: voicestream.Call) -> None:
        await call.send_event({"text": "x" * 3000})
        for number in range(20):
            await call.send_event(number.to_bytes(2, "big"), ordered=number % 2 == 0)

    async def listen(call: voicestream.Call) -> None:
        async for event in call.events():
            if event.kind in ("json", "bytes"):
                heard.append(event.data)

    async def handler(call: voicestream.Call) -> None:
        await (say(call) if closer == "handler" else listen(call))

    async with serve(handler) as loopback:
        call = await loopback.connect()
        if closer != "handler":
            await say(call)
            await call.close(voicestream.ErrorCode.NO_ERROR if closer == "client" else voicestream.ErrorCode.GOING_AWAY)
            while loopback.server.calls:
                await asyncio.sleep(0.01)
        else:
            await listen(call)
            await call.close()
    assert len(heard) == 21


@pytest.mark.interpreted(reason="a method is replaced")
async def test_a_fault_of_ours_in_one_call_ends_that_call_and_no_other(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty: set[object] = set()
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    send = Link.send

    def sending(self: Link, now: float) -> list[bytes]:
        if self in faulty:
            raise RuntimeError("a fault")
        return send(self, now)

    monkeypatch.setattr(Link, "send", sending)
    async with serve(echo) as loopback, loopback.connect() as other, loopback.connect() as call:
        await call.send(tone(0.1, rate_hz=48000))
        server = next(one for one in loopback.server.calls if one.session_id == call.session_id)
        with server._parts.link.locked() as session:
            faulty.add(session._link)
        await asyncio.wait_for(call.wait_closed(), 10)
        assert call.close_code == voicestream.ErrorCode.INTERNAL_ERROR
        assert [str(one["exception"]) for one in reported][:1] == ["a fault"]
        await other.send(tone(0.1, rate_hz=48000))
        assert await other.finish() >= 0.1


async def test_who_closes_twice_waits_no_longer_and_the_first_end_counts(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CallLink, "events_wait", property(lambda self: not self.is_over))
    monkeypatch.setattr(call_parts, "EVENTS_LINGER_S", 60.0)
    async with serve(sit) as loopback:
        call = await loopback.connect()
        first = asyncio.create_task(call.close(reason="enough"))
        await asyncio.sleep(0)
        await asyncio.wait_for(call.close(voicestream.ErrorCode.INTERNAL_ERROR, "no"), 10)
        await asyncio.wait_for(first, 10)
        assert (call.close_code, call.close_reason) == (voicestream.ErrorCode.NO_ERROR, "enough")


async def test_an_event_that_the_far_end_does_not_take_is_refused_at_once(serve: Serve) -> None:
    async with serve(sit, limits=voicestream.Limits(max_event_size=2048)) as loopback, loopback.connect() as call:
        with pytest.raises(ValueError, match="2048"):
            await call.send_event(b"x" * 2049)
        await call.send_event(b"x" * 2048)


async def test_json_that_is_none_ends_the_call(serve: Serve) -> None:  # VS-7.2-2
    async with serve(sit) as loopback, loopback.connect() as call:
        with call._parts.link.verbs() as (session, now):
            session.send_event(b"{", now, kind=voicestream.EventKind.JSON)
        await call.wait_closed()
        assert call.close_code == voicestream.ErrorCode.EVENT_ENCODING_ERROR


async def test_the_listener_stops_the_talker(serve: Serve) -> None:
    """Barge-in, and what is said after it is heard."""
    seen: list[Any] = []

    async def handler(call: voicestream.Call) -> None:
        seen.append(await call.send(tone(20), ahead=True))
        seen.append(await anext(call.events()))
        await call.send(tone(0.3, 1500), ahead=True)

    async with serve(handler, sample_rate_hz=RATE_HZ) as loopback, loopback.connect(sample_rate_hz=RATE_HZ) as call:
        blocks: list[Pcm] = []
        heard = -1.0
        async for block in call:
            blocks.append(block)
            if heard < 0 and len(blocks) > 5 and loudness(block).max() > 3000:
                heard = await call.clear()
    sent_whole, event = seen
    assert sent_whole is False
    assert event.kind == "clear"
    assert event.at >= heard > 0
    assert sum(map(len, blocks)) / RATE_HZ < 5, "the twenty seconds were not stopped"
    tail = np.concatenate(blocks)[-RATE_HZ // 4 :]
    strong = tail[np.abs(tail) > 0]
    crossings = np.count_nonzero(np.diff(np.signbit(strong))) / (len(strong) / RATE_HZ) / 2
    assert crossings == pytest.approx(1500, rel=0.25), "what was said after the clear was not heard"


async def test_the_talker_takes_back_what_was_not_heard(serve: Serve) -> None:
    result: list[float] = []

    async def handler(call: voicestream.Call) -> None:
        sending = asyncio.create_task(call.send(tone(20), ahead=True))
        await anext(aiter(call))  # real time passes here
        while call.stats().sent.played_ms == 0:
            await asyncio.sleep(0.02)
        result.append(await call.clear(outgoing=True))
        result.append(call.position)
        assert await sending is False
        result.append(call.stats().sent.discarded_ms)

    async with serve(handler, sample_rate_hz=RATE_HZ) as loopback, loopback.connect(sample_rate_hz=RATE_HZ) as call:
        heard_pcm = await listen(call)
    heard, sent, discarded_ms = result
    assert 0 < heard <= sent < 3
    assert discarded_ms > 15000
    assert len(heard_pcm) / RATE_HZ < 5


async def test_both_ends_show_their_numbers_as_json(serve: Serve) -> None:
    numbers: list[dict[str, Any]] = []

    async def handler(call: voicestream.Call) -> None:
        await echo(call)
        numbers.append(call.stats().to_dict())

    async with serve(handler, sample_rate_hz=RATE_HZ) as loopback, loopback.connect(sample_rate_hz=RATE_HZ) as call:
        await asyncio.gather(call.speak(tone(0.6)), listen(call))
    numbers.append(call.stats().to_dict())
    for side in numbers:
        assert json.loads(json.dumps(side)) == side
        assert side["path"]["rtt_ms"] > 0
        assert side["path"]["one_way_delay_error_ms"] > 0
        assert abs(side["path"]["one_way_delay_ms"]) < 1000
        assert side["sent"]["wire_bps"] > 10000
        assert side["playout"]["frames_played"] > 20
        assert side["playout"]["target_ms"] > 0
    assert numbers[1]["close_code"] == 0
    assert numbers[0]["duration_s"] > 0.5


async def test_a_device_thread_may_pull_and_push(serve: Serve) -> None:
    got: list[Pcm] = []
    async with serve(echo, sample_rate_hz=RATE_HZ) as loopback, loopback.connect(sample_rate_hz=RATE_HZ) as call:
        block, pause = tone(0.02), threading.Event()

        def device() -> None:
            while not pause.wait(0.02) and len(got) < 50:
                call.send_nowait(block)
                got.append(call.read(320))

        await asyncio.to_thread(device)
        await call.finish()
    assert [len(block) for block in got] == [320] * 50
    assert np.abs(np.concatenate(got)).max() > 3000
    assert len(call.read(320)) == 320, "read works after the end"
    with pytest.raises(voicestream.CallClosed):
        call.send_nowait(block)


async def test_a_stereo_call_gives_and_takes_two_channels(serve: Serve) -> None:
    stereo = np.stack((tone(0.5), np.zeros(RATE_HZ // 2, np.int16)), axis=1)
    options = {"sample_rate_hz": RATE_HZ, "channels": 2}
    async with serve(echo, **options) as loopback, loopback.connect(**options) as call:
        _, heard = await asyncio.gather(call.speak(stereo), listen(call))
    assert heard.shape[1] == 2
    left, right = np.abs(heard).mean(axis=0)
    assert left > 5 * right


async def test_a_stereo_end_and_a_mono_end_understand_each_other(serve: Serve) -> None:
    stereo = np.stack((tone(0.5), np.zeros(RATE_HZ // 2, np.int16)), axis=1)
    async with serve(echo, sample_rate_hz=RATE_HZ) as loopback, loopback.connect(sample_rate_hz=RATE_HZ, channels=2) as call:
        _, heard = await asyncio.gather(call.speak(stereo), listen(call))
    assert heard.shape[1] == 2
    left, right = np.abs(heard).mean(axis=0)
    assert left > 100
    assert left == pytest.approx(right, rel=0.05)


async def test_what_turns_pcm_into_frames_is_loaded_when_a_call_is_open(certificate: Any) -> None:
    """In a process of its own: the first word must not wait for it, nor `import voicestream`."""
    script = f"""
        import asyncio, sys
        import voicestream

        loaded = lambda: "voicestream.audio.pipeline" in sys.modules
        assert not loaded()

        async def main():
            async with voicestream.serve(lambda call: call.wait_closed(), "127.0.0.1", 0, certfile={str(certificate.certfile)!r},
                                         keyfile={str(certificate.keyfile)!r}) as server:
                assert loaded()
                for name in [name for name in sys.modules if name.startswith("voicestream.audio")]:
                    del sys.modules[name]
                uri = f"voicestream://127.0.0.1:{{server.port}}/"
                async with voicestream.connect(uri, pin={certificate.pin!r}):
                    assert loaded()

        asyncio.run(asyncio.wait_for(main(), 20))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    run = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr


async def test_silence_costs_almost_nothing_with_dtx(serve: Serve) -> None:
    said = np.concatenate((sample_speech(0.6, RATE_HZ), np.zeros(RATE_HZ, np.int16), sample_speech(0.6, RATE_HZ)))
    async with serve(echo, sample_rate_hz=RATE_HZ) as loopback, loopback.connect(sample_rate_hz=RATE_HZ, dtx=True) as call:
        _, heard = await asyncio.gather(call.speak(said), listen(call))
        stats = call.stats()
    assert stats.sent.frames < 90, "of 110 frames, 50 are silent"
    assert call.position == pytest.approx(2.2, abs=0.1), "media time runs on in silence"
    assert likeness(said, heard) > 0.8


async def test_ends_of_different_rates_understand_each_other(serve: Serve) -> None:
    async with serve(echo, sample_rate_hz=8000) as loopback, loopback.connect(sample_rate_hz=44100) as call:
        _, heard = await asyncio.gather(call.speak(tone(0.8, rate_hz=44100)), listen(call))
    strong = heard[np.abs(loudness(heard, 44100).repeat(441)[: len(heard)]) > 3000] if len(heard) else heard
    crossings = np.count_nonzero(np.diff(np.signbit(strong))) / (len(strong) / 44100) / 2
    assert crossings == pytest.approx(440, rel=0.1)


@pytest.mark.parametrize(
    ("pcm", "error"),
    [
        ([1, 2, 3], TypeError),
        (np.zeros(10, np.float64), TypeError),
        (np.zeros((10, 3), np.int16), ValueError),
        (b"\x00", ValueError),
        (None, TypeError),
    ],
)
async def test_what_is_no_pcm_is_refused_and_the_call_goes_on(serve: Serve, pcm: Any, error: type[Exception]) -> None:
    async with serve(sit) as loopback, loopback.connect() as call:
        with pytest.raises(error):
            await call.send(pcm)
        with pytest.raises(error):
            await call.send(pcm, ahead=True)
        with pytest.raises(error):
            call.send_nowait(pcm)
        assert await call.send(np.zeros(960, np.float32))
        assert not call.closed


async def test_misuse_is_named(serve: Serve) -> None:
    async with serve(sit) as loopback, loopback.connect() as call:
        with pytest.raises(ValueError, match="n must be"):
            call.read(-1)
        with pytest.raises(voicestream.StateError, match="frames"):
            call.frames()
        with pytest.raises(ValueError, match="block_ms"):
            call.frames(block_ms=1)
        with pytest.raises(voicestream.StateError, match="no track 2"):
            call.frames(track=2)
        for at in (-1.0, float("nan")):
            with pytest.raises(ValueError, match="at must be 0 or more seconds"):
                await call.send_event("x", at=at)
        with pytest.raises(TypeError, match="processed_through must be a number of seconds, not str"):
            call.processed_through = "x"  # type: ignore[assignment]
        with pytest.raises(ValueError, match="device_latency must be 0 to 2 seconds"):
            call.device_latency = 3
        with pytest.raises(TypeError, match="code must be an int and reason a str"):
            await call.close(0, 5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="dict, list, str or bytes"):
            await call.send_event(5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"multiple of 2\.5"):
            await call.send_frame(b"x", duration_ms=3)
        with pytest.raises(ValueError, match="not a frame"):
            await call.send_frame(b"\xff")
        with pytest.raises(ValueError, match="track 3"):
            await call.send_frame(b"\xfc\xff\xfe", track=3)
        await call.send(tone(0.1, rate_hz=48000))  # to which nobody listens
        with pytest.raises(TimeoutError):
            await call.finish(0.01)
        with pytest.raises(voicestream.StateError, match="finish"):
            await call.send(np.zeros(960, np.int16))


async def test_after_the_close_everything_says_so(serve: Serve) -> None:
    async with serve(sit) as loopback:
        call = await loopback.connect()
        events, blocks = call.events(), aiter(call)
        await call.close()
        await call.close(voicestream.ErrorCode.INTERNAL_ERROR, "too late to matter")
        await call.wait_closed()
        assert call.closed
        assert call.close_code == 0
        for act in (
            lambda: call.send(np.zeros(960, np.int16)),
            lambda: call.send(np.zeros(960, np.int16), ahead=True),
            lambda: call.send_frame(b"\xfc\xff\xfe"),
            lambda: call.send_event({}),
            lambda: call.clear(),
            lambda: call.clear(outgoing=True),
            lambda: call.finish(),
        ):
            with pytest.raises(voicestream.CallClosedOK):
                await act()
        assert [event async for event in events] == []
        assert [block async for block in blocks] == []
        assert not call.read(960).any()
        assert call.stats().close_code == 0


async def test_closing_with_a_code_is_an_error_to_the_far_end(serve: Serve) -> None:
    caught: list[BaseException] = []

    async def handler(call: voicestream.Call) -> None:
        try:
            async for _ in call:
                pass
        except voicestream.CallClosed as error:
            caught.append(error)
            raise

    async with serve(handler) as loopback, loopback.connect() as call:
        await call.close(voicestream.ErrorCode.INTERNAL_ERROR, "the roof is on fire")
    (error,) = caught
    assert isinstance(error, voicestream.CallClosedError)
    assert (error.code, error.reason, error.remote) == (voicestream.ErrorCode.INTERNAL_ERROR, "the roof is on fire", True)


async def test_a_call_that_nobody_reads_stays_bounded_and_counts_what_it_drops(serve: Serve) -> None:
    calls: list[voicestream.Call] = []

    async def handler(call: voicestream.Call) -> None:
        calls.append(call)
        await call.wait_closed()

    limits = voicestream.Limits(undelivered_events=5, events_per_second=1000)
    silence = b"\x7b" + bytes([3]) + b"\xff\xfe" * 3  # a packet of three empty frames of 20 ms
    async with serve(handler, limits=limits) as loopback, loopback.connect() as call:
        for number in range(300):
            await call.send_frame(silence)
            if number < 20:
                await call.send_event(str(number))
            await asyncio.sleep(0.001)
        while calls[0].stats().received.frames + call.stats().sent.frames_expired < 300 or calls[0].stats().received.events < 20:
            await asyncio.sleep(0.01)
        stats = calls[0].stats()
    assert stats.received.frames_unheard > 50
    assert stats.received.frames - stats.received.frames_unheard <= 10_000 / 60 + 1
    assert stats.received.events_dropped == 15


async def test_eight_calls_at_once_do_not_disturb_each_other(serve: Serve) -> None:
    async def one(loopback: Any, number: int) -> float:
        said = tone(0.5, 300 + 100 * number)
        async with loopback.connect(sample_rate_hz=RATE_HZ, complexity=0) as call:
            _, heard = await asyncio.gather(call.speak(said), listen(call))
        strong = np.flatnonzero(loudness(heard) > 3000)
        assert len(strong) >= 5, f"call {number}: {10 * len(strong)} ms of its tone have come, of {len(said) / RATE_HZ:g} s said"
        # A machine that is busy cuts the tone in pieces; each has its pitch.
        whole = max(np.split(strong, np.flatnonzero(np.diff(strong) > 1) + 1), key=len)
        part = heard[whole[0] * 160 : (whole[-1] + 1) * 160]
        crossings = np.flatnonzero(np.diff(np.signbit(part)))
        return float((len(crossings) - 1) / ((crossings[-1] - crossings[0]) / RATE_HZ) / 2)

    async with serve(echo, sample_rate_hz=RATE_HZ, complexity=0) as loopback:
        heard = await asyncio.gather(*(one(loopback, number) for number in range(8)))
        assert loopback.server.calls == []
    assert heard == pytest.approx([300 + 100 * number for number in range(8)], rel=0.1)


async def test_coded_frames_pass_through_without_any_codec(certificate: Any) -> None:
    """In a process of its own, which must never load the codec's binding."""
    script = f"""
        import asyncio, sys
        import voicestream

        got = []

        async def relay(call):
            async for frame in call.frames(decode=False):
                await call.send_frame(frame.payload)

        async def main():
            async with voicestream.serve(relay, "127.0.0.1", 0, certfile={str(certificate.certfile)!r},
                                         keyfile={str(certificate.keyfile)!r}) as server:
                uri = f"voicestream://127.0.0.1:{{server.port}}/"
                async with voicestream.connect(uri, pin={certificate.pin!r}) as call:
                    for number in range(10):
                        await call.send_frame(bytes([0xF8, number, number]), ahead=True)
                    finishing = asyncio.create_task(call.finish())
                    async for frame in call.frames(decode=False):
                        got.append(frame.payload)
                    await finishing

        asyncio.run(asyncio.wait_for(main(), 20))
        assert got == [bytes([0xF8, number, number]) for number in range(10)], got
        assert not [name for name in sys.modules if name.split(".")[0] in ("opuslib", "opuslib_next")]
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    run = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
