"""`python -m interop`: the suite. See interop/README.md."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from interop import runner
from interop.implementations import Implementation, load
from interop.model import CASES, Outcome, Result, Verdict
from interop.page import page
from interop.pairs import PAIR_CASES, run_pair
from interop.peers.meeting import ServerMeeting
from interop.report import line, summary, to_json, write_junit
from interop.vectors import vector_results
from voicestream.uri import parse_uri


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m interop", description="Tests implementations of VoiceStream.")
    parser.add_argument("what", nargs="?", default="all", choices=("all", "conformance", "pairs", "vectors", "list"), help="all by default")
    parser.add_argument("--endpoints", type=Path, help="file of endpoint commands (interop/endpoints.json)")
    parser.add_argument("--command", help="one endpoint's command, instead of those of the file")
    parser.add_argument("--url", help="a live server: voicestream://host[:port]/path")
    parser.add_argument("--token", help="that it wants")
    parser.add_argument("--only", default="", help="implementations, by name, with commas between")
    parser.add_argument("--role", choices=("server", "client"), help="conformance in this role only")
    parser.add_argument("--cases", default="", help="names, sections or requirement ids, with commas between")
    parser.add_argument("--quick", action="store_true", help="leave out slow cases")
    parser.add_argument("--jobs", type=int, default=4, help="cases at a time")
    parser.add_argument("--out", type=Path, default=Path("interop-out"), help="folder of result.json, junit.xml and report.html")
    return parser


def _told(result: Result) -> None:
    print(line(result), flush=True)


def _absent(name: str, role: str, words: str) -> Result:
    outcome = Outcome(behaviour=Verdict.UNSUPPORTED, words=words)
    return Result(
        case="probe", title="a test case that does not exist: 127", requirements=(), subject=name, role=role, outcome=outcome, seconds=0.0
    )


async def _conformance(options: argparse.Namespace, here: dict[str, list[Implementation]], files: Any, names: list[str]) -> list[Result]:
    results: list[Result] = []
    for role, run in (("server", runner.server_cases), ("client", runner.client_cases)):
        if options.role in (None, role):
            cases = runner.chosen(role, names, quick=options.quick)
            for implementation in here[role]:
                results += await run(implementation, cases, files, _told, jobs=options.jobs, log=options.out / f"{implementation.name}.log")
    return results


async def _vectors(each: list[Implementation]) -> list[Result]:
    results = []
    for implementation in each:
        own = await vector_results(implementation)
        results += own
        for result in own:
            if result.verdict != Verdict.PASS:
                _told(result)
        print(f"{sum(result.verdict == Verdict.PASS for result in own)} of {len(own)} vectors: {implementation.name}", flush=True)
    return results


async def _pairs(options: argparse.Namespace, here: dict[str, list[Implementation]], files: Any, names: list[str]) -> list[Result]:
    results = []
    for client in here["client"]:
        for server in here["server"]:
            for case in PAIR_CASES.values():
                if not names or case.name in names:
                    log = options.out / f"{client.name}-{server.name}.log"
                    results.append(await run_pair(client, server, case, files, log))
                    _told(results[-1])
    return results


async def _reach(meeting: ServerMeeting, server: str) -> None:
    """See that there is a server, before two hundred cases wait for it in vain.

    Raises:
        ValueError: There is none.
    """
    try:
        await meeting.done(await meeting.dial())
    except TimeoutError:
        raise ValueError(f"{server} does not answer") from None
    except ConnectionError as error:
        raise ValueError(f"{server} refuses the handshake: {error}") from None


async def _run(options: argparse.Namespace) -> list[Result]:
    names = [name for name in options.cases.split(",") if name]
    if options.url:
        target = parse_uri(options.url)
        token = None if options.token is None else options.token.encode()
        meeting = ServerMeeting(target.host, target.port, authority=target.authority, path=target.path, token=token)
        await _reach(meeting, target.authority)
        cases = runner.chosen("server", names, quick=options.quick)
        return await runner.live_cases(meeting, cases, target.authority, _told, options.jobs)
    known = load(options.endpoints)
    if options.command:
        known = {"endpoint": Implementation(name="endpoint", command=tuple(shlex.split(options.command)), cwd=Path.cwd())}
    wanted = options.only.split(",") if options.only else list(known)
    if missing := [name for name in wanted if name not in known]:
        raise ValueError(f"no implementation is called {missing[0]}; there are {', '.join(known)}")
    results: list[Result] = []
    if options.what in ("all", "vectors"):
        results += await _vectors([known[name] for name in wanted])
    if options.what == "vectors":
        return results
    here: dict[str, list[Implementation]] = {"server": [], "client": []}
    for name in wanted:
        for role, own in here.items():
            why = await known[name].why_not(role)
            if why is None:
                own.append(known[name])
            else:
                results.append(_absent(name, role, why))
                _told(results[-1])
    with tempfile.TemporaryDirectory() as folder:
        files = runner.make_files(Path(folder))
        if options.what in ("all", "conformance"):
            results += await _conformance(options, here, files, names)
        if options.what in ("all", "pairs"):
            results += await _pairs(options, here, files, names)
    return results


def main() -> int:
    """Exit status: 0 without any FAIL, 1 with, 2 for a wrong option."""
    options = _parser().parse_args()
    if options.what == "list":
        for case in sorted(CASES.values(), key=lambda case: tuple(map(int, case.section.split(".")))):
            print(f"{case.name:32} {','.join(case.roles):14} {' '.join(case.requirements):24} {case.title}")
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        results = asyncio.run(_run(options))
    except (ValueError, OSError) as error:
        print(f"interop: {error}", file=sys.stderr)
        return 2
    counts = Counter(result.verdict for result in results)
    about = {"cases": len(results), **{verdict.value: counts[verdict] for verdict in Verdict}}
    print("\n" + summary(results))
    (options.out / "result.json").write_text(to_json(results, about), encoding="utf-8")
    (options.out / "report.html").write_text(page(results, about), encoding="utf-8")
    write_junit(results, options.out / "junit.xml")
    print(f"{options.out / 'report.html'}, result.json and junit.xml beside it")
    return 1 if counts[Verdict.FAIL] else 0


if __name__ == "__main__":
    sys.exit(main())
