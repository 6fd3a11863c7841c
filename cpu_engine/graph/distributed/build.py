"""Build a graph on ranks: from shares of the edges to a part on each rank, without the whole graph on any.

    shares -> entries to the ranks that own their rows, equal ranges of positions -> rows, duplicates dropped
           -> degrees -> internal ids, by a histogram of degrees -> edge-balanced ranges -> arcs dealt by the policy
           -> local ids; mirrors' internal ids asked of their owners -> rows both ways, sorted -> linked

Drivers, as everything on ranks (cpu_engine/comm/requests.py). Invariant: the parts are those of ``partition_graph`` on
the whole graph, array by array. A rank holds O(its arcs, its vertices and mirrors), a bit for each vertex of the graph,
and tables with an entry per rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from cpu_engine.comm.collectives import RankInfo, all_to_all, broadcast, gather
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.build import passes
from cpu_engine.graph.build.idspace import MAX_NARROW
from cpu_engine.graph.distributed import kernels
from cpu_engine.graph.distributed.shares import PIECE_EDGES, Share
from cpu_engine.graph.kernels.csr import locate_rows_step
from cpu_engine.graph.partition import MirrorList, link, mirror_lists
from cpu_engine.graph.partition.layout import Layout
from cpu_engine.graph.partition.part import Part
from cpu_engine.graph.partition.policies import arc_terms, check_policy, choose_grid, high_degree_threshold

_NO_WORDS = np.empty(0, np.uint64)
Pieces = list[tuple[np.ndarray, np.ndarray, np.ndarray]]  # keys, values, weights


@dataclass(frozen=True, eq=False)
class BuiltPart:
    """A rank's part, and which vertices it has."""

    part: Part
    vertices: int  # of the whole graph, isolated ones included
    position_of: np.ndarray  # int64, by local id: place in the user's order
    loops: int  # in the whole list, dropped or not
    user_ids: np.ndarray  # int64, by local id: what the user calls this rank's masters and mirrors


@dataclass
class _Block:
    """The rows of a range of positions, by place in it; later also their internal ids."""

    first: int
    begin: np.ndarray
    size: np.ndarray
    columns: np.ndarray
    weight: np.ndarray
    degree: np.ndarray  # in and out of a directed graph
    in_degree: np.ndarray


def build_on_ranks(
    info: RankInfo, share: Share, policy: str, *, drop_loops: bool = True, drop_duplicates: bool = True,
    weighted: bool = False,
) -> Driver[BuiltPart]:  # fmt: skip
    """This rank's part of the graph that all shares together are."""
    check_policy(policy)
    size, vertices = info.size, share.vertices
    blocks = np.arange(size + 1, dtype=np.int64) * vertices // size
    dtype = np.dtype(share.weight_dtype or np.int64)
    entries, loops = yield from _entries(info, share, blocks, drop_loops, dtype if weighted else None)
    block = _rows(entries, int(blocks[info.rank]), int(np.diff(blocks)[info.rank]), vertices, dtype, drop_duplicates)
    if share.directed:
        block.in_degree = yield from _in_degrees(info, block, blocks)
        block.degree = block.degree + block.in_degree
    else:
        block.in_degree = block.degree
    internal = yield from _internal_ids(info, block.degree)
    totals = np.array([np.count_nonzero(block.degree), block.size.sum(), loops], np.int64)
    n, m, all_loops = (yield AllReduce(totals, "sum")).tolist()
    bounds = yield from _balanced_bounds(info, block)
    layout = Layout(
        n=n, m=m, parts=size, policy=policy, grid=choose_grid(size), threshold=high_degree_threshold(n, m),
        bounds=bounds, owner_of=np.empty(0, np.uint16), weighted=weighted,
    )  # fmt: skip
    high = (yield from _high_degrees(info, block, layout, vertices)) if policy == "uvc" else _NO_WORDS
    arcs = yield from _deal_arcs(info, block, layout, high)
    own = yield from _hand_over(info, internal, blocks, bounds)
    del block, internal
    built = yield from _assemble(info, layout, arcs, own)
    return replace(built, vertices=vertices, loops=all_loops, user_ids=built.position_of + share.first)


