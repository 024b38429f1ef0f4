"""CPU of one server process against the number of calls, VoiceStream beside aiortc, in one run. Linux.

    python -m interop.lab.load                         all rows, about 4 minutes
    python -m interop.lab.load --only voicestream,compiled --codec 10 --no-codec 60

Duplex calls on loopback, speech in 20 ms frames both ways. The server runs on one core, the callers, which only move coded packets, on
another. "with codec": the server decodes what it hears and encodes what it says, as each system does by default (aiortc: 96 kbps
stereo; VoiceStream: 64 kbps mono). Shares come from a run of their own, sampled by CPU time. "compiled" is VoiceStream as `make compiled`
builds it. Samples do not see compiled code, so what it costs there is what is left when aioquic, libopus, the loop and the application
have got what they cost in the interpreted run. The callers run compiled where that is built.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
PORT = 4655
SETTLE_S = 3.0
PATIENCE_S = 60.0


COMPILED = ROOT / ".venv-compiled" / "bin" / "python"
"""Python that has the compiled package; the repository comes after it on its path."""


def start(system: str, role: str, core: int, port: int, compiled: Path | None, *more: str) -> subprocess.Popen[str]:
    """A process of a system, held on one core."""
    is_compiled = compiled is not None and (system == "compiled" or (system == "voicestream" and role == "callers"))
    python = [str(compiled), "-P"] if is_compiled else [sys.executable]
    module = "aiortc_load" if system == "aiortc" else "voicestream_load"
    command = [*python, "-m", f"interop.lab.load.{module}", role, "--port", str(port), *more]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(process.pid, {cores[core % len(cores)]})
    return process


def read_words(process: subprocess.Popen[str], word: str, count: int) -> None:
    """Wait until a process has said a word so many times."""
    assert process.stdout is not None
    end = time.monotonic() + PATIENCE_S
    while count and time.monotonic() < end:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{process.args} ended")
        count -= line.strip() == word
    if count:
        raise RuntimeError(f"{count} of {process.args} did not say {word!r} in {PATIENCE_S:.0f} s")


def measure(system: str, calls: int, options: argparse.Namespace, *, codec: bool, profile: bool, port: int) -> dict[str, Any]:
    """One row."""
    more = [] if codec else ["--no-codec"]
    loop = ["--uvloop"] if options.uvloop else []
    server = start(system, "server", 0, port, options.compiled, "--certificate", str(options.work), *more, *loop)
    callers = None
    try:
        read_words(server, "ready", 1)
        callers = start(system, "callers", 1, port, options.compiled, "--calls", str(calls), *loop)
        read_words(callers, "up", calls)
        time.sleep(SETTLE_S)
        assert server.stdin is not None
        assert server.stdout is not None
        used = cpu_seconds(callers.pid)
        server.stdin.write("profile\n" if profile else "start\n")
        server.stdin.flush()
        time.sleep(options.window)
        server.stdin.write("stop\n")
        server.stdin.flush()
        row: dict[str, Any] = json.loads(server.stdout.readline())
        row["callers_cpu_percent"] = 100 * (cpu_seconds(callers.pid) - used) / options.window
    finally:
        for process in (callers, server):
            if process is not None:
                process.kill()
                process.communicate()
    return {"system": system, "calls": calls, "codec": codec, **row, "cpu_percent_per_call": row["cpu_percent"] / calls}


def shared_out(row: dict[str, Any], interpreted: dict[str, Any]) -> dict[str, float]:
    """Shares of a compiled run: everybody else's cost is that of the interpreted one, and the rest is ours."""
    costs = {owner: share * interpreted["cpu_percent"] for owner, share in interpreted["shares"].items() if owner != "voicestream"}
    costs["voicestream"] = max(row["cpu_percent"] - sum(costs.values()), 0.0)
    return {owner: cost / sum(costs.values()) for owner, cost in sorted(costs.items(), key=lambda item: -item[1])}


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


HEAD = ("system     ", "codec", "calls", "server cpu", "per call", "callers cpu", "lag ms P99", "frames %")


