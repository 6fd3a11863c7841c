"""Tandem: exact graph algorithms on the CPU, and the dense core of hubs on an NPU.

``import hybrid`` is the Python interface (docs/how-to/python-api.md); what computes is loaded at its first use. The
same package is the coordinator: it plans the split, runs the job, merges, certifies, reports, owns the command line.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybrid.api.algorithms import (
        betweenness,
        bfs,
        closeness,
        clustering,
        components,
        k_core,
        label_propagation,
        louvain,
        pagerank,
        personalised_pagerank,
        sssp,
        strong_components,
        triangles,
    )
    from hybrid.api.graph import Graph
    from hybrid.api.opening import from_edges, generate, load
    from hybrid.results.parts import open_result

__version__ = "0.1.0"

__all__ = [
    "Graph",
    "__version__",
    "betweenness",
    "bfs",
    "closeness",
    "clustering",
    "components",
    "from_edges",
    "generate",
    "k_core",
    "label_propagation",
    "load",
    "louvain",
    "open_result",
    "pagerank",
    "personalised_pagerank",
    "sssp",
    "strong_components",
    "triangles",
]

_ALGORITHMS = "hybrid.api.algorithms"
_HOME_OF = {
    **dict.fromkeys(__all__, _ALGORITHMS), **dict.fromkeys(("load", "generate", "from_edges"), "hybrid.api.opening"),
    "Graph": "hybrid.api.graph", "open_result": "hybrid.results.parts",
}  # fmt: skip
del _HOME_OF["__version__"]  # it is here


def __getattr__(name: str) -> Any:
    """Load what is asked for, once (PEP 562)."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'hybrid' has no attribute {name!r}")
    found = getattr(importlib.import_module(home), name)
    if home == _ALGORITHMS:
        found = importlib.import_module("hybrid.api.opening").of_anything(found)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