def _id_type(vertices: int) -> type:
    return np.int32 if vertices <= MAX_NARROW else np.int64


def _entries(
    info: RankInfo, share: Share, blocks: np.ndarray, drop_loops: bool, dtype: np.dtype | None
) -> Driver[tuple[Pieces, int]]:
    """Every edge at the rank that owns its row - undirected, at both ends' - as (row in the range, column)."""
    pieces, loops = share.pieces(), 0
    received: Pieces = []
    while True:
        edges = next(pieces, None)
        more = yield AllReduce(np.array([edges is not None], np.int64), "max", patient=True)
        if not more[0]:
            return received, loops
        counts = np.zeros(info.size, np.int64)
        src, dst = (np.empty(0, np.int64),) * 2 if edges is None else (edges.src, edges.dst)
        weight = np.empty(0, dtype or np.int64)
        if dtype is not None and edges is not None and edges.weight is not None:
            weight = np.ascontiguousarray(edges.weight, dtype)
        how = (share.first, blocks, not share.directed, drop_loops)
        loops += kernels.count_edges_by_owner_step(src, dst, *how, counts)
        stretch = _offsets(counts)
        rows, columns = np.empty((2, int(stretch[-1])), _id_type(share.vertices))
        dealt_weight = np.empty(rows.size if dtype is not None else 0, weight.dtype)
        kernels.deal_edges_step(src, dst, weight, *how, stretch[:-1].copy(), rows, columns, dealt_weight)
        del src, dst, weight, edges
        received += yield from _trade(info, stretch, (rows, columns, dealt_weight), weighted=dtype is not None)


def _trade(
    info: RankInfo, stretch: np.ndarray, arrays: tuple[np.ndarray, np.ndarray, np.ndarray], *, weighted: bool
) -> Driver[Pieces]:
    """Each rank's stretch of keys, values and weights to that rank; what came from each, in their order."""
    keys, _, weight = arrays
    sent = arrays if weighted else arrays[:2]
    payloads = [
        np.concatenate([array[stretch[q] : stretch[q + 1]].view(np.uint8) for array in sent]) for q in range(info.size)
    ]
    came = yield from all_to_all(info, payloads)
    found: Pieces = []
    for payload in came:
        cut = payload.size // sum(array.itemsize for array in sent) * keys.itemsize
        mine = payload[: 2 * cut].view(keys.dtype).reshape(2, -1)
        found.append((mine[0], mine[1], payload[2 * cut :].view(weight.dtype)))
    return found


def _rows(entries: Pieces, first: int, count: int, vertices: int, dtype: np.dtype, drop_duplicates: bool) -> _Block:
    """The rows of a range from its entries, which are freed on the way."""
    total = sum(rows.size for rows, _, _ in entries)
    layout = passes.choose_layout(total, max(count, 1), np.dtype(_id_type(vertices)), columns=vertices)
    scattered = passes.scatter_pieces(entries, layout)
    rows = passes.gather_rows(scattered, layout, drop_duplicates)
    begin, sizes = np.empty(count, np.int64), np.zeros(count, np.int64)
    locate_rows_step(np.arange(count, dtype=layout.id), rows.slot_begin, rows.size, layout.shape(), begin, sizes)
    weight = rows.weight if rows.weight.size else np.empty(0, dtype)
    return _Block(first, begin, sizes, rows.columns, weight, sizes, sizes)


