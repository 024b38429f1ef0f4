"""``voicestream call``: say a WAV file or the microphone to a server, write or play what comes back."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import voicestream
from voicestream.audio.devices import Microphone, Speaker, require_devices
from voicestream.audio.files import WavWriter
from voicestream.cli.conversation import BLOCK_MS, Pcm, first_of, hear, load_speech, paced, prepare, say, together
from voicestream.cli.errors import CommandError, sentence, user_values
from voicestream.cli.meter import Meter
from voicestream.cli.options import Commands, add_coding, add_trace, bitrates, bounded, fingerprint
from voicestream.cli.signals import polite_stop
from voicestream.config import PTS_UNIT_MS
from voicestream.errors import AudioError, InsecureWarning, VoiceStreamError
from voicestream.uri import parse_uri

__all__ = ["add_command", "run"]

DEVICE_RATE_HZ: Final = 48000


def add_command(commands: Commands) -> None:
    """Add ``call`` to the command line."""
    parser = commands.add_parser(
        "call",
        help="call a server",
        description="Call a server, say a WAV file in real time and keep what comes back until the far end has finished. "
        "Ctrl-C stops speaking and waits for the rest; a second one hangs up.",
    )
    parser.add_argument("url", metavar="URL", help="voicestream://host[:port]/path")
    voice = parser.add_mutually_exclusive_group(required=True)
    voice.add_argument("--in", dest="input", type=Path, metavar="WAV", help="what to say")
    voice.add_argument("--mic", action="store_true", help="say what the microphone hears")
    parser.add_argument("--out", type=Path, metavar="WAV", help="where to write what is heard")
    parser.add_argument("--speaker", action="store_true", help="play what is heard")
    trust = parser.add_mutually_exclusive_group()
    trust.add_argument("--pin", type=fingerprint, metavar="SHA256", help="take only the certificate with this SHA-256")
    trust.add_argument("--cafile", type=Path, metavar="FILE", help="take certificates that these authorities signed, PEM")
    trust.add_argument("--insecure", action="store_true", help="take any certificate: whoever is on the path can listen")
    parser.add_argument("--token", default="", help="what the server knows this client by")
    add_coding(parser)
    parser.add_argument("--lookahead-ms", type=bounded(20, 500, "ms"), default=150, metavar="MS", help="deepest playout buffer (150)")
    parser.add_argument("--dtx", action="store_true", help="send almost nothing in silence")
    add_trace(parser)
    parser.add_argument("--json", action="store_true", help="print the call's figures as JSON, with \"error\" after a bad end")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Make the call."""
    with user_values():
        parse_uri(options.url)
    if options.mic or options.speaker:
        require_devices()
    if options.out is not None and options.input is not None and options.out.resolve() == options.input.resolve():
        raise CommandError(f"--out is the file of --in: {options.out}; the recording would take its place")
    speech, rate = (None, DEVICE_RATE_HZ) if options.input is None else _read(options.input)
    if options.insecure:
        warnings.simplefilter("ignore", InsecureWarning)
        print("voicestream: the server's certificate is not checked", file=sys.stderr)
    values: dict[str, object] = {}
    try:
        asyncio.run(_call(options, speech, rate, values))
    except asyncio.CancelledError:
        values["error"] = "hung up"
        raise KeyboardInterrupt from None
    except (CommandError, VoiceStreamError, OSError) as error:
        values["error"] = sentence(error)
        raise
    finally:
        # Also of a call that has ended badly, or has not begun.
        if options.json:
            print(json.dumps(values, indent=1), flush=True)
    return 0


def _read(path: Path) -> tuple[Pcm, int]:
    wav = load_speech(path)
    rate = wav.sample_rate_hz
    # Blocks of 20 ms are whole samples at every usual rate; others are converted, so that no clock drifts.
    if rate * BLOCK_MS % 1000 or not 8000 <= rate <= 192000:
        rate = DEVICE_RATE_HZ
    return wav.converted(sample_rate_hz=rate), rate


async def _call(options: argparse.Namespace, speech: Pcm | None, rate: int, values: dict[str, object]) -> None:
    """Make the call; its figures are in `values` however it ends."""
    with user_values():
        connecting = _connecting(options, rate)
    # The file is tried first: a call whose recording cannot be kept is not begun, and one that fails to begin costs no recording.
    with polite_stop() as stop:
        if options.out is not None:
            _try_writing(options.out)
        with user_values():
            opened = await connecting
        async with opened as call:
            try:
                with _recording(options.out, rate) as wav:
                    await prepare(call)
                    talk = _talk_live(call, stop) if speech is None else say(call, paced(speech, rate, stop))
                    listen = _listen_live(call, wav) if options.speaker else hear(call, *([wav.write] if wav else []))
                    async with Meter(call, sys.stderr):
                        await together(talk, listen)
            finally:
                values.update(call.stats().to_dict())


def _connecting(options: argparse.Namespace, rate: int) -> voicestream.connect:
    bitrate_bps, allowed = bitrates(options)
    return voicestream.connect(
        options.url,
        token=options.token or None,
        cafile=options.cafile,
        pin=options.pin,
        insecure=options.insecure,
        sample_rate_hz=rate,
        bitrate_bps=bitrate_bps,
        rate=allowed,
        frame_ms=options.frame_ms,
        lookahead_ms=options.lookahead_ms,
        dtx=options.dtx,
        trace=options.trace,
    )


async def _talk_live(call: voicestream.Call, stop: asyncio.Event) -> None:
    """Say what the microphone hears until Ctrl-C or until the far end leaves."""
    with Microphone(call.send_nowait, sample_rate_hz=DEVICE_RATE_HZ):
        await first_of(stop.wait(), call.wait_closed())
    if not call.closed:
        await call.finish(None)


async def _listen_live(call: voicestream.Call, wav: WavWriter | None) -> None:
    """Let the loudspeaker pull until it has played the far end's last sample."""

    def read(count: int) -> Pcm:
        block = call.read(count)
        if wav is not None:
            wav.write(block)
        return block

    with Speaker(read, sample_rate_hz=call.audio.sample_rate_hz) as speaker:
        call.device_latency = min(speaker.latency, 1.0)
        async for event in call.events():
            if event.kind == "finish":
                await _played(call, event.at or 0.0)
                return


async def _played(call: voicestream.Call, at: float) -> None:
    """Wait until this end has played up to media time `at`, or as long as the call lives."""
    # Times come in steps of 2.5 ms; the half spares comparing sums of floats.
    while not call.closed and call.stats().received.played_ms < at * 1e3 - PTS_UNIT_MS / 2:
        await asyncio.sleep(BLOCK_MS / 1e3)


def _try_writing(path: Path) -> None:
    """See that a recording can be kept, and leave what is there. A pipe is not tried: its reader would see it end."""
    if not path.parent.is_dir():
        raise AudioError(f"{path} cannot be written: there is no folder {path.parent}")
    there = path.exists()
    if there and not (path.is_file() or path.is_dir()):
        return
    try:
        path.open("ab").close()
    except OSError as error:
        raise AudioError(f"{path} cannot be written: {error.strerror or error}") from error
    if not there:
        path.unlink()


@contextlib.contextmanager
def _recording(path: Path | None, rate: int) -> Iterator[WavWriter | None]:
    if path is None:
        yield None
        return
    with WavWriter(path, rate) as wav:
        yield wav
