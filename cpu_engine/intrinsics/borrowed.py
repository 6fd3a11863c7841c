"""Arrays without a count of references, for kernels that call kernels many times.

Numba counts references to an array at every call that it does not inline, by an atomic addition. A borrowed array has
nothing to count; it must not outlive the one that it was borrowed from. Without the JIT nothing changes.
"""

from __future__ import annotations

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload


def borrow(array):
    """The same array, uncounted; None stays None."""
    return array


@intrinsic
def _borrow(typingctx, array):
    def codegen(context, builder, signature, args):
        borrowed = context.make_array(signature.args[0])(context, builder, args[0])
        borrowed.meminfo = cgutils.get_null_value(borrowed.meminfo.type)
        borrowed.parent = cgutils.get_null_value(borrowed.parent.type)
        return borrowed._getvalue()

    return array(array), codegen


@overload(borrow)
def _overload_borrow(array):
    if isinstance(array, types.Array):
        return lambda array: _borrow(array)  # type: ignore[call-arg]
    return lambda array: array
