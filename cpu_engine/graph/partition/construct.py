"""Building parts by streaming: readers deal slices of rows to parts, parts assemble what they are dealt.

    slice_arcs    reader r: its edge-balanced, contiguous slice of the out-rows -> one buffer of arcs per part
    slice_weights reader r: the weights of these arcs, in the same order, if the layout is weighted
    assemble      part p: the buffers of all readers, in the readers' order -> a part, not yet linked
    mirror_lists  part p: what it mirrors -> one list per owner
    link          part p: the lists of all others -> the part, linked

Invariants: a reader touches no row but its own, so over ranks the arcs are read once altogether; rows ascend over the
readers, so the buffers of all readers laid end to end ascend by (source, target), and nothing is ever sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cpu_engine.graph.graph import Graph
from cpu_engine.graph.kernels.partition import (
    count_ends_step,
    count_mirrors_step,
    count_slice_step,
    deal_slice_step,
    deal_weights_step,
    fill_rows_step,
    fill_weights_step,
    merge_rows_step,
    number_locals_step,
)
from cpu_engine.graph.partition.layout import Layout, layout_terms, make_layout
from cpu_engine.graph.partition.part import READ, WRITTEN, Links, Part

ARCS_PER_SLICE = 1 << 25  # of partition_graph; a pair is 8 bytes


@dataclass(frozen=True, eq=False)
class MirrorList:
    """What one part tells another: which of its vertices it mirrors, ascending, and what arcs the mirrors have."""

    internal_ids: np.ndarray  # int32; int64 of a graph with more vertices
    roles: np.ndarray  # uint8, READ and WRITTEN

    def to_bytes(self) -> np.ndarray:
        """As one buffer of 5 or 9 bytes per mirror, for the wire."""
        return np.concatenate([self.internal_ids.view(np.uint8), self.roles])

    @staticmethod
    def from_bytes(buffer: np.ndarray, id_type: npt.DTypeLike = np.int32) -> MirrorList:
        width = np.dtype(id_type).itemsize
        count, rest = divmod(buffer.size, width + 1)
        if rest:
            raise ValueError(f"a mirror list has {width + 1} bytes per mirror, not {buffer.size} in all")
        return MirrorList(buffer[: width * count].copy().view(id_type), buffer[width * count :].copy())


def slice_rows(graph: Graph, reader: int, readers: int, *, symmetric: bool = False) -> tuple[int, int]:
    """The rows [first, last) that this reader reads: about m / readers arcs; over all readers every arc once."""
    offsets = graph.out_offsets + graph.in_offsets if symmetric else graph.out_offsets
    cuts = [int(offsets[-1]) * r // readers for r in (reader, reader + 1)]
    first, last = (int(row) for row in np.searchsorted(offsets, cuts))
    return first, last


def slice_arcs(graph: Graph, layout: Layout, reader: int, readers: int | None = None) -> list[np.ndarray]:
    """Read a slice and deal it: by part, the arcs that go there, int32[arcs, 2] (source, target), ascending.

    There are as many readers as parts unless ``readers`` says otherwise.
    """
    readers = layout.parts if readers is None else readers
    first, last = slice_rows(graph, reader, readers, symmetric=layout.symmetric)
    terms = layout_terms(layout, graph)
    rows = _rows_both_ways(graph, first, last) if layout.symmetric else (graph.out_offsets, graph.out_targets)
    bounds = _slice_bounds(layout, first, last, rows, terms)
    pairs = np.empty((int(bounds[-1]), 2), np.int32)
    deal_slice_step(first, last, *rows, *terms, bounds[:-1].copy(), pairs)
    return [pairs[bounds[p] : bounds[p + 1]] for p in range(layout.parts)]


def slice_weights(graph: Graph, layout: Layout, reader: int, readers: int | None = None) -> list[np.ndarray]:
    """By part, the weights of the arcs that ``slice_arcs`` deals to it, in the same order."""
    assert graph.weight is not None
    first, last = slice_rows(graph, reader, layout.parts if readers is None else readers)
    terms = layout_terms(layout, graph)
    rows = (graph.out_offsets, graph.out_targets)
    bounds = _slice_bounds(layout, first, last, rows, terms)
    dealt = np.empty(int(bounds[-1]), graph.weight.dtype)
    deal_weights_step(first, last, *rows, graph.weight, *terms, bounds[:-1].copy(), dealt)
    return [dealt[bounds[p] : bounds[p + 1]] for p in range(layout.parts)]


def _slice_bounds(
    layout: Layout, first: int, last: int, rows: tuple[np.ndarray, np.ndarray], terms: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    bounds = np.zeros(layout.parts + 1, np.int64)
    count_slice_step(first, last, *rows, *terms, bounds[1:])
    np.cumsum(bounds, out=bounds)
    return bounds


def _rows_both_ways(graph: Graph, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Out-neighbours and in-neighbours of the rows [first, last) as one row each; all other rows are empty."""
    sizes = np.zeros(graph.n, np.int64)
    sizes[first:last] = np.diff(graph.out_offsets[first : last + 1]) + np.diff(graph.in_offsets[first : last + 1])
    offsets = _offsets(sizes)
    targets = np.empty(int(offsets[-1]), np.int32)
    out_rows, in_rows = (graph.out_offsets, graph.out_targets), (graph.in_offsets, graph.in_sources)
    merge_rows_step(first, last, out_rows, in_rows, offsets, targets)
    return offsets, targets


