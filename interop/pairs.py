"""The matrix: each client with each server, through a relay that the suite controls."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from interop.implementations import UNSUPPORTED, Files, Implementation, end, free_port, serving
from interop.model import Outcome, Result, Verdict
from interop.observe import Said, observe
from interop.proxy import Proxy
from voicestream.wire import (
    AudioFrame,
    Clear,
    ClearFrame,
    Close,
    Confirm,
    Datagram,
    EventHeader,
    Finish,
    Finished,
    Frame,
    ReportFrame,
    Resume,
    Resumed,
    opus_duration_units,
)

__all__ = ["PAIR_CASES", "PairCase", "run_pair"]

SECONDS: Final = 3.0
Look = Callable[[list[Said]], str | None]


def frames_of(said: list[Said], kind: type, from_client: bool) -> list[Any]:
    """Frames and messages of this type that one side sent."""
    found: list[Any] = []
    for one in said:
        if one.from_client == from_client:
            values: Iterable[Frame | Any] = one.value.frames if isinstance(one.value, Datagram) else (one.value,)
            found += [value for value in values if isinstance(value, kind)]
    return found


def spoken_s(said: list[Said], from_client: bool) -> float:
    """Seconds of audio that one side sent."""
    by_pts = {(frame.track, frame.pts): frame for frame in frames_of(said, AudioFrame, from_client)}
    return sum(opus_duration_units(frame.payload) for frame in by_pts.values()) * 0.0025


def _both_speak(said: list[Said]) -> str | None:
    for from_client, who in ((True, "client"), (False, "server")):
        if spoken_s(said, from_client) < 0.8 * SECONDS:
            return f"the {who} has sent {spoken_s(said, from_client):.1f} s of audio"
    return None


def _both(kind: type, words: str) -> Look:
    def look(said: list[Said]) -> str | None:
        for from_client, who in ((True, "client"), (False, "server")):
            if not frames_of(said, kind, from_client):
                return f"no {words} of the {who}"
        return None

    return look


def _clear(said: list[Said]) -> str | None:
    def clears(from_client: bool) -> list[Clear]:
        found = frames_of(said, Clear, from_client)
        return found + [frame.message for frame in frames_of(said, ClearFrame, from_client)]

    if not any(clear.from_receiver for clear in clears(True)):
        return "the client has not asked for silence"
    return None if any(not clear.from_receiver for clear in clears(False)) else "the server has sent no CLEAR in answer"


def _resume(said: list[Said]) -> str | None:
    for kind, from_client in ((Resume, True), (Resumed, False), (Confirm, True)):
        if not frames_of(said, kind, from_client):
            return f"no {kind.__name__.upper()}"
    return None


def _close(said: list[Said]) -> str | None:
    codes = [close.code for close in frames_of(said, Close, True)]
    return None if 0x17 in codes else f"the client's CLOSE: {codes or 'none'}"


def _pauses(said: list[Said]) -> str | None:
    starts = {frame.pts for frame in frames_of(said, AudioFrame, True) if frame.talkspurt_start}
    return None if len(starts) >= 2 else f"{len(starts)} talkspurts of the client"


async def _mute(proxy: Proxy) -> None:
    await asyncio.sleep(2.5)
    proxy.mute()


async def _rebind(proxy: Proxy) -> None:
    await asyncio.sleep(2.0)
    await proxy.rebind()


@dataclass(frozen=True, kw_only=True, slots=True)
class PairCase:
    """One case of the matrix.

    Attributes:
        look: What the observer has to see; words of what is missing, or None.
        act: What happens to the path meanwhile.
        path: Arguments of the relay.
    """

    name: str
    title: str
    requirements: tuple[str, ...]
    look: Look = field(default=lambda said: None)
    act: Callable[[Proxy], Awaitable[None]] | None = None
    path: dict[str, Any] = field(default_factory=dict)


PAIR_CASES: Final = {
    case.name: case
    for case in (
        PairCase(name="handshake", title="a call is taken and ends well", requirements=("VS-5.1-1", "VS-5.2.1-1", "VS-5.2.2-1")),
        PairCase(name="audio", title="both speak 3 s and are heard", requirements=("VS-6.1-5", "VS-8.6-2"), look=_both_speak),
        PairCase(name="reports", title="both report what comes", requirements=("VS-9.1-1",), look=_both(ReportFrame, "report")),
        PairCase(name="loss", title="both are heard while 5 % of the packets are lost", requirements=(), look=_both_speak,
                 path={"loss": 0.05, "delay": 0.02}),
        PairCase(name="clear", title="the client interrupts the server", requirements=("VS-8.1-1", "VS-8.2-1"), look=_clear),
        PairCase(name="events", title="five events go there and come back in order", requirements=("VS-7.3-2",),
                 look=_both(EventHeader, "event")),
        PairCase(name="finish", title="both finish and are played to the end", requirements=("VS-8.6-2",),
                 look=_both(Finished, "FINISHED")),
        PairCase(name="resume", title="the path dies; the call goes on on another one", requirements=("VS-11.3-6",), look=_resume,
                 act=_mute),
        PairCase(name="rebind", title="the client's address changes on the way", requirements=(), act=_rebind),
        PairCase(name="close", title="code and reason of a close come through", requirements=("VS-13.2-1",), look=_close),
        PairCase(name="grease", title="both speak, with reserved values between", requirements=("VS-12.1-3",),
                 look=_both(Finish, "FINISH")),
        PairCase(name="dtx", title="a pause of a second within speech is no loss", requirements=("VS-6.5-1",), look=_pauses),
        PairCase(name="going-away", title="the server says that it goes; the call goes on until it ends", requirements=("VS-11.2-1",)),
        PairCase(name="limits", title="an event larger than the client takes is not sent", requirements=("VS-7.1-3",)),
    )
}  # fmt: skip


async def run_pair(client: Implementation, server: Implementation, case: PairCase, files: Files, log: Path | None = None) -> Result:
    """One case of one pair."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        keys = [Path(folder) / "client.keys", Path(folder) / "server.keys"]
        outcome, said = await _play(client, server, case, files, keys, log)
    trace = [one.line() for one in said] if outcome.verdict == Verdict.FAIL else []
    return Result(
        case=case.name, title=case.title, requirements=case.requirements, subject=f"{client.name} x {server.name}", role="pair",
        outcome=outcome, seconds=round(time.monotonic() - begun, 3), trace=trace[:1500],
    )  # fmt: skip


