"""What import-linter cannot say: kernels, all over the tree, know arrays only; no module imports itself by a detour."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = [*sorted((ROOT / "cpu_engine").rglob("kernels")), ROOT / "cpu_engine" / "intrinsics"]
FILES = [path for folder in FOLDERS for path in sorted(folder.glob("*.py"))]
OUTSIDE = {"numpy", "numba", "llvmlite"}
PACKAGES = ("hybrid", "cpu_engine", "npu_engine", "exchange")


def imported(path: Path) -> set[str]:
    """Every module that the file imports, but those of the standard library that serve its own text."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_kernel_imports_arrays_and_kernels(path: Path) -> None:
    for name in imported(path):
        first = name.split(".")[0]
        if first == "cpu_engine":
            assert ".kernels" in name or name.startswith("cpu_engine.intrinsics"), name
        else:
            assert first in OUTSIDE or first in sys.stdlib_module_names, name


def test_there_are_kernels_to_look_at() -> None:
    assert len(FILES) > 80


def run_time_imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, name) of every import below a node, those inside functions too, but none for the type checker alone."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.ImportFrom):
        yield from ((node.module or "", alias.name) for alias in node.names)
    elif isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    for child in ast.iter_child_nodes(node):
        yield from run_time_imports(child)


def imports_between(sources: dict[str, str]) -> dict[str, set[str]]:
    """Which of these modules import which others of them; ``sources`` are their texts by name."""
    found: dict[str, set[str]] = {}
    for module, text in sources.items():
        named = {(home, f"{home}.{name}") for home, name in run_time_imports(ast.parse(text))}
        found[module] = {inner if inner in sources else home for home, inner in named} & set(sources)
    return found


def cycle_among(sources: dict[str, str]) -> list[str]:
    try:
        TopologicalSorter(imports_between(sources)).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_by_a_detour() -> None:
    sources = {}
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        sources[name] = path.read_text(encoding="utf-8")
    assert len(sources) > 400
    assert sum(map(len, imports_between(sources).values())) > 1500
    assert not cycle_among(sources)


def test_a_detour_through_a_function_is_found() -> None:
    loop = {"a": "def f():\n    from b import x\n", "b": "import c\n", "c": "if TYPE_CHECKING:\n    import a\n"}
    assert not cycle_among(loop)
    assert cycle_among({**loop, "c": "class C:\n    from a import f\n"})
