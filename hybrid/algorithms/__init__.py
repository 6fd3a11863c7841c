"""The algorithm library as jobs see it: one small class per algorithm says what it computes, how it is proven and told.

A module is loaded when its algorithm is asked for: each brings kernels of its own.
"""

from __future__ import annotations

import importlib

from hybrid.algorithms.algorithm import Algorithm, Description

_PLACES = {
    "bfs": "bfs:Bfs",
    "sssp": "shortest_paths:ShortestPaths",
    "wcc": "components:WeakComponents",
    "scc": "components:StrongComponents",
    "pagerank": "pagerank:PageRank",
    "cdlp": "label_propagation:LabelPropagation",
    "louvain": "louvain:Louvain",
    "kcore": "k_core:CoreNumbers",
    "triangles": "triangles:Triangles",
    "lcc": "triangles:Clustering",
    "closeness": "centrality:Closeness",
    "betweenness": "centrality:Betweenness",
}
NAMES = tuple(_PLACES)


def description_of(name: str) -> Description:
    """The shape and meaning of an algorithm's result."""
    module, _, kind = _PLACES[name].partition(":")
    found: Description = getattr(importlib.import_module(f"hybrid.algorithms.{module}"), kind)()
    return found


def algorithm_named(name: str) -> Algorithm:
    """An algorithm that hybrid/job/algorithm_job.py can run; bfs has a job of its own."""
    found = description_of(name)
    assert isinstance(found, Algorithm), name
    return found
