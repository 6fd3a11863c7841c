"""scipy.sparse.csgraph: sequential; its BFS returns the order and the predecessors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numba import njit
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components, dijkstra

from benchmarks.peers.adapter import Adapter, Answer, Pairs, Rows


def make_adapter(threads: int) -> Adapter:
    return ScipyAdapter()


class ScipyAdapter(Adapter):
    library = scipy

    def __init__(self) -> None:
        super().__init__()
        self._matrix: Any = None

    def prepare_rows(self, rows: Rows) -> Any:
        # csgraph works on float64 and would convert anything else at every call.
        indices = (rows.out_targets, rows.out_offsets.astype(np.int32 if rows.out_targets.size < 2**31 else np.int64))
        values = rows.weights() if self.weighted else np.ones(rows.out_targets.size)
        return values.astype(np.float64), *indices, rows.n

    def open_rows(self, prepared: Any) -> None:
        values, targets, offsets, n = prepared
        self._matrix = csr_matrix((values, targets, offsets), shape=(n, n))

    def run(self, variant: str, root: int) -> Any:
        return breadth_first_order(self._matrix, root, directed=True, return_predecessors=True)

    @property
    def answers(self) -> dict[str, Answer]:
        return {
            "sssp": lambda root, _: dijkstra(self._matrix, indices=root),
            "wcc": lambda *_: connected_components(self._matrix, connection="weak")[1],
            "scc": lambda *_: connected_components(self._matrix, connection="strong")[1],
        }

    def levels(self, variant: str, outcome: Any) -> np.ndarray:
        order, parents = outcome
        level = np.full(self._matrix.shape[0], -1, np.int32)
        follow_parents_step(order, parents, level)
        return level

    def build_pairs(self, prepared: Pairs) -> Any:
        src, dst = prepared.both_ways()
        shape = (prepared.count, prepared.count)
        matrix = coo_matrix((np.ones(src.size, np.int8), (src, dst)), shape=shape).tocsr()  # adds duplicates up
        return matrix, prepared.directed

    def edge_count(self, built: Any) -> int:
        matrix, directed = built
        return int(matrix.nnz) // (1 if directed else 2)


@njit(cache=True)
def follow_parents_step(order: np.ndarray, parents: np.ndarray, level: np.ndarray) -> None:
    """Give each vertex of a BFS order the level after its parent's.

    Invariant  a parent stands before its children in the order.   Races  none, one thread.   Work  O(reached).
    """
    level[order[0]] = 0
    for i in range(1, order.size):
        level[order[i]] = level[parents[order[i]]] + 1
