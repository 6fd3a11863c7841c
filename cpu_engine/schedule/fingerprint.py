"""What a user's operator is, as a name for files: its code, its constants, and all that it refers to.

Invariant: operators with equal fingerprints compile to the same machine code. An operator that refers to something of
which that cannot be said (an object of a class we do not know) has no fingerprint, and is compiled anew in every
process.
"""

from __future__ import annotations

import dis
import hashlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np

_OURS = Path(__file__).resolve().parent.parent
_BUILT_ON = (np.__name__, numba.__name__, math.__name__, "builtins")


class _Unknown(Exception):
    """Something whose content cannot be read."""


def fingerprint(*things: Any) -> str | None:
    """One name for all of these, the same in every process; None if something in them cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    seen: set[int] = set()
    try:
        for thing in (sys.version, numba.__version__, np.__version__, *things):
            _tell(thing, digest.update, seen)
    except _Unknown:
        return None
    return digest.hexdigest()


def plain_function(operator: Any) -> Callable[..., Any]:
    """The Python function of an operator or an intrinsic, compiled or not."""
    return getattr(operator, "py_func", getattr(operator, "_defn", operator))


def _tell(thing: Any, say: Callable[[bytes], object], seen: set[int]) -> None:
    say(type(thing).__name__.encode())
    function = plain_function(thing)
    if isinstance(function, FunctionType):
        _tell_function(function, say, seen)
        say(repr(sorted(getattr(thing, "targetoptions", {}).items(), key=str)).encode())
    elif isinstance(thing, CodeType):
        _tell_code(thing, say, seen)
    elif isinstance(thing, (str, bytes, int, float, complex, bool, type(None), np.generic, np.dtype)):
        say(repr(thing).encode())
    elif isinstance(thing, (tuple, list)):
        say(str(len(thing)).encode())
        for one in thing:
            _tell(one, say, seen)
    elif isinstance(thing, np.ndarray):
        say(repr((thing.dtype, thing.shape)).encode())
        say(np.ascontiguousarray(thing).tobytes())
    elif isinstance(thing, ModuleType):
        say(thing.__name__.encode())
        if thing.__name__.partition(".")[0] not in (*_BUILT_ON, *sys.builtin_module_names):
            say(_stamp(getattr(thing, "__file__", None)))
    elif isinstance(thing, type) or getattr(thing, "__module__", "").partition(".")[0] in _BUILT_ON:
        say(f"{thing.__module__}.{getattr(thing, '__qualname__', repr(thing))}".encode())
    else:
        raise _Unknown


def _tell_function(function: FunctionType, say: Callable[[bytes], object], seen: set[int]) -> None:
    if id(function) in seen:
        return
    seen.add(id(function))
    path = Path(function.__code__.co_filename)
    if _OURS in path.parents:  # what stands behind it (an intrinsic) is not in its code
        say(_stamp(str(path)))
    elif (function.__module__ or "").partition(".")[0] in _BUILT_ON:
        say(f"{function.__module__}.{function.__qualname__}".encode())
        return
    _tell_code(function.__code__, say, seen)
    _tell(function.__defaults__, say, seen)
    for cell in function.__closure__ or ():
        _tell(cell.cell_contents, say, seen)
    for name in sorted(_global_names(function.__code__)):
        if name in function.__globals__:
            say(name.encode())
            _tell(function.__globals__[name], say, seen)


def _tell_code(code: CodeType, say: Callable[[bytes], object], seen: set[int]) -> None:
    say(code.co_code)
    say(repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount)).encode())
    for constant in code.co_consts:
        if not isinstance(constant, str):  # docstrings do not compile to anything
            _tell(tuple(sorted(constant, key=repr)) if isinstance(constant, frozenset) else constant, say, seen)


def _global_names(code: CodeType) -> set[str]:
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names


def _stamp(path: str | None) -> bytes:
    if path is None:
        raise _Unknown
    try:
        status = Path(path).stat()
    except OSError:
        raise _Unknown from None
    return repr((path, status.st_mtime_ns, status.st_size)).encode()
