"""Ask the processor for a piece of memory before it is needed: rows of vertices whose turn comes soon lie anywhere.

Without the JIT (NUMBA_DISABLE_JIT=1) it does nothing, which is all that it does to results anyway.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

_READ, _KEEP, _DATA = 0, 3, 1  # of llvm.prefetch


def prefetch(array, index):
    """Begin to load ``array[index]``, which may also lie beyond the array."""


@intrinsic
def _prefetch(typingctx, array, index):
    def codegen(context, builder, signature, args):
        held = context.make_array(signature.args[0])(context, builder, args[0])
        element = cgutils.get_item_pointer(context, builder, signature.args[0], held, [args[1]], wraparound=False)
        pointer = builder.bitcast(element, ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(function, [pointer, word(_READ), word(_KEEP), word(_DATA)])
        return context.get_dummy_value()

    return types.none(array, types.intp), codegen


@overload(prefetch)
def _overload_prefetch(array, index):
    return lambda array, index: _prefetch(array, index)  # type: ignore[call-arg]
