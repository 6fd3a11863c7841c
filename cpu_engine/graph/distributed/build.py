"""Build a graph on ranks: from shares of the edges to a part on each rank, without the whole graph on any.

    ids -> places (numbering) -> entries to the ranks that own their rows -> rows, duplicates dropped
        -> degrees -> internal ids, by a histogram of degrees -> edge-balanced ranges -> arcs dealt by the policy
        -> local ids; mirrors' internal ids asked of their owners -> rows both ways, sorted -> linked (assembly)

Drivers, as everything on ranks (cpu_engine/comm/requests.py). Invariant: the parts are those of ``partition_graph`` on
the whole graph, array by array. A rank holds O(its arcs, its vertices and mirrors), a bit for each place, and tables
with an entry per rank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from cpu_engine.comm.collectives import RankInfo, all_to_all, broadcast, gather
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.errors import InputError
from cpu_engine.graph.build import passes
from cpu_engine.graph.build.idspace import require_declared, require_not_negative
from cpu_engine.graph.distributed import kernels
from cpu_engine.graph.distributed.assembly import BuiltPart, assemble_part, hand_over
from cpu_engine.graph.distributed.numbering import Kind, Numbering, number_ids
from cpu_engine.graph.distributed.shares import PIECE_EDGES, Share
from cpu_engine.graph.distributed.trade import Pieces, offsets_of, trade
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.kernels.csr import locate_rows_step
from cpu_engine.graph.memory import return_freed
from cpu_engine.graph.partition.layout import Layout
from cpu_engine.graph.partition.policies import arc_terms, check_policy, choose_grid, high_degree_threshold

_NO_WORDS = np.empty(0, np.uint64)
_NO_IDS = np.empty(0, np.int64)


@dataclass
class _Block:
    """The rows of a range of places, by place in it."""

    first: int
    begin: np.ndarray
    size: np.ndarray
    columns: np.ndarray
    weight: np.ndarray
    degree: np.ndarray  # in and out of a directed graph
    in_degree: np.ndarray
    names: np.ndarray | None = None  # see numbering.py


@dataclass
class _Entries:
    """What came of the edges to the owner of the rows, and what was counted on the way at this rank."""

    pieces: Pieces
    named: np.ndarray  # places of this range that are vertices although they may have no edges
    edges: int = 0
    loops: int = 0


def build_on_ranks(
    info: RankInfo, share: Share, policy: str, *, drop_loops: bool = True, drop_duplicates: bool = True,
    weighted: bool = False,
) -> Driver[BuiltPart]:  # fmt: skip
    """This rank's part of the graph that all shares together are."""
    check_policy(policy)
    if weighted and share.weight_dtype is None:
        raise InputError("the graph has no weights", fix="read it from a file that has a weight on every edge")
    numbering = yield from number_ids(info, share)
    blocks, dtype = numbering.blocks, np.dtype(share.weight_dtype or np.int64)
    entries = yield from _entries(info, share, numbering, drop_loops, dtype if weighted else None)
    numbering = replace(numbering, known=_NO_IDS, known_places=_NO_IDS, slots=_NO_IDS)  # freed
    facts = {"input_edges": entries.edges, "loops": entries.loops}
    block = _rows(entries.pieces, numbering, info.rank, dtype, drop_duplicates)
    return_freed()
    if share.directed:
        block.in_degree = yield from _in_degrees(info, block, blocks)
        block.degree = block.degree + block.in_degree
    else:
        block.in_degree = block.degree
    internal = yield from _internal_ids(info, block.degree)
    vertices = yield from _name_places(info, block, numbering, entries.named)
    kept_loops = 0 if drop_loops else kernels.count_loops_step(block.begin, block.size, block.columns, block.first)
    totals = np.array([np.count_nonzero(block.degree), block.size.sum(), kept_loops, *facts.values()], np.int64)
    n, m, kept_loops, input_edges, loops = (yield AllReduce(totals, "sum")).tolist()
    max_degree = int((yield AllReduce(block.degree.max(initial=0, keepdims=True).astype(np.int64), "max"))[0])
    cuts, bounds = yield from _balanced_bounds(info, block, numbering, vertices)
    layout = Layout(
        n=n, m=m, parts=info.size, policy=policy, grid=choose_grid(info.size), threshold=high_degree_threshold(n, m),
        bounds=bounds, owner_of=np.empty(0, np.uint16), weighted=weighted,
    )  # fmt: skip
    high = (yield from _high_degrees(info, block, layout, numbering.places)) if policy == "uvc" else _NO_WORDS
    arcs = yield from _deal_arcs(info, block, layout, cuts, high)
    own = yield from hand_over(info, internal, block.names, blocks, cuts)
    del block, internal, entries
    return_freed()
    built = yield from assemble_part(info, layout, cuts, arcs, own, numbering)
    meta = _provenance(
        share, layout, {"vertices": vertices, "input_edges": input_edges, "max_degree": max_degree},
        loops=loops, kept_loops=kept_loops, drop_loops=drop_loops, drop_duplicates=drop_duplicates,
    )  # fmt: skip
    return_freed()
    return replace(built, vertices=vertices, loops=loops, meta=meta)


