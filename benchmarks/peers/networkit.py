"""NetworKit: its BFS is sequential; distances only, the predecessors it could keep as well are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkit as nk
import numpy as np

from benchmarks.peers.adapter import Adapter, Pairs, Rows


def make_adapter(threads: int) -> Adapter:
    nk.setNumberOfThreads(threads)
    return NetworkitAdapter()


class NetworkitAdapter(Adapter):
    def __init__(self) -> None:
        super().__init__()
        self._graph: Any = None

    def version(self) -> str:
        return str(nk.__version__)

    def prepare_rows(self, rows: Rows) -> Any:
        src, dst = rows.once()
        return (src.astype(np.int64), dst.astype(np.int64)), rows.n, rows.directed

    def open_rows(self, prepared: Any) -> None:
        pairs, n, directed = prepared
        self._graph = nk.GraphFromCoo(pairs, n=n, directed=directed)

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