async def _play(
    client: Implementation, server: Implementation, case: PairCase, files: Files, keys: list[Path], log: Path | None
) -> tuple[Outcome, list[Said]]:
    port = free_port()
    common = {"host": "127.0.0.1", "seconds": SECONDS, "cert": files.certfile, "key": files.keyfile, "pin": files.pin}
    serves = await server.start("server", case.name, log=log, port=port, sslkeylogfile=keys[1], **common)
    proxy = Proxy(("127.0.0.1", port), **case.path)
    calls = acting = None
    try:
        if not await serving(port, serves):
            known = serves.returncode == UNSUPPORTED
            words = "the server does not know this case" if known else f"it does not serve; exit status {serves.returncode}"
            return Outcome(behaviour=Verdict.UNSUPPORTED if known else Verdict.FAIL, words=words), []
        await proxy.start()
        uri = f"voicestream://127.0.0.1:{proxy.port}/{case.name}"
        calls = await client.start("client", case.name, log=log, port=proxy.port, uri=uri, sslkeylogfile=keys[0], **common)
        if case.act is not None:
            acting = asyncio.ensure_future(_when_called(proxy, case.act))
        return await _judge(calls, serves, proxy, case, keys)
    finally:
        if acting is not None:
            acting.cancel()
        for process in (calls, serves):
            if process is not None:
                await end(process, 1.0)
        proxy.stop()


async def _when_called(proxy: Proxy, act: Callable[[Proxy], Awaitable[None]]) -> None:
    while not any(not packet.from_client for packet in proxy.packets):
        await asyncio.sleep(0.05)
    await act(proxy)


async def _judge(
    calls: asyncio.subprocess.Process, serves: asyncio.subprocess.Process, proxy: Proxy, case: PairCase, keys: list[Path]
) -> tuple[Outcome, list[Said]]:
    statuses: dict[str, int | None] = {}
    for who, process, patience in (("client", calls, 60.0), ("server", serves, 15.0)):
        try:
            statuses[who] = await asyncio.wait_for(process.wait(), patience)
        except TimeoutError:
            statuses[who] = None
    said = observe(proxy.packets, keys)
    if UNSUPPORTED in statuses.values():
        who = next(who for who, status in statuses.items() if status == UNSUPPORTED)
        return Outcome(behaviour=Verdict.UNSUPPORTED, words=f"the {who} does not know this case"), said
    wrong = [f"the {who} {'does not end' if status is None else f'ends with {status}'}" for who, status in statuses.items() if status != 0]
    broken = [one.words for one in said if isinstance(one.value, tuple) and one.value[0] == "broken"]
    missing = case.look(said) if said else None
    problems = wrong + broken[:1] + ([missing] if missing else [])
    if problems:
        return Outcome(behaviour=Verdict.FAIL, words="; ".join(problems)), said
    lost = sum(packet.lost for packet in proxy.packets)
    measured = {"packets": float(len(proxy.packets)), "lost_packets": float(lost), "bytes": float(sum(len(p.data) for p in proxy.packets))}
    return Outcome(words="seen on the wire" if said else "by its own account: no endpoint logs its keys", measured=measured), said