def show(row: dict[str, Any]) -> str:
    """A line of the table."""
    hears = row["codec"] or row["system"] != "aiortc"  # aiortc's track gives nothing where nothing is decoded
    kept = min(row["frames_in_per_s"], row["frames_out_per_s"]) if hears else row["frames_out_per_s"]
    cells = (
        row["system"],
        "yes" if row["codec"] else "no",
        str(row["calls"]),
        f"{row['cpu_percent']:.1f}",
        f"{row['cpu_percent_per_call']:.2f}",
        f"{row['callers_cpu_percent']:.0f}",
        f"{row['lag_ms_p99']:.1f}",
        f"{100 * kept / 50 / row['calls']:.1f}",
    )
    line = "| " + " | ".join(cell.rjust(len(head)) for cell, head in zip(cells, HEAD, strict=True)) + " |"
    if row["shares"]:
        line += " " + ", ".join(f"{owner} {100 * share:.0f} %" for owner, share in row["shares"].items())
    return line


def verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """The bars that the rows can speak to."""
    plain = {(row["system"], row["codec"], row["calls"]): row for row in rows if not row["shares"]}
    lines = []
    theirs = plain.get(("aiortc", True, 10))
    for name in OURS:
        ours = plain.get((name, True, 10))
        if ours and theirs:
            ratio = ours["cpu_percent_per_call"] / theirs["cpu_percent_per_call"]
            lines.append(f"{name}, with codec at 10 calls: {ratio:.2f} of aiortc's CPU a call (bar 0.70)")
        for row in (row for key, row in plain.items() if key[:2] == (name, False)):
            lines.append(f"{name}, without codec at {row['calls']} calls: {row['cpu_percent_per_call']:.2f} % of a core a call (bar 1.5)")
            if row["calls"] == 60:
                lines.append(f"{name}, 60 calls without codec: loop lag P99 {row['lag_ms_p99']:.1f} ms (bar 20)")
            if row["callers_cpu_percent"] > 90:
                lines.append(f"  but the callers used {row['callers_cpu_percent']:.0f} % of their core, so they were late themselves")
        for row in rows:
            if row["shares"] and row["system"] == name:
                own, quic = row["shares"].get("voicestream", 0.0), row["shares"].get("aioquic", 0.0)
                kind = f"{row['calls']} calls {'with' if row['codec'] else 'without'} codec"
                lines.append(f"{name}, {kind}: ours {100 * own / (own + quic):.0f} % of ours and aioquic (bar 30)")
    return lines


OURS = ("voicestream", "compiled")


def numbers(text: str) -> list[int]:
    """Of a list with commas."""
    return [int(part) for part in text.split(",") if part]


def main() -> int:
    """Measure, print."""
    parser = argparse.ArgumentParser(prog="interop.lab.load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="aiortc,voicestream,compiled")
    parser.add_argument("--codec", type=numbers, default=[1, 10, 20], help="numbers of calls with codec (1,10,20)")
    parser.add_argument("--no-codec", type=numbers, default=[10, 30, 60], help="numbers of calls without (10,30,60)")
    parser.add_argument("--window", type=float, default=10.0, help="seconds that are measured")
    parser.add_argument("--no-shares", action="store_true", help="leave out the sampled runs")
    parser.add_argument("--uvloop", action="store_true", help="all processes run on uvloop")
    parser.add_argument("--compiled", type=Path, default=COMPILED, help="Python that has the compiled package (%(default)s)")
    parser.add_argument("--work", type=Path, default=Path("bench-cpu"))
    options = parser.parse_args()
    if not sys.platform.startswith("linux"):
        print("bench-cpu skipped: it needs Linux (/proc, processes held on cores)")
        return 0
    systems = [name for name in options.only.split(",") if name != "aiortc" or find_spec("aiortc")]
    if not options.compiled.exists():
        print("compiled: left out, since it is not built; `make compiled` does it")
        systems, options.compiled = [name for name in systems if name != "compiled"], None
    plan = [(calls, codec, False) for codec, counts in ((True, options.codec), (False, options.no_codec)) for calls in counts]
    if not options.no_shares:
        plan += [(10, True, True), (30, False, True)]
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}", flush=True)
    rows: list[dict[str, Any]] = []
    for calls, codec, profile in plan:
        for system in systems:
            rows.append(measure(system, calls, options, codec=codec, profile=profile, port=PORT + len(rows)))
            if profile and system == "compiled":
                same = [row for row in rows[:-1] if row["system"] == "voicestream" and row["shares"] and row["codec"] == codec]
                rows[-1]["shares"] = shared_out(rows[-1], same[-1]) if same else None
            print(show(rows[-1]), flush=True)
    print("\n".join(verdicts(rows)))
    options.work.mkdir(parents=True, exist_ok=True)
    (options.work / "cpu.json").write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
