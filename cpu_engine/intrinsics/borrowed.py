"""Arrays without a count of references, for kernels that call kernels many times.

Numba counts references to an array at every call that it does not inline, by an atomic addition. A borrowed array has
nothing to count; it must not outlive the one that it was borrowed from. Without the JIT nothing changes.
"""

from __future__ import annotations

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload


def borrow(value):
    """The same array, or tuple of arrays and other values (tuples among them), uncounted."""
    return value


def _uncounted(context, builder, kind, value):
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        members = cgutils.unpack_tuple(builder, value, len(kind))
        borrowed = [_uncounted(context, builder, kind[i], member) for i, member in enumerate(members)]  # type: ignore[index]
        return context.make_tuple(builder, kind, borrowed)
    return value


@intrinsic
def _borrow(typingctx, value):
    def codegen(context, builder, signature, args):
        return _uncounted(context, builder, signature.args[0], args[0])

    return value(value), codegen


@overload(borrow)
def _overload_borrow(value):
    return lambda value: _borrow(value)  # type: ignore[call-arg]