def _provenance(
    share: Share, layout: Layout, facts: dict[str, int], *, loops: int, kept_loops: int, drop_loops: bool,
    drop_duplicates: bool,
) -> dict[str, Any]:  # fmt: skip
    """What ``build_graph`` notes in ``Graph.meta``."""
    edges = layout.m if share.directed else (layout.m - kept_loops) // 2 + kept_loops
    listed = edges if share.mirrored and not share.directed else layout.m
    input_edges, loops_dropped = facts["input_edges"], loops if drop_loops else 0
    if share.directed and share.mirrored:  # read as both directions of every edge
        input_edges = 2 * input_edges - loops
    return {
        "format": "", "path": "", "notes": [], "directed_assumed": False,
        **share.about,
        "directed": share.directed,
        "weighted": share.weight_dtype is not None,
        "max_degree": facts["max_degree"],
        "vertices": facts["vertices"],
        "isolated": facts["vertices"] - layout.n,
        "edges": edges,
        "input_edges": input_edges,
        "self_loops": "drop" if drop_loops else "keep",
        "self_loops_dropped": loops_dropped,
        "duplicates": "drop" if drop_duplicates else "keep",
        "duplicates_dropped": input_edges - loops_dropped - listed,
    }  # fmt: skip


def _entries(
    info: RankInfo, share: Share, numbering: Numbering, drop_loops: bool, dtype: np.dtype | None
) -> Driver[_Entries]:
    """Every edge at the rank that owns its row - mirrored, at both ends' - as (row in the range, column)."""
    pieces, named = (share.spend or share.pieces)(), [_NO_IDS]
    received: list[Pieces] = []
    edges = loops = 0
    while True:
        piece = next(pieces, None)
        more = yield AllReduce(np.array([piece is not None], np.int64), "max", patient=True)
        if not more[0]:
            break
        src, dst, weight = _checked(piece, numbering, dtype, str(share.about.get("path") or ""))
        if piece is not None and numbering.kind is Kind.COMPACT:
            loose = src[src == dst] if drop_loops else _NO_IDS
            named.append(np.unique(np.concatenate((loose, _NO_IDS if piece.vertices is None else piece.vertices))))
        piece, edges = None, edges + src.size
        counts = np.zeros(info.size, np.int64)
        how = (numbering.offset(), numbering.blocks, share.mirrored, drop_loops)
        loops += kernels.count_edges_by_owner_step(src, dst, *how, counts)
        stretch = offsets_of(counts)
        rows, columns = np.empty((2, int(stretch[-1])), numbering.place_type)
        dealt_weight = np.empty(rows.size if dtype is not None else 0, weight.dtype)
        kernels.deal_edges_step(src, dst, weight, *how, stretch[:-1].copy(), rows, columns, dealt_weight)
        del src, dst, weight
        received.append((yield from trade(info, stretch, (rows, columns, dealt_weight), weighted=dtype is not None)))
    if not share.in_turns:  # in the order of the list: all that one rank had before what the next one had
        received = [list(ranks) for ranks in zip(*received, strict=True)]
    at = yield from _places_named(info, numbering, np.unique(np.concatenate(named)))
    return _Entries([one for pieces_ in received for one in pieces_], at, edges, loops)


