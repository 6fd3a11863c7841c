"""What the kernels of shortest paths do with a distance, whatever its type: lower it, and find its bucket.

Distances are int32, int64 or float64, never negative; the largest value of the type (infinity) is "not reached". An
edge is a *word*: the target in the lower ``bits`` and, where there is room, the weight above; else the weight lies in
an array of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

from cpu_engine.intrinsics.atomics import atomic_min, element_pointer

FURTHEST = 1 << 40  # no bucket's number is larger


class Rows(NamedTuple):
    """Rows of weighted edges, lightest first, as cpu_engine/sssp/rows.py makes them."""

    offsets: np.ndarray
    words: np.ndarray
    weights: np.ndarray | None  # None: they are in the words
    bits: Any  # of the target in a word


class Scale(NamedTuple):
    """How distances map to buckets, and how far a stage goes."""

    base: Any  # the distance at which bucket 0 begins
    width: Any  # of a bucket, as bucket_of takes it
    bound: Any  # a vertex waits in a bin only if it is nearer than this


def lower_value(array, index, value):
    """Lower ``array[index]`` to ``value`` if that is smaller, atomically; return what was there."""
    return atomic_min(array, index, value)


def bucket_of(value, base, width):
    """The number of the bucket that ``value`` belongs to; never falls as the value grows, and is never negative.

    ``width`` is the exponent of a power of two where values are integers, and one over the width where not.
    """
    if isinstance(value, float):
        return max(0, int(min((value - base) * width, FURTHEST))) if value < np.inf else FURTHEST
    return max(0, (int(value) - int(base)) >> int(width))


@njit(cache=True)
def weight_of(word, weights, e, bits):
    """The weight of edge ``e``, whose word is ``word``."""
    if weights is None:
        return np.int64(word >> bits)
    else:  # the compiler leaves one branch out
        return weights[e]


@intrinsic
def _lower_float(typingctx, array, index, value):
    def codegen(context, builder, signature, args):
        # Bits of floating-point numbers that are not negative are ordered as the numbers are.
        pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
        word = ir.IntType(signature.args[0].dtype.bitwidth)
        bits = builder.bitcast(args[2], word)
        old = builder.atomic_rmw("umin", builder.bitcast(pointer, word.as_pointer()), bits, "seq_cst")
        return builder.bitcast(old, args[2].type)

    return array.dtype(array, types.intp, array.dtype), codegen


@overload(lower_value)
def _overload_lower(array, index, value):
    if isinstance(array.dtype, types.Float):
        return lambda array, index, value: _lower_float(array, index, value)  # type: ignore[call-arg]
    return lambda array, index, value: atomic_min(array, index, value)


@overload(bucket_of)
def _overload_bucket(value, base, width):
    if isinstance(value, types.Float):
        return lambda value, base, width: np.int64(max(min((value - base) * width, float(FURTHEST)), 0.0))
    return lambda value, base, width: max(np.int64(0), (np.int64(value) - np.int64(base)) >> np.int64(width))
