"""The numeric constants of cpu_engine, and every place that keeps or reads the value of one, found in the sources."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "cpu_engine"
READERS = (PACKAGE, "hybrid")  # packages that may hold a copy of a constant


@dataclass
class Constant:
    """A numeric constant and who keeps or reads its value."""

    value: Any
    holders: list[tuple[str, str]]  # module and name
    defaults: list[tuple[str, str, str]] = field(default_factory=list)  # module, function, parameter
    compiled: list[str] = field(default_factory=list)  # functions that numba compiles
    computed: list[str] = field(default_factory=list)  # places that read it once, when a module is loaded


@dataclass
class _Module:
    name: str
    tree: ast.Module
    names: dict[str, str] = field(default_factory=dict)  # constants by the name that the module calls them
    modules: dict[str, str] = field(default_factory=dict)  # imported modules of the package by local name


@cache
def survey() -> dict[str, Constant]:
    """All numeric constants of the package at module level, from the sources alone."""
    modules = {}
    for path in sorted(path for package in READERS for path in (ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = _Module(name, ast.parse(path.read_text(encoding="utf-8")))
    found: dict[str, Constant] = {}
    for module in modules.values():
        if module.name.startswith(PACKAGE):
            _find_constants(module, modules, found)
    for module in modules.values():
        _find_imports(module, modules, found)
    for module in modules.values():
        _find_uses(module, module.tree, (), found)
    return found


def _short(module: str, name: str) -> str:
    return f"{module.removeprefix(PACKAGE + '.')}.{name}"


def _is_constant_name(name: str) -> bool:
    return name.strip("_").isupper()


def _find_constants(module: _Module, modules: dict[str, _Module], found: dict[str, Constant]) -> None:
    for name, value in _values_of(module, modules).items():
        if _is_constant_name(name) and _is_numeric(value):
            found[_short(module.name, name)] = Constant(value, [(module.name, name)])
            module.names[name] = _short(module.name, name)


def _values_of(module: _Module, modules: dict[str, _Module]) -> dict[str, Any]:
    """Values of the assignments at module level that are made of numbers alone, names of others among them."""
    known: dict[str, Any] = {"np": np, "float": float, "range": range, "ord": ord, "object": object}
    values: dict[str, Any] = {}
    for node in module.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in modules and node.module.startswith(PACKAGE):
            wanted = {alias.name: alias.asname or alias.name for alias in node.names if _is_constant_name(alias.name)}
            if wanted:
                theirs = _values_of(modules[node.module], modules)
                known.update({wanted[name]: theirs[name] for name in wanted.keys() & theirs.keys()})
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        expression = getattr(node, "value", None)
        if target is None or expression is None:
            continue
        code = compile(ast.Expression(expression), module.name, "eval")
        try:
            value = eval(code, {"__builtins__": {}} | known | values)
        except Exception:  # it needs more than numbers
            continue
        if isinstance(target, ast.Tuple):
            values.update(
                {one.id: part for one, part in zip(target.elts, value, strict=True) if isinstance(one, ast.Name)}
            )
        elif isinstance(target, ast.Name):
            values[target.id] = value
    return values


def _is_numeric(value: Any) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(map(_is_numeric, value))
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _find_imports(module: _Module, modules: dict[str, _Module], found: dict[str, Constant]) -> None:
    """Copies made when the module is loaded; an import inside a function takes the value of the moment."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                name, local = _short(node.module, alias.name), alias.asname or alias.name
                if f"{node.module}.{alias.name}" in modules:
                    module.modules[local] = f"{node.module}.{alias.name}"
                elif name in found and node.module.startswith(PACKAGE):
                    module.names[local] = name
                    if node in module.tree.body:
                        found[name].holders.append((module.name, local))


def _find_uses(module: _Module, node: ast.AST, within: tuple[ast.AST, ...], found: dict[str, Constant]) -> None:
    for child in ast.iter_child_nodes(node):
        name = _constant_of(module, child)
        if name in found and isinstance(getattr(child, "ctx", None), ast.Load):
            _note_use(module, child, within, found[name])
        inner = (*within, child) if isinstance(child, (ast.FunctionDef, ast.ClassDef, ast.Lambda)) else within
        _find_uses(module, child, inner, found)


def _constant_of(module: _Module, node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return module.names.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and _is_constant_name(node.attr):
        return _short(module.modules.get(node.value.id, ""), node.attr)
    return None


def _note_use(module: _Module, node: ast.AST, within: tuple[ast.AST, ...], constant: Constant) -> None:
    functions = [one for one in within if isinstance(one, (ast.FunctionDef, ast.Lambda))]
    path = ".".join(one.name for one in within if isinstance(one, (ast.FunctionDef, ast.ClassDef)))
    if not functions:
        constant.computed.append(f"{module.name}: {path or 'the module'}")
        return
    innermost = functions[-1]
    parameter = _defaulted(innermost, node)
    if any(isinstance(one, ast.FunctionDef) and _is_compiled(one) for one in functions):
        constant.compiled.append(f"{module.name}.{path}")
    elif parameter is not None and len(functions) == 1 and isinstance(innermost, ast.FunctionDef):
        constant.defaults.append((module.name, path, parameter))


def _defaulted(function: ast.FunctionDef | ast.Lambda, node: ast.AST) -> str | None:
    """The parameter whose default this is."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    pairs = [
        *zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    return next((parameter.arg for parameter, default in pairs if default is node), None)


def _is_compiled(function: ast.FunctionDef) -> bool:
    decorators = " ".join(ast.unparse(one) for one in function.decorator_list)
    return any(word in decorators for word in ("jit", "intrinsic", "overload"))
