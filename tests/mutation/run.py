"""Runs the tests against each mutant, in processes that are forked from one that has collected them all."""

from __future__ import annotations

import gc
import importlib.abc
import importlib.machinery
import os
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from .mutants import Module, Mutant

__all__ = ["Runner"]

SECONDS = 10
"""Seconds of processor time that the tests get with one mutant; who takes longer has gone round in circles, and is found."""

KILLED, SURVIVED, UNUSABLE = 1, 0, 3


class Runner:
    """A plugin of pytest that runs the collected tests once for each mutant instead of once.

    Args:
        mutants: What to put into which module.
        jobs: Processes at once.

    Attributes:
        survivors: Mutants that no test has found.
        done: How many were tried.
    """

    def __init__(self, mutants: Sequence[tuple[Module, Mutant]], jobs: int) -> None:
        self._mutants = mutants
        self._jobs = jobs
        self.survivors: list[Mutant] = []
        self.unusable: list[Mutant] = []
        self.done = 0

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("the tests could not be collected")
        if _run(session.items):
            raise session.Interrupted("the tests fail without any fault")
        gc.collect()
        gc.freeze()  # or each child would copy what it only looks at
        running: dict[int, Mutant] = {}
        for module, mutant in self._mutants:
            if len(running) >= self._jobs:
                self._wait(running)
            child = os.fork()
            if not child:
                os._exit(_try(session, module, mutant))
            running[child] = mutant
        while running:
            self._wait(running)
        return True

    def _wait(self, running: dict[int, Mutant]) -> None:
        child, status = os.wait()
        mutant = running.pop(child)
        self.done += 1
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == SURVIVED:
            self.survivors.append(mutant)
            print(f"survived: {mutant.name} (line {mutant.line})", flush=True)
        elif os.WIFEXITED(status) and os.WEXITSTATUS(status) == UNUSABLE:
            self.unusable.append(mutant)
            print(f"unusable: {mutant.name}", flush=True)
        if self.done % 50 == 0:
            print(f"{self.done} of {len(self._mutants)}, {len(self.survivors)} survived", flush=True)


def _run(items: Sequence[pytest.Item]) -> str:
    """Run tests until one fails; its name."""
    for item, after in zip(items, [*items[1:], None], strict=True):
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=after)):
            return item.nodeid
    return ""


def _first(items: Sequence[pytest.Item], module: str) -> list[pytest.Item]:
    """The tests, those of the module that was changed before the others."""
    stem = f"test_{module.rpartition('.')[2]}"
    return sorted(items, key=lambda item: not item.path.stem.startswith(stem))


def _try(session: pytest.Session, module: Module, mutant: Mutant) -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        code = module.code(mutant)
        function = _function(module.name, mutant.function) if mutant.function else None
        if function is None:
            return _anew(session, module, code)
        function.__code__ = _nested(code, mutant.function)
        return KILLED if _run(_first(session.items, module.name)) else SURVIVED
    except SyntaxError:
        return UNUSABLE
    except BaseException:  # a fault may break anything
        return KILLED


def _function(module: str, qualified: str) -> FunctionType | None:
    found: Any = sys.modules[module]
    for part in qualified.split("."):
        found = vars(found).get(part)
        if found is None:
            return None
    if isinstance(found, property):
        found = found.fget
    found = getattr(found, "__func__", found)
    found = getattr(found, "__wrapped__", found)
    return found if isinstance(found, FunctionType) else None


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _nested(code: CodeType, qualified: str) -> CodeType:
    return next(one for one in _codes(code) if one.co_qualname == qualified)


class _Loader(importlib.abc.Loader):
    def __init__(self, code: CodeType) -> None:
        self._code = code

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code, module.__dict__)


class _Finder(importlib.abc.MetaPathFinder):
    """Gives the changed module to whoever imports it."""

    def __init__(self, module: Module, code: CodeType) -> None:
        self._module = module
        self._code = code

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._module.name:
            return None
        return importlib.machinery.ModuleSpec(name, _Loader(self._code), origin=str(self._module.path))


def _anew(session: pytest.Session, module: Module, code: CodeType) -> int:
    """A fault outside of functions: import everything again, and collect the tests again."""
    files = sorted({str(item.path) for item in _first(session.items, module.name)})
    root = str(Path(session.config.rootpath))
    for name, loaded in list(sys.modules.items()):
        origin = getattr(loaded, "__file__", None) or ""
        if name.split(".")[0] == "voicestream" or (origin.startswith(root + "/tests") and "/mutation/" not in origin):
            del sys.modules[name]
    sys.meta_path.insert(0, _Finder(module, code))
    return KILLED if pytest.main(["-x", "-q", "-p", "no:cacheprovider", *files]) else SURVIVED
