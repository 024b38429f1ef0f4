"""`serve` and `Server`: take calls, run a handler for each, and leave without cutting anybody off."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Final, Literal

from voicestream.call import Call
from voicestream.call_figures import CallFigures
from voicestream.call_options import call_options
from voicestream.call_preload import preload
from voicestream.config import Limits, RateConfig, Track
from voicestream.core.resume import KEY_SIZE
from voicestream.observe import Traces
from voicestream.quic.configuration import ServerTls
from voicestream.server_admission import Authenticate
from voicestream.server_calls import ServerCalls
from voicestream.server_rules import Handler, Rules
from voicestream.server_signals import either, stop_signals
from voicestream.store import SessionStore
from voicestream.trace import Observer
from voicestream.uri import DEFAULT_PORT, parse_uri
from voicestream.wire.parameters import MAX_ROUTE_TOKEN, MIN_ROUTE_TOKEN

__all__ = ["Server", "serve"]

MAX_KEYS: Final = 16
"""Keys whose tokens are good: each costs a try for a token that is not."""


class Server:
    """A running server; `serve` makes it. As an asynchronous context manager it closes at the end of the block."""

    __slots__ = ("_calls", "_drain_timeout")

    def __init__(self, calls: ServerCalls, drain_timeout: float) -> None:
        self._calls = calls
        self._drain_timeout = drain_timeout

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each socket that the server listens on; the last known ones when it is closed."""
        return self._calls.addresses

    @property
    def port(self) -> int:
        """UDP port that the server listens on; useful when 0 was asked for."""
        return self.addresses[0][1]

    @property
    def calls(self) -> list[Call]:
        """Calls that are going on."""
        return self._calls.calls

    @property
    def figures(self) -> CallFigures:
        """What all calls of the server have done together, for `voicestream.observe.metrics.Metrics`."""
        return self._calls.figures

    async def serve_forever(self) -> None:
        """Wait until the server has been closed. Cancelling this closes the server.

        Ctrl-C (SIGINT) and SIGTERM close it as well, and this returns: calls may go on for `drain_timeout`, a second signal ends
        them at once. So it is in the main thread, where the system's loop can do it and the application handles no such signal.
        """
        with stop_signals() as stop:
            try:
                await either(self._calls.closed.wait(), stop.wait())
                if stop.is_set():
                    stop.clear()
                    await either(self.close(), stop.wait())
                    await self.close(0)
            except asyncio.CancelledError:
                await self.close()
                raise

    def change_keys(self, keys: Sequence[bytes]) -> None:
        """Seal the clients' resume tokens with another key from now on. No session ends.

        A client keeps its token for as long as its call goes on without a break, so a key is to be among `keys` until the calls that
        began under it are over. With several servers: first give each the new key in second place, then each in the first.

        Args:
            keys: As `serve`'s `resume_keys`.

        Raises:
            TypeError, ValueError: As there.
        """
        self._calls.change_keys(_checked_keys(keys))

    async def close(self, drain_timeout: float | None = None) -> None:
        """Stop: take no more calls, tell every client that the server is going away, wait for the handlers, close the rest.

        Calls may go on until their handlers return; what still runs after `drain_timeout` is cancelled and its call closed
        with GOING_AWAY. With a `store` those sessions are not over: their clients resume them at another server that shares it, at
        `next_uri` at once if there is one. Does nothing when the server is closed.

        Args:
            drain_timeout: Seconds; `serve`'s by default. 0 ends every call at once.
        """
        await self._calls.close(self._drain_timeout if drain_timeout is None else drain_timeout)


