"""Whether the arrays of a graph are sound: what kernels trust without looking, checked once for a graph from outside.

Checked: offsets ascend from 0 to m; entries are vertices; rows ascend; an undirected graph has both arcs of every edge,
with one weight, and a directed one's in-rows are its out-rows transposed; vertices are numbered by descending degree;
best_in and hanging_start are what they say; user ids ascend and the two id maps are inverse. Then no kernel reads or
writes outside its arrays, and what a certificate proves of the arrays is true of one graph.
"""

from __future__ import annotations

import secrets

import numba
import numpy as np

from cpu_engine.counted import count, plural
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.kernels.graph_check import (
    NOWHERE,
    VertexArrays,
    check_rows_step,
    check_vertices_step,
    find_unsorted_step,
)

Flaw = tuple[str, str]  # the array, and what is wrong with it where


def find_flaw(graph: Graph) -> Flaw | None:
    """The first flaw of a graph's arrays, None if they are sound."""
    sides = [("out_offsets", graph.out_offsets, "out_targets", graph.out_targets)]
    if graph.directed:
        sides.append(("in_offsets", graph.in_offsets, "in_sources", graph.in_sources))
    for name, offsets, _, entries in sides:
        flaw = _flaw_of_offsets(name, offsets, entries.size)
        if flaw:
            return flaw
    keys = np.array([secrets.randbits(64) for _ in range(3)], np.uint64)
    sums = []
    for _, offsets, entry_name, entries in sides:
        weight = None if graph.directed or graph.weight is None else graph.weight.view(np.uint64)
        row, *both = _check_rows(offsets, entries, weight, graph.n, keys)
        if row != NOWHERE:
            return entry_name, _about_row(row, entries[offsets[row] : offsets[row + 1]], int(offsets[row]), graph.n)
        sums.append(both)
    if graph.directed and sums[0][0] != sums[1][1]:
        return "in_sources", "the in-rows are not the out-rows transposed"
    if not graph.directed and sums[0][0] != sums[0][1]:
        return "out_targets", "an edge of this undirected graph lacks its other direction, or has another weight there"
    return _flaw_of_vertices(graph)


def _lanes() -> np.ndarray:
    return np.empty(numba.get_num_threads(), np.int64)


def _flaw_of_offsets(name: str, offsets: np.ndarray, entries: int) -> Flaw | None:
    if offsets[0] != 0 or offsets[-1] != entries:
        return name, f"it leads from {offsets[0]} to {offsets[-1]}, not from 0 to {entries}"
    at = _first_unsorted(offsets, strictly=False)
    return None if at == NOWHERE else (name, f"entry {at} is {offsets[at]}, less than the one before it")


def _first_unsorted(values: np.ndarray, *, strictly: bool) -> int:
    first = _lanes()
    find_unsorted_step(values, strictly, first)
    return int(first.min())


def _check_rows(
    offsets: np.ndarray, entries: np.ndarray, weight: np.ndarray | None, n: int, keys: np.ndarray
) -> tuple[int, int, int]:
    """(the first bad row, the sum of hashes forth, the sum of hashes back)."""
    first = _lanes()
    forth, back = np.empty(first.size, np.uint64), np.empty(first.size, np.uint64)
    wanted = np.arange(first.size + 1) * entries.size // first.size
    cuts = np.searchsorted(offsets, wanted).astype(np.int64)  # rows with as many entries for each lane
    cuts[0], cuts[-1] = 0, n
    check_rows_step(offsets, entries, weight, n, keys, cuts, first, forth, back)
    return int(first.min()), int(forth.sum()), int(back.sum())


def _about_row(row: int, entries: np.ndarray, begin: int, n: int) -> str:
    outside = np.flatnonzero((entries < 0) | (entries >= n))
    at = int(outside[0]) if outside.size else int(np.flatnonzero(entries[1:] < entries[:-1])[0]) + 1
    reason = f"but vertices are 0..{n - 1}" if outside.size else "less than the one before it in its row"
    return f"entry {begin + at} (row {row}) is {entries[at]}, {reason}"


def _flaw_of_vertices(graph: Graph) -> Flaw | None:
    by_degree, by_neighbour, by_position, named = _lanes(), _lanes(), _lanes(), _lanes()
    arrays = VertexArrays(
        graph.out_offsets, graph.in_offsets, graph.in_sources, graph.best_in, graph.user_position,
        graph.internal_of_position,
    )  # fmt: skip
    check_vertices_step(
        graph.n, arrays, graph.directed, graph.hanging_start, by_degree, by_neighbour, by_position, named
    )
    v = int(by_degree.min())
    if v != NOWHERE:
        return "out_offsets", f"vertex {v} is out of the order of descending degrees, or hanging_start is wrong"
    v = int(by_neighbour.min())
    if v != NOWHERE:
        return "best_in", f"entry {v} is {graph.best_in[v]}, not the first in-neighbour of vertex {v}"
    v = int(by_position.min())
    if v != NOWHERE:
        return "user_position", f"entry {v} is {graph.user_position[v]}, and internal_of_position does not lead back"
    if int(named.sum()) != graph.n:
        return "internal_of_position", f"it names {plural(named.sum(), 'vertex')}, not {count(graph.n)}"
    at = _first_unsorted(graph.user_ids, strictly=True)
    return (
        None if at == NOWHERE else ("user_ids", f"entry {at} is {graph.user_ids[at]}, not more than the one before it")
    )
