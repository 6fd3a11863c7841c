"""The atomic updates that operators use on arrays they share, beside those of the kernels (intrinsics/atomics.py).

Each is sequentially consistent. ``atomic_lower`` and ``atomic_raise`` take integers and
floats, and look before they lock: most updates of a graph algorithm change nothing. Without the JIT (one thread) the
plain Python bodies are used.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from cpu_engine.intrinsics.atomics import element_pointer


def atomic_lower(array, index, value):
    """Lower ``array[index]`` to ``value`` if that is smaller; return whether this call did."""
    if not value < array[index]:
        return False
    array[index] = value
    return True


def atomic_raise(array, index, value):
    """Raise ``array[index]`` to ``value`` if that is larger; return whether this call did."""
    if not value > array[index]:
        return False
    array[index] = value
    return True


def atomic_unite(array, index, value):
    """Set the bits of ``value`` in ``array[index]``; return whether one of them was new."""
    old = array[index]
    if old | value == old:
        return False
    array[index] = old | value
    return True


def atomic_increase(array, index, value):
    """Add ``value``, integer or float, to ``array[index]``."""
    array[index] += value


def _extreme(sign):
    """An intrinsic that lowers or raises: integers by one instruction, floats by compare-and-swap on their bits."""

    @intrinsic
    def update(typingctx, array, index, value):
        number = array.dtype

        def by_instruction(context, builder, signature, args):
            pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
            name = {"<": "min", ">": "max"}[sign]
            old = builder.atomic_rmw(name if number.signed else "u" + name, pointer, args[2], "seq_cst")
            compare = builder.icmp_signed if number.signed else builder.icmp_unsigned
            return compare(sign, args[2], old)

        def by_swapping(context, builder, signature, args):
            bits = ir.IntType(number.bitwidth)
            pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
            word = builder.bitcast(pointer, bits.as_pointer())
            done = cgutils.alloca_once_value(builder, cgutils.false_bit)
            again, swap, end = (builder.append_basic_block(name) for name in ("again", "swap", "end"))
            builder.branch(again)
            builder.position_at_end(again)
            old = builder.load_atomic(word, "seq_cst", number.bitwidth // 8)
            better = builder.fcmp_ordered(sign, args[2], builder.bitcast(old, args[2].type))
            builder.cbranch(better, swap, end)
            builder.position_at_end(swap)
            outcome = builder.cmpxchg(word, old, builder.bitcast(args[2], bits), "seq_cst", "seq_cst")
            builder.store(builder.extract_value(outcome, 1), done)
            builder.cbranch(builder.extract_value(outcome, 1), end, again)
            builder.position_at_end(end)
            return builder.load(done)

        codegen = by_swapping if isinstance(number, types.Float) else by_instruction
        return types.boolean(array, types.intp, number), codegen

    return update


_lower, _raise = _extreme("<"), _extreme(">")


@intrinsic
def _rmw_or(typingctx, array, index, value):
    def codegen(context, builder, signature, args):
        pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.atomic_rmw("or", pointer, args[2], "seq_cst")

    return array.dtype(array, types.intp, array.dtype), codegen


@intrinsic
def _rmw_sum(typingctx, array, index, value):
    def codegen(context, builder, signature, args):
        pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.atomic_rmw(
            "fadd" if isinstance(array.dtype, types.Float) else "add", pointer, args[2], "seq_cst"
        )

    return array.dtype(array, types.intp, array.dtype), codegen


@overload(atomic_lower)
def _overload_lower(array, index, value):
    def lower(array, index, value):
        number = array.dtype.type(value)
        return number < array[index] and _lower(array, index, number)

    return lower


@overload(atomic_raise)
def _overload_raise(array, index, value):
    def rise(array, index, value):
        number = array.dtype.type(value)
        return number > array[index] and _raise(array, index, number)

    return rise


@overload(atomic_unite)
def _overload_unite(array, index, value):
    def unite(array, index, value):
        bits = array.dtype.type(value)
        if array[index] | bits == array[index]:
            return False
        old = _rmw_or(array, index, bits)  # type: ignore[call-arg,var-annotated]
        return old | bits != old

    return unite


@overload(atomic_increase)
def _overload_increase(array, index, value):
    def increase(array, index, value):
        _rmw_sum(array, index, array.dtype.type(value))  # type: ignore[call-arg]

    return increase
