"""Sums of matrix rows that are picked by a list: a few columns stay in vector registers while the list is walked.

Written as LLVM vectors, because from a loop over columns inside a loop over rows the compiler makes one that loads and
stores the sums at every row; and because only so the rows a few places further on the list can be asked for in time (a
list is a part of a longer one: what follows its end is worth asking for, too). Without the JIT (NUMBA_DISABLE_JIT=1)
the plain Python bodies are used.

Sums are float32 over CHUNK rows and float64 over the chunks. In float32 alone a sum of many equal terms moves by
thousands of roundings at once when the terms move by one: PageRank beside a hub then never comes to rest.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

LANES = 16  # float32 in a cache line, and in the widest vector
WIDE = 4  # vectors side by side: what the next lines of the same row cost is little once the first one is there
CHUNK = 128  # rows
AHEAD = 24  # places on the list between asking for a row and adding it


def sum_narrow(matrix, listed, begin, end, first, out):
    """Set 16 elements of ``out`` from ``first`` on to the sums of these columns over the rows listed[begin:end]."""
    columns = slice(first, first + LANES)
    out[columns] = matrix[listed[begin:end], columns].sum(axis=0, dtype="float64")


def sum_wide(matrix, listed, begin, end, first, out):
    """The same with 64 columns."""
    columns = slice(first, first + WIDE * LANES)
    out[columns] = matrix[listed[begin:end], columns].sum(axis=0, dtype="float64")


def _build_sum(context, builder, signature, args, vectors):
    """The loops: per turn one row asked for and ``vectors`` additions; addresses need no alignment."""
    arrays = [context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 1, 5)]
    (matrix, listed, out), (begin, end, first) = arrays, args[2:5]
    word, vector, long_vector = (
        ir.IntType(64),
        ir.VectorType(ir.FloatType(), LANES),
        ir.VectorType(ir.DoubleType(), LANES),
    )
    columns, last = (builder.extract_value(array.shape, i) for array, i in ((matrix, 1), (listed, 0)))
    last = builder.sub(last, word(1))
    zero, long_zero = (ir.Constant(kind, [0.0] * LANES) for kind in (vector, long_vector))
    sums = [cgutils.alloca_once_value(builder, zero) for _ in range(vectors)]
    totals = [cgutils.alloca_once_value(builder, long_zero) for _ in range(vectors)]
    start = builder.gep(matrix.data, [first])

    def row_at(place):
        row = builder.zext(builder.load(builder.gep(listed.data, [place])), word)
        return builder.gep(start, [builder.mul(row, columns)])

    def part(base, i):
        return builder.bitcast(builder.gep(base, [word(i * LANES)]), vector.as_pointer())

    for total in totals:  # once per call, where an alloca is once per function
        builder.store(long_zero, total)
    with cgutils.for_range_slice(builder, begin, end, word(CHUNK)) as (chunk, _):
        stop = builder.add(chunk, word(CHUNK))
        stop = builder.select(builder.icmp_signed("<", stop, end), stop, end)
        for part_sum in sums:
            builder.store(zero, part_sum)
        with cgutils.for_range_slice(builder, chunk, stop, word(1)) as (place, _):
            later = builder.add(place, word(AHEAD))
            later = row_at(builder.select(builder.icmp_signed("<", later, last), later, last))
            row = row_at(place)
            for i in range(vectors):
                _ask_for(builder, part(later, i))
                term = builder.load(part(row, i), align=4)
                builder.store(builder.fadd(builder.load(sums[i]), term), sums[i])
        for total, part_sum in zip(totals, sums, strict=True):
            more = builder.fpext(builder.load(part_sum), long_vector)
            builder.store(builder.fadd(builder.load(total), more), total)
    target = builder.gep(out.data, [first])
    for i in range(vectors):
        builder.store(builder.fptrunc(builder.load(totals[i]), vector), part(target, i), align=4)
    return context.get_dummy_value()


def _ask_for(builder, pointer):
    """A prefetch for reading, into the nearest cache."""
    number, address = ir.IntType(32), ir.IntType(8).as_pointer()
    form = ir.FunctionType(ir.VoidType(), [address, number, number, number])
    prefetch = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0")
    builder.call(prefetch, [builder.bitcast(pointer, address), number(0), number(3), number(1)])


@intrinsic
def _sum_narrow(typingctx, matrix, listed, begin, end, first, out):
    def codegen(context, builder, signature, args):
        return _build_sum(context, builder, signature, args, 1)

    return types.void(matrix, listed, types.intp, types.intp, types.intp, out), codegen


@intrinsic
def _sum_wide(typingctx, matrix, listed, begin, end, first, out):
    def codegen(context, builder, signature, args):
        return _build_sum(context, builder, signature, args, WIDE)

    return types.void(matrix, listed, types.intp, types.intp, types.intp, out), codegen


def _fits(matrix, listed, out):
    """The loop above takes C-ordered float32 and a list of uint32; numba says "no such function" otherwise."""
    return (
        (matrix.dtype, matrix.ndim, matrix.layout) == (types.float32, 2, "C")
        and (listed.dtype, listed.layout) == (types.uint32, "C")
        and (out.dtype, out.ndim, out.layout) == (types.float32, 1, "C")
    )


@overload(sum_narrow)
def _overload_narrow(matrix, listed, begin, end, first, out):
    if not _fits(matrix, listed, out):
        return None
    return lambda matrix, listed, begin, end, first, out: _sum_narrow(matrix, listed, begin, end, first, out)  # type: ignore[call-arg]


@overload(sum_wide)
def _overload_wide(matrix, listed, begin, end, first, out):
    if not _fits(matrix, listed, out):
        return None
    return lambda matrix, listed, begin, end, first, out: _sum_wide(matrix, listed, begin, end, first, out)  # type: ignore[call-arg]
