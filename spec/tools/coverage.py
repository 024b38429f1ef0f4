"""The table of what is cited where."""

from __future__ import annotations

from .citations import KINDS, citations
from .requirements import ROOT, order, requirements

__all__ = ["TABLE", "counts", "table"]

TABLE = ROOT / "spec" / "coverage.md"

_HEAD = """# Which requirement is kept where

Written by `make spec`; do not edit. Code is the reference implementation. A vector stands for the group that begins with it.
"""


def counts() -> dict[str, int]:
    """Numbers for the head of the table."""
    known = requirements()
    musts = {name for name, sentence in known.items() if sentence.is_must}
    both = {name for name in known if _has(name, "code") and (_has(name, "tests") or _has(name, "vectors"))}
    cited = {"musts_cited": len(musts & both), "others_cited": len(both - musts)}
    return {"requirements": len(known), "musts": len(musts), **cited}


def table() -> str:
    """The table as Markdown."""
    numbers = counts()
    others = numbers["requirements"] - numbers["musts"]
    rows = [
        _HEAD,
        f"Of {numbers['requirements']} requirements {numbers['musts']} are MUSTs; {numbers['musts_cited']} of these and "
        f"{numbers['others_cited']} of the {others} others are cited by code and by a test or vector.\n",
        "| Id | Requirement | Code | Tests | Vectors | Cases |",
        "|---|---|---|---|---|---|",
    ]
    for name, sentence in sorted(requirements().items(), key=lambda item: order(item[0])):
        places = citations().get(name, {kind: [] for kind in KINDS})
        cells = [_short(places[kind]) for kind in KINDS]
        words = sentence.words.replace("|", "\\|")
        rows.append(f"| {name} | {words} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _has(name: str, kind: str) -> bool:
    return bool(citations().get(name, {}).get(kind))


def _short(places: list[str]) -> str:
    stripped = [place.removeprefix("voicestream/").removeprefix("tests/").replace("::test_", " ") for place in places]
    more = f" and {len(stripped) - 4} more" if len(stripped) > 4 else ""
    return ", ".join(f"`{place}`" for place in stripped[:4]) + more
