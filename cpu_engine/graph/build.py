"""From an edge list to a Graph: one pass over the edges to buckets, one to rows, one (directed: two) transposition.

    edges -> positions (idspace) -> buckets of rows -> rows, loops and duplicates dropped -> degrees -> internal ids
          -> transposed once: rows of in-neighbours, sorted because rows were visited in ascending order;
             for an undirected graph that is the graph, a directed one is transposed back into sorted out-rows.

Invariant: the result depends on the edge list and the rules alone, not on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numba
import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.idspace import IdSpace, kernel_input, resolve_ids
from cpu_engine.graph.memory import require_bytes
from cpu_engine.kernels.csr import (
    count_columns_step,
    count_edges_step,
    count_rows_step,
    deal_edges_step,
    deal_rows_step,
    gather_rows_step,
    rank_by_degree_step,
    settle_rows_step,
)

Rule = Literal["drop", "keep"]
Progress = Callable[[int, int], None]  # (steps done, steps in all)

ENTRIES_PER_BUCKET_LOG = 16  # 512 KiB of entries and 256 KiB of columns: within a core's L2
MAX_BUCKETS_LOG = 11  # more write streams than this thrash the translation buffer
ENTRIES_PER_LANE = 1 << 14  # below this a second thread costs more than it brings
_STEPS = 5


@dataclass
class _Rows:
    """Unsorted rows by position. ``columns`` has gaps where duplicates were."""

    begin: np.ndarray
    size: np.ndarray
    columns: np.ndarray
    weight: np.ndarray
    self_loops: int


@dataclass
class _Dealt:
    """Entries in the buckets of their rows, ready to be scattered."""

    entries: np.ndarray
    weight: np.ndarray
    bucket_begin: np.ndarray


def build_graph(
    edges: EdgeList,
    *,
    directed: bool | None = None,
    self_loops: Rule = "drop",
    duplicates: Rule = "drop",
    progress: Progress | None = None,
) -> Graph:
    """Build the graph of an edge list.

    ``directed`` None means what the file says, and directed if it says nothing. Of duplicate edges the smallest weight
    is kept; in an undirected graph "u v" and "v u" are duplicates. ``progress`` gets (steps done, steps in all).
    """
    for name, rule in (("self_loops", self_loops), ("duplicates", duplicates)):
        if rule not in ("drop", "keep"):
            raise InputError(f"{name} must be 'drop' or 'keep'", value=rule, fix="choose one of the two")
    tell = progress or (lambda done, total: None)
    as_directed = directed if directed is not None else edges.directed is not False
    weight = _weights(edges)
    with _as_many_threads_as_pay(edges.src.size):
        space = resolve_ids(edges)
        require_bytes(
            estimate_build_bytes(edges.src.size, space.span, as_directed, weight.size > 0),
            f"building a graph of {edges.src.size} edges and {space.span} vertices",
            "use a machine with more memory, or a smaller graph",
        )
        tell(1, _STEPS)
        mirror = not as_directed and not edges.symmetric_stored
        rows = _gather_rows(space, weight, mirror, self_loops == "drop", duplicates == "drop")
        tell(2, _STEPS)
        graph = _number_and_sort(edges, space, rows, as_directed, tell)
    graph.meta.update(_provenance(edges, graph, rows.self_loops, self_loops, duplicates))
    graph.meta["directed_assumed"] = directed is None and edges.directed is None
    tell(_STEPS, _STEPS)
    return graph


def estimate_build_bytes(edge_count: int, vertex_count: int, directed: bool, weighted: bool) -> int:
    """Peak memory of ``build_graph`` beyond the edge list it is given, result included, for compact ids."""
    entries = edge_count * (1 if directed else 2)
    per_entry = 8 + 4 + (16 if weighted else 0)  # dealt entries, and the columns they come from or go to
    if directed:
        per_entry += 4  # the in-rows stay while the out-rows are made
    per_lane = 4 if weighted else 1 / 8
    per_vertex = 56 + per_lane * _gather_lanes(entries, vertex_count, weighted) + (16 if directed else 0)
    return entries * per_entry + int(vertex_count * per_vertex)


def _weights(edges: EdgeList) -> np.ndarray:
    if edges.weight is None:
        return kernel_input(np.empty(0, np.int64), np.int64)
    if edges.weight.shape != edges.src.shape:
        raise ValueError(f"weight {edges.weight.shape} must match src {edges.src.shape}")
    if edges.weight.dtype.kind != "f":
        return kernel_input(edges.weight, np.int64)
    if np.isnan(edges.weight).any():
        at = int(np.flatnonzero(np.isnan(edges.weight))[0])
        raise InputError(
            f"edge {at} ({edges.src[at]} -> {edges.dst[at]}) has a weight that is not a number",
            path=edges.path or None,
            fix="give every edge a number, or read the file without weights",
        )
    return kernel_input(edges.weight, np.float64)


@contextmanager
def _as_many_threads_as_pay(edge_count: int) -> Iterator[None]:
    """One thread for a small graph: on a busy machine each barrier of several can cost more than the whole build."""
    threads = numba.get_num_threads()
    numba.set_num_threads(threads if edge_count > ENTRIES_PER_LANE else 1)
    try:
        yield
    finally:
        numba.set_num_threads(threads)


def _lanes(entries: int) -> int:
    return max(1, min(numba.get_num_threads(), entries // ENTRIES_PER_LANE))


def _gather_lanes(entries: int, span: int, weighted: bool) -> int:
    # With weights each lane needs 4 bytes per vertex; together no more than about the columns themselves.
    return min(_lanes(entries), max(2, 2 * entries // max(span, 1))) if weighted else _lanes(entries)


def _starts(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From counts[lane, bucket]: where each bucket begins, and where each lane's part of it begins."""
    bucket_begin = np.zeros(counts.shape[1] + 1, np.int64)
    np.cumsum(counts.sum(axis=0), out=bucket_begin[1:])
    cursors = bucket_begin[:-1] + np.cumsum(counts, axis=0) - counts
    return bucket_begin, cursors


