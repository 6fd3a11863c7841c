"""Every algorithm, one line each: where its class is, and whether several ranks can compute it together.

To add one, write a class (hybrid/algorithms/algorithm.py), its line here and its row in docs/reference/algorithms.md:
the configuration, jobs, `validate`, the service and the report take it from here. This module imports nothing of
Tandem, and a class is loaded when its algorithm is asked for, because each brings kernels of its own.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    home: str  # module:class
    on_ranks: bool = False  # cpu_engine/ranks/algorithms.py has it, too


ALGORITHMS = {
    "bfs": Entry("hybrid.algorithms.bfs:Bfs", on_ranks=True),
    "sssp": Entry("hybrid.algorithms.shortest_paths:ShortestPaths", on_ranks=True),
    "wcc": Entry("hybrid.algorithms.components:WeakComponents", on_ranks=True),
    "scc": Entry("hybrid.algorithms.components:StrongComponents"),
    "pagerank": Entry("hybrid.algorithms.pagerank:PageRank", on_ranks=True),
    "cdlp": Entry("hybrid.algorithms.communities:LabelPropagation", on_ranks=True),
    "louvain": Entry("hybrid.algorithms.communities:Louvain"),
    "kcore": Entry("hybrid.algorithms.k_core:CoreNumbers", on_ranks=True),
    "triangles": Entry("hybrid.algorithms.triangles:Triangles"),
    "lcc": Entry("hybrid.algorithms.triangles:Clustering"),
    "closeness": Entry("hybrid.algorithms.centrality:Closeness"),
    "betweenness": Entry("hybrid.algorithms.centrality:Betweenness"),
}


def names_on_ranks() -> tuple[str, ...]:
    return tuple(name for name, entry in ALGORITHMS.items() if entry.on_ranks)
