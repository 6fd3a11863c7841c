"""A parallel kernel must not write to an array that it took out of a NamedTuple: numba drops such stores."""

from __future__ import annotations

import ast
from pathlib import Path

KERNELS = """
@njit(cache=True, parallel=True)
def lost(tree, depth):
    level = tree.level
    for v in prange(level.size):
        level[v] = depth

@njit(cache=True, parallel=True)
def lost_at_once(tree, depth):
    for v in prange(tree.level.size):
        tree.level[v] |= depth

@njit(cache=True)
def kept(tree, depth):
    level = tree.level
    level[0] = depth

@njit(cache=True, parallel=True)
def also_kept(rows, level):
    begin = rows.begin
    for v in prange(level.size):
        level[v] = begin[v]
"""


def lost_stores(source: str) -> list[str]:
    """ "kernel: array" for each store that numba would drop."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef) or not any(map(_is_parallel, function.decorator_list)):
            continue
        parameters = {argument.arg for argument in function.args.args}
        taken = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                for target, value in zip(_items(node.targets[0]), _items(node.value), strict=False):
                    if isinstance(target, ast.Name) and _is_field(value, parameters):
                        taken.add(target.id)
        for node in ast.walk(function):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                array = node.value
                if (isinstance(array, ast.Name) and array.id in taken) or _is_field(array, parameters):
                    found.append(f"{function.name}: {ast.unparse(array)}")
    return found


def _is_parallel(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and any(keyword.arg == "parallel" for keyword in decorator.keywords)


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _is_field(node: ast.expr, parameters: set[str]) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in parameters


def test_a_lost_store_is_found() -> None:
    assert lost_stores(KERNELS) == ["lost: level", "lost_at_once: tree.level"]


def test_no_kernel_loses_a_store(project_root: Path) -> None:
    files = sorted((project_root / "cpu_engine").rglob("*.py"))
    assert files
    assert {str(file): lost for file in files if (lost := lost_stores(file.read_text()))} == {}
