"""One thread's share of a loop, compiled around the user's operator, and launched by a kernel that never changes.

A driver that takes the operator as an argument would be compiled again in every process: numba keys its disk cache by
the type of a function, which is new each time. So the share is a module of its own, generated, in which the operator
is a global; its file is named by the fingerprint of all that went into it (fingerprint.py), and numba's cache lies
beside it. Arrays reach it as addresses and sizes in one array of words. Hence whatever the operator, what launches the
threads is one kernel with one signature, compiled once for all; and in the next process nothing is compiled
(docs/how-to/loops.md has the times).

Invariant: no exception leaves a share (a thread that is not Python's cannot raise): it becomes a status.
"""

from __future__ import annotations

import os
import sys
import time
import types as python_types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import carray, cfunc, njit, prange, types
from numba.core import config as numba_config
from numba.core.errors import NumbaError
from numba.extending import intrinsic

from cpu_engine.intrinsics.clock import now_ns
from cpu_engine.schedule.errors import OperatorError, explain
from cpu_engine.schedule.fingerprint import fingerprint, plain_function

_FOLDER = "operators"
_RAISED = 1
_STATUS, _BEGAN, _ENDED = 0, 1, 2  # what is recorded of a thread, on a cache line of its own
_LINE = 8


@intrinsic
def _pointer(typingctx, address):
    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), codegen


@intrinsic
def _call(typingctx, address, thread, words):
    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        function = builder.inttoptr(args[0], ir.FunctionType(word, [word, word]).as_pointer())
        return builder.call(function, [args[1], args[2]])

    return types.int64(types.int64, types.int64, types.int64), codegen


@njit(cache=True, parallel=True)
def launch_shares_step(entry, words, record):
    """Call ``entry(thread, words)``, both addresses, for each thread.

    Invariant  record[t] = (0, or that the operator raised; when its share began; when it ended).
    Races      the operator's own.   Work  the shares'.
    """
    for thread in prange(record.shape[0]):
        record[thread, _BEGAN] = now_ns()
        record[thread, _STATUS] = _call(entry, thread, words)  # type: ignore[call-arg]
        record[thread, _ENDED] = now_ns()


def without_compiler() -> bool:
    """Whether operators run as plain Python (NUMBA_DISABLE_JIT=1)."""
    return bool(getattr(numba_config, "DISABLE_JIT", False))


class Kernel:
    """A share: ``text`` defines ``share(thread, *parameters)`` and uses ``names``; see the module.

    ``like``: an array or a scalar for each parameter, whose types it is compiled for. ``on_raise``: a statement about
    parameters that a thread whose operator raised leaves to the others, where they would wait for it.
    """

    def __init__(
        self,
        text: str,
        names: Mapping[str, Any],
        like: Mapping[str, Any],
        operators: Mapping[str, Sequence[Any]],
        returns: Mapping[str, Any] | None = None,
        on_raise: str = "",
    ) -> None:
        self._returns = returns or {}  # by name: the field that an operator's value goes to, to explain errors with
        self.operators = operators  # by name in ``names``: an example of each argument, to explain errors with
        self._kinds = {name: _kind(name, value) for name, value in like.items()}
        self._slots, self.words = _layout(self._kinds)
        module = _module(text + _entry_text(self._kinds, self._slots, self.words, on_raise), names, operators)
        self.share = module.share
        self._module = module
        if not without_compiler():
            self._load()

    def _load(self) -> None:
        module: Any = self._module
        if not hasattr(module, "COMPILED"):
            try:
                module.COMPILED = _load_entry(module)
            except NumbaError as error:
                known = {name: (module.__dict__[name], like) for name, like in self.operators.items()}
                raise explain(error, known, self._returns) from None
        self._address, self._direct = module.COMPILED.address, module.COMPILED.ctypes

    def bind(self, **arguments: Any) -> Bound:
        """The kernel with its arguments, ready to run."""
        return Bound(self, arguments)


class Bound:
    """A kernel and its arguments; scalars may be set anew between two runs. Arrays are kept alive."""

    def __init__(self, kernel: Kernel, arguments: Mapping[str, Any]) -> None:
        self._kernel = kernel
        self._words = np.zeros(kernel.words, np.int64)
        self._at = self._words.ctypes.data
        self._arguments: dict[str, Any] = {}
        for name in kernel._kinds:
            self.set(name, arguments[name])

    @property
    def names(self) -> Mapping[str, Any]:
        """The arguments, by name."""
        return self._arguments

    def set(self, name: str, value: Any) -> None:
        """Replace an argument."""
        dtype, dimensions = self._kernel._kinds[name]
        slot = self._kernel._slots[name]
        if dimensions:
            array = _checked(name, value, dtype, dimensions)
            self._words[slot] = array.ctypes.data
            self._words[slot + 1 : slot + 1 + dimensions] = array.shape
            self._arguments[name] = array
        else:
            self._words[slot : slot + 1].view(dtype)[0] = value
            self._arguments[name] = dtype.type(value)

    def run(self, threads: int) -> np.ndarray:
        """Run the shares of this many threads, side by side as far as there are so many.

        Returns when each began and ended, float64[threads, 2] in seconds of ``time.perf_counter``.
        """
        record = np.zeros((threads, _LINE), np.int64)
        if without_compiler() or threads == 1:
            for thread in range(threads):
                record[thread, _BEGAN] = time.perf_counter_ns()
                self.run_one(thread)
                record[thread, _ENDED] = time.perf_counter_ns()
        else:
            launch_shares_step(self._kernel._address, self._at, record)
            if record[:, _STATUS].any():
                self._raise()
        return record[:, [_BEGAN, _ENDED]] / 1e9

    def run_one(self, thread: int) -> None:
        """Run one thread's share here and now."""
        if without_compiler():
            self._kernel.share(thread, *self._arguments.values())
        elif self._kernel._direct(thread, self._at):
            self._raise()

    def _raise(self) -> None:
        names = [plain_function(self._kernel._module.__dict__[name]).__name__ for name in self._kernel.operators]
        raise OperatorError(
            f"operator {' or '.join(names)} raised an exception in the loop",
            fix="run once with NUMBA_DISABLE_JIT=1, which shows the exception and its line",
        )


