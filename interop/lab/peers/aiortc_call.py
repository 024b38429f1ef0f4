#!/usr/bin/env python3
"""A speech call over WebRTC with aiortc (https://pypi.org/project/aiortc/), as it comes, on the laboratory's sound cards.

    aiortc_call.py server --out heard.wav --life 80
    aiortc_call.py client --host 10.77.0.1 --wav speech.wav --sent sent.json --seconds 18

Signalling is one TCP connection a call: the client's offer and the server's answer, each a line of JSON. Duplex: with --reply the
server speaks too, and the client plays that into --out.
"""

from __future__ import annotations

import argparse
import asyncio
import fractions
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import av
import numpy as np
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from options import parser
from soundcard import Meter, Microphone, Speaker, load_speech, write_json

RATE = 48000
FIFO_MAX_MS = 400
NO_STUN = RTCConfiguration(iceServers=[])
"""The default asks a public STUN server and waits 5 s for it where there is none."""


class SpeechTrack(MediaStreamTrack):
    """What the microphone hears, from `go` on."""

    kind = "audio"

    def __init__(self, microphone: Microphone, go: asyncio.Event) -> None:
        super().__init__()
        self.done = asyncio.Event()
        self._frames, self._go, self._position = microphone.__aiter__(), go, 0

    async def recv(self) -> av.AudioFrame:
        """The next frame, in real time."""
        await self._go.wait()
        try:
            pcm = await self._frames.__anext__()
        except StopAsyncIteration:
            self.done.set()
            await asyncio.sleep(3600)
            raise
        frame = av.AudioFrame.from_ndarray(pcm.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, self._position, fractions.Fraction(1, RATE)
        self._position += len(pcm)
        return frame


async def hear(track: Any, speaker: Speaker, began: asyncio.Event) -> None:
    """Decoded frames, mixed to mono, into the speaker, until the track ends."""
    try:
        while True:
            frame = await track.recv()
            began.set()
            pcm = frame.to_ndarray().reshape(-1, len(frame.layout.channels))
            speaker.push(pcm.mean(axis=1).astype(np.int16))
    except MediaStreamError:
        pass


def go_when_connected(connection: RTCPeerConnection, go: asyncio.Event) -> None:
    """Set `go` when the connection stands."""
    connection.on("connectionstatechange", lambda: go.set() if connection.connectionState == "connected" else None)


class Server:
    """Answers the first call."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.speaker: Speaker | None = None
        self.microphone: Microphone | None = None
        self.began = asyncio.Event()
        self.kept: list[Any] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One offer."""
        offer = json.loads(await reader.readline())
        connection = RTCPeerConnection(NO_STUN)
        self.kept.append(connection)

        @connection.on("track")
        def on_track(track: Any) -> None:
            if self.speaker is None:
                self.speaker = Speaker(RATE, max_ms=FIFO_MAX_MS)
                self.kept.append(asyncio.ensure_future(hear(track, self.speaker, self.began)))

        await connection.setRemoteDescription(RTCSessionDescription(offer["sdp"], offer["type"]))
        if self.options.reply:
            go = asyncio.Event()
            self.microphone = Microphone(load_speech(self.options.reply, RATE, offer["seconds"]), RATE)
            connection.addTrack(SpeechTrack(self.microphone, go))
            go_when_connected(connection, go)
        await connection.setLocalDescription(await connection.createAnswer())
        described = connection.localDescription
        writer.write(json.dumps({"sdp": described.sdp, "type": described.type}).encode() + b"\n")
        await writer.drain()

    async def run(self) -> None:
        """Until OUT.stop appears or the life is over."""
        options, meter = self.options, Meter()
        await asyncio.start_server(self.answer, options.host, options.port, limit=1 << 20)
        end, use, seen, metering = time.monotonic() + options.life, meter.report(), 0, False
        while time.monotonic() < end and not os.path.exists(options.out + ".stop"):
            await asyncio.sleep(0.1)
            if self.began.is_set() and not metering:
                metering = True
                meter.start()
            if self.speaker is not None and self.speaker.received != seen:
                use, seen = meter.report(), self.speaker.received  # up to the last audio
        if self.microphone is not None:
            self.microphone.save(options.sent, **use)
        if self.speaker is None:
            write_json(options.out + ".json", {"playout_start": None, **use})
        else:
            self.speaker.close(options.out, **use)
        os._exit(0)  # the library's own ending takes seconds


async def client(options: argparse.Namespace) -> None:
    """Call, speak, listen."""
    meter, microphone = Meter(), Microphone(load_speech(options.wav, RATE, options.seconds), RATE)
    reader, writer = await asyncio.open_connection(options.host, options.port, limit=1 << 20)
    connection, connected, go = RTCPeerConnection(NO_STUN), asyncio.Event(), asyncio.Event()
    go_when_connected(connection, connected)
    track = SpeechTrack(microphone, go)
    connection.addTrack(track)
    speaker = Speaker(RATE, max_ms=FIFO_MAX_MS) if options.out else None
    if speaker is not None:
        connection.on("track", lambda remote: asyncio.ensure_future(hear(remote, speaker, asyncio.Event())))
    await connection.setLocalDescription(await connection.createOffer())
    described = connection.localDescription
    writer.write(json.dumps({"sdp": described.sdp, "type": described.type, "seconds": options.seconds}).encode() + b"\n")
    answer = json.loads(await reader.readline())
    await connection.setRemoteDescription(RTCSessionDescription(answer["sdp"], answer["type"]))
    await asyncio.wait_for(connected.wait(), 25)
    await asyncio.sleep(0.5)
    meter.start()
    go.set()
    await track.done.wait()
    use = meter.report()
    await asyncio.sleep(1.0)
    if speaker is not None:
        speaker.close(options.out, **use)
    microphone.save(options.sent, **use)
    os._exit(0)


def main() -> None:
    """The command line."""
    options = parser(__doc__, 8089).parse_args()
    asyncio.run(Server(options).run() if options.role == "server" else client(options))


if __name__ == "__main__":
    main()
