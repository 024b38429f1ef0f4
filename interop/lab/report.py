"""What came out: a table in Markdown and a page to look at."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from html import escape
from typing import Any, Final

__all__ = ["COLUMNS", "markdown", "means", "page"]

COLUMNS: Final = (
    ("delay_ms_p50", "delay ms", "{:.0f}", -1),
    ("delay_ms_p95", "P95", "{:.0f}", -1),
    ("pesq", "PESQ", "{:.2f}", 1),
    ("pesq_least", "least", "{:.2f}", 1),
    ("stoi", "STOI", "{:.3f}", 1),
    ("plcmos", "PLCMOS", "{:.2f}", 1),
    ("unheard", "unheard", "{:.1%}", -1),
    ("concealed", "concealed", "{:.1%}", 0),
    ("kbps_up", "kbps up", "{:.0f}", 0),
    ("kbps_down", "down", "{:.0f}", 0),
    ("redundancy_share", "redundancy", "{:.0%}", 0),
    ("own_queue_ms_p95", "own queue P95", "{:.0f}", -1),
    ("cpu_client", "CPU client %", "{:.1f}", 0),
    ("cpu_server", "server %", "{:.1f}", 0),
    ("matched", "matched", "{:.0%}", 0),
    ("calls", "calls", "{:.0f}", 0),
)
"""Key, heading, form, and whether more (1) or less (-1) is better, or neither (0)."""

COLOURS: Final = ("#0b7a75", "#b4542a", "#5b5ea6", "#8a6d0b", "#7d3c6b")


def means(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each profile, system and direction: the means over clips and seeds, and the least PESQ."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["profile"], row["system"], row["direction"]), []).append(row)
    duplex = any(direction == "down" for _, _, direction in groups)
    table = []
    for (profile, system, direction), group in groups.items():
        entry: dict[str, Any] = {"profile": profile, "system": f"{system} {direction}" if duplex else system}
        for key, *_ in COLUMNS:
            values = [row[key] for row in group if isinstance(row.get(key), int | float)]
            if values:
                entry[key] = statistics.fmean(values)
        entry["pesq_least"] = min((row["pesq"] for row in group if "pesq" in row), default=None)
        entry["calls"] = sum("failed" not in row for row in group)
        table.append(entry)
    return table


def _cells(entry: dict[str, Any]) -> list[str]:
    return ["–" if entry.get(key) is None else form.format(entry[key]) for key, _, form, _ in COLUMNS]


def markdown(table: list[dict[str, Any]]) -> str:
    """The table, columns in line."""
    rows = [["profile", "system", *(heading for _, heading, _, _ in COLUMNS)]]
    rows += [[entry["profile"], entry["system"], *_cells(entry)] for entry in table]
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]

    def line(row: list[str]) -> str:
        cells = (cell.ljust(width) if index < 2 else cell.rjust(width) for index, (cell, width) in enumerate(zip(row, widths, strict=True)))
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join("-" * (width + 2) if index < 2 else "-" * (width + 1) + ":" for index, width in enumerate(widths)) + "|"
    return "\n".join([line(rows[0]), rule, *(line(row) for row in rows[1:])])


def _profiles(table: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for entry in table:
        groups.setdefault(entry["profile"], []).append(entry)
    return groups


def _best(group: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """(system, key) of the best figures of a profile."""
    found = set()
    for key, _, form, better in COLUMNS:
        known = [entry for entry in group if better and entry.get(key) is not None]
        shown = [(form.format(entry[key]), better * entry[key], entry["system"]) for entry in known]
        if len(shown) > 1:
            top = max(shown, key=lambda item: item[1])[0]
            found |= {(system, key) for text, _, system in shown if text == top}
    return found


def _map(profile: str, group: list[dict[str, Any]], colours: dict[str, str]) -> str:
    """Where each system lies between delay and quality on one link: up and to the left is better."""
    width, height, left, bottom = 260, 170, 34, 26

    def x(delay: float) -> float:
        return left + min(delay, 600.0) / 600 * (width - left - 10)

    def y(pesq: float) -> float:
        return height - bottom - (pesq - 1) / 3.6 * (height - bottom - 12)

    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="PESQ against delay on {escape(profile)}">']
    for pesq in (1, 2, 3, 4):
        parts.append(f'<line class="grid" x1="{left}" x2="{width - 10}" y1="{y(pesq):.1f}" y2="{y(pesq):.1f}"/>')
        parts.append(f'<text x="{left - 6}" y="{y(pesq) + 4:.1f}" text-anchor="end">{pesq}</text>')
    for delay in (0, 200, 400, 600):
        parts.append(f'<text x="{x(delay):.1f}" y="{height - 8}" text-anchor="middle">{delay}</text>')
    for entry in group:
        if entry.get("pesq") is None:
            continue
        title = f"{entry['system']}: PESQ {entry['pesq']:.2f} at {entry['delay_ms_p50']:.0f} ms"
        place = f'cx="{x(entry["delay_ms_p50"]):.1f}" cy="{y(entry["pesq"]):.1f}"'
        parts.append(f'<circle {place} r="7" fill="{colours[entry["system"]]}"><title>{escape(title)}</title></circle>')
    return f"<figure><figcaption>{escape(profile)}</figcaption>{''.join(parts)}</svg></figure>"


def page(table: list[dict[str, Any]], rows: list[dict[str, Any]]) -> str:
    """The page, in one piece."""
    names = list(dict.fromkeys(entry["system"] for entry in table))
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
    key = "".join(f'<li><i style="background:{colours[name]}"></i>{escape(name)}</li>' for name in names)
    groups = _profiles(table)
    maps = "".join(_map(profile, group, colours) for profile, group in groups.items())
    body = []
    for profile, group in groups.items():
        best = _best(group)
        for index, entry in enumerate(group):
            cells = "".join(
                f"<td{' class=best' if (entry['system'], column[0]) in best else ''}>{cell}</td>"
                for column, cell in zip(COLUMNS, _cells(entry), strict=True)
            )
            head = f'<th rowspan="{len(group)}" scope="rowgroup">{escape(profile)}</th>' if index == 0 else ""
            body.append(f'<tr{" class=first" if index == 0 else ""}>{head}<th scope="row">{escape(entry["system"])}</th>{cells}</tr>')
    failed = [row for row in rows if "failed" in row or "ended" in row]
    failures = "".join(
        f"<li>{escape(row['profile'])}, {escape(row['system'])}, {escape(row['clip'])}, seed {row['seed']}: "
        f"{escape(str(row.get('failed') or row['ended']))}</li>"
        for row in failed
    )
    headings = "".join(f"<th scope=col>{escape(heading)}</th>" for _, heading, _, _ in COLUMNS)
    return _PAGE.format(
        key=key, maps=maps, headings=headings, body="".join(body), failures=f"<h2>Failed calls</h2><ul>{failures}</ul>" if failed else ""
    )


_PAGE: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Voice over bad links, side by side</title><style>
:root{{color-scheme:light dark;--ink:#1c2326;--quiet:#5d6b70;--line:#d9dfe1;--paper:#fbfcfc;--best:#dff1ee}}
@media(prefers-color-scheme:dark){{:root{{--ink:#e8eced;--quiet:#9aa8ad;--line:#364145;--paper:#161b1d;--best:#12413d}}}}
body{{margin:0 auto;max-width:1180px;padding:2rem 1.2rem;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}}
h1{{font-size:1.7rem;margin:0 0 .3rem}}h2{{font-size:1.15rem;margin:2rem 0 .6rem}}p{{color:var(--quiet);max-width:70ch}}
ul.key{{list-style:none;display:flex;gap:1.4rem;padding:0;flex-wrap:wrap}}
ul.key i{{display:inline-block;width:.8em;height:.8em;border-radius:50%;margin-right:.45em}}
.maps{{display:grid;grid-template-columns:repeat(auto-fill,minmax(220px,1fr));gap:1rem}}figure{{margin:0}}
figcaption{{font-weight:600}}svg{{width:100%;height:auto}}svg text{{font-size:11px;fill:var(--quiet)}}.grid{{stroke:var(--line)}}
.wide{{overflow-x:auto}}table{{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums;width:100%}}
th,td{{padding:.28rem .5rem;text-align:right;white-space:nowrap}}th[scope=row],th[scope=rowgroup]{{text-align:left;font-weight:500}}
th[scope=rowgroup]{{font-weight:600;vertical-align:top}}thead th{{border-bottom:2px solid var(--line);color:var(--quiet)}}
tr.first>*{{border-top:1px solid var(--line)}}td.best{{background:var(--best);font-weight:600}}
</style><h1>Voice over bad links, side by side</h1>
<p>Real calls in real time over emulated links, judged by what a listener hears. In the maps a dot is a system: across, how long
speech takes from mouth to ear (ms); upwards, PESQ. Up and to the left is better. Systems run with their defaults.</p>
<ul class="key">{key}</ul><div class="maps">{maps}</div>
<h2>All figures</h2><p>Means over clips and seeds; the best of each link is marked.</p>
<div class="wide"><table><thead><tr><th scope=col>link</th><th scope=col>system</th>{headings}</tr></thead>
<tbody>{body}</tbody></table></div>
{failures}</html>
"""
