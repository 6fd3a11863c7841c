"""NetworKit: its BFS is sequential; distances only, the predecessors it could keep as well are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkit as nk
import numpy as np

from benchmarks.peers.adapter import Adapter, Answer, Pairs, Rows


def make_adapter(threads: int) -> Adapter:
    nk.setNumberOfThreads(threads)
    return NetworkitAdapter(threads)


class NetworkitAdapter(Adapter):
    library = nk

    def __init__(self, threads: int) -> None:
        super().__init__()
        self._threads = threads
        self._graph: Any = None

    def prepare_rows(self, rows: Rows) -> Any:
        src, dst = rows.once()
        pairs = (src.astype(np.int64), dst.astype(np.int64))
        if self.weighted:
            return (rows.weights_once().astype(np.float64), pairs), rows.n, rows.directed
        return pairs, rows.n, rows.directed

    def open_rows(self, prepared: Any) -> None:
        pairs, n, directed = prepared
        self._graph = nk.GraphFromCoo(pairs, n=n, directed=directed, weighted=self.weighted)

    @property
    def answers(self) -> dict[str, Answer]:
        graph = self._graph
        one_way = graph is not None and graph.isDirected()
        weak = "WeaklyConnectedComponents" if one_way else "ParallelConnectedComponents"
        return {
            "sssp": lambda root, _: nk.distance.Dijkstra(graph, root, False).run(),
            "wcc": lambda *_: getattr(nk.components, weak)(graph).run(),
            "scc": lambda *_: nk.components.StronglyConnectedComponents(graph).run(),
            "pagerank": lambda *_: self._pagerank(),
            "kcore": lambda *_: nk.centrality.CoreDecomposition(graph).run(),
            "lcc": lambda *_: nk.centrality.LocalClusteringCoefficient(graph, True).run(),
        }

    def threads_of(self, name: str) -> int:
        return self._threads if name in ("wcc", "pagerank", "kcore", "lcc") else 1

    def _pagerank(self) -> Any:
        ranks = nk.centrality.PageRank(self._graph, 0.85, 1e-4)
        ranks.norm = nk.centrality.Norm.L1_NORM
        return ranks.run()

    def values(self, name: str, outcome: Any) -> np.ndarray:
        if name == "sssp":
            return np.asarray(outcome.getDistances(asarray=True))
        return np.asarray(outcome.getPartition().getVector() if name in ("wcc", "scc") else outcome.scores())

    def run(self, variant: str, root: int) -> Any:
        search = nk.distance.BFS(self._graph, root, False, False)
        search.run()
        return search

    def levels(self, variant: str, outcome: Any) -> np.ndarray:
        distance = np.asarray(outcome.getDistances(asarray=True))
        return np.where(distance <= np.iinfo(np.int32).max, distance, -1).astype(np.int32)

    def build_pairs(self, prepared: Pairs) -> Any:
        graph = nk.GraphFromCoo((prepared.src, prepared.dst), n=prepared.count, directed=prepared.directed)
        graph.removeSelfLoops()
        graph.removeMultiEdges()
        return graph

    def read_text(self, path: Path, scratch: Path) -> Any:
        # Ids are consecutive from 0; duplicates and loops stay, since its reader keeps them.
        return nk.graphio.EdgeListReader(" ", 0, continuous=True, directed=False).read(str(path))

    def edge_count(self, built: Any) -> int:
        return int(built.numberOfEdges())
