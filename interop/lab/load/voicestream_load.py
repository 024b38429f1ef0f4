"""VoiceStream under load: a server of duplex calls, and callers that only move packets.

    voicestream_load.py server --port 4500 [--no-codec] --certificate FOLDER
    voicestream_load.py callers --port 4500 --calls 10
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import warnings
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import numpy as np

import voicestream
from interop.lab.load.gauge import Gauge, obey
from voicestream.audio.opus import OpusEncoder
from voicestream.audio.speech import sample_speech
from voicestream.errors import InsecureWarning
from voicestream.quic.certificates import make_certificate_files

RATE = 48000
FRAME_S = 0.02
BLOCK = round(RATE * FRAME_S)
RATE_BPS = 64000
HOST = "127.0.0.1"
SPEECH_S = 6.0


def speech_blocks() -> list[Any]:
    """Frames of PCM, to be said again and again."""
    pcm = sample_speech(SPEECH_S, RATE)
    return list(pcm[: len(pcm) // BLOCK * BLOCK].reshape(-1, BLOCK))


def speech_packets() -> list[bytes]:
    """The same, coded."""
    encoder = OpusEncoder(RATE, 1, bitrate_bps=RATE_BPS)
    return [encoder.encode(np.ascontiguousarray(block)) for block in speech_blocks()]


async def every_frame(offset: int) -> Any:
    """Numbers in step with real time, 50 a second."""
    loop = asyncio.get_running_loop()
    due = loop.time() + offset % 20 / 1e3  # calls do not speak in one moment
    for index in itertools.count(offset):
        await asyncio.sleep(max(0.0, due - loop.time()))
        yield index
        due += FRAME_S


class Server:
    """Hears and speaks in each call, with the codec or without."""

    def __init__(self, gauge: Gauge, *, codec: bool) -> None:
        self.gauge = gauge
        self.codec = codec
        self.said: list[Any] = speech_blocks() if codec else speech_packets()
        self.count = 0

    async def __call__(self, call: voicestream.Call) -> None:
        """The handler."""
        self.count += 1
        await asyncio.gather(self.hear(call), self.speak(call, self.count * 7))

    async def hear(self, call: voicestream.Call) -> None:
        """All that comes."""
        if self.codec:
            async for _block in call:
                self.gauge.frames_in += 1
        else:
            async for block in call.frames(decode=False):
                self.gauge.frames_in += not block.gap

    async def speak(self, call: voicestream.Call, offset: int) -> None:
        """A frame every 20 ms."""
        async for index in every_frame(offset):
            said = self.said[index % len(self.said)]
            await (call.send(said) if self.codec else call.send_frame(said))
            self.gauge.frames_out += 1


async def serve(options: argparse.Namespace) -> None:
    """Until told to stop."""
    gauge = Gauge()
    options.certificate.mkdir(parents=True, exist_ok=True)
    certfile, keyfile, _ = make_certificate_files(options.certificate, [HOST])
    handler = Server(gauge, codec=not options.no_codec)
    async with voicestream.serve(handler, HOST, options.port, certfile=certfile, keyfile=keyfile):
        await obey(gauge)


async def call_once(options: argparse.Namespace, packets: list[bytes], index: int) -> None:
    """A call that says coded frames and drops what it hears, still coded."""
    async with voicestream.connect(f"voicestream://{HOST}:{options.port}/load", insecure=True, open_timeout=60) as call:
        print("up", flush=True)

        async def hear() -> None:
            async for _block in call.frames(decode=False):
                pass

        async def speak() -> None:
            async for number in every_frame(index * 7):
                await call.send_frame(packets[number % len(packets)])

        await asyncio.gather(hear(), speak())


async def callers(options: argparse.Namespace) -> None:
    """All calls, until killed."""
    warnings.simplefilter("ignore", InsecureWarning)
    packets = speech_packets()
    tasks = []
    for index in range(options.calls):
        tasks.append(asyncio.ensure_future(call_once(options, packets, index)))
        await asyncio.sleep(0.05)  # a handshake costs milliseconds
    await asyncio.gather(*tasks)


def run(work: Coroutine[Any, Any, None], *, uvloop: bool) -> None:
    """On asyncio's own loop, or on uvloop."""
    if uvloop:
        import uvloop as library

        library.run(work)
    else:
        asyncio.run(work)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=["server", "callers"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--no-codec", action="store_true", help="server: pass coded frames on")
    parser.add_argument("--certificate", type=Path, help="server: folder for its certificate")
    parser.add_argument("--calls", type=int, default=1)
    parser.add_argument("--uvloop", action="store_true")
    options = parser.parse_args()
    run(serve(options) if options.role == "server" else callers(options), uvloop=options.uvloop)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
