"""From an edge list to a Graph: one pass over the edges to buckets, one to rows, one (directed: two) transposition.

    edges -> positions (idspace) -> buckets of rows -> rows, loops and duplicates dropped -> degrees -> internal ids
          -> transposed once: rows of in-neighbours, sorted because rows were visited in ascending order;
             for an undirected graph that is the graph, a directed one is transposed back into sorted out-rows.

Invariant: the result depends on the edge list and the rules alone, not on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numba
import numpy as np

from cpu_engine.counted import plural
from cpu_engine.errors import InputError
from cpu_engine.graph.build import passes
from cpu_engine.graph.build.idspace import MAX_NARROW, IdSpace, kernel_input, resolve_ids
from cpu_engine.graph.build.passes import Layout, Rows, Spare
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.kernels.csr import count_columns_step, locate_rows_step, rank_by_degree_step
from cpu_engine.graph.memory import require_bytes

Rule = Literal["drop", "keep"]
Progress = Callable[[int, int], None]  # (steps done, steps in all)
_STEPS = 5


@dataclass(frozen=True)
class _Numbering:
    """Which internal id each position has (-1: none), and the other way round."""

    label: np.ndarray
    order: np.ndarray
    max_degree: int


def build_graph(
    edges: EdgeList,
    *,
    directed: bool | None = None,
    self_loops: Rule = "drop",
    duplicates: Rule = "drop",
    progress: Progress | None = None,
    consume: bool = False,
    id_dtype: type[np.signedinteger[Any]] | None = None,
) -> Graph:
    """Build the graph of an edge list.

    ``directed`` None means what the file says, and directed if it says nothing. Of duplicate edges the smallest weight
    is kept; in an undirected graph "u v" and "v u" are duplicates. ``progress`` gets (steps done, steps in all).
    ``consume``: the edge list is not needed any more; it is empty afterwards, and its memory may be written over.
    ``id_dtype``: of internal ids; int32 unless there are too many vertices for it.
    """
    for name, rule in (("self_loops", self_loops), ("duplicates", duplicates)):
        if rule not in ("drop", "keep"):
            raise InputError(f"{name} must be 'drop' or 'keep'", value=rule, fix="choose one of the two")
    tell = progress or (lambda done, total: None)
    as_directed = directed if directed is not None else edges.directed is not False
    mirror = not as_directed and not edges.symmetric_stored
    weight, weighted, edge_count = _weights(edges), edges.weight is not None, edges.src.size
    with _as_many_threads_as_pay(edge_count):
        space = resolve_ids(edges)
        once = as_directed or edges.symmetric_stored  # each entry of the list is one of the graph
        require_bytes(
            estimate_build_bytes(edge_count, space.span, once, weighted, consume=consume),
            f"building a graph of {plural(edge_count, 'edge')} and {plural(space.span, 'vertex')}",
            "use a machine with more memory, or a smaller graph",
        )
        layout = passes.choose_layout(edge_count * (2 if mirror else 1), space.span, _id_type(space.span, id_dtype))
        tell(1, _STEPS)
        if consume and space.scratch:  # the edges are read from there now
            _take_over(edges)
        scattered, found = passes.scatter_edges(space, weight, mirror, self_loops == "drop", layout)
        spare = Spare([*space.scratch, *(_take_over(edges) if consume else ())])
        space = replace(space, src=space.src[:0], dst=space.dst[:0], scratch=())
        del weight
        rows = passes.gather_rows(scattered, layout, duplicates == "drop")
        del scattered
        tell(2, _STEPS)
        graph = _number_and_sort(edges, space, rows, layout, spare, as_directed, tell)
    if weighted and graph.weight is None:  # no edge was left to have one
        graph = replace(graph, weight=rows.weight)
    graph.meta.update(_provenance(edges, graph, edge_count, found.loops, self_loops, duplicates))
    graph.meta["directed_assumed"] = directed is None and edges.directed is None
    tell(_STEPS, _STEPS)
    return graph


def estimate_build_bytes(
    edge_count: int, vertex_count: int, directed: bool, weighted: bool, *, consume: bool = False
) -> int:
    """Peak memory of ``build_graph`` beyond the edge list it is given, result included, for compact ids.

    ``directed`` also stands for an undirected list that holds both directions of every edge.
    """
    entries = edge_count * (1 if directed else 2)
    layout = passes.choose_layout(entries, vertex_count, _id_type(vertex_count, None))
    weight, entry, column = 8 if weighted else 0, layout.entry.itemsize, layout.id.itemsize
    lanes = passes.lanes_for(entries)
    lines = passes.lines_bytes(lanes, layout) if lanes > 1 else 0
    degree = column * (2 if directed else 1)
    gather_lanes = passes.gather_lanes(entries, vertex_count, weighted)
    scratch = 2 * entries // layout.buckets * (column + weight)  # for a bucket of twice the mean
    gathering = entries * (entry + weight) + vertex_count * (8 + degree)
    gathering += gather_lanes * (scratch + vertex_count // 8 + vertex_count * (4 if weighted else 0))
    # The rows, the entries scattered from them, and a directed graph's rows of the other direction.
    transposing = entries * (column + entry + 2 * weight + (column if directed else 0))
    transposing += vertex_count * (degree + 2 * column + 16) + lines
    if consume:  # ends of 32 bits and weights of 64 are written over where there is room, else freed
        transposing -= min(entries * entry, edge_count * 8) + edge_count * weight
    return int(max(gathering, transposing))


def _id_type(span: int, wanted: type[np.signedinteger[Any]] | None) -> np.dtype:
    if wanted is not None and np.dtype(wanted) == np.int32 and span > MAX_NARROW:
        raise ValueError(f"{span} vertices are more than int32 can number")
    return np.dtype(wanted or (np.int32 if span <= MAX_NARROW else np.int64))


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
    numba.set_num_threads(threads if edge_count > passes.ENTRIES_PER_LANE else 1)
    try:
        yield
    finally:
        numba.set_num_threads(threads)


def _take_over(edges: EdgeList) -> list[np.ndarray]:
    """Empty the list, and return such of its memory as no other object uses."""
    arrays = [array for array in (edges.src, edges.dst, edges.weight) if array is not None]
    both = edges.src.base
    if both is not None and both is edges.dst.base and both.nbytes == edges.src.nbytes + edges.dst.nbytes:
        arrays = [both, *arrays[2:]]  # the two halves of one block
    # The list is frozen against mistakes; this is what ``consume`` asks for.
    for name, value in (("src", edges.src[:0].copy()), ("dst", edges.dst[:0].copy()), ("weight", None)):
        object.__setattr__(edges, name, value)
    return [a for a in arrays if a.flags.owndata and a.flags.c_contiguous and a.flags.writeable]


def _number_and_sort(
    edges: EdgeList, space: IdSpace, rows: Rows, layout: Layout, spare: Spare, directed: bool, tell: Progress
) -> Graph:
    check_mirrored = edges.symmetric_stored and not directed
    both_ways = directed or check_mirrored
    in_count = _count_columns(rows, layout) if both_ways else rows.size
    if check_mirrored:
        _check_mirrored_counts(edges, space, rows.size, in_count)
    numbering = _number(rows.size + in_count if directed else rows.size, layout)
    label, order = numbering.label, numbering.order
    row_begin, out_offsets = np.empty(order.size, np.int64), np.zeros(order.size + 1, np.int64)
    locate_rows_step(order, rows.slot_begin, rows.size, layout.shape(), row_begin, out_offsets[1:])
    np.cumsum(out_offsets, out=out_offsets)
    in_offsets = _offsets(in_count[order]) if directed else out_offsets
    rows.slot_begin = rows.size = in_count = np.empty(0, np.int64)  # freed: the longest arrays come now
    tell(3, _STEPS)

    m = int(out_offsets[-1])
    scattered = passes.scatter_rows(row_begin, out_offsets, rows.columns, rows.weight, layout, spare)
    spare.blocks = [scattered.entries, scattered.weight] if both_ways else []
    passes.settle_rows(scattered, label, in_offsets, layout, rows.columns, rows.weight)
    del scattered, row_begin
    rows.columns = in_sources = out_targets = passes.shrink(rows.columns, m)
    rows.weight = passes.shrink(rows.weight, m if rows.weight.size else 0)
    tell(4, _STEPS)
    if both_ways:
        no_label, out_targets = np.empty(0, layout.id), np.empty(m, layout.id)
        scattered = passes.scatter_rows(in_offsets[:-1], in_offsets, in_sources, rows.weight, layout, spare)
        passes.settle_rows(scattered, no_label, out_offsets, layout, out_targets, rows.weight)
        del scattered
        if check_mirrored:
            _check_mirrored_edges(edges, space, order, out_offsets, out_targets, in_sources)
            out_targets = in_sources
    user_position, internal_of_position = order, label
    if space.present is not None:
        space.present[order] = 1
        if not space.present.all():
            user_position = (np.cumsum(space.present, dtype=layout.id) - layout.id.type(1))[order]
            internal_of_position = label[space.present.view(np.bool_)]
    return Graph(
        n=order.size,
        m=m,
        directed=directed,
        user_ids=space.user_ids(),
        out_offsets=out_offsets,
        out_targets=out_targets,
        in_offsets=in_offsets,
        in_sources=in_sources,
        weight=rows.weight if rows.weight.size else None,
        user_position=user_position,
        internal_of_position=internal_of_position,
        meta={"max_degree": numbering.max_degree},
    )


def _count_columns(rows: Rows, layout: Layout) -> np.ndarray:
    entries = int(rows.kept.sum())
    lanes = min(passes.lanes_for(entries), max(1, entries // (2 * max(layout.span, 1))))
    counts = np.zeros((lanes, layout.span), rows.size.dtype)
    count_columns_step(rows.columns, rows.bucket_begin, rows.kept, counts)
    return counts[0] if lanes == 1 else counts.sum(axis=0, dtype=counts.dtype)


def _number(degree: np.ndarray, layout: Layout) -> _Numbering:
    n, max_degree = int(np.count_nonzero(degree)), int(degree.max(initial=0))
    label, order = np.empty(layout.span, layout.id), np.empty(n, layout.id)
    rank_by_degree_step(degree, np.zeros(max_degree + 2, np.int64), label, order)
    return _Numbering(label, order, max_degree)


def _offsets(sizes: np.ndarray) -> np.ndarray:
    offsets = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _check_mirrored_counts(edges: EdgeList, space: IdSpace, row_size: np.ndarray, in_count: np.ndarray) -> None:
    """Refuse a list that claims to hold both directions of every edge and does not: its levels would be wrong."""
    differing = np.flatnonzero(row_size != in_count)
    if differing.size:
        p = int(differing[0])
        raise _not_symmetric(
            edges,
            f"vertex {space.user_id(p)} lists {plural(row_size[p], 'neighbour')}, but "
            f"{plural(in_count[p], 'vertex lists', 'vertices list')} it",
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


def _provenance(
    edges: EdgeList, graph: Graph, edge_count: int, loops: int, self_loops: Rule, duplicates: Rule
) -> dict[str, Any]:
    kept_edges, loops_dropped = graph.m, loops if self_loops == "drop" else 0
    if not graph.directed:
        loops_kept = 0
        if loops > loops_dropped:
            row = np.repeat(np.arange(graph.n, dtype=graph.out_targets.dtype), np.diff(graph.out_offsets))
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
        "input_edges": edge_count,
        "self_loops": self_loops,
        "self_loops_dropped": loops_dropped,
        "duplicates": duplicates,
        "duplicates_dropped": edge_count - loops_dropped - listed,
    }
