"""One page that needs nothing else: the matrix, verdicts by requirement, and the wire of what failed."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import Any, Final

from interop.model import Result, Verdict
from interop.report import by_requirement, not_observed
from interop.rules import requirements

__all__ = ["page"]

STYLE: Final = """
:root { --ink: #1c2430; --soft: #5b6675; --line: #dfe4ea; --pass: #1b7f4b; --fail: #b3261e; --loose: #9a6700; --none: #7a8594; }
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); max-width: 1180px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin: 0; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
p.about { color: var(--soft); margin: .3rem 0 1.4rem; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; }
th, td { text-align: left; padding: .32rem .5rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font: .82rem ui-monospace, monospace; white-space: nowrap; }
.v { display: inline-block; min-width: 5.6em; padding: .05rem .45rem; border-radius: 4px;
  color: #fff; font-size: .74rem; font-weight: 600; text-align: center; }
.PASS { background: var(--pass); } .FAIL { background: var(--fail); } .NON-STRICT { background: var(--loose); }
.UNSUPPORTED { background: #e8ecf0; color: var(--none); }
.tiles { display: flex; gap: .8rem; flex-wrap: wrap; }
.tile { border: 1px solid var(--line); border-radius: 8px; padding: .7rem 1rem; min-width: 12rem; }
.tile b { display: block; } .tile span { margin-right: .8rem; font-variant-numeric: tabular-nums; }
pre { background: #f6f8fa; border: 1px solid var(--line); border-radius: 6px; padding: .7rem; overflow-x: auto;
  font: .76rem/1.4 ui-monospace, monospace; max-height: 30rem; }
details { margin: .4rem 0; } summary { cursor: pointer; }
.soft { color: var(--soft); }
"""


def chip(verdict: Verdict, title: str = "") -> str:
    return f'<span class="v {verdict}" title="{escape(title)}">{verdict}</span>'


def _tiles(results: list[Result]) -> str:
    tiles = []
    for subject, role in dict.fromkeys((result.subject, result.role) for result in results if result.role != "pair"):
        counts = Counter(result.verdict for result in results if (result.subject, result.role) == (subject, role))
        told = "".join(f"<span>{chip(verdict)} {counts[verdict]}</span>" for verdict in Verdict if counts[verdict])
        tiles.append(f'<div class="tile"><b>{escape(subject)} as {role}</b>{told}</div>')
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _matrix(results: list[Result]) -> str:
    own = [result for result in results if result.role == "pair"]
    if not own:
        return ""
    pairs = list(dict.fromkeys(result.subject for result in own))
    cases = list(dict.fromkeys(result.case for result in own))
    found = {(result.subject, result.case): result for result in own}
    head = "".join(f"<th>{escape(pair)}</th>" for pair in pairs)
    rows = []
    for name in cases:
        cells = "".join(
            f"<td>{chip(found[pair, name].verdict, found[pair, name].outcome.words) if (pair, name) in found else ''}</td>"
            for pair in pairs
        )
        title = next(result.title for result in own if result.case == name)
        rows.append(f"<tr><td><code>{escape(name)}</code> {escape(title)}</td>{cells}</tr>")
    return f"<h2>Pairs: client × server</h2><table><tr><th>Case</th>{head}</tr>{''.join(rows)}</table>"


def _failed(results: list[Result]) -> str:
    bad = [result for result in results if result.verdict in (Verdict.FAIL, Verdict.NON_STRICT)]
    if not bad:
        return "<h2>What failed</h2><p>Nothing.</p>"
    blocks = []
    for result in bad:
        first = requirements().get(result.requirements[0]) if result.requirements else None
        quote = f'<p class="soft">{escape(result.requirements[0])}: {escape(first.words)}</p>' if first else ""
        apart = "" if result.outcome.close is None else f" Behaviour {result.outcome.behaviour}, close {result.outcome.close}."
        wire = f"<pre>{escape(chr(10).join(result.trace))}</pre>" if result.trace else ""
        who = f"<b>{escape(result.subject)}</b> {result.role}: <code>{escape(result.case)}</code> {escape(result.title)}"
        words = f"<p>{escape(result.outcome.words)}.{apart}</p>"
        blocks.append(f"<details open><summary>{chip(result.verdict)} {who}</summary>{words}{quote}{wire}</details>")
    return "<h2>What failed, and what was on the wire</h2>" + "".join(blocks)


def _table(head: list[str], rows: list[list[str]]) -> str:
    """A table of cells that are HTML already."""
    top = "".join(f"<th>{one}</th>" for one in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _requirements(results: list[Result]) -> str:
    found = by_requirement(result for result in results if result.role != "pair")
    if not found:
        return ""
    whose = list(dict.fromkeys(f"{r.subject} {r.role}" for r in results if r.role != "pair"))
    rows = []
    for name, verdicts in found.items():
        text = requirements()[name].words if name in requirements() else ""
        rows.append([f"<code>{name}</code>", escape(text)] + [chip(verdicts[who]) if who in verdicts else "" for who in whose])
    return "<h2>Requirements</h2>" + _table(["Id", "Sentence", *map(escape, whose)], rows)


def _cases(results: list[Result]) -> str:
    own = [result for result in results if result.role != "pair"]
    rows = []
    for name in dict.fromkeys(result.case for result in own):
        each = [result for result in own if result.case == name]
        ids = " ".join(f"<code>{one}</code>" for one in each[0].requirements)
        told = [
            f"{chip(one.verdict)} {escape(one.subject)} {one.role} <span class='soft'>{escape(one.outcome.words)}</span>" for one in each
        ]
        rows.append([f"{escape(each[0].title)}<br><span class='soft'>{escape(name)}</span>", ids, "<br>".join(told)])
    if not rows:
        return ""
    table = _table(["Case", "Requirements", "Verdicts"], rows)
    return f"<h2>Cases</h2><details><summary>All {len(rows)}</summary>{table}</details>"


def _measured(results: list[Result]) -> str:
    rows = []
    reactions = sorted(result.outcome.measured["reaction_ms"] for result in results if "reaction_ms" in result.outcome.measured)
    if reactions:
        told = f"median {reactions[len(reactions) // 2]:.0f}, slowest {reactions[-1]:.0f}, over {len(reactions)} cases"
        rows.append(["all", "from an error to the end of the session", "reaction_ms", told])
    for result in results:
        for name, value in result.outcome.measured.items():
            if name != "reaction_ms":
                rows.append([f"{escape(result.subject)} {result.role}", escape(result.case), escape(name), f"{value:g}"])
    if not rows:
        return ""
    return "<h2>Measured</h2><p class='soft'>No part of the verdicts.</p>" + _table(["Who", "Case", "What", "Value"], rows)


def _unseen(results: list[Result]) -> str:
    rows = [[f"<code>{name}</code>", escape(requirements()[name].words)] for name in not_observed(results)]
    return (
        "<h2>Requirements without a case</h2><p class='soft'>What a peer cannot observe from outside, or has no case yet.</p>"
        f"<details><summary>Show {len(rows)}</summary>{_table(['Id', 'Sentence'], rows)}</details>"
    )


def page(results: list[Result], about: dict[str, Any]) -> str:
    """The whole page."""
    told = ", ".join(f"{name} {value}" for name, value in about.items())
    parts = (_tiles, _matrix, _failed, _requirements, _cases, _measured, _unseen)
    body = "".join(part(results) for part in parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>VoiceStream interop</title>'
        f"<style>{STYLE}</style></head><body><h1>VoiceStream interop</h1><p class='about'>{escape(told)}</p>{body}</body></html>"
    )
