"""Sixty-four comparisons as one word, and the bits of a word: what a bitset is made of and read by.

LLVM makes a few vector instructions of each; it does not find them in the loops that the plain Python bodies show,
which are used without the JIT (NUMBA_DISABLE_JIT=1).
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

WORD = 64


def word_of_smaller(left, left_at, right, right_at):
    """Bit j: ``left[left_at + j] < right[right_at + j]``, for 64 j; both are unsigned, and of one type."""
    word = 0
    for j in range(WORD):
        word |= int(left[left_at + j] < right[right_at + j]) << j
    return np.uint64(word)


def note_smaller(left, left_at, right, right_at, lowest, highest):
    """Lower 64 elements of ``right`` to those of ``left``, all uint32.

    Where that changes one, ``lowest[j]`` and ``highest[j]`` (64 elements each) take the new value into account.
    """
    for j in range(WORD):
        if left[left_at + j] < right[right_at + j]:
            right[right_at + j] = left[left_at + j]
            lowest[j] = min(lowest[j], left[left_at + j])
            highest[j] = max(highest[j], left[left_at + j])


def word_of_flags(flags, at):
    """Bit j: ``flags[at + j] != 0``, for 64 j."""
    word = 0
    for j in range(WORD):
        word |= int(flags[at + j] != 0) << j
    return np.uint64(word)


def lowest_bit(word):
    """The number of the lowest bit that is set; there must be one."""
    return (int(word) & -int(word)).bit_length() - 1


def count_bits(word):
    """How many bits are set."""
    return int(word).bit_count()


def _vector_pointer(context, builder, array_type, value, index):
    """Where 64 elements from ``index`` on lie, as a pointer to a vector."""
    array = context.make_array(array_type)(context, builder, value)
    pointer = cgutils.get_item_pointer(context, builder, array_type, array, [index], wraparound=False)
    return builder.bitcast(pointer, ir.VectorType(pointer.type.pointee, WORD).as_pointer())


def _load(context, builder, array_type, value, index):
    pointer = _vector_pointer(context, builder, array_type, value, index)
    return builder.load(pointer, align=array_type.dtype.bitwidth // 8)


@intrinsic
def _word_of_smaller(typingctx, left, left_at, right, right_at):
    def codegen(context, builder, signature, args):
        ours = _load(context, builder, signature.args[0], args[0], args[1])
        theirs = _load(context, builder, signature.args[2], args[2], args[3])
        return builder.bitcast(builder.icmp_unsigned("<", ours, theirs), ir.IntType(WORD))

    return types.uint64(left, types.intp, right, types.intp), codegen


@intrinsic
def _note_smaller(typingctx, left, left_at, right, right_at, lowest, highest):
    def codegen(context, builder, signature, args):
        zero = context.get_constant(types.intp, 0)
        ours = _load(context, builder, signature.args[0], args[0], args[1])
        place, low_place, high_place = (
            _vector_pointer(context, builder, signature.args[i], args[i], at)
            for i, at in ((2, args[3]), (4, zero), (5, zero))
        )
        theirs, low, high = (builder.load(pointer, align=4) for pointer in (place, low_place, high_place))
        smaller = builder.icmp_unsigned("<", ours, theirs)
        builder.store(builder.select(smaller, ours, theirs), place, align=4)
        lower = builder.and_(smaller, builder.icmp_unsigned("<", ours, low))
        builder.store(builder.select(lower, ours, low), low_place, align=4)
        higher = builder.and_(smaller, builder.icmp_unsigned(">", ours, high))
        builder.store(builder.select(higher, ours, high), high_place, align=4)
        return context.get_dummy_value()

    return types.void(left, types.intp, right, types.intp, lowest, highest), codegen


@intrinsic
def _word_of_flags(typingctx, flags, at):
    def codegen(context, builder, signature, args):
        these = _load(context, builder, signature.args[0], args[0], args[1])
        none = ir.Constant(these.type, [0] * WORD)
        return builder.bitcast(builder.icmp_unsigned("!=", these, none), ir.IntType(WORD))

    return types.uint64(flags, types.intp), codegen


@intrinsic
def _lowest_bit(typingctx, word):
    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@intrinsic
def _count_bits(typingctx, word):
    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@overload(word_of_smaller)
def _overload_smaller(left, left_at, right, right_at):
    return lambda left, left_at, right, right_at: _word_of_smaller(left, left_at, right, right_at)  # type: ignore[call-arg]


@overload(note_smaller)
def _overload_note(left, left_at, right, right_at, lowest, highest):
    return lambda left, left_at, right, right_at, lowest, highest: _note_smaller(  # type: ignore[call-arg]
        left, left_at, right, right_at, lowest, highest
    )


@overload(word_of_flags)
def _overload_flags(flags, at):
    return lambda flags, at: _word_of_flags(flags, at)  # type: ignore[call-arg]


@overload(lowest_bit)
def _overload_lowest(word):
    return lambda word: _lowest_bit(word)  # type: ignore[call-arg]


@overload(count_bits)
def _overload_count(word):
    return lambda word: _count_bits(word)  # type: ignore[call-arg]