def _in_degrees(info: RankInfo, block: _Block, blocks: np.ndarray) -> Driver[np.ndarray]:
    """How many arcs lead to each position of the range: columns travel to their owners, some rows' at a time."""
    degree = np.zeros(block.size.size, np.int64)
    cuts = _row_cuts(block.size)
    rounds = int((yield AllReduce(np.array([len(cuts)], np.int64), "max", patient=True))[0])
    for turn in range(rounds):
        first, last = cuts[turn] if turn < len(cuts) else (0, 0)
        rows = (block.begin[first:last], block.size[first:last], block.columns)
        counts = np.zeros(info.size, np.int64)
        kernels.count_ranges_step(*rows, blocks, counts)
        stretch = _offsets(counts)
        dealt = np.empty(int(stretch[-1]), block.columns.dtype)
        kernels.deal_columns_step(*rows, blocks, stretch[:-1].copy(), dealt)
        came = yield from all_to_all(
            info, [dealt[stretch[q] : stretch[q + 1]].view(np.uint8) for q in range(info.size)]
        )
        for payload in came:
            degree += np.bincount(payload.view(dealt.dtype), minlength=degree.size)
    return degree


def _internal_ids(info: RankInfo, degree: np.ndarray) -> Driver[np.ndarray]:
    """By descending degree, ties by ascending position; -1: no edges. Over ranks degrees are counted, not sorted."""
    kinds, counts = np.unique(degree[degree > 0], return_counts=True)
    gathered = yield from gather(info, np.concatenate((kinds, counts)).view(np.uint8))
    if gathered is not None:
        tables = [payload.view(np.int64).reshape(2, -1) for payload in gathered]
        every, place = np.unique(np.concatenate([table[0] for table in tables]), return_inverse=True)
        whole = np.zeros(every.size, np.int64)
        np.add.at(whole, place, np.concatenate([table[1] for table in tables]))
        next_id = whole[::-1].cumsum()[::-1] - whole  # vertices of higher degree
        starts = []
        for table in tables:
            at = np.searchsorted(every, table[0])
            starts.append(next_id[at].view(np.uint8))
            next_id[at] += table[1]
        mine = (yield from all_to_all(info, starts))[0].view(np.int64)
    else:
        mine = (yield from all_to_all(info, [np.empty(0, np.uint8)] * info.size))[0].view(np.int64)
    internal = np.full(degree.size, -1, np.int64)
    order = np.argsort(degree, kind="stable")
    order = order[degree[order] > 0]
    internal[order] = np.repeat(mine, counts) + np.arange(order.size) - np.repeat(_offsets(counts)[:-1], counts)
    return internal


def _balanced_bounds(info: RankInfo, block: _Block) -> Driver[np.ndarray]:
    """Where ranges of about equal weight begin, as ``partition.layout.balanced_bounds`` cuts the whole graph."""
    weight = np.where(block.degree > 0, block.degree + 1, 0)
    totals = np.zeros(info.size, np.int64)
    totals[info.rank] = weight.sum()
    totals = yield AllReduce(totals, "sum")
    before_me, whole = int(totals[: info.rank].sum()), int(totals.sum())
    before = before_me + _offsets(weight)
    ideal = whole * np.arange(info.size + 1) // info.size
    after = np.searchsorted(before, ideal)
    bounds = np.zeros(info.size + 1, np.int64)
    for cut in range(1, info.size):
        at = int(after[cut])
        if 0 < at < before.size and before[0] < ideal[cut]:
            nearer = ideal[cut] - before[at - 1] < before[at] - ideal[cut]
            bounds[cut] = block.first + (at - 1 if nearer else at)
    bounds = yield AllReduce(bounds, "max")
    bounds = np.array(bounds, np.int64)
    vertices = yield AllReduce(np.array([block.first + block.size.size], np.int64), "max")
    bounds[-1] = int(vertices[0])
    return bounds


