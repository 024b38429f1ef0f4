"""Voice systems over bad links, side by side, judged by what a listener hears. Linux, root.

    python -m interop.lab.bench --speech english.flac spanish.flac --work bench-net --seeds 3

Each call runs in real time, one after the other; on a machine with other work the figures are worth little. Finished calls are kept in
--work, so a run that was broken off goes on where it was. Without --speech the project's own synthetic voice speaks. Prints a table
(means over clips and seeds), and writes result.json and report.html there.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from interop.lab.calls import LAB, Call, judge, kept, load_systems, run
from interop.lab.comparison import comparison, write_into
from interop.lab.hosts import why_not
from interop.lab.report import markdown, means, page

__all__ = ["main"]

PACKAGES = ("aiortc", "moq", "pesq", "pystoi", "soundfile", "speechmos")
NOT_HERE = 0
"""Exit status where the laboratory cannot work: nothing has failed."""


def prepare(source: Path | None, seconds: float, work: Path, *, loop: bool) -> Path:
    """A WAV of `seconds` in the work folder, made from an audio file or by the project's own voice."""
    import soundfile

    from voicestream.audio.speech import sample_speech

    if source is None:
        data, rate = sample_speech(seconds, 16000), 16000
        path = work / "synthetic.wav"
    else:
        data, rate = soundfile.read(source, dtype="int16", always_2d=True)
        count = int(seconds * rate)
        if loop:
            data = np.tile(data, (-(-count // len(data)), 1))
        data, path = data[:count], work / f"{source.stem.replace('.', '-')}.wav"
    soundfile.write(path, data, rate, subtype="PCM_16")
    return path


def missing_packages() -> list[str]:
    """Of those that the laboratory needs beyond the project's own."""
    from importlib.util import find_spec

    return [name for name in PACKAGES if find_spec(name) is None]


def plan(options: argparse.Namespace, systems: dict[str, Any]) -> list[Call]:
    """All calls of the run, each profile's systems in turn, so that a broken-off run has whole comparisons."""
    names = options.only.split(",") if options.only else list(systems)
    unknown = [name for name in names if name not in systems]
    if unknown:
        raise SystemExit(f"bench-net: no such system: {', '.join(unknown)}; there are {', '.join(systems)}")
    clips = [prepare(source, options.seconds, options.work, loop=options.loop) for source in options.speech or [None]]
    reply = prepare(options.duplex, options.seconds, options.work, loop=True) if options.duplex else None
    return [
        Call(system=name, profile=profile.resolve(), seed=seed, clip=clip, reply=reply, seconds=options.seconds, work=options.work)
        for profile in options.profiles
        for seed in range(options.first_seed, options.first_seed + options.seeds)
        for clip in clips
        for name in names
    ]


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="interop.lab.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", type=Path, default=LAB / "peers" / "systems.json", help="JSON file of the systems")
    parser.add_argument("--only", help="names of systems, with commas between them (all)")
    parser.add_argument("--profiles", type=Path, nargs="+", default=sorted((LAB / "profiles").glob("*.json")), help="JSON files of links")
    parser.add_argument("--speech", type=Path, nargs="+", help="what the client says: audio files")
    parser.add_argument("--duplex", type=Path, help="what the server says at the same time: an audio file")
    parser.add_argument("--seconds", type=float, default=18.0, help="length of a call's speech")
    parser.add_argument("--loop", action="store_true", help="repeat speech that is shorter")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("bench-net"), help="folder of the recordings")
    parser.add_argument("--readme", type=Path, help="write the comparison into this file, between its marks")
    parser.add_argument("--again", action="store_true", help="make kept calls anew")
    options = parser.parse_args()
    options.work = options.work.resolve()
    return options


def about(options: argparse.Namespace, rows: list[dict[str, Any]]) -> str:
    """What the comparison rests on."""
    clips = ", ".join(sorted({row["clip"] for row in rows}))
    seeds = "one seed" if options.seeds == 1 else f"{options.seeds} seeds"
    day = time.strftime("%Y-%m-%d")
    return f"Measured {day}, {options.seconds:.0f} s of speech ({clips}), {seeds} a link, each system with its defaults."


def main() -> int:
    """Run, judge, report."""
    options = parse()
    lacking = missing_packages()
    reason = why_not() or (f"these packages are not installed: {', '.join(lacking)}" if lacking else None)
    if reason is not None:
        print(f"bench-net skipped: {reason}")
        return NOT_HERE
    options.work.mkdir(parents=True, exist_ok=True)
    systems = load_systems(options.systems)
    calls = plan(options, systems)
    for index, call in enumerate(calls, 1):
        if options.again or not kept(call):
            began = time.monotonic()
            status = run(call, systems[call.system])
            ending = "ok" if status == 0 else f"FAILED ({status})"
            print(f"{index}/{len(calls)} {call.name}: {ending} {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    # Judged when all calls are done, since judging takes a whole core.
    rows = [row for call in calls for row in judge(call)]
    table = means(rows)
    print(markdown(table))
    for row in rows:
        if "failed" in row or "ended" in row:
            print(f"FAILED {row['profile']} {row['system']} {row['clip']} seed {row['seed']}: {row.get('failed') or row['ended']}")
    (options.work / "result.json").write_text(json.dumps(rows, indent=1))
    (options.work / "report.html").write_text(page(table, rows))
    if options.readme:
        write_into(options.readme, comparison(table, about(options, rows)))
    print(f"{options.work / 'result.json'} and {options.work / 'report.html'} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
