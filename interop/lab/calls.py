"""One call in the laboratory: which files it leaves, how it is run, how it is judged."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["LAB", "Call", "judge", "kept", "load_systems", "run"]

LAB = Path(__file__).resolve().parent
HEAD_START_S = 1.5
PATIENCE_S = 35.0
"""Seconds that a call may take beyond its speech."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A call to make.

    Attributes:
        system: Its name.
        profile: JSON file of the link.
        seed: Of the link.
        clip: WAV that the client says.
        reply: WAV that the server says, or None.
        seconds: Length of the speech.
        work: Folder of its files.
    """

    system: str
    profile: Path
    seed: int
    clip: Path
    reply: Path | None
    seconds: float
    work: Path

    @property
    def name(self) -> str:
        """Names its files."""
        return ".".join((self.profile.stem, self.system, self.clip.stem, str(self.seed)) + (("duplex",) if self.reply else ()))

    def file(self, end: str) -> str:
        """One of its files."""
        return str(self.work / f"{self.name}.{end}")


def load_systems(path: Path) -> dict[str, dict[str, Any]]:
    """Command templates by system: "server", "client" and, for the words that a duplex call adds, "duplex" with both again.

    Templates know {python}, {here} (this folder), {home} (that of the file), {wav}, {seconds}, {sent}, {out}, {life} and, for duplex,
    {reply}, {reply_sent} and {heard}. The client ends by itself; the server when {out}.stop appears.
    """
    systems: dict[str, dict[str, Any]] = json.loads(path.read_text())
    for system in systems.values():
        system["home"] = str(path.resolve().parent)
    return systems


def kept(call: Call) -> bool:
    """Whether the call was made before."""
    return Path(call.file("done")).exists()


def run(call: Call, system: dict[str, Any]) -> int:
    """Make the call; its exit status. Its log's last line says how it ended."""
    for old in call.work.glob(f"{call.name}.*"):
        old.unlink()
    words = {
        "python": sys.executable, "here": LAB, "home": system["home"], "wav": call.clip, "seconds": call.seconds,
        "life": call.seconds + PATIENCE_S + 25, "sent": call.file("sent.json"), "out": call.file("out.wav"),
        "reply": call.reply or "", "reply_sent": call.file("reply.json"), "heard": call.file("heard.wav"),
    }  # fmt: skip
    words = {key: shlex.quote(str(value)) for key, value in words.items()}
    more = system["duplex"] if call.reply else {}
    server, client = (f"{system[role]} {more.get(role, '')}".format(**words) for role in ("server", "client"))
    client += f"; status=$?; touch {words['out']}.stop; sleep 0.6; exit $status"
    command = [sys.executable, "-m", "interop.lab.carry", "--profile", str(call.profile), "--seed", str(call.seed)]
    command += ["--head-start", str(HEAD_START_S), "--timeout", str(call.seconds + PATIENCE_S), "--log", call.file("link.csv")]
    with open(call.file("log"), "w") as log:
        status = subprocess.run([*command, "--a", server, "--b", client], stdout=log, stderr=log, cwd=LAB.parent.parent).returncode
        log.write(f"laboratory: exit status {status}\n")
    Path(call.file("done")).write_text(str(status))
    return status


def judge(call: Call) -> list[dict[str, Any]]:
    """The figures of each direction of a finished call; kept beside it."""
    path = Path(call.file("score.json"))
    if path.exists():
        results: list[dict[str, Any]] = json.loads(path.read_text())
        return results
    from interop.lab.score import score

    ways = [("up", call.clip, call.file("sent.json"), call.file("out.wav"))]
    if call.reply is not None:
        ways.append(("down", call.reply, call.file("reply.json"), call.file("heard.wav")))
    results = []
    for direction, said, sent, heard in ways:
        row: dict[str, Any] = {
            "profile": call.profile.stem, "system": call.system, "clip": call.clip.stem, "seed": call.seed, "direction": direction,
        }  # fmt: skip
        try:
            row.update(score(str(said), sent, heard, link=call.file("link.csv"), profile=str(call.profile), direction=direction))
            row["redundancy_share"] = json.loads(Path(sent).read_text()).get("redundancy_share")
        except (OSError, ValueError, KeyError) as error:  # a call that never came about has left no files
            row["failed"] = f"{type(error).__name__}: {error}"
        status = Path(call.file("done")).read_text()
        if status != "0" and "failed" not in row:
            row["ended"] = f"exit status {status}"
        results.append(row)
    path.write_text(json.dumps(results, indent=1))
    return results
