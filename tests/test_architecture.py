"""The house's rules, held on the whole syntax tree: layers, purity, sizes, no cycles, core siblings apart."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "voicestream"

LAYERS = {
    "errors": 0, "config": 0, "events": 0, "trace": 0, "codepoints": 0, "media": 0,
    "wire": 1,
    "core": 2,
    "session": 3,
    "quic": 4, "audio": 4, "store": 4, "observe": 4,
    "client": 5, "server": 5, "call": 5,
    "cli": 6, "__init__": 6, "__main__": 6, "testing": 6,
}  # fmt: skip
# Modules beside those named above belong to the layer of the name that they begin with (call_stats: call).

PURE_FORBIDDEN = {
    "asyncio", "time", "random", "socket", "logging", "threading", "os", "secrets", "select", "selectors", "ssl", "subprocess",
    "multiprocessing", "concurrent", "signal", "datetime", "uuid", "ctypes", "sys", "io", "pathlib", "aioquic", "opuslib", "soxr",
}  # fmt: skip
THIRD_PARTY_IN_CORE = {"numpy": ("core/recovery/", "core/bwe/"), "cryptography": ("core/resume",)}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_SESSION_FIELDS = 8


def python_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def layer_of(module: str) -> int:
    parts = module.split(".")
    head = parts[1] if len(parts) > 1 else "__init__"
    if head in LAYERS:
        return LAYERS[head]
    stem = head.split("_")[0].lstrip("_")
    if stem in LAYERS:
        return LAYERS[stem]
    if head in {"uri"}:
        return LAYERS["client"]
    raise AssertionError(f"{module} belongs to no layer: name it in LAYERS or put it where it belongs")


@cache
def all_modules() -> frozenset[str]:
    return frozenset(name_of(path) for path in python_files())


def type_checking_blocks(tree: ast.Module) -> set[int]:
    """Ids of import nodes that only a type checker runs."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            found |= {id(inner) for inner in ast.walk(node)}
    return found


def imports_of(path: Path, *, with_types: bool = True) -> set[str]:
    """Every module that the file imports anywhere, functions included; names that are modules are resolved to them."""
    skipped = set() if with_types else type_checking_blocks(tree_of(path))
    found: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import in line {node.lineno}; write it in full"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in all_modules() else str(node.module))
        elif isinstance(node, ast.Call):
            dynamic = ast.unparse(node.func) in {"importlib.import_module", "__import__", "import_module"}
            if dynamic and node.args and isinstance(node.args[0], ast.Constant):
                found.add(str(node.args[0].value))
    return found


@pytest.mark.parametrize("path", python_files(), ids=name_of)
def test_imports_go_only_downward(path: Path) -> None:
    own = layer_of(name_of(path))
    for module in imports_of(path):
        if module.split(".")[0] != "voicestream":
            continue
        assert layer_of(module) <= own, f"{name_of(path)} (layer {own}) imports {module} (layer {layer_of(module)})"


@pytest.mark.parametrize("path", [p for p in python_files() if layer_of(name_of(p)) <= 3], ids=name_of)
def test_the_lower_layers_are_pure(path: Path) -> None:
    where = path.relative_to(PACKAGE).as_posix()
    for module in imports_of(path):
        top = module.split(".")[0]
        assert top not in PURE_FORBIDDEN, f"{where} imports {module}; layers 0 to 3 take time, entropy and bytes as arguments"
        if top in THIRD_PARTY_IN_CORE:
            assert where.startswith(THIRD_PARTY_IN_CORE[top]), f"{where} imports {module}"
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"open", "print", "input", "exec", "eval"}, f"{where}:{node.lineno} calls {node.func.id}"


def core_part(module: str) -> str:
    parts = module.split(".")
    return parts[2] if len(parts) > 2 else ""


@pytest.mark.parametrize("path", sorted((PACKAGE / "core").rglob("*.py")), ids=name_of)
def test_core_siblings_do_not_know_each_other(path: Path) -> None:
    own = core_part(name_of(path))
    if own in {"", "allocator"}:
        return
    for module in imports_of(path):
        if module.startswith("voicestream.core"):
            assert core_part(module) == own, f"{name_of(path)} imports its sibling {module}"


def test_only_the_quic_package_imports_aioquic_and_only_compat_touches_private_names() -> None:
    for path in python_files():
        where = path.relative_to(PACKAGE).as_posix()
        if any(module.split(".")[0] == "aioquic" for module in imports_of(path)):
            assert where.startswith("quic/"), f"{where} imports aioquic"
        if not where.startswith("quic/") or where in ("quic/compat.py", "quic/compat_packets.py"):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                owner = ast.unparse(node.value)
                assert owner in {"self", "cls"}, f"{where}:{node.lineno} reaches into {owner}.{node.attr}; only compat may"


def test_nothing_but_the_demo_imports_the_testing_package() -> None:
    """The demo shows the emulated link that users test with."""
    for path in python_files():
        where = path.relative_to(PACKAGE).as_posix()
        if where.startswith(("testing/", "cli/demo")):
            continue
        for module in imports_of(path):
            assert not module.startswith("voicestream.testing"), f"{where} imports {module}"


@pytest.mark.parametrize("path", python_files(), ids=name_of)
def test_no_file_and_no_function_is_too_long(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= MAX_FILE_LINES, f"{path.name} has {lines} lines"
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MAX_FUNCTION_LINES, f"{path.name}:{node.lineno} {node.name} has {length} lines"


def test_there_is_no_import_cycle() -> None:
    graph = {name_of(path): imports_of(path, with_types=False) & all_modules() - {name_of(path)} for path in python_files()}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, "import cycle: " + " -> ".join([*trail[trail.index(module) :], module])
        if module not in done:
            for target in sorted(graph.get(module, ())):
                visit(target, (*trail, module))
            done.add(module)

    for module in sorted(graph):
        visit(module, ())


def attributes_of(node: ast.ClassDef) -> set[str]:
    """Attributes that a class gives its objects: in __slots__, as annotations, or by assignment to self."""
    found: set[str] = set()
    for inner in ast.walk(node):
        targets: list[ast.expr] = []
        if isinstance(inner, ast.Assign):
            targets = inner.targets
        elif isinstance(inner, ast.AnnAssign | ast.AugAssign):
            targets = [inner.target]
        for target in targets:
            for leaf in ast.walk(target):
                if isinstance(leaf, ast.Attribute) and isinstance(leaf.ctx, ast.Store) and ast.unparse(leaf.value) == "self":
                    found.add(leaf.attr)
    return found


def test_a_session_has_few_fields() -> None:
    checked = []
    for path in sorted((PACKAGE / "session").rglob("*.py")):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef) and (node.name.endswith("Session") or node.name in {"Sender", "Receiver"}):
                fields = attributes_of(node)
                assert len(fields) <= MAX_SESSION_FIELDS, f"{node.name} has {len(fields)} fields: {sorted(fields)}"
                checked.append(node.name)
    assert {"Session", "ClientSession", "ServerSession"} <= set(checked)


def test_each_test_module_mirrors_a_module() -> None:
    for path in sorted((ROOT / "tests" / "unit").rglob("test_*.py")):
        where = path.relative_to(ROOT / "tests" / "unit")
        stem = path.stem.removeprefix("test_")
        folder = PACKAGE / where.parent
        assert folder.is_dir(), f"{where} mirrors no package folder"
        known = [p.stem for p in folder.iterdir() if p.suffix == ".py" or p.is_dir()]
        mirrored = any(stem == name or stem.startswith(name + "_") for name in known)
        assert mirrored or stem == "vectors", f"{where} mirrors no module"
