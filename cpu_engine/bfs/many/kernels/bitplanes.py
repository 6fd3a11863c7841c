"""From bit-sliced levels to plain numbers, and to parents: a table with a row per vertex and a column per root.

``seen`` and ``planes`` are many.py's, finished: bit s of ``planes[p, v]`` is bit p of the level of v from root s.
Tables are passed flat, with the length of a row and the first column to write: then a row is contiguous to numba, too.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy import uint64

NONE = np.uint64(0)
ONE = np.uint64(1)
_WIDTH = 64
_BLOCK = 16  # rows of parents that are made before they are streamed


def or_where(row, word, value):
    """``row[s] |= value`` for each bit s of ``word``; row is uint8[64]."""
    for s in range(_WIDTH):
        if (word >> np.uint64(s)) & ONE != NONE:
            row[s] |= value


def put_where(row, word, value):
    """``row[s] = value`` for each bit s of ``word``; row is int32[64]."""
    for s in range(_WIDTH):
        if (word >> np.uint64(s)) & ONE != NONE:
            row[s] = value


def stream_row(place, row):
    """``place[:] = row`` past the caches; both have 64 elements, and place begins at a multiple of 64 bytes."""
    place[:] = row


def finish_streams():
    """Wait until what was streamed can be read by other threads: such stores are not ordered with others."""


def _row_pointer(context, builder, array_type, value):
    """Where an array of 64 elements lies, as a pointer to a vector."""
    array = context.make_array(array_type)(context, builder, value)
    zero = context.get_constant(types.intp, 0)
    pointer = cgutils.get_item_pointer(context, builder, array_type, array, [zero], wraparound=False)
    return builder.bitcast(pointer, ir.VectorType(pointer.type.pointee, _WIDTH).as_pointer())


def _lanes(builder, word, value):
    """From a word its bits as 64 truth values; from a number 64 times the number."""
    i8, i32 = ir.IntType(8), ir.IntType(32)
    row64, index64 = ir.VectorType(i8, _WIDTH), ir.VectorType(i32, _WIDTH)
    # Byte s // 8 of the word goes to lane s, where its bit s % 8 decides.
    word_bytes = builder.bitcast(word, ir.VectorType(i8, 8))
    spread = builder.shuffle_vector(word_bytes, word_bytes, ir.Constant(index64, [s // 8 for s in range(_WIDTH)]))
    chosen = builder.and_(spread, ir.Constant(row64, [1 << (s % 8) for s in range(_WIDTH)]))
    bits = builder.icmp_unsigned("!=", chosen, ir.Constant(row64, [0] * _WIDTH))
    undefined = ir.Constant(ir.VectorType(value.type, _WIDTH), ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(i32, 0))
    return bits, builder.shuffle_vector(first, undefined, ir.Constant(index64, [0] * _WIDTH))


@intrinsic
def _or_where(typingctx, row, word, value):
    """A few vector instructions: LLVM does not find them in the loop, which takes five times as long."""

    def codegen(context, builder, signature, args):
        bits, everywhere = _lanes(builder, args[1], args[2])
        place = _row_pointer(context, builder, signature.args[0], args[0])
        added = builder.select(bits, everywhere, ir.Constant(everywhere.type, [0] * _WIDTH))
        builder.store(builder.or_(builder.load(place, align=1), added), place, align=1)
        return context.get_dummy_value()

    return types.void(row, types.uint64, types.uint8), codegen


@intrinsic
def _put_where(typingctx, row, word, value):
    def codegen(context, builder, signature, args):
        bits, everywhere = _lanes(builder, args[1], args[2])
        place = _row_pointer(context, builder, signature.args[0], args[0])
        builder.store(builder.select(bits, everywhere, builder.load(place, align=1)), place, align=1)
        return context.get_dummy_value()

    return types.void(row, types.uint64, types.int32), codegen


@intrinsic
def _stream_row(typingctx, place, row):
    """A store that does not read the line first: a third of the time, as the result is larger than the caches."""

    def codegen(context, builder, signature, args):
        content = builder.load(_row_pointer(context, builder, signature.args[1], args[1]), align=1)
        place = _row_pointer(context, builder, signature.args[0], args[0])
        stored = builder.store(content, place, align=_WIDTH)
        stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(place, row), codegen


@intrinsic
def _finish_streams(typingctx):
    def codegen(context, builder, signature, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


@overload(or_where)
def _overload_or_where(row, word, value):
    return lambda row, word, value: _or_where(row, word, value)  # type: ignore[call-arg]


@overload(put_where)
def _overload_put_where(row, word, value):
    return lambda row, word, value: _put_where(row, word, value)  # type: ignore[call-arg]


@overload(stream_row)
def _overload_stream_row(place, row):
    return lambda place, row: _stream_row(place, row)  # type: ignore[call-arg]


@overload(finish_streams)
def _overload_finish_streams():
    return lambda: _finish_streams()  # type: ignore[call-arg]


@njit(cache=True)
def expand_byte(reached, planes, v, byte, row):
    """One byte of the levels of v, for all roots; 255 where v is not reached."""
    row[:] = 0
    or_where(row, ~reached, np.uint8(255))
    for p in range(8 * byte, min(8 * byte + 8, planes.shape[0])):
        or_where(row, planes[p, v], np.uint8(1 << (p - 8 * byte)))


@njit(cache=True)
def expand_bytes_share_step(first, last, seen, planes, level, stride, column):
    """Rows first..last of expand_bytes_step.

    Invariant, races, work: see expand_bytes_step. Nothing in the loop may count references: an atomic instruction waits
    for the streamed rows to arrive in memory.
    """
    row = np.empty(_WIDTH, np.uint8)
    for v in range(first, last):
        expand_byte(seen[v], planes, v, 0, row)
        at = v * stride + column
        stream_row(level[at : at + _WIDTH], row)
    finish_streams()


@njit(cache=True, parallel=True)
def expand_bytes_step(seen, planes, level, stride, column, threads):
    """Write the levels of all vertices as bytes, 64 columns; 255 where a vertex is not reached.

    Invariant  column s of row v = the number in bit s of planes[:, v], at most 7 planes; the 64 bytes are aligned.
    Races      thread t writes its own rows.
    Work       a few vector operations per vertex and plane; what costs is the 64 bytes of each row.
    """
    n = seen.size
    for t in prange(threads):
        expand_bytes_share_step(t * n // threads, (t + 1) * n // threads, seen, planes, level, stride, column)


@njit(cache=True)
def expand_numbers_share_step(first, last, seen, planes, level, stride, column, width):
    """Rows first..last of expand_numbers_step.

    Invariant, races, work: see expand_numbers_step.
    """
    tile = np.empty((level.itemsize, _WIDTH), np.uint8)
    for v in range(first, last):
        for byte in range(level.itemsize):
            expand_byte(seen[v], planes, v, byte, tile[byte])
        at = v * stride + column
        row = level[at : at + width]
        for s in range(row.size):
            value = np.int64(0)
            for byte in range(level.itemsize):
                value |= np.int64(tile[byte, s]) << (8 * byte)
            row[s] = value


@njit(cache=True, parallel=True)
def expand_numbers_step(seen, planes, level, stride, column, width, threads):
    """Write the levels of all vertices, 1 to 64 columns, in 1, 2 or 4 bytes each.

    Invariant  column s of row v = the number in bit s of planes[:, v], all bits set where v is not reached; level is
               unsigned and wide enough.
    Races      thread t writes its own rows.
    Work       O(vertices * width), whatever the number of planes up to 8 (16, 32).
    """
    n = seen.size
    for t in prange(threads):
        expand_numbers_share_step(t * n // threads, (t + 1) * n // threads, seen, planes, level, stride, column, width)


@njit(cache=True)
def find_rows(first, last, offsets, sources, seen, planes, nearer, rows):
    """The parents of the vertices first..last from all roots, one row of 64 after the other.

    ``nearer`` is room for a word per plane: a vertex's levels less one, bit-sliced.
    """
    for v in range(first, last):
        row = rows[(v - first) * _WIDTH : (v - first + 1) * _WIDTH]
        row[:] = -1
        wanted = NONE
        for p in range(planes.shape[0]):
            wanted |= planes[p, v]
        put_where(row, seen[v] & ~wanted, np.int32(v))  # level 0 has no bit in any plane: v is the root
        borrow = wanted
        for p in range(planes.shape[0]):
            nearer[p] = planes[p, v] ^ borrow
            borrow &= ~planes[p, v]
        e = offsets[v]
        while wanted != NONE and e < offsets[v + 1]:
            u = uint64(sources[uint64(e)])
            e += 1
            match = wanted & seen[u]
            for p in range(planes.shape[0]):
                match &= ~(planes[p, u] ^ nearer[p])
            if match != NONE:
                put_where(row, match, np.int32(u))
                wanted &= ~match


@njit(cache=True)
def write_rows(first, last, rows, table, stride, column, width):
    """Copy rows of 64 into the table; whole ones are streamed, which is why nothing else happens in the loop."""
    for i in range(last - first):
        at = (first + i) * stride + column
        if width == _WIDTH:
            stream_row(table[at : at + _WIDTH], rows[i * _WIDTH : (i + 1) * _WIDTH])
        else:
            for s in range(width):
                table[at + s] = rows[i * _WIDTH + s]


@njit(cache=True, parallel=True)
def find_parents_many_step(offsets, sources, seen, planes, parent, stride, column, width, threads):
    """Give each reached vertex, for each root, an in-neighbour one level nearer; the root itself; -1 if not reached.

    Invariant  seen and planes are only read and final: such a neighbour exists. Rows of 64 are aligned.
    Races      a block's thread writes the block's rows only.
    Work       O(m) worst case, early exit per vertex; a few vector operations per vertex and parent.
    """
    for t in prange(threads):
        nearer, rows = np.empty(planes.shape[0], np.uint64), np.empty(_BLOCK * _WIDTH, np.int32)
        for first in range(t * _BLOCK, seen.size, threads * _BLOCK):
            last = min(first + _BLOCK, seen.size)
            find_rows(first, last, offsets, sources, seen, planes, nearer, rows)
            write_rows(first, last, rows, parent, stride, column, width)
        finish_streams()
