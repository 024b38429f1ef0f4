"""Which lines of some modules an input reaches; without other packages, since the decoders are small."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any

__all__ = ["LineWatch"]


def _modules(names: Iterable[str]) -> list[str]:
    """Full names; a package that ends in a dot stands for all in it."""
    found = []
    for name in names:
        if not name.endswith("."):
            found.append(name)
            continue
        package = importlib.import_module(name[:-1])
        found += [one.name for one in pkgutil.walk_packages(package.__path__, name) if not one.ispkg]
    return found


def _lines(code: CodeType) -> set[int]:
    """Lines inside functions: what runs at import is not an input's doing."""
    found: set[int] = set()
    for const in code.co_consts:
        if isinstance(const, CodeType):
            if const.co_flags & 0x2:  # a function, not the body of a class
                found |= {line for _, _, line in const.co_lines() if line is not None and line != const.co_firstlineno}
            found |= _lines(const)
    return found


class LineWatch:
    """Counts lines of these modules.

    Args:
        watched: Names of modules; of packages with a dot at the end.

    Attributes:
        lines: By file, all lines that can be reached.
        reached: By file, those that have been.
    """

    def __init__(self, watched: Iterable[str]) -> None:
        self.lines: dict[str, set[int]] = {}
        self.reached: dict[str, set[int]] = {}
        self._names: dict[str, str] = {}
        for name in _modules(watched):
            spec = importlib.util.find_spec(name)
            if spec is None or spec.origin is None:
                continue
            with open(spec.origin, encoding="utf-8") as file:
                self.lines[spec.origin] = _lines(compile(file.read(), spec.origin, "exec"))
            self.reached[spec.origin] = set()
            self._names[spec.origin] = name

    def run(self, act: Callable[[bytes], None], data: bytes) -> bool:
        """Give one input; returns whether it has reached a line that none before it has."""
        before, tracer = self.count, sys.gettrace()
        sys.settrace(self._enter)
        try:
            act(data)
        finally:
            sys.settrace(tracer)
        return self.count > before

    @property
    def count(self) -> int:
        """Lines reached."""
        return sum(map(len, self.reached.values()))

    @property
    def total(self) -> int:
        """Lines that can be reached."""
        return sum(map(len, self.lines.values()))

    def missing(self) -> dict[str, list[int]]:
        """Lines not reached, by module."""
        return {self._names[file]: sorted(lines - self.reached[file]) for file, lines in self.lines.items() if lines - self.reached[file]}

    def _enter(self, frame: FrameType, event: str, _argument: Any) -> Any:
        reached = self.reached.get(frame.f_code.co_filename)
        if reached is None:
            return None
        known = self.lines[frame.f_code.co_filename]

        def step(inner: FrameType, _event: str, _value: Any) -> Any:
            if inner.f_lineno in known:
                reached.add(inner.f_lineno)
            return step

        return step
