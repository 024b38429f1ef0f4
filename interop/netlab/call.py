#!/usr/bin/env python3
"""VoiceStream as a system of netlab: a speaking client and a listening server on netlab's simulated sound cards.

  call.py server --lab NETLAB --host 10.77.0.1 --out heard.wav --life 80
  call.py client --lab NETLAB --to 10.77.0.1 --wav speech.wav --sent sent.json --seconds 18

The client says the WAV live through the card's microphone, 20 ms at a time. The server's card pulls from the call's playout
buffer until the file OUT.stop appears. Duplex: with --reply WAV the server speaks too, and the client's --out records it.
With --ordered FILE the server reads the speech in order, as a recogniser does, in place of playing it (the card plays silence), and
writes what it got: frames, seconds, gaps, frames that came twice or out of order.
Neither side is told anything of the link; all settings are the defaults of `voicestream.connect` and `voicestream.serve`, but
for the redundancy where --redundancy holds it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import voicestream
import voicestream.audio.pipeline  # loaded before the call rather than in it
from voicestream.errors import InsecureWarning
from voicestream.quic.certificates import make_certificate_files

RATE = 48000
TAIL_S = 0.3
"""What the client's card plays on after the far end's last sample."""


def note(text: str) -> None:
    """A line in the call's log."""
    print(f"{time.time():.3f} voicestream: {text}", file=sys.stderr, flush=True)


def ear(call: voicestream.Call) -> Callable[[int], tuple[Any, int]]:
    """A source for the card's loudspeaker: samples, and how many of them were made up. Runs in the card's thread."""
    before = 0
    call.read(0)  # loads the codec here, so that the card's first ticks are not late

    def source(count: int) -> tuple[Any, int]:
        nonlocal before
        pcm = call.read(count)
        concealed = round(call.stats().playout.concealed_ms * RATE / 1e3)
        made_up, before = max(0, concealed - before), concealed
        return pcm, min(made_up, count)

    return source


def silence(count: int) -> tuple[Any, int]:
    """A source for the card of somebody who only reads."""
    return np.zeros(count, np.int16), 0


async def say(call: voicestream.Call, microphone: Any) -> None:
    """Live speech, then the end."""
    # Loads the codec before the first word, as a program does that opens its devices first.
    await call.send(b"")
    async for block in microphone:
        await call.send(block)
    await call.finish()


async def far_end_finished(call: voicestream.Call) -> None:
    """Wait until the far end says no more."""
    async for event in call.events():
        if event.kind == "finish":
            return


async def read_in_order(call: voicestream.Call, to: str) -> None:
    """Take every frame in order until the call ends; the account is written at each second of speech, and at the end."""
    spans: list[tuple[float, float]] = []
    gaps_ms = 0.0

    def write() -> None:
        starts = [pts for pts, _ in spans]
        account = {
            "frames": len(spans),
            "seconds": round(sum(length for _, length in spans) / 1e3, 2),
            "gaps_ms": round(gaps_ms, 1),
            "twice": len(starts) - len(set(starts)),
            "out_of_order": sum(later < earlier for earlier, later in itertools.pairwise(starts)),
        }
        Path(to).write_text(json.dumps(account))

    try:
        async for block in call.frames(decode=False):
            if block.gap:
                gaps_ms += block.duration_ms
            else:
                spans.append((block.pts, block.duration_ms))
            if len(spans) % 50 == 0:
                write()
    finally:
        write()


