"""Kernels know arrays only: what import-linter cannot say about folders that lie all over the tree."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = [*sorted((ROOT / "cpu_engine").rglob("kernels")), ROOT / "cpu_engine" / "intrinsics"]
FILES = [path for folder in FOLDERS for path in sorted(folder.glob("*.py"))]
OUTSIDE = {"numpy", "numba", "llvmlite"}


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
