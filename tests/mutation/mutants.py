"""Small faults put into a module's syntax tree, one at a time."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

__all__ = ["Module", "Mutant"]

_COMPARE: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_SIMPLE = (ast.Compare, ast.BoolOp)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault.

    Attributes:
        name: Module, function and change in words; the same as long as these do not change, wherever the line stands.
        function: Qualified name of the function that contains it. Empty where other code of the module depends on it at import: outside
            of functions, in a function that the module itself calls, and in one inside another.
        line: Where it stands now.
        number: Of the fault in its module.
    """

    name: str
    function: str
    line: int
    number: int


@dataclass(frozen=True, slots=True)
class _Site:
    parent: ast.AST
    field: str
    index: int | None
    replacement: ast.AST
    function: str
    nested: bool


def _text(node: ast.AST) -> str:
    words = ast.unparse(node).split("\n")[0]
    return words if len(words) <= 70 else words[:67] + "..."


class Module:
    """A module of which there are mutants."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self._tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        self._sites = list(_sites(self._tree, ""))
        early = _used_at_import(self._tree)
        self.mutants: list[Mutant] = []
        seen: Counter[str] = Counter()
        for number, site in enumerate(self._sites):
            old = _current(site)
            where = f"{name.removeprefix('voicestream.')} {site.function or 'module'}"
            words = f"{where}: {_context(site, old)} -> {_text(site.replacement)}"
            seen[words] += 1
            if seen[words] > 1:
                words += f" ({seen[words]})"
            function = "" if site.nested or site.function in early else site.function
            self.mutants.append(Mutant(words, function, getattr(old, "lineno", 0), number))

    def code(self, mutant: Mutant) -> CodeType:
        """The module's code with the fault in it."""
        site = self._sites[mutant.number]
        old = _current(site)
        _put(site, ast.copy_location(site.replacement, old))
        try:
            return compile(ast.fix_missing_locations(self._tree), str(self.path), "exec", dont_inherit=True)
        finally:
            _put(site, old)


def _context(site: _Site, old: ast.AST) -> str:
    """The old text; for a lone constant with what stands around it, or it could be any."""
    alone = isinstance(old, ast.Constant) and not isinstance(site.parent, ast.stmt)
    return f"{_text(old)} in {_text(site.parent)}" if alone else _text(old)


def _current(site: _Site) -> ast.AST:
    value = getattr(site.parent, site.field)
    return value if site.index is None else value[site.index]


def _put(site: _Site, node: ast.AST) -> None:
    if site.index is None:
        setattr(site.parent, site.field, node)
    else:
        getattr(site.parent, site.field)[site.index] = node


def _children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield field, None, value
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield field, index, item


def _skipped(parent: ast.AST, field: str, node: ast.AST) -> bool:
    """What is no behaviour: annotations, decorators, words, lists of names, tests for the type checker."""
    if field in {"annotation", "returns", "decorator_list", "type_params", "keywords"} and not isinstance(parent, ast.Call):
        return True
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return True
    if isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
        return True
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _used_at_import(tree: ast.Module) -> set[str]:
    """Functions that the module's own statements name, to call them or to put them into a table of what they make."""
    outside = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    calls = [inner.func for node in outside for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    return {function.id for function in calls if isinstance(function, ast.Name)}


def _sites(parent: ast.AST, scope: str, inside: bool = False, nested: bool = False) -> Iterator[_Site]:
    """Every fault below `parent`; `inside` a function, `scope` stays that of the outermost one."""
    for field, index, node in _children(parent):
        if _skipped(parent, field, node):
            continue
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not inside:
            name = f"{scope}.{node.name}" if scope else node.name
            if isinstance(node, ast.ClassDef):
                yield from _sites(node, name)
                continue
            body = copy.copy(node)
            body.args = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
            yield from _sites(body, name, True)
            continue
        where = scope if inside else ""
        for replacement in _replacements(parent, field, node):
            yield _Site(parent, field, index, replacement, where, nested)
        yield from _sites(node, scope, inside, nested or (inside and isinstance(node, ast.FunctionDef)))


def _replacements(parent: ast.AST, field: str, node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in _COMPARE.get(type(operator), ()):
                yield ast.Compare(node.left, [*node.ops[:place], other(), *node.ops[place + 1 :]], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC and not _of_types(node):
        yield ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Expr | ast.Raise | ast.AugAssign | ast.Delete):
        yield ast.Pass()
    elif isinstance(node, ast.Break | ast.Continue):
        yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()
    is_test = field == "test" and isinstance(parent, ast.If | ast.IfExp | ast.While)
    if is_test and isinstance(node, ast.expr) and not isinstance(node, _SIMPLE):
        yield ast.UnaryOp(ast.Not(), node)


def _of_types(node: ast.BinOp) -> bool:
    """A union of types outside of an annotation: an alias."""
    return isinstance(node.op, ast.BitOr) and all(
        (isinstance(side, ast.Name) and side.id[0].isupper() and not side.id.isupper()) or isinstance(side, ast.BinOp | ast.Constant)
        for side in (node.left, node.right)
    ) and any(isinstance(side, ast.Name) for side in (node.left, node.right))