def cache_folder() -> Path:
    """Where generated modules and their machine code are kept."""
    chosen = os.environ.get("TANDEM_CACHE")
    return (Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "tandem") / _FOLDER


def _load_entry(module: Any) -> Any:
    """The entry's machine code, from the cache if it is there and can be used."""
    signature = types.int64(types.int64, types.int64)
    try:
        return cfunc(signature, cache=module.CACHED)(module.entry)
    except NumbaError:
        raise
    except Exception:  # of the cache: a module that a helper came from is not there now, a file is damaged
        if not module.CACHED:
            raise
        return cfunc(signature)(module.entry)


def _rehomed(operator: Any, module: str) -> Any:
    """The operator as a function of the generated module, compiled; a plain one with the arithmetic of NumPy.

    Machine code names the module of each function in it, and wants to import that when it is loaded: a user's script
    must not be run for it, and may not even be importable.
    """
    if without_compiler():
        return operator
    function = plain_function(operator)
    copy = python_types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__module__, copy.__qualname__ = module, function.__qualname__
    options = getattr(operator, "targetoptions", {"nopython": True, "error_model": "numpy"})
    return numba.jit(**options)(copy)


def _kind(name: str, value: Any) -> tuple[np.dtype, int]:
    dtype, dimensions = (value.dtype, value.ndim) if isinstance(value, np.ndarray) else (np.asarray(value).dtype, 0)
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise OperatorError(
            f"argument {name!r} has the type {dtype}, which loops do not take",
            fix="pass integers, floats or booleans of at most 64 bits, and C-contiguous arrays of them",
        )
    return dtype, dimensions


def _checked(name: str, value: Any, dtype: np.dtype, dimensions: int) -> np.ndarray:
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != dimensions:
        raise OperatorError(f"argument {name!r} must be an array of {dtype} with {dimensions} dimensions")
    if not value.flags.c_contiguous:
        raise OperatorError(f"argument {name!r} is an array with gaps", fix=f"pass numpy.ascontiguousarray({name})")
    return value


def _layout(kinds: Mapping[str, tuple[np.dtype, int]]) -> tuple[dict[str, int], int]:
    slots, words = {}, 0
    for name, (_, dimensions) in kinds.items():
        slots[name] = words
        words += 1 + dimensions
    return slots, max(words, 1)


def _entry_text(kinds: Mapping[str, tuple[np.dtype, int]], slots: Mapping[str, int], size: int, on_raise: str) -> str:
    lines = ["", "", "def entry(thread, words_at):", f"    words = carray(_pointer(words_at), ({size},), np.int64)"]
    for name, (dtype, dimensions) in kinds.items():
        slot = slots[name]
        type_name = f"np.{'bool_' if dtype.kind == 'b' else dtype.name}"
        if dimensions:
            shape = "".join(f"words[{slot + 1 + i}], " for i in range(dimensions))
            lines.append(f"    {name} = carray(_pointer(words[{slot}]), ({shape}), {type_name})")
        else:
            lines.append(f"    {name} = carray(_pointer(words_at + {8 * slot}), (1,), {type_name})[0]")
    call = f"share(thread, {', '.join(kinds)})" if kinds else "share(thread)"
    lines += ["    try:", f"        {call}", "    except Exception:"]
    lines += [f"        {line}" for line in (on_raise, f"return {_RAISED}") if line] + ["    return 0", ""]
    return "\n".join(lines)


def _module(text: str, names: Mapping[str, Any], operators: Mapping[str, Any]) -> python_types.ModuleType:
    """The generated module, registered: numba looks its functions' globals up by the module's name."""
    shown = sorted(names.items())
    key = fingerprint(text, Path(__file__).stat().st_mtime_ns, [[name, one] for name, one in shown])
    cached = key is not None
    name = f"tandem_operator_{key}" if cached else f"tandem_operator_uncached_{id(names)}_{len(sys.modules)}"
    if cached and name in sys.modules:
        return sys.modules[name]
    path = cache_folder() / f"{name}.py"
    cached = cached and not without_compiler() and _write(path, text)
    module = python_types.ModuleType(name)
    module.__file__ = str(path)
    module.__dict__.update(
        names, np=np, njit=njit, carray=carray, _pointer=_pointer, CACHED=cached, ANY_ORDER=ANY_ORDER
    )
    sys.modules[name] = module
    module.__dict__.update({one: _rehomed(names[one], name) for one in operators})
    exec(compile(text, str(path), "exec"), module.__dict__)  # noqa: S102 - the text is generated here, from names of our own operators
    return module


def _write(path: Path, text: str) -> bool:
    """Put the module where numba keeps machine code beside it; whether that went well."""
    if path.exists():
        return True
    partial = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text)
        partial.replace(path)
    except OSError:
        return False
    return True


# Sums of floats may be taken in any order, which makes vectors of them; infinities and NaN keep their meaning.
ANY_ORDER = {"reassoc", "nsz", "contract"}


def real_threads() -> int:
    """How many threads run side by side."""
    return 1 if without_compiler() else int(numba.get_num_threads())