def _gather_rows(space: IdSpace, weight: np.ndarray, mirror: bool, drop_loops: bool, drop_duplicates: bool) -> _Rows:
    expected = space.src.size * (2 if mirror else 1)
    log_b = min((expected >> ENTRIES_PER_BUCKET_LOG).bit_length(), MAX_BUCKETS_LOG, space.span.bit_length())
    buckets, lanes = 1 << log_b, _lanes(expected)
    counts = np.zeros((lanes, buckets), np.int64)
    loops = np.zeros(lanes, np.int64)
    count_edges_step(space.src, space.dst, space.first, mirror, drop_loops, log_b, counts, loops)
    bucket_begin, cursors = _starts(counts)
    total = int(bucket_begin[-1])
    entries = np.empty(total, np.int64)
    entry_weight = np.empty(total if weight.size else 0, weight.dtype)
    deal_edges_step(
        space.src, space.dst, weight, space.first, mirror, drop_loops, log_b, cursors, entries, entry_weight
    )
    rows_per_bucket = -(-space.span // buckets)
    begin = np.zeros(buckets * rows_per_bucket, np.int64)
    size = np.zeros_like(begin)
    columns = np.empty(total, np.int32)
    row_weight = np.empty_like(entry_weight)
    lanes = _gather_lanes(expected, space.span, weight.size > 0)
    seen = np.zeros((lanes, space.span // 64 + 1), np.uint64)
    place = np.empty((lanes, space.span if weight.size else 0), np.int32)
    gather_rows_step(
        entries, entry_weight, bucket_begin, drop_duplicates, begin, size, columns, row_weight, seen, place
    )
    # Slot (bucket, place) is position place * buckets + bucket.
    by_position = [a.reshape(buckets, rows_per_bucket).T.ravel()[: space.span] for a in (begin, size)]
    return _Rows(by_position[0], by_position[1], columns, row_weight, int(loops.sum()))


def _number_and_sort(edges: EdgeList, space: IdSpace, rows: _Rows, directed: bool, tell: Progress) -> Graph:
    degree = in_count = rows.size
    check_mirrored = edges.symmetric_stored and not directed
    if directed or check_mirrored:
        in_count = np.zeros(space.span, np.int64)
        count_columns_step(rows.begin, rows.size, rows.columns, in_count)
    if directed:
        degree = rows.size + in_count
    if check_mirrored:
        _check_mirrored_counts(edges, space, rows.size, in_count)
    n, max_degree = int(np.count_nonzero(degree)), int(degree.max(initial=0))
    label, order = np.empty(space.span, np.int32), np.empty(n, np.int32)
    rank_by_degree_step(degree, np.zeros(max_degree + 2, np.int64), label, order)
    tell(3, _STEPS)

    row_begin, row_size = rows.begin[order], rows.size[order]
    out_offsets = _offsets(row_size)
    in_offsets = _offsets(in_count[order]) if directed else out_offsets
    dealt = _deal_rows(row_begin, row_size, rows.columns, rows.weight, label, in_offsets)
    del rows.columns, rows.weight  # freed before the result is allocated
    in_sources, weight = _settle_rows(dealt, in_offsets)
    del dealt
    tell(4, _STEPS)
    out_targets = in_sources
    if directed or check_mirrored:
        keep_labels = np.empty(0, np.int32)
        dealt = _deal_rows(in_offsets[:-1], np.diff(in_offsets), in_sources, weight, keep_labels, out_offsets)
        del weight
        out_targets, weight = _settle_rows(dealt, out_offsets)
        if check_mirrored:
            _check_mirrored_edges(edges, space, order, out_offsets, out_targets, in_sources)
            out_targets = in_sources
    user_position, internal_of_position = order, label
    if space.present is not None:
        user_position = (np.cumsum(space.present, dtype=np.int32) - np.int32(1))[order]
        internal_of_position = label[space.present.view(np.bool_)]
    return Graph(
        n=n,
        m=int(out_offsets[-1]),
        directed=directed,
        out_offsets=out_offsets,
        out_targets=out_targets,
        in_offsets=in_offsets,
        in_sources=in_sources,
        weight=weight if edges.weight is not None else None,
        user_ids=space.user_ids(),
        user_position=user_position,
        internal_of_position=internal_of_position,
        meta={"max_degree": max_degree},
    )


def _offsets(sizes: np.ndarray) -> np.ndarray:
    offsets = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _deal_rows(
    row_begin: np.ndarray,
    row_size: np.ndarray,
    columns: np.ndarray,
    weight: np.ndarray,
    label: np.ndarray,
    offsets: np.ndarray,
) -> _Dealt:
    """Deal the transposed entries of rows to buckets; ``offsets`` are those of the transposed rows."""
    total, lanes = int(offsets[-1]), _lanes(int(offsets[-1]))
    shift = max(ENTRIES_PER_BUCKET_LOG, total.bit_length() - MAX_BUCKETS_LOG)
    bucket_of = (offsets[:-1] >> shift).astype(np.int32)
    counts = np.zeros((lanes, (total >> shift) + 1), np.int64)
    # Lanes take consecutive rows, about equally many entries each.
    before = _offsets(row_size)
    lane_rows = np.searchsorted(before, [total * i // lanes for i in range(lanes + 1)]).astype(np.int64)
    lane_rows[-1] = row_size.size
    count_rows_step(row_begin, row_size, columns, label, lane_rows, bucket_of, counts)
    bucket_begin, cursors = _starts(counts)
    entries = np.empty(total, np.int64)
    entry_weight = np.empty(total if weight.size else 0, weight.dtype)
    deal_rows_step(row_begin, row_size, columns, weight, lane_rows, bucket_of, cursors, entries, entry_weight)
    return _Dealt(entries, entry_weight, bucket_begin)


def _settle_rows(dealt: _Dealt, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    columns = np.empty(dealt.entries.size, np.int32)
    weight = np.empty_like(dealt.weight)
    cursor = offsets[:-1].copy()
    lanes = _lanes(columns.size)
    settle_rows_step(dealt.entries, dealt.weight, dealt.bucket_begin, cursor, columns, weight, lanes)
    return columns, weight


def _check_mirrored_counts(edges: EdgeList, space: IdSpace, row_size: np.ndarray, in_count: np.ndarray) -> None:
    """Refuse a list that claims to hold both directions of every edge and does not: its levels would be wrong."""
    differing = np.flatnonzero(row_size != in_count)
    if differing.size:
        p = int(differing[0])
        raise _not_symmetric(
            edges, f"vertex {space.user_id(p)} lists {row_size[p]} neighbours, but {in_count[p]} vertices list it"
        )


def _check_mirrored_edges(
    edges: EdgeList, space: IdSpace, order: np.ndarray, offsets: np.ndarray, targets: np.ndarray, sources: np.ndarray
) -> None:
    differing = np.flatnonzero(targets != sources)
    if differing.size:
        at = int(differing[0])
        u = int(np.searchsorted(offsets, at, side="right")) - 1
        v, reverse = targets[at], sources[at]
        missing = f"edge {space.user_id(order[u])} -> {space.user_id(order[v])}"
        if reverse < v:  # rows are sorted, so the smaller of the two is the one that the other row lacks
            missing = f"edge {space.user_id(order[reverse])} -> {space.user_id(order[u])}"
        raise _not_symmetric(edges, f"{missing} has no reverse")


def _not_symmetric(edges: EdgeList, what: str) -> InputError:
    return InputError(
        f"the graph is undirected with both directions of every edge stored, but {what}",
        path=edges.path or None,
        fix="repair the file, or read it as a directed graph (graph.directed: true)",
    )


def _provenance(edges: EdgeList, graph: Graph, loops: int, self_loops: Rule, duplicates: Rule) -> dict[str, Any]:
    kept_edges, loops_dropped = graph.m, loops if self_loops == "drop" else 0
    if not graph.directed:
        loops_kept = 0
        if loops > loops_dropped:
            row = np.repeat(np.arange(graph.n, dtype=np.int32), np.diff(graph.out_offsets))
            loops_kept = int(np.count_nonzero(graph.out_targets == row))
        kept_edges = (graph.m - loops_kept) // 2 + loops_kept
    listed = graph.m if edges.symmetric_stored else kept_edges
    return {
        "format": edges.format,
        "path": edges.path,
        "notes": list(edges.notes),
        "directed": graph.directed,
        "weighted": graph.weight is not None,
        "vertices": int(graph.user_ids.size),
        "isolated": int(graph.user_ids.size) - graph.n,
        "edges": kept_edges,
        "input_edges": int(edges.src.size),
        "self_loops": self_loops,
        "self_loops_dropped": loops_dropped,
        "duplicates": duplicates,
        "duplicates_dropped": int(edges.src.size) - loops_dropped - listed,
    }
