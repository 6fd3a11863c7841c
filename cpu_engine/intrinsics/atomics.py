"""Atomic read-modify-write on array elements, for kernels whose threads meet in one array.

Numba has no CPU atomics of its own; these are LLVM's. Each returns the old value. Ordering is sequentially consistent:
``active[u] = 0; read level[u]`` in one thread against ``level[u] = d; test active[u]`` in another loses an update under
anything weaker. Without the JIT (NUMBA_DISABLE_JIT=1, one thread) the plain Python bodies are used.
"""

from __future__ import annotations

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

_ORDERING = "seq_cst"


def atomic_min(array, index, value):
    """Lower ``array[index]`` to ``value`` if that is smaller; return what was there."""
    old = array[index]
    if value < old:
        array[index] = value
    return old


def atomic_exchange(array, index, value):
    """Set ``array[index]`` to ``value``; return what was there."""
    old = array[index]
    array[index] = value
    return old


def atomic_claim(array, index, expected, value):
    """Set ``array[index]`` to ``value`` if it is ``expected``; return whether this call did it."""
    if array[index] != expected:
        return False
    array[index] = value
    return True


def atomic_add(array, index, value):
    """Add ``value`` to ``array[index]``; return what was there."""
    old = array[index]
    array[index] += value
    return old


def element_pointer(context, builder, array_type, array_value, index):
    array = context.make_array(array_type)(context, builder, array_value)
    return cgutils.get_item_pointer(context, builder, array_type, array, [index], wraparound=False)


def _read_modify_write(name, unsigned=None):
    """The intrinsic of one of LLVM's operations, which may have another name for elements without a sign."""

    @intrinsic
    def change(typingctx, array, index, value):
        def codegen(context, builder, signature, args):
            pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
            operation = name if unsigned is None or signature.args[0].dtype.signed else unsigned
            return builder.atomic_rmw(operation, pointer, args[2], _ORDERING)

        return array.dtype(array, types.intp, array.dtype), codegen

    return change


_rmw_min = _read_modify_write("min", "umin")
_rmw_exchange = _read_modify_write("xchg")
_rmw_add = _read_modify_write("add")


@intrinsic
def _compare_and_swap(typingctx, array, index, expected, value):
    def codegen(context, builder, signature, args):
        pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
        outcome = builder.cmpxchg(pointer, args[2], args[3], _ORDERING, _ORDERING)
        return builder.extract_value(outcome, 1)

    return types.boolean(array, types.intp, array.dtype, array.dtype), codegen


@overload(atomic_min)
def _overload_min(array, index, value):
    return lambda array, index, value: _rmw_min(array, index, value)


@overload(atomic_exchange)
def _overload_exchange(array, index, value):
    return lambda array, index, value: _rmw_exchange(array, index, value)


@overload(atomic_claim)
def _overload_claim(array, index, expected, value):
    return lambda array, index, expected, value: _compare_and_swap(array, index, expected, value)  # type: ignore[call-arg]


@overload(atomic_add)
def _overload_add(array, index, value):
    return lambda array, index, value: _rmw_add(array, index, value)
