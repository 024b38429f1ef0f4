"""aiortc under load: a server of duplex calls as it comes, and callers that only move packets.

    aiortc_load.py server --port 4500 [--no-codec]
    aiortc_load.py callers --port 4500 --calls 10

Without the codec both ends' encoders and decoders are left out (a track may give coded packets; the decoder is replaced by one that
gives nothing), which shows what the transport alone costs.
"""

from __future__ import annotations

import argparse
import asyncio
import fractions
import json
import time
from typing import Any

import av
import numpy as np
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription, rtcrtpreceiver
from aiortc.codecs.opus import OpusEncoder
from aiortc.mediastreams import MediaStreamError

from interop.lab.load.gauge import Gauge, obey
from interop.lab.load.voicestream_load import BLOCK, FRAME_S, HOST, RATE, run, speech_blocks

NO_STUN = RTCConfiguration(iceServers=[])
TIME_BASE = fractions.Fraction(1, RATE)


def frame_of(block: Any, position: int) -> av.AudioFrame:
    """PCM as aiortc takes it."""
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(block).reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate, frame.pts, frame.time_base = RATE, position, TIME_BASE
    return frame


def coded() -> list[bytes]:
    """The speech, coded as aiortc's own encoder does."""
    encoder, packets = OpusEncoder(), []
    for index, block in enumerate(speech_blocks()):
        packets += encoder.encode(frame_of(block, index * BLOCK))[0]
    return packets


class Track(MediaStreamTrack):
    """Speech in real time, as PCM or coded."""

    kind = "audio"

    def __init__(self, said: list[Any], gauge: Gauge, offset: int, *, packets: bool) -> None:
        super().__init__()
        self._said, self._gauge, self._packets = said, gauge, packets
        self._index = offset
        self._due = time.monotonic() + offset % 20 / 1e3

    async def recv(self) -> av.AudioFrame | av.Packet:
        """The next frame, when it is due."""
        await asyncio.sleep(max(0.0, self._due - time.monotonic()))
        self._due += FRAME_S
        said, position = self._said[self._index % len(self._said)], self._index * BLOCK
        self._index += 1
        self._gauge.frames_out += 1
        if not self._packets:
            return frame_of(said, position)
        packet = av.Packet(said)
        packet.pts, packet.time_base = position, TIME_BASE
        return packet


class NoDecoder:
    """In place of a decoder."""

    def decode(self, encoded: Any) -> list[Any]:
        """Nothing."""
        return []


async def hear(track: Any, gauge: Gauge) -> None:
    """All that comes."""
    try:
        while True:
            await track.recv()
            gauge.frames_in += 1
    except MediaStreamError:
        pass


class Server:
    """Answers offers; each is a duplex call."""

    def __init__(self, gauge: Gauge, said: list[Any], *, codec: bool) -> None:
        self.gauge, self.said, self.codec = gauge, said, codec
        self.kept: list[Any] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One line of JSON each way."""
        offer = json.loads(await reader.readline())
        connection = RTCPeerConnection(NO_STUN)
        self.kept.append(connection)
        connection.on("track", lambda track: self.kept.append(asyncio.ensure_future(hear(track, self.gauge))))
        await connection.setRemoteDescription(RTCSessionDescription(offer["sdp"], offer["type"]))
        connection.addTrack(Track(self.said, self.gauge, len(self.kept) * 7, packets=not self.codec))
        await connection.setLocalDescription(await connection.createAnswer())
        described = connection.localDescription
        writer.write(json.dumps({"sdp": described.sdp, "type": described.type}).encode() + b"\n")
        await writer.drain()


async def serve(options: argparse.Namespace) -> None:
    """Until told to stop."""
    if options.no_codec:
        rtcrtpreceiver.get_decoder = lambda codec: NoDecoder()
    gauge = Gauge()
    server = Server(gauge, coded() if options.no_codec else speech_blocks(), codec=not options.no_codec)
    await asyncio.start_server(server.answer, HOST, options.port, limit=1 << 20)
    await obey(gauge)


async def call_once(options: argparse.Namespace, packets: list[bytes], index: int) -> RTCPeerConnection:
    """Dial; the connection, which speaks by itself."""
    gauge, connection, connected = Gauge(), RTCPeerConnection(NO_STUN), asyncio.Event()
    connection.on("connectionstatechange", lambda: connected.set() if connection.connectionState == "connected" else None)
    connection.on("track", lambda track: asyncio.ensure_future(hear(track, gauge)))
    connection.addTrack(Track(packets, gauge, index * 7, packets=True))
    await connection.setLocalDescription(await connection.createOffer())
    reader, writer = await asyncio.open_connection(HOST, options.port, limit=1 << 20)
    described = connection.localDescription
    writer.write(json.dumps({"sdp": described.sdp, "type": described.type}).encode() + b"\n")
    answer = json.loads(await reader.readline())
    await connection.setRemoteDescription(RTCSessionDescription(answer["sdp"], answer["type"]))
    await asyncio.wait_for(connected.wait(), 30)
    print("up", flush=True)
    return connection


async def callers(options: argparse.Namespace) -> None:
    """All calls, until killed."""
    rtcrtpreceiver.get_decoder = lambda codec: NoDecoder()
    packets = coded()
    kept = [await call_once(options, packets, index) for index in range(options.calls)]
    await asyncio.Event().wait()
    del kept


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=["server", "callers"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--no-codec", action="store_true")
    parser.add_argument("--certificate", help="not needed")
    parser.add_argument("--calls", type=int, default=1)
    parser.add_argument("--uvloop", action="store_true")
    options = parser.parse_args()
    run(serve(options) if options.role == "server" else callers(options), uvloop=options.uvloop)


if __name__ == "__main__":
    main()
