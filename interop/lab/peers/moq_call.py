#!/usr/bin/env python3
"""A speech call over Media over QUIC with moq-rs (https://pypi.org/project/moq-rs/), on the laboratory's sound cards.

    moq_call.py server --out heard.wav --life 80
    moq_call.py client --host 10.77.0.1 --wav speech.wav --sent sent.json --seconds 18

The client publishes one Opus track in real time, the server subscribes with `decode_audio`. Its one delay setting is --max-age-ms,
the age past which a stalled group is skipped. Duplex: with --reply the server publishes too, and the client plays that into --out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import moq
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from options import parser
from soundcard import Meter, Microphone, Speaker, load_speech, write_json

RATE = 48000
BITRATE_BPS = 24000
FIFO_MAX_MS = 400
WARM_FRAMES = 50


class Ear:
    """Plays the first broadcast that is announced."""

    def __init__(self, options: argparse.Namespace, meter: Meter | None) -> None:
        self.speaker: Speaker | None = None
        self._options = options
        self._meter = meter
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self, consumer: Any) -> None:
        """Listen to what is announced."""
        async for update in consumer.announced():
            known = self._tasks.get(update.prefix)
            if update.active and (known is None or known.done()):
                self._tasks[update.prefix] = asyncio.create_task(self._listen(consumer, update.prefix))

    async def _listen(self, consumer: Any, path: str) -> None:
        while True:
            try:
                await self._play(consumer, path)
                return
            except moq.Error:
                await asyncio.sleep(0.2)  # the connection may not be up yet

    async def _play(self, consumer: Any, path: str) -> None:
        broadcast = await consumer.request_broadcast(path)
        async for catalog in await broadcast.subscribe_catalog():
            if catalog.audio:
                break
        name, audio = next(iter(catalog.audio.items()))
        output = moq.AudioDecoderOutput(format=moq.AudioSampleFormat.S16, sample_rate=RATE, channels=1)
        if self._options.max_age_ms is not None:
            output.max_age_us = self._options.max_age_ms * 1000
        track = await broadcast.decode_audio(name, audio, output)
        if self.speaker is None:
            self.speaker = Speaker(RATE, max_ms=FIFO_MAX_MS)
        count = 0
        async for frame in track:
            count += 1
            if count == WARM_FRAMES and self._meter is not None:
                self._meter.start()
            if frame.data:
                self.speaker.push(np.frombuffer(frame.data, np.int16))


async def speak(origin: Any, name: str, microphone: Microphone, meter: Meter | None, patience: float) -> tuple[Any, Any]:
    """Publish one broadcast, wait for its subscriber, speak; the track and what keeps it up."""
    broadcast = origin.create_broadcast(name)
    audio = broadcast.encode_audio(
        "speech",
        moq.AudioEncoderInput(format=moq.AudioSampleFormat.S16, sample_rate=RATE, channels=1),
        moq.AudioEncoderOutput(codec=moq.AudioCodec.opus(), sample_rate=RATE, channels=1, bitrate=BITRATE_BPS, frame_duration_us=20000),
    )
    broadcast.announce()
    await asyncio.wait_for(audio.used(), patience)
    await asyncio.sleep(0.5)
    if meter is not None:
        meter.start()
    position = 0
    async for frame in microphone:
        audio.write(moq.AudioFrame(timestamp_us=position * 1_000_000 // RATE, data=frame.tobytes()))
        position += len(frame)
    return audio, broadcast


async def server(options: argparse.Namespace) -> None:
    """Until OUT.stop appears or the life is over."""
    meter, theirs, mine, sessions = Meter(), moq.OriginProducer(), moq.OriginProducer(), []
    ear, microphone = Ear(options, meter), None

    async def accept(listening: Any) -> None:
        async for request in listening:
            sessions.append(await request.accept())

    place = f"{options.host}:{options.port}"
    async with moq.Server(place, tls_generate=["localhost", options.host], publish=mine, subscribe=theirs) as listening:
        work = [asyncio.create_task(ear.run(theirs.consume())), asyncio.create_task(accept(listening))]
        if options.reply:
            microphone = Microphone(load_speech(options.reply, RATE), RATE)
            work.append(asyncio.create_task(speak(mine, "reply", microphone, None, 60)))
        end, use, seen = time.monotonic() + options.life, meter.report(), 0
        while time.monotonic() < end and not os.path.exists(options.out + ".stop"):
            await asyncio.sleep(0.1)
            if ear.speaker is not None and ear.speaker.received != seen:
                use, seen = meter.report(), ear.speaker.received  # up to the last audio
        if microphone is not None:
            microphone.save(options.sent, **use)
        if ear.speaker is None:
            write_json(options.out + ".json", {"playout_start": None, **use})
        else:
            ear.speaker.close(options.out, **use)
    os._exit(0)


async def client(options: argparse.Namespace) -> None:
    """Call, speak, listen."""
    meter, origin, theirs = Meter(), moq.OriginProducer(), moq.OriginProducer()
    microphone, ear = Microphone(load_speech(options.wav, RATE, options.seconds), RATE), Ear(options, None)
    url = f"https://{options.host}:{options.port}"
    async with moq.Client(url, tls_verify=False, websocket_enabled=False, publish=origin, subscribe=theirs):
        listening = asyncio.create_task(ear.run(theirs.consume())) if options.out else None
        audio, _broadcast = await speak(origin, "call", microphone, meter, 20)
        use = meter.report()
        await asyncio.sleep(1.0)
        audio.finish()
        if listening is not None:
            listening.cancel()
        if ear.speaker is not None:
            ear.speaker.close(options.out, **use)
        microphone.save(options.sent, **use)
    os._exit(0)


def main() -> None:
    """The command line."""
    words = parser(__doc__, 4443)
    words.add_argument("--max-age-ms", type=int, help="listener: skip a stalled group past this age")
    options = words.parse_args()
    asyncio.run(server(options) if options.role == "server" else client(options))


if __name__ == "__main__":
    main()
