"""The passes of the build over all edges, and the memory they work in.

    scatter_edges  edge list -> entries in buckets of rows                    the only pass but one over the whole list
    gather_rows    buckets -> rows, in place; loops and duplicates are gone   within a core's cache
    scatter_rows   rows, by ascending number -> transposed entries in buckets
    settle_rows    buckets -> final rows, sorted                              within a core's cache

Invariant: apart from the list itself there are never more than two arrays as long as the entries (a third for a
directed graph's other direction), and what is no longer read is written over.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

import numba
import numpy as np

from cpu_engine.graph.build.idspace import IdSpace
from cpu_engine.graph.kernels import radix_scatter
from cpu_engine.graph.kernels.csr import Buckets, Gathered, gather_rows_step, settle_rows_step
from cpu_engine.graph.kernels.radix_scatter import (
    HIGH,
    LOOPS,
    LOW,
    Edges,
    Shape,
    count_edges_step,
    count_rows_step,
    scatter_edges_step,
    scatter_rows_step,
)
from cpu_engine.graph.kernels.weighted import gather_weighted_step
from cpu_engine.intrinsics.lines import LINE_BYTES

ENTRIES_PER_BUCKET_LOG = 16  # a bucket, its rows and the set of seen columns: within a core's L2
MAX_BUCKETS_LOG = 12  # a cache line for each is within L2 as well
GROUP_LOG = 4  # neighbours in the same bucket: their numbers fill a cache line
MAX_NARROW_BUCKETS_LOG = 14  # more than is best, but it halves the entries ...
NARROW_BUCKET = 1 << 12  # ... and pays for buckets of this many
ENTRIES_PER_LANE = 1 << 14  # below this a second thread costs more than it brings
PARTS_PER_LANE = 4  # so that a lane which the system holds up does not hold up the others
ROW_COST = 8  # visiting a row costs as much as this many entries
LONG_BUCKET = 8  # buckets this many times the mean are done one at a time: they share one long scratch
_HUGE_BYTES = 1 << 22  # NumPy asks for huge pages from this size on


@dataclass(frozen=True)
class Layout:
    """How entries are packed: ``bits`` for the column, above them the row's place in one of ``2**log_b`` buckets.

    Groups of ``2**group`` neighbouring rows are in the same bucket.
    """

    span: int
    log_b: int
    group: int
    bits: int
    entry: np.dtype
    id: np.dtype
    columns: int  # how many there are

    @property
    def buckets(self) -> int:
        return 1 << self.log_b

    @property
    def rows(self) -> int:
        """Rows in a bucket."""
        return max(-(-self.span >> (self.log_b + self.group)), 1) << self.group

    def shape(self, entries: np.ndarray | None = None) -> Shape:
        """What kernels get."""
        phase = 0 if entries is None else entries.ctypes.data % LINE_BYTES // entries.itemsize
        return Shape(self.log_b, self.group, self.bits, phase)


@dataclass
class Scattered:
    """Entries in the buckets of their rows."""

    entries: np.ndarray
    weight: np.ndarray
    bucket_begin: np.ndarray


@dataclass
class Rows:
    """Unsorted rows by position; row p is in slot (bucket of p, place in it)."""

    columns: np.ndarray
    weight: np.ndarray
    slot_begin: np.ndarray
    size: np.ndarray  # by position
    bucket_begin: np.ndarray
    kept: np.ndarray  # columns in each bucket, without gaps from bucket_begin on


@dataclass(frozen=True)
class EdgeFacts:
    """What the pass over the edge list found out besides."""

    loops: int
    low: int
    high: int


@dataclass
class Spare:
    """Memory that is no longer needed, to be written over instead of taking fresh pages from the system."""

    blocks: list[np.ndarray] = field(default_factory=list)

    def take(self, *wanted: tuple[int, np.dtype]) -> list[np.ndarray]:
        """Arrays of (count, type): each the smallest block that has room for it, else new. What is left is freed."""
        found: list[np.ndarray | None] = []
        for count, dtype in wanted:
            needed = count * dtype.itemsize
            fitting = [b for b in self.blocks if b.nbytes >= needed > 0 and b.ctypes.data % dtype.itemsize == 0]
            block = min(fitting, key=lambda one: one.nbytes, default=None)
            found.append(None if block is None else block.reshape(-1).view(np.uint8)[:needed].view(dtype))
            self.blocks = [one for one in self.blocks if one is not block]
        self.blocks = []
        return [np.empty(*new) if old is None else old for old, new in zip(found, wanted, strict=True)]


def choose_layout(entries: int, span: int, id_dtype: np.dtype, columns: int | None = None) -> Layout:
    """Buckets that fit a cache, and entries of 32 bits wherever a few more buckets make that possible.

    ``columns``: how many there are, if not as many as rows.
    """
    columns = span if columns is None else columns
    row_bits, bits = (max((count - 1).bit_length(), 1) for count in (span, columns))
    group = min(GROUP_LOG, row_bits)
    log_b = min((entries >> ENTRIES_PER_BUCKET_LOG).bit_length(), MAX_BUCKETS_LOG, row_bits - group)
    narrow = max(row_bits + bits - 32, 0)
    if log_b < narrow <= min(MAX_NARROW_BUCKETS_LOG, row_bits - group) and entries >> narrow >= NARROW_BUCKET:
        log_b = narrow
    wide = log_b < narrow or id_dtype.itemsize > 4
    return Layout(span, log_b, group, bits, np.dtype(np.uint64 if wide else np.uint32), id_dtype, columns)


def lanes_for(entries: int) -> int:
    """As many threads as there are, but for a small graph fewer."""
    return max(1, min(numba.get_num_threads(), entries // ENTRIES_PER_LANE))


def gather_lanes(entries: int, span: int, weighted: bool) -> int:
    """With weights each lane needs 4 bytes per vertex; together no more than about the columns themselves."""
    return min(lanes_for(entries), max(2, 2 * entries // max(span, 1))) if weighted else lanes_for(entries)


def scatter_edges(
    space: IdSpace, weight: np.ndarray, mirror: bool, drop_loops: bool, layout: Layout
) -> tuple[Scattered, EdgeFacts]:
    """Scatter the edges, mirrored ones in both directions, to the buckets of their rows."""
    lanes, parts = _lanes_and_parts(space.src.size * (2 if mirror else 1))
    counts = np.zeros((parts, layout.buckets), np.int64)
    facts = np.zeros((parts, 3), np.int64)
    facts[:, LOW], facts[:, HIGH] = np.iinfo(np.int64).max, -1
    present = np.empty(0, np.uint8) if space.present is None else space.present
    edges = Edges(space.src, space.dst, weight, space.first, mirror, drop_loops)
    count_edges_step(edges, layout.shape(), lanes, _ticket(), counts, facts, present)
    found = EdgeFacts(int(facts[:, LOOPS].sum()), int(facts[:, LOW].min()), int(facts[:, HIGH].max()))
    space.check(found.low, found.high)
    bucket_begin, starts = _starts(counts)
    entries = np.empty(int(bucket_begin[-1]), layout.entry)
    entry_weight = np.empty(entries.size if weight.size else 0, weight.dtype)
    scatter_edges_step(
        edges, layout.shape(entries), _ticket(), starts, np.empty((lanes, layout.buckets), np.int64),
        _lines(lanes, layout), entries, entry_weight,
    )  # fmt: skip
    return Scattered(entries, entry_weight, bucket_begin), found


def scatter_pieces(pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]], layout: Layout) -> Scattered:
    """Scatter entries (row, column, weight) that came in pieces to the buckets of their rows; the pieces are freed."""
    lanes, parts = _lanes_and_parts(max((rows.size for rows, _, _ in pieces), default=0))
    counts, facts = np.zeros((len(pieces), parts, layout.buckets), np.int64), np.zeros((parts, 3), np.int64)
    for at, (rows, columns, weight) in enumerate(pieces):
        edges = Edges(rows, columns, weight, 0, False, False)
        count_edges_step(edges, layout.shape(), lanes, _ticket(), counts[at], facts, np.empty(0, np.uint8))
    bucket_begin, starts = _starts(counts.reshape(-1, layout.buckets))
    entries = np.empty(int(bucket_begin[-1]), layout.entry)
    heavy = [weight.dtype for _, _, weight in pieces if weight.size]
    entry_weight = np.empty(entries.size if heavy else 0, heavy[0] if heavy else np.int64)
    lines, cursor = _lines(lanes, layout), np.empty((lanes, layout.buckets), np.int64)
    for at in range(len(pieces)):
        rows, columns, weight = pieces[at]
        pieces[at] = (rows[:0], columns[:0], weight[:0])
        edges = Edges(rows, columns, weight, 0, False, False)
        mine = np.ascontiguousarray(starts[at * parts : (at + 1) * parts])
        scatter_edges_step(edges, layout.shape(entries), _ticket(), mine, cursor, lines, entries, entry_weight)
        del rows, columns, weight, edges
    return Scattered(entries, entry_weight, bucket_begin)


def gather_rows(scattered: Scattered, layout: Layout, drop_duplicates: bool) -> Rows:
    """Turn scattered entries into rows, in their own memory."""
    columns, sizes = scattered.entries.view(layout.id), np.diff(scattered.bucket_begin)
    total, weighted = scattered.entries.size, scattered.weight.size > 0
    row_begin = np.empty(layout.buckets * layout.rows, np.int64)
    row_size = np.zeros(layout.span, np.int32 if total < 2**30 else np.int64)  # out and in together fit as well
    kept = np.zeros(layout.buckets, np.int64)
    usual = max(LONG_BUCKET * total // layout.buckets, 1 << ENTRIES_PER_BUCKET_LOG)
    longest = int(sizes.max(initial=0))
    for above, up_to, lanes in (
        (-1, min(usual, longest), gather_lanes(total, layout.span, weighted)),
        (usual, longest, 1),
    ):
        if above >= up_to:
            continue
        scratch = np.empty((lanes, up_to), layout.id)
        seen = np.zeros((lanes, layout.columns // 64 + 1 if drop_duplicates else 0), np.uint64)
        buckets = Buckets(scattered.entries, columns, scattered.bucket_begin, above, up_to)
        shape, made = layout.shape(scattered.entries), Gathered(row_begin, row_size, kept)
        if weighted:
            scratch_weight = np.empty((lanes, up_to), scattered.weight.dtype)
            place = np.empty((lanes, layout.columns if drop_duplicates else 0), np.int32)
            gather_weighted_step(
                buckets, scattered.weight, shape, _ticket(), made, scratch, scratch_weight, seen, place
            )
        else:
            gather_rows_step(buckets, shape, _ticket(), made, scratch, seen)
    rows = Rows(columns, scattered.weight, row_begin, row_size, scattered.bucket_begin, kept)
    if columns.size > scattered.entries.size:
        _close_gaps(rows, layout)
    return rows


def _close_gaps(rows: Rows, layout: Layout) -> None:
    """Where a column takes half an entry, move the buckets together: everything then has half the length."""
    ratio = layout.entry.itemsize // layout.id.itemsize
    begin = np.zeros_like(rows.bucket_begin)
    np.cumsum(rows.kept, out=begin[1:])
    for b, kept in enumerate(rows.kept.tolist()):
        old, new = int(rows.bucket_begin[b]), int(begin[b])
        rows.columns[new : new + kept] = rows.columns[ratio * old : ratio * old + kept]
        if rows.weight.size:
            rows.weight[new : new + kept] = rows.weight[old : old + kept]
    shift = begin[:-1] - ratio * rows.bucket_begin[:-1]
    rows.slot_begin.reshape(layout.buckets, layout.rows)[:] += shift[:, np.newaxis]
    rows.bucket_begin = begin
    rows.columns = shrink(rows.columns, int(begin[-1]))


def shrink(array: np.ndarray, count: int) -> np.ndarray:
    """The first ``count`` elements; where the memory is the array's own, the rest goes back to the system in place."""
    memory = array if array.base is None else array.base
    length = -(-count * array.itemsize // memory.itemsize)
    kind = array.dtype
    del array
    if memory.flags.owndata and length < memory.size:
        memory.resize(length, refcheck=False)
    shrunk: np.ndarray = memory.view(kind)[:count]
    return shrunk


def scatter_rows(
    row_begin: np.ndarray, offsets: np.ndarray, columns: np.ndarray, weight: np.ndarray, layout: Layout, spare: Spare
) -> Scattered:
    """Scatter the transposed entries of rows, visited in ascending order, to the buckets of their columns."""
    total = int(offsets[-1])
    lanes, parts = _lanes_and_parts(total)
    counts = np.zeros((parts, layout.buckets), np.int64)
    rows = radix_scatter.Rows(row_begin, offsets, columns, weight, _equal_parts(offsets, parts))
    count_rows_step(rows, layout.shape(), lanes, _ticket(), counts)
    bucket_begin, starts = _starts(counts)
    entries, entry_weight = spare.take((total, layout.entry), (total if weight.size else 0, weight.dtype))
    scatter_rows_step(
        rows, layout.shape(entries), _ticket(), starts, np.empty((lanes, layout.buckets), np.int64),
        _lines(lanes, layout), entries, entry_weight,
    )  # fmt: skip
    return Scattered(entries, entry_weight, bucket_begin)


def settle_rows(
    scattered: Scattered,
    label: np.ndarray,
    offsets: np.ndarray,
    layout: Layout,
    columns: np.ndarray,
    weight: np.ndarray,
) -> None:
    """Write the scattered entries to ``columns``, sorted rows that begin at ``offsets``."""
    cursors = np.empty((lanes_for(scattered.entries.size), layout.rows), np.int64)
    settle_rows_step(
        scattered.entries, scattered.weight, scattered.bucket_begin, layout.shape(scattered.entries), label, offsets,
        _ticket(), cursors, columns, weight,
    )  # fmt: skip


def _lanes_and_parts(entries: int) -> tuple[int, int]:
    lanes = lanes_for(entries)
    return lanes, lanes * PARTS_PER_LANE if lanes > 1 else 1


def _ticket() -> np.ndarray:
    return np.zeros(1, np.int64)


def lines_bytes(lanes: int, layout: Layout) -> int:
    """Memory for two cache lines per lane and bucket; for more than one lane at least a huge page."""
    return max(2 * lanes * layout.buckets * LINE_BYTES, _HUGE_BYTES if lanes > 1 else 0) + LINE_BYTES


def _lines(lanes: int, layout: Layout) -> np.ndarray:
    """For each lane two cache lines per bucket, each really one line of memory."""
    memory = np.empty(lines_bytes(lanes, layout), np.uint8)
    first, size = -memory.ctypes.data % LINE_BYTES, 2 * lanes * layout.buckets * LINE_BYTES
    return memory[first : first + size].view(layout.entry).reshape(lanes, -1)


def _starts(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From counts[part, bucket]: where each bucket begins, and where each part's share of it begins."""
    bucket_begin = np.zeros(counts.shape[1] + 1, np.int64)
    np.cumsum(counts.sum(axis=0), out=bucket_begin[1:])
    starts = bucket_begin[:-1] + np.cumsum(counts, axis=0) - counts
    return bucket_begin, starts


def _equal_parts(offsets: np.ndarray, parts: int) -> np.ndarray:
    """Consecutive rows, about equally much work in each part."""
    rows = range(offsets.size)
    total = int(offsets[-1]) + ROW_COST * (offsets.size - 1)
    bounds = [bisect_left(rows, total * i // parts, key=lambda u: int(offsets[u]) + ROW_COST * u) for i in range(parts)]
    return np.array([*bounds, offsets.size - 1], np.int64)