def assemble(
    layout: Layout, part: int, buffers: Sequence[np.ndarray], weights: Sequence[np.ndarray] | None = None
) -> Part:
    """The part made of the arcs that every reader dealt to it; ``buffers`` in the order of the readers."""
    out_count, in_count = np.zeros(layout.n, np.int32), np.zeros(layout.n, np.int32)
    for pairs in buffers:
        count_ends_step(pairs, out_count, in_count)
    counts = np.zeros(layout.parts, np.int64)
    count_mirrors_step(layout.owner_of, part, out_count, in_count, counts)
    masters, counts[part] = int(counts[part]), 0
    mirror_bounds = np.full(layout.parts + 1, masters, np.int64)
    mirror_bounds[1:] += np.cumsum(counts)
    internal_of, local_of = np.empty(int(mirror_bounds[-1]), np.int32), np.empty(layout.n, np.int32)
    cursor = mirror_bounds[:-1].copy()
    cursor[part] = 0
    number_locals_step(layout.owner_of, part, out_count, in_count, cursor, internal_of, local_of)
    out_count, in_count = out_count[internal_of], in_count[internal_of]
    out_offsets, in_offsets = _offsets(out_count), _offsets(in_count)
    out_targets, in_sources = np.empty(int(out_offsets[-1]), np.int32), np.empty(int(in_offsets[-1]), np.int32)
    cursors = out_offsets[:-1].copy(), in_offsets[:-1].copy()
    for pairs in buffers:
        fill_rows_step(pairs, local_of, *cursors, out_targets, in_sources)
    out_weight = None
    if weights is not None:
        out_weight = np.empty(out_targets.size, weights[0].dtype)
        cursor = out_offsets[:-1].copy()
        for pairs, weight in zip(buffers, weights, strict=True):
            fill_weights_step(pairs, weight, local_of, cursor, out_weight)
    return Part(
        layout=layout,
        part=part,
        internal_of=internal_of,
        masters=masters,
        mirror_bounds=mirror_bounds,
        out_offsets=out_offsets,
        out_targets=out_targets,
        in_offsets=in_offsets,
        in_sources=in_sources,
        has_out=(out_count > 0).view(np.uint8),
        has_in=(in_count > 0).view(np.uint8),
        out_weight=out_weight,
    )


def mirror_lists(part: Part) -> tuple[MirrorList, ...]:
    """By owner: what this part mirrors of its vertices; empty for the part itself."""
    roles = part.has_out * np.uint8(READ) | part.has_in * np.uint8(WRITTEN)
    return tuple(
        MirrorList(part.internal_of[begin:end], roles[begin:end])
        for begin, end in zip(part.mirror_bounds[:-1], part.mirror_bounds[1:], strict=True)
    )


def link(part: Part, lists: Sequence[MirrorList]) -> Part:
    """The part with its links; ``lists[q]`` is what part q mirrors of this part's vertices."""
    internal_ids = np.concatenate([one.internal_ids for one in lists])
    own = part.internal_of[: part.masters]
    masters = np.searchsorted(own, internal_ids).astype(np.int32)
    if masters.size and (masters.max() >= own.size or not np.array_equal(own[masters], internal_ids)):
        raise ValueError(f"part {part.part} was told of mirrors of vertices that it does not own")
    return replace(
        part,
        links=Links(
            bounds=_offsets(np.array([one.internal_ids.size for one in lists], np.int64)),
            masters=masters,
            roles=np.concatenate([one.roles for one in lists]),
        ),
    )


def partition_graph(
    graph: Graph, policy: str, parts: int, *, weighted: bool = False, symmetric: bool = False
) -> list[Part]:
    """All parts, linked, in one process; the arcs are read slice by slice."""
    layout = make_layout(graph, policy, parts, weighted=weighted, symmetric=symmetric)
    readers = max(1, -(-layout.m // ARCS_PER_SLICE))
    slices = [slice_arcs(graph, layout, reader, readers) for reader in range(readers)]
    weights = [slice_weights(graph, layout, reader, readers) for reader in range(readers)] if weighted else None
    unlinked = [
        assemble(
            layout, p, [dealt[p] for dealt in slices], None if weights is None else [dealt[p] for dealt in weights]
        )
        for p in range(parts)
    ]
    del slices, weights
    lists = [mirror_lists(part) for part in unlinked]
    return [link(part, [told[part.part] for told in lists]) for part in unlinked]


def _offsets(sizes: np.ndarray) -> np.ndarray:
    offsets = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
