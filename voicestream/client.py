"""`connect`: open a call."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Generator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal

from numpy.typing import NDArray

from voicestream.call import Call
from voicestream.call_options import as_bytes, call_options
from voicestream.client_dialing import Dialing, dial
from voicestream.client_early import EarlyAudio
from voicestream.client_moves import Moves, check_address
from voicestream.codepoints import ErrorCode
from voicestream.config import Limits, RateConfig, Track
from voicestream.errors import CertificateError, ConnectError, RejectedError
from voicestream.observe import Traces
from voicestream.quic.configuration import ClientTls
from voicestream.trace import Observer
from voicestream.uri import parse_uri

__all__ = ["connect"]

DIAL_PATIENCE: Final = 60.0
"""Seconds for which ``async for`` dials again after failures."""

FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 8.0
PASSING: Final = frozenset({ErrorCode.BUSY, ErrorCode.GOING_AWAY})
"""A server that declines with one of these may take a later call."""


class connect:
    """Open a call::

        async with connect("voicestream://example.org/agent", token="...") as call:
            await call.send(pcm)

    or ``call = await connect(...)`` and ``await call.close()`` in the end. A call survives breaks of its path by itself. To have
    another call when one has ended after all, with an error or because the server is restarted::

        async for call in connect("voicestream://example.org/agent"):
            try:
                await converse(call)
            except CallClosed:
                continue
            if call.close_code != ErrorCode.GOING_AWAY:  # a loop over what is heard just ends
                break

    Dials that fail there are repeated with growing pauses, up to `DIAL_PATIENCE` seconds; the last error is raised then. A server
    that declines for good (`RejectedError`) and a wrong certificate are raised at once.

    Args:
        uri: ``voicestream://host[:port][/path][?query]``; the port is 4433 where none is given.
        token: What the server knows this client by, at most 2048 bytes.
        metadata: Bytes for the server's application, at most 4096.
        cafile: PEM file of authorities, or of the server's own certificate, to trust instead of the system's authorities.
        pin: SHA-256 of the server's certificate (DER), 32 bytes or hexadecimal; neither name nor authority is checked then.
        insecure: Check nothing: whoever is on the path can listen and speak. Warns each time.
        server_name: Name that the certificate must be for; the URI's host by default.
        sample_rate_hz: Rate of the PCM that the call gives and takes, 8000 to 192000.
        channels: Channels of that PCM, 1 or 2.
        bitrate_bps: Bits per second of the codec to begin with, 8000 to 64000; the network's state moves it.
        frame_ms: Frame length to begin with, 10, 20, 40 or 60.
        application: libopus' mode: "voip", "audio" or "lowdelay".
        dtx: Send (almost) nothing in silence.
        complexity: libopus' effort, 0 to 10; not more than 5 of it is used at 48 kbps a channel and above.
        lookahead_ms: Deepest playout buffer, 20 to 500; also what the server may send ahead.
        tracks: Media of the call; PCM goes to the first. Opus on track 0 by default.
        rate: What the sender may use.
        limits: What the server may cost.
        retain_s: Seconds of a break after which all that was said in it still comes in order, 2 to 300: sent media is kept for so
            long (and 5 s more, in which the path's return is noticed), at most 8 KB for each of them.
        session_lifetime_s: Seconds that a broken session can be resumed, 30 to 300.
        route_token: First connection id of the dial, 8 to 20 bytes, as a server or relay handed it out.
        open_timeout: Seconds until the call must have been taken.
        resume: Dial anew when the path is lost, and go on with the session: what was missed meanwhile is sent again both ways.
        replay_ms: How much of what was received before a break `frames` gives once more after it, marked; 0 to 2000.
        resume_timeout: Seconds without a path after which the call is given up, more than 0 and at most 300; None for as long as
            the server keeps the session.
        resume_at: URIs of servers that share sessions with the called one (`serve`'s `store`): a call whose path is lost is resumed there
            as well. Where a server says itself that the call should go on elsewhere it goes there without this.
        early_resume: Ask for the resumption with the first packet (0-RTT) where the old connection is gone: speech is back one round trip
            sooner. What is in that packet, `token` included, is encrypted by a secret that the server keeps for as long as the session.
        trace: File, or folder that there is, for a record of what the call did and why (qlog's form; see `spec/trace.md`). No token,
            audio or content of an event is in it.
        observer: Takes the same records as they come.

    Raises:
        TypeError, ValueError: An argument is out of range; the message names it. At once; what follows is raised when the
            call is opened.
        CertificateError: The server's certificate is not the one asked for. No byte of the application was sent.
        RejectedError: The server declined.
        ConnectError: The host is unknown, does not answer, refuses, or does not speak the protocol.
        OSError: `cafile` cannot be read, or `trace` cannot be written.
    """

    def __init__(
        self,
        uri: str,
        *,
        token: str | bytes | None = None,
        metadata: str | bytes = b"",
        cafile: str | os.PathLike[str] | None = None,
        pin: str | bytes | None = None,
        insecure: bool = False,
        server_name: str | None = None,
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
        route_token: bytes | None = None,
        open_timeout: float = 10.0,
        resume: bool = True,
        replay_ms: int = 0,
        resume_timeout: float | None = None,
        resume_at: Sequence[str] = (),
        early_resume: bool = True,
        trace: str | os.PathLike[str] | None = None,
        observer: Observer | None = None,
    ) -> None:
        target, authorities = parse_uri(uri), None if cafile is None else Path(cafile)
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
            metadata=metadata,
            observer=observer,
        )
        self._dialing = Dialing(
            target=target, options=options, resume=resume, replay_ms=replay_ms, resume_timeout=resume_timeout, early_resume=early_resume,
            tls=ClientTls(server_name=server_name or target.host, pin=pin, insecure=insecure, cafile=authorities),
            token=as_bytes("token", token, 2048), route_token=route_token, open_timeout=open_timeout,
            others=tuple(parse_uri(one) for one in resume_at),
            traces=None if trace is None else Traces(trace, "client"),
        )
        self._call: Call | None = None
        self._moves, self._early = Moves(), EarlyAudio(options.audio)

    def send_nowait(self, pcm: NDArray[Any] | bytes) -> None:
        """Say something, from any thread, before there is a call: up to ten seconds are kept and said, in order, as it opens.

        Afterwards it is as `Call.send_nowait`, so that a microphone can be led here from the beginning::

            dialling = connect("voicestream://example.org/agent")
            microphone.start(dialling.send_nowait)
            async with dialling as call:
                ...

        A far end that takes the audio in order gets all of it; one that plays it in real time soon skips to the present.

        Raises:
            TypeError: `pcm` is neither bytes nor an array; see `Call.send`.
        """
        self._early.put(pcm)

    def network_changed(self, local_address: str | None = None) -> None:
        """As `Call.network_changed`; a dial that is under way begins anew at once. From any thread."""
        check_address(local_address)
        if self._call is not None:
            self._call.network_changed(local_address)
        else:
            self._moves.network_changed()

    def __await__(self) -> Generator[object, None, Call]:
        return self._open().__await__()

    async def _open(self) -> Call:
        self._early.leave()
        self._call = None
        call = await dial(self._dialing, self._moves)
        try:
            await self._early.hand_over(call)
        except BaseException:
            await call.close()
            raise
        self._call = call
        return call

    async def __aenter__(self) -> Call:
        return await self

    async def __aiter__(self) -> AsyncIterator[Call]:
        while True:
            call = await self._patiently()
            try:
                yield call
            finally:
                await call.close()

    async def _patiently(self) -> Call:
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + DIAL_PATIENCE, FIRST_PAUSE
        while True:
            try:
                return await self
            except CertificateError:
                raise
            except RejectedError as error:
                if error.code not in PASSING or loop.time() >= deadline:
                    raise
                pause = max(pause, error.retry_after or 0.0)
            except ConnectError:
                if loop.time() >= deadline:
                    raise
            await asyncio.sleep(min(pause, max(0.0, deadline - loop.time())))
            pause = min(LONGEST_PAUSE, 2 * pause)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        call, self._call = self._call, None
        if call is not None:
            await call.close()
