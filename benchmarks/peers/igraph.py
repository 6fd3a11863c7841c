"""igraph: sequential; its BFS returns the order, where each level begins in it, and parents, as lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import igraph
import numpy as np

from benchmarks.peers.adapter import Adapter, Answer, Pairs, Rows


def make_adapter(threads: int) -> Adapter:
    return IgraphAdapter()


class IgraphAdapter(Adapter):
    library = igraph

    def __init__(self) -> None:
        super().__init__()
        self._graph: Any = None

    def prepare_rows(self, rows: Rows) -> Any:
        src, dst = rows.once()
        weights = rows.weights_once().tolist() if self.weighted else None
        return np.stack((src, dst), axis=1).astype(np.int64), rows.n, rows.directed, weights

    def open_rows(self, prepared: Any) -> None:
        pairs, n, directed, weights = prepared
        self._graph = igraph.Graph(n=n, edges=pairs, directed=directed)
        if weights is not None:
            self._graph.es["weight"] = weights

    @property
    def answers(self) -> dict[str, Answer]:
        graph = self._graph
        found: dict[str, Answer] = {
            "sssp": lambda root, _: graph.distances(root, weights="weight")[0],
            "wcc": lambda *_: graph.connected_components("weak").membership,
            "scc": lambda *_: graph.connected_components("strong").membership,
            "pagerank": lambda *_: graph.pagerank(damping=0.85),
            "kcore": lambda *_: graph.coreness(),
            "betweenness": lambda _, roots: graph.betweenness(sources=roots),
            "lcc": lambda *_: graph.transitivity_local_undirected(mode="zero"),
        }
        return found

    def run(self, variant: str, root: int) -> Any:
        return self._graph.bfs(root, mode="out")

    def levels(self, variant: str, outcome: Any) -> np.ndarray:
        order, starts, _ = outcome
        level = np.full(self._graph.vcount(), -1, np.int32)
        level[np.asarray(order, np.int64)] = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
        return level

    def prepare_pairs(self, pairs: Pairs) -> Any:
        return np.stack((pairs.src, pairs.dst), axis=1), pairs.count, pairs.directed

    def build_pairs(self, prepared: Any) -> Any:
        pairs, count, directed = prepared
        graph = igraph.Graph(n=count, edges=pairs, directed=directed)
        graph.simplify()
        return graph

    def read_text(self, path: Path, scratch: Path) -> Any:
        return igraph.Graph.Read_Edgelist(str(path), directed=False)

    def edge_count(self, built: Any) -> int:
        return int(built.ecount())
