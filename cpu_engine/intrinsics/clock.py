"""The clock of ``time.perf_counter``, read inside compiled loops: which thread was busy from when to when."""

from __future__ import annotations

import time

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

_CLOCK = time.CLOCK_MONOTONIC  # what perf_counter reads
_NS = 1_000_000_000


def now_ns():
    """Nanoseconds, as ``time.perf_counter_ns`` gives them."""
    return time.perf_counter_ns()


@intrinsic
def _now(typingctx):
    def codegen(context, builder, signature, args):
        word, number = ir.IntType(64), ir.IntType(32)
        parts = cgutils.alloca_once(builder, word, 2)  # seconds, nanoseconds
        function = ir.FunctionType(number, [number, word.as_pointer()])
        clock = cgutils.get_or_insert_function(builder.module, function, "clock_gettime")
        builder.call(clock, [number(_CLOCK), parts])
        seconds, rest = (builder.load(builder.gep(parts, [number(i)])) for i in range(2))
        return builder.add(builder.mul(seconds, word(_NS)), rest)

    return types.int64(), codegen


@overload(now_ns)
def _overload_now():
    return lambda: _now()  # type: ignore[call-arg]