def _high_degrees(info: RankInfo, block: _Block, layout: Layout, vertices: int) -> Driver[np.ndarray]:
    """The set of vertices whose in-degree is above the threshold, at every rank."""
    mine = block.first + np.flatnonzero(block.in_degree > layout.threshold)
    gathered = yield from gather(info, mine.astype(np.int64).view(np.uint8))
    together = None if gathered is None else np.concatenate([one.view(np.int64) for one in gathered]).view(np.uint8)
    every = (yield from broadcast(info, together)).view(np.int64)
    words = np.zeros(vertices // 64 + 1, np.uint64)
    kernels.mark_outside_step(every, 0, 0, words)
    return words


def _deal_arcs(info: RankInfo, block: _Block, layout: Layout, high: np.ndarray) -> Driver[Pieces]:
    """Every arc at the part that the policy gives it to, as positions; some rows at a time."""
    ranks = np.arange(info.size)
    terms = arc_terms(layout.policy, ranks, np.zeros(info.size), layout.grid[1], layout.threshold)
    cuts = _row_cuts(block.size)
    rounds = int((yield AllReduce(np.array([len(cuts)], np.int64), "max", patient=True))[0])
    received: Pieces = []
    for turn in range(rounds):
        first, last = cuts[turn] if turn < len(cuts) else (0, 0)
        counts = np.zeros(info.size, np.int64)
        rows = (first, last, block.begin, block.size, block.columns)
        place = (block.first, layout.bounds, terms, high)
        kernels.count_arcs_by_part_step(*rows, *place, counts)
        stretch = _offsets(counts)
        sources, targets = np.empty((2, int(stretch[-1])), block.columns.dtype)
        weight = np.empty(sources.size if layout.weighted else 0, block.weight.dtype)
        own_weight = block.weight if layout.weighted else block.weight[:0]
        kernels.deal_arcs_step(*rows, own_weight, *place, stretch[:-1].copy(), sources, targets, weight)
        received += yield from _trade(info, stretch, (sources, targets, weight), weighted=layout.weighted)
    return received


def _hand_over(info: RankInfo, internal: np.ndarray, blocks: np.ndarray, bounds: np.ndarray) -> Driver[np.ndarray]:
    """The internal ids of the positions that this rank owns in the end."""
    first, last = blocks[info.rank], blocks[info.rank + 1]
    slices = [np.clip(bounds[q : q + 2], first, last) - first for q in range(info.size)]
    came = yield from all_to_all(info, [internal[begin:end].view(np.uint8) for begin, end in slices])
    return np.concatenate([payload.view(np.int64) for payload in came])


def _assemble(info: RankInfo, layout: Layout, arcs: Pieces, own: np.ndarray) -> Driver[BuiltPart]:
    """Local ids for what has come, and the part in them."""
    first, last = layout.bounds[info.rank : info.rank + 2].tolist()
    mine = np.flatnonzero(own >= 0)
    mine = mine[np.argsort(own[mine])]  # masters, by internal id
    own_local = np.full(own.size, -1, np.int32)
    own_local[mine] = np.arange(mine.size, dtype=np.int32)
    words = np.zeros(int(layout.bounds[-1]) // 64 + 1, np.uint64)
    for ends in arcs:
        for positions in ends[:2]:
            kernels.mark_outside_step(positions, first, last, words)
    before = np.empty(words.size, np.int64)
    mirrors = np.empty(kernels.count_before_step(words, before), np.int64)
    kernels.list_members_step(words, mirrors)
    groups = np.searchsorted(mirrors, layout.bounds)
    names = yield from _ask_internal(info, mirrors, groups, own, first)
    order = np.lexsort((names, np.repeat(np.arange(info.size), np.diff(groups))))
    mirror_local = np.empty(mirrors.size, np.int32)
    mirror_local[order] = np.arange(mine.size, mine.size + mirrors.size, dtype=np.int32)
    internal_of = np.concatenate((own[mine], names[order])).astype(_id_type(layout.n))
    for at, (sources, targets, weight) in enumerate(arcs):
        local = np.empty((2, sources.size), np.int32)
        for positions, ids in ((sources, local[0]), (targets, local[1])):
            kernels.localise_step(positions, first, own_local, words, before, mirror_local, ids)
        arcs[at] = local[0], local[1], weight
    position_of = np.concatenate((first + mine, mirrors[order]))
    del words, before, mirrors, own_local, mirror_local
    part = _rows_both_ways(info.rank, layout, arcs, internal_of, mine.size, groups)
    told: Sequence[MirrorList] = mirror_lists(part)
    lists = yield from all_to_all(info, [one.to_bytes() for one in told])
    linked = link(part, [MirrorList.from_bytes(one) for one in lists])
    return BuiltPart(linked, 0, position_of, 0, position_of)


def _ask_internal(
    info: RankInfo, mirrors: np.ndarray, groups: np.ndarray, own: np.ndarray, first: int
) -> Driver[np.ndarray]:
    """The internal ids of positions that others own."""
    asked = yield from all_to_all(info, [mirrors[groups[q] : groups[q + 1]].view(np.uint8) for q in range(info.size)])
    answers = yield from all_to_all(info, [own[payload.view(np.int64) - first].view(np.uint8) for payload in asked])
    return np.concatenate([payload.view(np.int64) for payload in answers])


def _rows_both_ways(
    rank: int, layout: Layout, arcs: Pieces, internal_of: np.ndarray, masters: int, groups: np.ndarray
) -> Part:
    """Rows of both kinds, sorted by the neighbours' internal ids: by transposing twice, in that order."""
    size, order = internal_of.size, np.argsort(internal_of).astype(np.int32)
    out_count, in_count = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for sources, targets, _ in arcs:
        out_count += np.bincount(sources, minlength=size)
        in_count += np.bincount(targets, minlength=size)
    out_offsets, in_offsets = _offsets(out_count), _offsets(in_count)
    total = int(out_offsets[-1])
    in_sources, out_targets = np.empty(total, np.int32), np.empty(total, np.int32)
    dtype = arcs[0][2].dtype if arcs else np.dtype(np.int64)
    in_weight, out_weight = np.empty((2, total if layout.weighted else 0), dtype)
    cursor = in_offsets[:-1].copy()
    while arcs:
        sources, targets, weight = arcs.pop()
        kernels.append_rows_step(targets, sources, weight, cursor, in_sources, in_weight)
    for step in (
        (in_offsets, in_sources, in_weight, out_offsets[:-1].copy(), out_targets, out_weight),
        (out_offsets, out_targets, out_weight, in_offsets[:-1].copy(), in_sources, in_weight),
    ):
        kernels.transpose_in_order_step(order, *step)
    return Part(
        layout=layout,
        part=rank,
        internal_of=internal_of,
        masters=masters,
        mirror_bounds=masters + groups.astype(np.int64),
        out_offsets=out_offsets,
        out_targets=out_targets,
        in_offsets=in_offsets,
        in_sources=in_sources,
        has_out=(out_count > 0).view(np.uint8),
        has_in=(in_count > 0).view(np.uint8),
        out_weight=out_weight if layout.weighted else None,
    )


def _row_cuts(size: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of rows with about ``PIECE_EDGES`` entries each; a longer row is a range by itself."""
    ends = np.cumsum(size)
    total = int(ends[-1]) if ends.size else 0
    cuts = np.searchsorted(ends, np.arange(PIECE_EDGES, total, PIECE_EDGES), side="left") + 1
    borders = np.unique(np.concatenate(([0], np.minimum(cuts, size.size), [size.size]))).tolist()
    return list(pairwise(borders))


def _offsets(sizes: np.ndarray) -> np.ndarray:
    offsets = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def estimate_bytes(edges: int, vertices: int, ranks: int) -> int:
    """About what ``build_on_ranks`` of an undirected graph takes on one of so many ranks at its peak, part included.

    An entry is 8 bytes when it comes, 4 or 8 in a row, and 8 in the part; a rank mirrors at most every vertex.
    """
    entries = 2 * edges // ranks
    return int(20 * entries + 48 * vertices // ranks + (vertices if ranks > 1 else 0) * 40)