class serve:
    """Take calls on a UDP port::

        async with serve(handler, "::", 4433, certfile="cert.pem", keyfile="key.pem") as server:
            await server.serve_forever()

    or ``server = await serve(...)`` and ``await server.close()`` in the end.

    Args:
        handler: Coroutine function that gets each `Call`. When it returns, what it sent is played to its end and the call is
            closed; when it raises, the call is closed with HANDLER_ERROR and the error is logged. When the client leaves
            first, what the handler awaits of the call ends or raises `CallClosed`, which it need not catch.
        host: Address or name to listen on; "::" is every address, IPv4 and IPv6.
        port: UDP port; 0 takes a free one (see `Server.port`).
        certfile: PEM file with the certificate and its chain.
        keyfile: PEM file with its key.
        authenticate: Function or coroutine function that is called with authority, path, token (bytes), metadata (bytes) and
            address of a client before its call is taken, and once more when its session is resumed. Returns None, bytes that the
            client gets as the call's metadata, or an `Admission` with limits of its own; returns or raises a `RejectedError` to
            decline, or to send the client elsewhere (`ErrorCode.REDIRECT` with a `uri`). It may take `Limits.authenticate_timeout`
            seconds; a plain function holds up all calls while it waits.
        sample_rate_hz: Rate of the PCM that calls give and take, 8000 to 192000.
        channels: Channels of that PCM, 1 or 2.
        bitrate_bps: Bits per second of the codec to begin with, 8000 to 64000; the network's state moves it.
        frame_ms: Frame length to begin with, 10, 20, 40 or 60.
        application: libopus' mode: "voip", "audio" or "lowdelay".
        dtx: Send (almost) nothing in silence.
        complexity: libopus' effort, 0 to 10; not more than 5 of it is used at 48 kbps a channel and above.
        lookahead_ms: Deepest playout buffer, 20 to 500; also what a client may send ahead.
        tracks: Media of the calls; PCM goes to the first. Opus on track 0 by default.
        rate: What the sender may use.
        limits: What a client may cost.
        retain_s: Seconds of a break after which all that was said in it still comes in order, 2 to 300: sent media is kept for so
            long (and 5 s more, in which the path's return is noticed), at most 8 KB for each of them.
        session_lifetime_s: Seconds that a broken session can be resumed, 30 to 300.
        store: Is told every 250 ms how far each session has come (with `Call.context` and `Call.processed_through`); no call waits
            for it. Servers with the same `RedisStore` and `resume_keys` take up each other's sessions: the handler begins anew there
            (see `Call.continued`), and what the client has said since is sent again. What a server that died had not sent is lost.
            A server needs no store to resume its own sessions.
        resume_keys: Keys of 32 random bytes that seal the clients' resume tokens: the first one seals, all of them open. A key that
            is made for this run by default; a `store` needs those of the servers that share it.
        next_uri: Where clients are sent when this server closes, ``voicestream://host[:port]/``: a server with the same store and
            keys. They resume their sessions there while this one still runs.
        next_route_token: First connection id of their dials there, 8 to 20 bytes: behind a relay that routes by connection ids it
            names the server. Without `next_uri` the clients dial the address again that they have called.
        early_resume: Take a request to resume with a client's first packet (0-RTT), once for each connection that it had, where the
            session has no living path. `authenticate` is asked then before the client has proved that it lives at its address.
        metadata: Bytes that clients get when `authenticate` returns None, at most 4096.
        finish_timeout: Seconds that a client gets to play what was sent when the handler has returned.
        drain_timeout: Seconds that handlers get when the server closes.
        trace: Folder that there is, for a record of what each call did and why: a file for each (qlog's form; see `spec/trace.md`),
            named by session and vantage point. No token, audio or content of an event is in it.
        observer: Takes the same records as they come.

    Raises:
        TypeError, ValueError: An argument is out of range; the message names it.
        OSError: When the server starts: the port is taken, the address is not one of this machine, a file cannot be read, there is
            no folder for `trace`.
    """

    def __init__(
        self,
        handler: Handler,
        host: str = "::",
        port: int = DEFAULT_PORT,
        *,
        certfile: str | PathLike[str],
        keyfile: str | PathLike[str],
        authenticate: Authenticate | None = None,
        sample_rate_hz: int = 48000,
        channels: int = 1,
        bitrate_bps: int = 40000,
        frame_ms: int = 20,
        application: Literal["voip", "audio", "lowdelay"] = "voip",
        dtx: bool = False,
        complexity: int = 9,
        lookahead_ms: int = 150,
        tracks: Sequence[Track] | None = None,
        rate: RateConfig | None = None,
        limits: Limits | None = None,
        retain_s: float = 30.0,
        session_lifetime_s: float = 300.0,
        store: SessionStore | None = None,
        resume_keys: Sequence[bytes] = (),
        next_uri: str | None = None,
        next_route_token: bytes | None = None,
        early_resume: bool = True,
        metadata: str | bytes = b"",
        finish_timeout: float = 5.0,
        drain_timeout: float = 10.0,
        trace: str | PathLike[str] | None = None,
        observer: Observer | None = None,
    ) -> None:
        if not callable(handler):
            raise TypeError(f"handler must be a coroutine function, not {type(handler).__name__}")
        options = call_options(
            sample_rate_hz=sample_rate_hz,
            channels=channels,
            bitrate_bps=bitrate_bps,
            frame_ms=frame_ms,
            application=application,
            dtx=dtx,
            complexity=complexity,
            lookahead_ms=lookahead_ms,
            tracks=tracks,
            rate=rate,
            limits=limits,
            retain_s=retain_s,
            session_lifetime_s=session_lifetime_s,
            metadata=metadata, observer=observer,
        )  # fmt: skip
        self._rules = Rules(
            handler=handler, authenticate=authenticate, options=options, finish_timeout=finish_timeout,
            next_uri=None if next_uri is None else str(parse_uri(next_uri)), next_route_token=_route(next_route_token),
            early_resume=early_resume, shares=store is not None,
        )  # fmt: skip
        self._keys = _own_keys(resume_keys, store)
        self._tls = ServerTls(certfile=Path(certfile), keyfile=Path(keyfile))
        self._address, self._drain_timeout = (host, port), drain_timeout
        self._store, self._trace, self._server = store, trace, None

    _server: Server | None

    def __await__(self) -> Generator[object, None, Server]:
        return self._start().__await__()

    async def _start(self) -> Server:
        traces = None if self._trace is None else Traces(self._trace, "server")
        if traces is not None:
            traces.check()
        calls = ServerCalls(self._rules, self._keys, self._store, traces)
        await preload()
        await calls.listen(*self._address, self._tls)
        return Server(calls, self._drain_timeout)

    async def __aenter__(self) -> Server:
        self._server = await self
        return self._server

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.close()