def _checked(
    piece: EdgeList | None, numbering: Numbering, dtype: np.dtype | None, path: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ends and weights of a piece as kernels get them; InputError for what no graph may have."""
    weight = np.empty(0, dtype or np.int64)
    if piece is None:
        return np.empty(0, np.int64), np.empty(0, np.int64), weight
    if numbering.kind is Kind.RANGE and piece.src.size:
        low, high = (int(one(piece.src)) for one in (np.min, np.max))
        low, high = min(low, int(piece.dst.min())), max(high, int(piece.dst.max()))
        require_not_negative(low, path)
        require_declared(low, high, numbering.first, numbering.places, path)
    if dtype is not None and piece.weight is not None:
        weight = np.ascontiguousarray(piece.weight, dtype)
        if weight.dtype.kind == "f" and np.isnan(weight).any():
            at = int(np.flatnonzero(np.isnan(weight))[0])
            raise InputError(
                f"the edge {piece.src[at]} -> {piece.dst[at]} has a weight that is not a number",
                path=path or None,
                fix="give every edge a number, or read the file without weights",
            )
    return (*numbering.ends_of(piece), weight)


def _places_named(info: RankInfo, numbering: Numbering, ids: np.ndarray) -> Driver[np.ndarray]:
    """Of the ids that any rank knows to be vertices, those of this range, as places in it."""
    if numbering.kind is not Kind.COMPACT:
        return _NO_IDS
    places = ids - numbering.first
    cuts = np.searchsorted(places, numbering.blocks)
    came = yield from all_to_all(info, [places[cuts[q] : cuts[q + 1]].view(np.uint8) for q in range(info.size)])
    return np.unique(np.concatenate([one.view(np.int64) for one in came])) - numbering.blocks[info.rank]


def _rows(entries: Pieces, numbering: Numbering, rank: int, dtype: np.dtype, drop_duplicates: bool) -> _Block:
    """The rows of a range from its entries, which are freed on the way."""
    first, last = numbering.blocks[rank : rank + 2].tolist()
    count, total = last - first, sum(rows.size for rows, _, _ in entries)
    layout = passes.choose_layout(total, max(count, 1), np.dtype(numbering.place_type), columns=numbering.places)
    scattered = passes.scatter_pieces(_joined(entries), layout)
    rows = passes.gather_rows(scattered, layout, drop_duplicates)
    begin, sizes = np.empty(count, np.int64), np.zeros(count, np.int64)
    locate_rows_step(np.arange(count, dtype=layout.id), rows.slot_begin, rows.size, layout.shape(), begin, sizes)
    weight = rows.weight if rows.weight.size else np.empty(0, dtype)
    return _Block(first, begin, sizes, rows.columns, weight, sizes, sizes)


def _joined(pieces: Pieces) -> Pieces:
    """The pieces, small ones joined with their neighbours, as each costs a table of counts; emptied on the way."""
    joined: Pieces = []
    pieces.reverse()
    while pieces:
        group, size = [pieces.pop()], 0
        while pieces and size + group[-1][0].size + pieces[-1][0].size <= PIECE_EDGES:
            size += group[-1][0].size
            group.append(pieces.pop())
        if len(group) == 1:
            joined += group
        else:
            rows, columns, weights = (np.concatenate(arrays) for arrays in zip(*group, strict=True))
            joined.append((rows, columns, weights))
    return joined


def _name_places(info: RankInfo, block: _Block, numbering: Numbering, named: np.ndarray) -> Driver[int]:
    """Give the block the names of its places; how many vertices there are."""
    if numbering.kind is Kind.RANGE:
        return numbering.places
    if numbering.kind is not Kind.COMPACT:
        block.names = numbering.ids
        return numbering.places if numbering.vertices is None else numbering.vertices
    present = block.degree > 0
    present[named] = True
    counts = np.zeros(info.size, np.int64)
    counts[info.rank] = np.count_nonzero(present)
    counts = yield AllReduce(counts, "sum")
    block.names = np.where(present, np.cumsum(present) - 1 + int(counts[: info.rank].sum()), -1)
    return int(counts.sum())


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
        stretch = offsets_of(counts)
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
    internal[order] = np.repeat(mine, counts) + np.arange(order.size) - np.repeat(offsets_of(counts)[:-1], counts)
    return internal


def _balanced_bounds(
    info: RankInfo, block: _Block, numbering: Numbering, vertices: int
) -> Driver[tuple[np.ndarray, np.ndarray]]:
    """Where ranges of about equal weight begin, as ``partition.layout.balanced_bounds`` cuts the whole graph.

    First as places, then as positions.
    """
    weight = np.where(block.degree > 0, block.degree + 1, 0)
    totals = np.zeros(info.size, np.int64)
    totals[info.rank] = weight.sum()
    totals = yield AllReduce(totals, "sum")
    before_me, whole = int(totals[: info.rank].sum()), int(totals.sum())
    before = before_me + offsets_of(weight)
    ideal = whole * np.arange(info.size + 1) // info.size
    after = np.searchsorted(before, ideal)
    bounds = np.zeros((2, info.size + 1), np.int64)
    for cut in range(1, info.size):
        at = int(after[cut])
        if 0 < at < before.size and before[0] < ideal[cut]:
            nearer = int(ideal[cut] - before[at - 1] < before[at] - ideal[cut])
            position = block.first + at - 1  # of the vertex that the cut comes before or after
            if block.names is not None and numbering.kind is not Kind.SPARSE:
                position = int(block.names[at - 1]) - (numbering.first if numbering.kind is Kind.SCATTERED else 0)
            bounds[:, cut] = block.first + at - nearer, position + 1 - nearer
    bounds = np.array((yield AllReduce(bounds.reshape(-1), "max")), np.int64).reshape(2, -1)
    bounds[:, -1] = numbering.places, vertices
    return bounds[0], bounds[1]


def _high_degrees(info: RankInfo, block: _Block, layout: Layout, places: int) -> Driver[np.ndarray]:
    """The set of vertices whose in-degree is above the threshold, at every rank."""
    mine = block.first + np.flatnonzero(block.in_degree > layout.threshold)
    gathered = yield from gather(info, mine.astype(np.int64).view(np.uint8))
    together = None if gathered is None else np.concatenate([one.view(np.int64) for one in gathered]).view(np.uint8)
    every = (yield from broadcast(info, together)).view(np.int64)
    words = np.zeros(places // 64 + 1, np.uint64)
    kernels.mark_outside_step(every, 0, 0, words)
    return words


def _deal_arcs(info: RankInfo, block: _Block, layout: Layout, cuts: np.ndarray, high: np.ndarray) -> Driver[Pieces]:
    """Every arc at the part that the policy gives it to, as places; some rows at a time."""
    ranks = np.arange(info.size)
    terms = arc_terms(layout.policy, ranks, np.zeros(info.size), layout.grid[1], layout.threshold)
    turns = _row_cuts(block.size)
    rounds = int((yield AllReduce(np.array([len(turns)], np.int64), "max", patient=True))[0])
    received: Pieces = []
    for turn in range(rounds):
        first, last = turns[turn] if turn < len(turns) else (0, 0)
        counts = np.zeros(info.size, np.int64)
        rows = (first, last, block.begin, block.size, block.columns)
        place = (block.first, cuts, terms, high)
        kernels.count_arcs_by_part_step(*rows, *place, counts)
        stretch = offsets_of(counts)
        sources, targets = np.empty((2, int(stretch[-1])), block.columns.dtype)
        weight = np.empty(sources.size if layout.weighted else 0, block.weight.dtype)
        own_weight = block.weight if layout.weighted else block.weight[:0]
        kernels.deal_arcs_step(*rows, own_weight, *place, stretch[:-1].copy(), sources, targets, weight)
        received += yield from trade(info, stretch, (sources, targets, weight), weighted=layout.weighted)
    return received


def _row_cuts(size: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of rows with about ``PIECE_EDGES`` entries each; a longer row is a range by itself."""
    ends = np.cumsum(size)
    total = int(ends[-1]) if ends.size else 0
    cuts = np.searchsorted(ends, np.arange(PIECE_EDGES, total, PIECE_EDGES), side="left") + 1
    borders = np.unique(np.concatenate(([0], np.minimum(cuts, size.size), [size.size]))).tolist()
    return list(pairwise(borders))


def estimate_bytes(
    edges: int, vertices: int, ranks: int, *, mirrored: bool = True, weighted: bool = False, listed: bool = False
) -> int:
    """About what ``build_on_ranks`` takes on one of so many ranks at its peak, the part included.

    ``mirrored``: each edge is entered at both ends. ``listed``: ids are looked up (numbering.py). At the peak an arc is
    there as 8 bytes that came and as 4 of a row, its weight twice; a rank mirrors at most every vertex.
    """
    twice = 2 if mirrored else 1
    entries, own, weight = twice * edges // ranks, vertices // ranks, 18 if weighted else 0
    local = own + min(vertices - own, entries)
    under_way = twice * min(PIECE_EDGES, edges // ranks)
    needed = entries * (12 + weight) + own * 40 + local * 24 + under_way * (16 + weight)
    needed += 4 * vertices if weighted else 0  # where a column was met in a row
    needed += 56 * min(vertices, 2 * edges // ranks) if listed else 0
    return int(needed)
