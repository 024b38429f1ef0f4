"""Runs cases of conformance against one implementation."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import interop.cases  # noqa: F401 - registers them
from interop.implementations import Files, Implementation, end, free_port, serving
from interop.model import CASES, Case, Outcome, Result, Unsupported, Verdict
from interop.peers.meeting import ClientMeeting, Met, ServerMeeting
from voicestream.observe.lag import late_by
from voicestream.quic.certificates import make_certificate_files

__all__ = ["chosen", "client_cases", "make_files", "run_case", "server_cases"]

CASE_SECONDS: Final = 40.0
TRIES: Final = 4
HELD_UP_S: Final = 0.05
"""How late the suite's loop may be in a case without a doubt about what failed in it."""
Told = Callable[[Result], None]


def make_files(folder: Path) -> Files:
    """A certificate for this machine."""
    certfile, keyfile, pin = make_certificate_files(folder, ["localhost", "127.0.0.1"])
    return Files(certfile=certfile, keyfile=keyfile, pin=pin)


def chosen(role: str, names: Iterable[str] = (), *, quick: bool = False) -> list[Case]:
    """Cases of a role: all, or those whose name, section or requirement is among `names`."""
    wanted = set(names)
    found = []
    for case in CASES.values():
        if role not in case.roles or (quick and case.slow):
            continue
        tags = {case.name, case.section, case.section.split(".")[0], *case.requirements}
        if not wanted or wanted & tags:
            found.append(case)
    return sorted(found, key=lambda case: tuple(map(int, case.section.split("."))))


async def run_case(meeting: Any, case: Case, subject: str) -> Result:
    """One case. One that fails while this machine is held up is tried again: what waits too long may be lost, as on any path."""
    for _ in range(TRIES):
        lags: list[float] = []
        watch = asyncio.ensure_future(_watch(lags))
        try:
            result = await _try(meeting, case, subject)
        finally:
            watch.cancel()
        held_up = max(lags, default=0.0)
        if result.verdict != Verdict.FAIL or held_up < HELD_UP_S:
            return result
    result.outcome.words += f" (this machine was held up for {held_up:.1f} s)"
    return result


async def _watch(lags: list[float]) -> None:
    while True:
        lags.append(await late_by())


async def _try(meeting: Any, case: Case, subject: str) -> Result:
    begun = time.monotonic()
    peer: Met | None = None
    try:
        peer = await meeting.meet(case)
        async with asyncio.timeout(CASE_SECONDS):
            outcome = await _run(peer, case)
    except Unsupported as error:
        outcome = Outcome(behaviour=Verdict.UNSUPPORTED, words=str(error))
    except TimeoutError:
        outcome = Outcome(behaviour=Verdict.FAIL, words="no answer in time")
    except (ConnectionError, AssertionError) as error:
        outcome = Outcome(behaviour=Verdict.FAIL, words=str(error) or type(error).__name__)
    finally:
        if peer is not None:
            with contextlib.suppress(ConnectionError):
                await meeting.done(peer)
    if peer is not None and peer.broken and outcome.behaviour != Verdict.FAIL:
        outcome = Outcome(behaviour=Verdict.FAIL, words=f"it sends what breaks the format: {peer.broken}")
    trace = peer.lines() if peer is not None and outcome.verdict in (Verdict.FAIL, Verdict.NON_STRICT) else []
    return Result(
        case=case.name, title=case.title, requirements=case.requirements, subject=subject, role=meeting.role, outcome=outcome,
        seconds=round(time.monotonic() - begun, 3), trace=trace,
    )  # fmt: skip


async def _run(peer: Met, case: Case) -> Outcome:
    if case.opened and not await peer.open(**{name: value for name, value in case.setup.items() if name in ("talk", "reports")}):
        return Outcome(behaviour=Verdict.FAIL, words=f"no call: {peer.end or 'no answer to HELLO'}")
    outcome = await case.run(peer) or Outcome()
    if case.harmless and outcome.behaviour == Verdict.FAIL:
        outcome.behaviour = Verdict.NON_STRICT
    return outcome


async def _each(meeting: Any, cases: Sequence[Case], subject: str, told: Told | None, jobs: int = 1) -> list[Result]:
    results: list[Result] = []
    left = list(reversed(cases))

    async def worker(own: Any) -> None:
        while left:
            result = await run_case(own, left.pop(), subject)
            results.append(result)
            if told is not None:
                told(result)

    meetings = meeting if isinstance(meeting, list) else [meeting] * jobs
    try:
        await asyncio.gather(*map(worker, meetings))
    finally:
        for one in dict.fromkeys(meetings):
            await one.stop()
    order = {case.name: n for n, case in enumerate(cases)}
    return sorted(results, key=lambda result: order[result.case])


async def live_cases(meeting: ServerMeeting, cases: Sequence[Case], subject: str, told: Told | None = None, jobs: int = 4) -> list[Result]:
    """Cases against a server that runs already."""
    return await _each(meeting, cases, subject, told, jobs)


async def server_cases(
    implementation: Implementation, cases: Sequence[Case], files: Files, told: Told | None = None, *, jobs: int = 4, log: Path | None = None
) -> list[Result]:
    """Cases against a command as server: one process for all of them."""
    port = free_port()
    process = await implementation.start(
        "server", "peer", log=log, host="127.0.0.1", port=port, cert=files.certfile, key=files.keyfile, seconds=0
    )
    try:
        if not await serving(port, process):
            words = f"it does not serve; exit status {process.returncode}"
            return [_lost(case, implementation.name, "server", words) for case in cases]
        return await _each(ServerMeeting("127.0.0.1", port), cases, implementation.name, told, jobs)
    finally:
        await end(process)


async def client_cases(
    implementation: Implementation, cases: Sequence[Case], files: Files, told: Told | None = None, *, jobs: int = 2, log: Path | None = None
) -> list[Result]:
    """Cases against a command as client, which calls again and again."""

    async def start(port: int) -> asyncio.subprocess.Process:
        uri = f"voicestream://127.0.0.1:{port}/peer"
        return await implementation.start(
            "client", "peer", log=log, host="127.0.0.1", port=port, uri=uri, pin=files.pin, cert=files.certfile, seconds=0
        )

    meetings = [ClientMeeting((files.certfile, files.keyfile), start) for _ in range(jobs)]
    return await _each(meetings, cases, implementation.name, told)


def _lost(case: Case, subject: str, role: str, words: str) -> Result:
    outcome = Outcome(behaviour=Verdict.UNSUPPORTED, words=words)
    return Result(
        case=case.name, title=case.title, requirements=case.requirements, subject=subject, role=role, outcome=outcome, seconds=0.0
    )
