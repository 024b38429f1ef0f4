"""Parts of the specification that are drawn from the code's tables and from the registries."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from .requirements import ROOT, SPEC

__all__ = ["generate", "stale"]

_ROLES = ("client", "server")


def _states(role_name: str) -> str:
    """The diagram of one role, from the tables that decide what a session may send and receive."""
    from voicestream.core.lifecycle import OUTLIVE_CONNECTION, RECEIVED, SENT, Role, State  # the rest needs no package

    role = Role(role_name)
    arrows: dict[tuple[str, str], list[str]] = {}
    for table, word in ((SENT, "send"), (RECEIVED, "receive")):
        for before, messages in table[role].items():
            for message, after in messages.items():
                arrows.setdefault((before.name, after.name), []).append(f"{word} {message.name}")
    known = {state for table in (SENT, RECEIVED) for state in table[role]}
    for state in OUTLIVE_CONNECTION:
        if state in known:
            arrows.setdefault((state.name, State.DETACHED.name), []).append("connection lost")
    if role is Role.SERVER:
        arrows.setdefault((State.IDLE.name, State.WAITING.name), []).append("connection made")
    arrows.setdefault((State.DETACHED.name, State.CLOSED.name), []).append("lifetime over")
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> IDLE"]
    for (before, after), labels in arrows.items():
        inner = _merged(labels)
        lines.append(f"    {before} --> {after}: {inner}")
    return "\n".join([*lines, "    CLOSED --> [*]", "```"])


def _merged(labels: list[str]) -> str:
    """The labels of an arrow: messages by who sends them."""
    sent, received = ([label.split(" ", 1)[1] for label in labels if label.startswith(word)] for word in ("send ", "receive "))
    both = [message for message in sent if message in received]
    words = [label for label in labels if not label.startswith(("send ", "receive "))]
    for verb, messages in (("receive", received), ("send", sent)):
        if single := [message for message in messages if message not in both]:
            words.insert(0, f"{verb} {', '.join(single)}")
    return " / ".join([*words, *([f"send or receive {', '.join(both)}"] if both else [])])


def _policies() -> str:
    """The policies of the registries."""
    rows = ["| Registry | Values | Policy |", "|---|---|---|"]
    for path in sorted((ROOT / "spec" / "registries").glob("*.json")):
        registry = json.loads(path.read_text(encoding="utf-8"))
        for values, policy in registry["policy"].items():
            rows.append(f"| [{registry['title']}](registries/{path.name}) | {values} | {policy} |")
    return "\n".join(rows)


_PARTS: dict[str, Callable[[], str]] = {
    **{f"states of a {role}": (lambda role=role: _states(role)) for role in _ROLES},
    "policies": _policies,
}


def _filled(text: str) -> str:
    for name, make in _PARTS.items():
        pattern = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        assert pattern.search(text), f"the specification has no place for: {name}"
        part = make()
        text = pattern.sub(rf"\g<1>\n{part}\n\n\g<2>", text)
    return text


def stale() -> bool:
    """Whether a generated part is not what would be generated now."""
    text = SPEC.read_text(encoding="utf-8")
    return _filled(text) != text


def generate() -> bool:
    """Write the generated parts; whether that changed anything."""
    text = SPEC.read_text(encoding="utf-8")
    filled = _filled(text)
    if filled != text:
        SPEC.write_text(filled, encoding="utf-8")
    return filled != text