class Server:
    """Takes one call and plays it; says a reply where there is one."""

    def __init__(self, options: argparse.Namespace, lab: Any) -> None:
        self.options = options
        self.lab = lab
        self.meter = lab.Meter()
        self.use: dict[str, float] = {}
        self.speaker: Any = None
        self.microphone: Any = None

    async def take(self, call: voicestream.Call) -> None:
        """The first call gets the sound card; another ends at once."""
        note(f"call from {call.remote_address}")
        if self.speaker is not None:
            return
        self.meter.start()
        self.speaker = self.lab.Speaker(RATE, source=silence if self.options.ordered else ear(call))
        parts = [far_end_finished(call)]
        if self.options.ordered:
            parts.append(read_in_order(call, self.options.ordered))
        if self.options.reply:
            self.microphone = self.lab.Microphone(self.lab.load_speech(self.options.reply, RATE), RATE)
            parts.append(say(call, self.microphone))
        await asyncio.gather(*parts)
        # CPU counts while speech flows, not while the server waits to be stopped.
        self.use = self.meter.report()
        await call.wait_closed()
        note(f"call ended, code {call.close_code} {call.close_reason}; {call.stats()}")

    async def run(self) -> None:
        """Serve until the stop file appears or the life is over."""
        options, end = self.options, time.monotonic() + self.options.life
        with tempfile.TemporaryDirectory(prefix="voicestream-") as folder:
            certfile, keyfile, _ = make_certificate_files(Path(folder), [options.host])
            server = await voicestream.serve(self.take, options.host, options.port, certfile=certfile, keyfile=keyfile, sample_rate_hz=RATE)
            note(f"listening on {options.host} port {options.port}")
            while time.monotonic() < end and not os.path.exists(options.out + ".stop"):
                await asyncio.sleep(0.05)
            self.save()
            await server.close(0)

    def save(self) -> None:
        """Write the recording and the sidecars."""
        use = self.use or self.meter.report()
        if self.speaker is None:
            self.lab.write_json(self.options.out + ".json", {"playout_start": None, **use})
        else:
            self.speaker.close(self.options.out, **use)
        if self.microphone is not None and self.microphone.start_wall is not None:
            self.microphone.save(self.options.sent, **use)


async def client(options: argparse.Namespace, lab: Any) -> None:
    """Call, speak, listen where a recording is asked for."""
    warnings.simplefilter("ignore", InsecureWarning)
    speech = lab.load_speech(options.wav, RATE, options.seconds)
    meter, speaker = lab.Meter(), None
    uri, held = f"voicestream://{options.to}:{options.port}/netlab", options.redundancy
    rate = None if held is None else voicestream.RateConfig(redundancy_share=min(0.1, held), redundancy_cap=held)
    async with voicestream.connect(uri, insecure=True, sample_rate_hz=RATE, rate=rate) as call:
        note("accepted")
        meter.start()
        microphone = lab.Microphone(speech, RATE)
        parts = [say(call, microphone)]
        if options.out:
            speaker = lab.Speaker(RATE, source=ear(call))
            parts.append(far_end_finished(call))
        try:
            await asyncio.gather(*parts)
        finally:
            use = meter.report()
            stats = call.stats()
            note(f"said all; {stats}")
            if microphone.start_wall is not None:
                microphone.save(options.sent, redundancy_share=stats.recovery.redundancy_share, **use)
            if speaker is not None:
                await asyncio.sleep(TAIL_S)
                speaker.close(options.out, **use)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    roles = parser.add_subparsers(dest="role", required=True)
    server, caller = roles.add_parser("server", help="listen"), roles.add_parser("client", help="speak")
    for role in (server, caller):
        role.add_argument("--lab", required=True, help="netlab's folder, for its soundcard.py")
        role.add_argument("--out", help="WAV of what is heard; required for the server")
        role.add_argument("--port", type=int, default=4433, help="UDP port")
        role.add_argument("--sent", help="JSON sidecar of what is said")
    server.add_argument("--host", default="10.77.0.1", help="address to listen on")
    server.add_argument("--life", type=float, default=80, help="seconds after which it ends by itself")
    server.add_argument("--ordered", help="JSON account of the speech as it came in order")
    server.add_argument("--reply", help="WAV to say to the caller")
    caller.add_argument("--to", default="10.77.0.1", help="address to call")
    caller.add_argument("--wav", required=True, help="what to say")
    caller.add_argument("--redundancy", type=float, help="part of the wire bytes that redundancy is held at, as 0.1; not by default")
    caller.add_argument("--seconds", type=float, default=20, help="how much of it")
    options = parser.parse_args()
    if options.role == "server" and not options.out:
        server.error("--out is required")
    return options


def main() -> None:
    """Run one role."""
    options = parse()
    sys.path.insert(0, options.lab)
    import soundcard  # netlab's; its folder is known only now

    asyncio.run(Server(options, soundcard).run() if options.role == "server" else client(options, soundcard))


if __name__ == "__main__":
    main()
