"""igraph: sequential; its BFS returns the order, where each level begins in it, and parents, as lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import igraph
import numpy as np

from benchmarks.peers.adapter import Adapter, Pairs, Rows


def make_adapter(threads: int) -> Adapter:
    return IgraphAdapter()


class IgraphAdapter(Adapter):
    def __init__(self) -> None:
        super().__init__()
        self._graph: Any = None

    def version(self) -> str:
        return str(igraph.__version__)

    def prepare_rows(self, rows: Rows) -> Any:
        return np.stack(rows.once(), axis=1).astype(np.int64), rows.n, rows.directed

    def open_rows(self, prepared: Any) -> None:
        pairs, n, directed = prepared
        self._graph = igraph.Graph(n=n, edges=pairs, directed=directed)

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
