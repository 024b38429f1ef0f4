"""The README's comparison: what was heard, system beside system, from the rows of a run; losses as plainly as wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

__all__ = ["BEGIN", "END", "comparison", "write_into"]

BEGIN: Final = "<!-- written by make bench-net ARGS='--readme README.md'; do not edit -->"
END: Final = "<!-- until here -->"
OURS: Final = "voicestream"
PESQ_STEP: Final = 0.1
DELAY_STEP_MS: Final = 10.0
"""Less than these apart is called equal."""


def _groups(table: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for entry in table:
        found.setdefault(entry["profile"], {})[entry["system"]] = entry
    return found


def _cell(entry: dict[str, Any] | None) -> str:
    if entry is None or entry.get("pesq") is None or entry.get("delay_ms_p50") is None:
        return "no call"
    return f"{entry['pesq']:.2f} @ {entry['delay_ms_p50']:.0f} ms, {100 * entry.get('unheard', 0.0):.1f} %"


def _verdict(ours: dict[str, Any] | None, others: list[dict[str, Any]]) -> str:
    """In which of quality and delay the best of the others is ahead or behind."""
    if ours is None or ours.get("pesq") is None:
        return "lost: no call"
    rivals = [entry for entry in others if entry.get("pesq") is not None]
    if not rivals:
        return "won: no other call"
    quality = ours["pesq"] - max(entry["pesq"] for entry in rivals)
    delay = min(entry["delay_ms_p50"] for entry in rivals) - ours["delay_ms_p50"]
    words = []
    for name, ahead, step in (("quality", quality, PESQ_STEP), ("delay", delay, DELAY_STEP_MS)):
        words.append(f"{name} {'equal' if abs(ahead) < step else 'won' if ahead > 0 else 'lost'}")
    return ", ".join(words)


def comparison(table: list[dict[str, Any]], about: str) -> str:
    """A Markdown table of PESQ, median mouth-to-ear delay and unheard speech.

    Args:
        table: As `interop.lab.report.means` gives it.
        about: Speech, seeds and day of the run, in a sentence.
    """
    systems = list(dict.fromkeys(entry["system"] for entry in table))
    others = [name for name in systems if name != OURS]
    rows = [["link", *systems, "beside the best other in each"], ["---"] * (len(systems) + 2)]
    for profile, group in _groups(table).items():
        verdict = _verdict(group.get(OURS), [group[name] for name in others if name in group])
        rows.append([profile, *(_cell(group.get(name)) for name in systems), verdict])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return f"{about} Each cell: PESQ-WB @ median mouth-to-ear delay, share of the speech that was not heard.\n\n" + "\n".join(lines)


def write_into(path: Path, text: str) -> None:
    """Put the comparison between its two marks in a file.

    Raises:
        ValueError: The marks are not there.
    """
    whole = path.read_text()
    head, begun, rest = whole.partition(BEGIN)
    _, ended, tail = rest.partition(END)
    if not begun or not ended:
        raise ValueError(f"{path} has no place for the comparison: {BEGIN} and {END}")
    path.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}")