def _own_keys(keys: Sequence[bytes], store: SessionStore | None) -> tuple[bytes, ...]:
    if store is not None and not keys:
        raise ValueError("store needs resume_keys: with a key of its own nobody else could take up what this server leaves there")
    return _checked_keys(keys or [os.urandom(KEY_SIZE)])


def _checked_keys(keys: Sequence[bytes]) -> tuple[bytes, ...]:
    if isinstance(keys, str | bytes | bytearray) or not all(isinstance(key, bytes | bytearray) for key in keys):
        raise TypeError("resume_keys must be a list of bytes")
    if not 1 <= len(keys) <= MAX_KEYS or any(len(key) != KEY_SIZE for key in keys):
        raise ValueError(f"resume_keys must be 1 to {MAX_KEYS} keys of {KEY_SIZE} bytes")
    return tuple(bytes(key) for key in keys)


def _route(token: bytes | None) -> bytes | None:
    if token is None:
        return None
    if not isinstance(token, bytes | bytearray):
        raise TypeError(f"next_route_token must be bytes, not {type(token).__name__}")
    if not MIN_ROUTE_TOKEN <= len(token) <= MAX_ROUTE_TOKEN:
        raise ValueError(f"next_route_token must have {MIN_ROUTE_TOKEN} to {MAX_ROUTE_TOKEN} bytes, not {len(token)}")
    return bytes(token)
