"""``voicestream serve``: take calls, say back what is heard, play a file, keep recordings."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import voicestream
from voicestream.audio.files import WavWriter
from voicestream.cli.cert import LOCAL_NAMES
from voicestream.cli.conversation import Pcm, first_of, hear, load_speech, prepare, together
from voicestream.cli.errors import CommandError, sentence, user_values
from voicestream.cli.options import Commands, add_coding, add_trace, bitrates, bounded, host_and_port, make_folder
from voicestream.cli.signals import polite_stop
from voicestream.core.resume import KEY_SIZE
from voicestream.errors import CallClosed, VoiceStreamError
from voicestream.observe.metrics import Metrics
from voicestream.quic.certificates import make_certificate, pin_of_file, write_certificate
from voicestream.store import RedisStore

__all__ = ["add_command", "run"]

SAMPLE_RATE_HZ: Final = 48000

EVERY_ADDRESS: Final = ("::", "0.0.0.0", "")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Identity:
    """Where the certificate is, and its SHA-256."""

    certfile: Path
    keyfile: Path
    sha256: str


@dataclass(kw_only=True, slots=True)
class _Desk:
    """What happens with every call."""

    echo: bool
    speech: Pcm | None
    folder: Path | None
    tell: Callable[[str, dict[str, object]], None]
    after_call: Callable[[], None]
    count: int = field(default=0)

    async def take(self, call: voicestream.Call) -> None:
        """Handle one call from beginning to end."""
        self.count += 1
        number = self.count
        host, port = call.remote_address[:2]
        self.tell(f"call {number} from {host} port {port}, path {call.path}", {"event": "call", "call": number, "path": call.path})
        ending = "cut off"
        try:
            await prepare(call)
            with self._recording(call, number) as ears:
                await (self._echo(call, ears) if self.echo else together(self._speak(call), hear(call, *ears)))
            ending = "ended"
        except CallClosed as error:
            ending = sentence(error)
        except VoiceStreamError as error:
            ending = sentence(error)
            raise
        finally:
            self.after_call()
            self.tell(f"call {number}: {ending}", {"event": "end", "call": number, "ending": ending, "stats": call.stats().to_dict()})

    async def _echo(self, call: voicestream.Call, ears: list[Callable[[Pcm], None]]) -> None:
        async for block in call:
            await call.send(block)
            for ear in ears:
                ear(block)
        await call.finish(None)

    async def _speak(self, call: voicestream.Call) -> None:
        if self.speech is not None:
            await call.send(self.speech, ahead=True)
        await call.finish(None)

    @contextlib.contextmanager
    def _recording(self, call: voicestream.Call, number: int) -> Iterator[list[Callable[[Pcm], None]]]:
        if self.folder is None:
            yield []
            return
        path = self.folder / f"call-{number}-{call.session_id[:8]}.wav"
        with WavWriter(path, SAMPLE_RATE_HZ) as wav:
            yield [wav.write]
        self.tell(f"call {number}: recorded in {path}", {"event": "recording", "call": number, "file": str(path)})


def add_command(commands: Commands) -> None:
    """Add ``serve`` to the command line."""
    parser = commands.add_parser(
        "serve",
        help="take calls",
        description="Take calls until Ctrl-C, which lets calls end (a second one cuts them off). Without --cert and --key it "
        "makes a certificate for this run and prints the command with which a client calls.",
    )
    parser.add_argument("--host", default="::", help="address to listen on (::, all of IPv4 and IPv6)")
    parser.add_argument("--port", type=bounded(0, 65535), default=4433, help="UDP port (4433); 0 takes a free one")
    parser.add_argument("--cert", type=Path, metavar="FILE", help="certificate chain, PEM")
    parser.add_argument("--key", type=Path, metavar="FILE", help="its private key, PEM")
    speech = parser.add_mutually_exclusive_group()
    speech.add_argument("--echo", action="store_true", help="say back what is heard")
    speech.add_argument("--play", type=Path, metavar="FILE", help="say a WAV file to every caller")
    parser.add_argument("--record", type=Path, metavar="DIR", help="write a WAV file of what every caller says")
    add_coding(parser)
    add_trace(parser)
    parser.add_argument("--metrics", type=host_and_port, metavar="[HOST:]PORT", help="serve metrics to Prometheus by HTTP (on 127.0.0.1)")
    parser.add_argument("--store", metavar="URL", help="Redis that servers share, redis://host:port/0; a call whose server ends goes on")
    parser.add_argument("--key-file", type=Path, metavar="FILE", help="keys that they share: lines of 64 hexadecimal digits, newest first")
    parser.add_argument("--next-uri", metavar="URI", help="server with the same store and keys where calls go when this one ends")
    parser.add_argument("--drain-seconds", type=bounded(0, 3600), default=10, help="how long calls may go on after Ctrl-C (10)")
    parser.add_argument("--once", action="store_true", help="end after the first call")
    parser.add_argument("--json", action="store_true", help="a line of JSON on stdout for everything that happens")
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    if not (options.echo or options.play or options.record):
        options.parser.error("say what to do with calls: --echo, --play FILE or --record DIR")
    if (options.cert is None) != (options.key is None):
        options.parser.error("--cert and --key belong together")
    if options.store is not None and options.key_file is None:
        options.parser.error("--store needs --key-file: the servers that share it open each other's tokens with the same keys")
    speech = None if options.play is None else load_speech(options.play).converted(sample_rate_hz=SAMPLE_RATE_HZ)
    if options.record is not None:
        make_folder(options.record)
    with contextlib.suppress(asyncio.CancelledError), _identity(options) as identity:
        asyncio.run(_serve(options, identity, speech))
    return 0


async def _serve(options: argparse.Namespace, identity: _Identity, speech: Pcm | None) -> None:
    def tell(line: str, values: dict[str, object]) -> None:
        print(json.dumps(values) if options.json else line, flush=True)

    with polite_stop() as stop:
        first_call = asyncio.Event()
        desk = _Desk(echo=options.echo, speech=speech, folder=options.record, tell=tell, after_call=first_call.set)
        bitrate_bps, allowed = bitrates(options)
        with user_values():
            keys = () if options.key_file is None else read_keys(options.key_file)
            store = None if options.store is None else RedisStore(options.store)
            serving = voicestream.serve(
                desk.take,
                options.host,
                options.port,
                certfile=identity.certfile,
                keyfile=identity.keyfile,
                sample_rate_hz=SAMPLE_RATE_HZ,
                bitrate_bps=bitrate_bps,
                rate=allowed,
                frame_ms=options.frame_ms,
                trace=options.trace,
                drain_timeout=options.drain_seconds,
                next_uri=options.next_uri,
                store=store,
                resume_keys=keys,
            )
            opened = await serving
        # All that is there now stays as long as the server: collections need not go through it again and again.
        gc.collect()
        gc.freeze()
        # The figures can be had until the last call has ended.
        with contextlib.ExitStack() as until_closed:
            async with opened as server:
                command = client_command(options.host, server.port, identity.sha256)
                values = {"event": "listening", "port": server.port, "sha256": identity.sha256, "client": command}
                tell(f"listening on port {server.port}; call with:\n  {command}", values)
                until_closed.enter_context(_metrics(options, server))
                await first_of(stop.wait(), first_call.wait() if options.once else None)
                if server.calls and stop.is_set():
                    wait = f"waiting for calls to end, {options.drain_seconds} s at most"
                    print(f"voicestream: {wait}; Ctrl-C again ends at once", file=sys.stderr)


def read_keys(file: Path) -> list[bytes]:
    """The keys of a file: a line of 64 hexadecimal digits each, empty lines and those that begin with # left out.

    Raises:
        ValueError: There is none, or a line is something else; no line is shown.
    """
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
        keys = [bytes.fromhex(line) for line in lines if line and not line.startswith("#")]
    except ValueError:
        keys = []
    if not keys or any(len(key) != KEY_SIZE for key in keys):
        raise ValueError(f"{file} must have a key of {2 * KEY_SIZE} hexadecimal digits in each line")
    return keys


@contextlib.contextmanager
def _metrics(options: argparse.Namespace, server: voicestream.Server) -> Iterator[None]:
    """Figures of the server by HTTP, if they are asked for."""
    if options.metrics is None:
        yield
        return
    host, port = options.metrics
    try:
        stop = Metrics(server.figures).start(port, host)
    except ModuleNotFoundError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"cannot serve metrics on {host} port {port}: {(error.strerror or str(error)).lower()}") from error
    try:
        yield
    finally:
        stop()


def client_command(host: str, port: int, sha256: str) -> str:
    """The command line of a client on this machine."""
    name = "localhost" if host in EVERY_ADDRESS else host
    name = f"[{name}]" if ":" in name else name
    return f"voicestream call voicestream://{name}:{port}/ --pin {sha256} --in speech.wav --out heard.wav"


@contextlib.contextmanager
def _identity(options: argparse.Namespace) -> Iterator[_Identity]:
    if options.cert is not None:
        with user_values():
            identity = _Identity(certfile=options.cert, keyfile=options.key, sha256=pin_of_file(options.cert))
        yield identity
        return
    names = list(LOCAL_NAMES)
    if options.host not in (*EVERY_ADDRESS, *names) and re.fullmatch(r"[\w.:-]+", options.host, re.ASCII):
        names.append(options.host)
    certificate, key, sha256 = make_certificate(names)
    with tempfile.TemporaryDirectory(prefix="voicestream-") as folder:
        identity = _Identity(certfile=Path(folder, "cert.pem"), keyfile=Path(folder, "key.pem"), sha256=sha256)
        write_certificate(certificate, key, identity.certfile, identity.keyfile)
        yield identity
