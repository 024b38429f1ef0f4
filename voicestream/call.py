"""`Call`: what an application holds of a conversation, at either end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from voicestream import call_files
from voicestream.call_events import CallEvent, Events, encode_event
from voicestream.call_facts import CallFacts
from voicestream.call_frames import AudioBlock
from voicestream.call_options import CallInfo, as_seconds
from voicestream.call_stats import CallStats, collect_stats
from voicestream.client_moves import check_address
from voicestream.codepoints import ErrorCode
from voicestream.config import PTS_UNIT_MS, UNITS_PER_SECOND, AudioConfig

if TYPE_CHECKING:
    from voicestream.call_figures import CallFigures
    from voicestream.call_parts import CallParts

__all__ = ["Call"]

SECONDS_PER_UNIT: Final = PTS_UNIT_MS / 1000


class Call(CallFacts):
    """A conversation with the far end. `connect` and `serve` make it; use it in one task or in several.

    `send_nowait`, `read` and `stats` may be called from any thread, all else from the loop's. Everything that a call
    holds is bounded, and what it has to drop is counted in `stats`.

    Iterating over a call gives what the far end says in real time::

        async for block in call:        # 20 ms of int16 samples at a time, gaps concealed
            speaker.write(block)

    The iteration ends when the last sample before the far end's finish has been given out, or when the call has ended
    well; it raises `CallClosedError` when the call has ended with an error.

    After the end of the call `stats` and all that is known of it can be read as before, `close` and `wait_closed` return at
    once, and `read` gives what has come, then silence. Iteration, `record`, `frames` and `events` give what has come, then end
    (`CallClosedError` after an error). `send`, `send_nowait`, `send_frame`, `send_event`, `speak`, `flush`, `clear` and
    `finish` raise `CallClosedOK` or `CallClosedError`; only a `finish` that was answered before gives its answer again.
    """

    __slots__ = ("_parts",)

    def __init__(self, info: CallInfo, parts: CallParts) -> None:
        super().__init__(info)
        self._parts = parts

    def __repr__(self) -> str:
        return f"<Call {self.session_id[:8]} {self.path.partition('?')[0]} {'closed' if self.closed else 'open'}>"

    async def __aenter__(self) -> Call:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # What is known of the call

    @property
    def audio(self) -> AudioConfig:
        """Form of the PCM that this end gives and takes."""
        return self._parts.options.audio

    @property
    def closed(self) -> bool:
        """Whether the call is over."""
        return self._parts.ending.closed

    @property
    def position(self) -> float:
        """Media time of the next sample to be sent on the voice track, in seconds; what `send_event` aligns with."""
        return self._parts.sender.next_pts.get(self._parts.voice_track, 0) * SECONDS_PER_UNIT

    def report_to(self, figures: CallFigures) -> None:
        """Count this call, from now on and with all that it has done, in figures that several calls share; once.

        A client's way to metrics: ``figures = CallFigures("client")``, ``Metrics(figures).register()``, and this for each call. A
        server's calls are counted in `Server.figures` without being told.

        Raises:
            StateError: It is counted already.
        """
        self._parts.report_to(figures)

    # What the application keeps with the session

    @property
    def context(self) -> bytes:
        """Bytes of the application's choice, at most 65536, that stay with the session across breaks; see `serve`'s `store`."""
        return self._parts.context.data

    @context.setter
    def context(self, value: bytes) -> None:
        self._parts.context.data = value

    @property
    def processed_through(self) -> float:
        """Media time of the far end, in seconds, up to which the application says that it is done; never goes back."""
        return self._parts.context.processed_pts * SECONDS_PER_UNIT

    @processed_through.setter
    def processed_through(self, value: float) -> None:
        self._parts.context.processed_pts = round(as_seconds("processed_through", value) / SECONDS_PER_UNIT)

    # Talking

    async def send(self, pcm: NDArray[Any] | bytes, *, ahead: bool = False) -> bool:
        """Say something.

        Live (the default), this never waits: what the network does not take in time is dropped, oldest first, and
        counted. With ``ahead=True``, for audio that is made faster than real time (text to speech), it waits while the
        far end holds its lookahead; cancelling it loses nothing but what had not been sent yet.

        Args:
            pcm: Any number of samples: int16, or float32 between -1 and 1, of shape (n,) or (n, channels); bytes are
                little-endian int16. What does not fill a frame waits for the next call or for `flush`.
            ahead: Send as fast as the far end takes it.

        Returns:
            False when the rest was discarded, since the far end asked for silence or `clear` was called meanwhile.

        Raises:
            AudioError: There is no codec library.
            CallClosed: The call is over.
            StateError: `finish` has been called.
            TypeError, ValueError: `pcm` has another type or shape, or holds NaN or infinity.
        """
        if ahead:
            return await self._parts.sender.ahead(pcm)
        self._parts.sender.live(pcm)
        return True

    def send_nowait(self, pcm: NDArray[Any] | bytes) -> None:
        """Say something live, as `send` does, from any thread: made for the callback of a sound device."""
        self._parts.sender.live(pcm)

    async def send_frame(
        self,
        payload: bytes,
        *,
        duration_ms: float | None = None,
        track: int = 0,
        talkspurt_start: bool = False,
        talkspurt_end: bool = False,
        ahead: bool = False,
    ) -> bool:
        """Send a frame that is already coded; no codec library is needed.

        Args:
            payload: One packet of the track's codec.
            duration_ms: Its length, a multiple of 2.5; may be left out where the payload tells it (Opus, PCM).
            track: 0 to 3.
            talkspurt_start: Speech begins here after silence.
            talkspurt_end: Silence follows.
            ahead: As for `send`.

        Returns:
            As `send`.

        Raises:
            CallClosed: The call is over.
            StateError: `finish` has been called.
            TypeError: The payload is not bytes.
            ValueError: The payload is not a packet of the codec, too long, or of an unknown length.
        """
        return await self._parts.sender.frame(
            payload,
            units=_units(duration_ms),
            track=track,
            talkspurt_start=talkspurt_start,
            talkspurt_end=talkspurt_end,
            ahead=ahead,
        )

    def flush(self) -> None:
        """Send the samples that do not fill a frame, padded with silence: the end of an utterance."""
        self._parts.sender.flush()

    async def speak(self, pcm: NDArray[Any] | bytes, *, finish: bool = True) -> float:
        """Say a whole recording live, at the speed of a microphone, and wait until the far end has played it.

        Args:
            pcm: As for `send`, such as `read_wav` gives in the call's rate.
            finish: Nothing follows; see `finish`. Otherwise return when the last sample has been sent.

        Returns:
            Seconds of this end's audio that the far end has played (0 without `finish`).
        """
        return await call_files.speak(self, pcm, finish=finish)

    async def finish(self, timeout: float | None = 10.0, *, track: int = 0) -> float:
        """Tell the far end that no more audio follows, and wait until it has played all: nothing is cut off.

        Args:
            timeout: Seconds to wait at most; None waits as long as the call lives.
            track: 0 to 3.

        Returns:
            Media time in seconds up to which the far end has played.

        Raises:
            CallClosed: The call ended before the far end had played all.
            TimeoutError: The far end has not played all in time; audio may not be sent any more all the same.
        """
        return await self._parts.finish(timeout, track) * SECONDS_PER_UNIT

    async def clear(self, *, outgoing: bool = False, track: int = 0, timeout: float | None = 5.0) -> float:
        """Barge in: drop audio that has not been heard yet.

        From the listening side (the default): what is held here is dropped at once and the far end is asked to stop
        talking. From the talking side (``outgoing=True``): the far end is asked to forget what it was sent.

        Args:
            outgoing: Which direction to clear.
            track: 0 to 3.
            timeout: Seconds to wait for the far end's confirmation; None waits as long as the call lives.

        Returns:
            Media time in seconds, on the cleared track, of the last sample that was heard.

        Raises:
            CallClosed: The call is over.
            TimeoutError: The far end has not confirmed in time.
        """
        return await self._parts.clear(outgoing, track, timeout) * SECONDS_PER_UNIT

    # Listening

    def read(self, n: int) -> NDArray[np.int16]:
        """The next `n` samples of what the far end says, at once: made for the callback of a sound device.

        Never waits, always gives `n` samples, from any thread; silence before the first audio and after the end.

        Returns:
            int16 of shape (n,), or (n, channels) when the call was opened with more than one channel.

        Raises:
            AudioError: There is no codec library.
            StateError: `frames` is being used, or nothing is received on this track.
            ValueError: `n` is negative or more than ten seconds.
        """
        return self._parts.reader().read(n)

    @property
    def device_latency(self) -> float:
        """Seconds from `read` (or from a block of the iteration) until the samples leave the loudspeaker; 0 at first, at most 2.

        Set it to what the sound device says, for example ``Speaker.latency``. What either end is told of the heard position, in
        progress, clear and finish, then counts only what has left the loudspeaker. What the device holds when `clear` is called
        is heard all the same, unless the application discards it there.
        """
        return self._parts.reader().device_latency

    @device_latency.setter
    def device_latency(self, seconds: float) -> None:
        self._parts.reader().device_latency = seconds

    def __aiter__(self) -> AsyncIterator[NDArray[np.int16]]:
        return self._parts.reader().blocks()

    def frames(self, block_ms: int = 200, *, decode: bool = True, track: int = 0) -> AsyncIterator[AudioBlock]:
        """What the far end says, in order, as fast as it comes: for recognisers and recorders.

        What has not arrived within the lookahead is marked by ``gap=True``: silence in the PCM, a block without payload among
        coded frames. Silence that the far end did not send is no gap; where it lasts, the next block begins later. The low-rate
        copies that a playout falls back on against bursts of loss are not used here: what is given is exact or a gap.

        Args:
            block_ms: Length of a block, 10 to 10000; the end of a talkspurt or a long silence makes it shorter.
            decode: Give PCM; otherwise one block for each coded frame, and no codec library is needed.
            track: 0 to 3.

        Raises:
            StateError: `read` or iteration is being used, or nothing is received on this track.
            ValueError: `block_ms` is out of range.
        """
        if not 10 <= block_ms <= 10_000:
            raise ValueError(f"block_ms must be 10 to 10000, not {block_ms}")
        return self._parts.frame_reader(track).blocks(block_ms, decode)

    async def record(self, path: str | PathLike[str]) -> float:
        """Write what the far end says to a WAV file until it finishes or the call ends; the seconds written."""
        return await call_files.record(self, path)

    # Events

    async def send_event(self, data: dict[str, Any] | list[Any] | str | bytes, *, ordered: bool = True, at: float | None = None) -> int:
        """Send an application event beside the audio.

        Args:
            data: dict or list (sent as JSON), str, or bytes.
            ordered: Deliver it after the ordered events sent before it; otherwise as soon as it arrives.
            at: Media time in seconds on this end's voice track that the event belongs to; see `position`.

        Returns:
            The event's number.

        Raises:
            CallClosed: The call is over.
            TypeError: `data` has another type.
            ValueError: It is longer than the far end takes, or JSON does not know one of its values.
        """
        kind, payload = encode_event(data)
        pts = None if at is None else round(as_seconds("at", at) * UNITS_PER_SECOND)
        return self._parts.send_event(kind, payload, ordered, pts)

    def events(self) -> AsyncIterator[CallEvent]:
        """What the far end says beside the audio: application events, requests for silence, its finish; see `CallEvent`.

        Ends with the call; raises `CallClosedError` when it ended with an error. An event goes to one iterator only.
        """
        return Events(self._parts.inbox)

    # The network

    def network_changed(self, local_address: str | None = None) -> None:
        """Say that this machine's network has changed: another Wi-Fi, an interface that came or went. From any thread.

        The call goes on from a new socket at once, on the same connection, and dials beside that (all addresses of the server) where no
        answer comes within 0.6 s or the path was lost already. Nothing at the end that was called.

        Args:
            local_address: IPv4 or IPv6 address of this machine to go on from; whichever the system takes by default. Where the socket
                cannot be bound to it, the call goes on as it was.

        Raises:
            ValueError: `local_address` is no address.
        """
        check_address(local_address)
        self._parts.network_changed(local_address)

    # The end

    async def close(self, code: int = ErrorCode.NO_ERROR, reason: str = "") -> None:
        """End the call; audio under way may be cut off. Does nothing when the call is over.

        `finish` waits for audio. Events that were sent get a second to arrive, unless `code` tells of an error.

        Args:
            code: A registry code; NO_ERROR and GOING_AWAY mean a good end to the far end.
            reason: A sentence for the far end, at most 1024 bytes.
        """
        await self._parts.close(code, reason)

    async def wait_closed(self) -> None:
        """Wait until the call is over, however it ends."""
        await self._parts.ending.wait()

    @property
    def close_code(self) -> int | None:
        """Registry code of the call's end; None while it lives."""
        event = self._parts.ending.event
        return None if event is None else event.code

    @property
    def close_reason(self) -> str:
        """Words of the side that closed; empty while the call lives."""
        event = self._parts.ending.event
        return "" if event is None else event.reason

    def stats(self) -> CallStats:
        """What the call has done so far. From any thread, also after its end."""
        return collect_stats(self._parts)


def _units(duration_ms: float | None) -> int | None:
    if duration_ms is None:
        return None
    units = duration_ms / PTS_UNIT_MS
    if units != int(units) or not 1 <= units <= 48:
        raise ValueError(f"duration_ms must be a multiple of 2.5 from 2.5 to 120, not {duration_ms}")
    return int(units)
