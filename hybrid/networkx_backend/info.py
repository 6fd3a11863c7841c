"""What the backend tells NetworkX before it is used: which functions it has, and when it is quicker.

Invariant: FUNCTIONS names just the functions that dispatch.py has (a test proves it).
"""

from __future__ import annotations

from typing import Any

# From so many edges on it is used by itself, where NetworkX is configured so (backend_priority); a graph that is
# converted already is always taken. Measured on random graphs (docs/how-to/networkx.md): from there on the first call
# pays, conversion included - but for UNWEIGHTED, where components took up to 2 times NetworkX's own before dicts were
# read by compiled code; only the function with SEARCH was measured since.
SEARCH = 100_000
UNWEIGHTED, WEIGHTED, HEAVY, ALL_SOURCES, CONVERTED_ONLY = 1_000_000, 20_000, 5_000, 1_000, 1 << 62
DENSE = 15  # edges per node: at 10 a conversion pays, at 20 NetworkX's own search, which stops early, is quicker
_WEIGHTS = "weights are an attribute, not negative"

_ANOTHER = "of several shortest paths it may be another"
_PAIRED = "a source must be given; weights not negative"

FUNCTIONS: dict[str, tuple[int, str]] = {
    "single_source_shortest_path_length": (SEARCH, ""),
    "single_source_shortest_path": (UNWEIGHTED, _ANOTHER),
    "shortest_path_length": (UNWEIGHTED, _PAIRED),
    "shortest_path": (UNWEIGHTED, f"{_PAIRED}; of several it may be another"),
    "has_path": (CONVERTED_ONLY, ""),
    "bidirectional_shortest_path": (CONVERTED_ONLY, _ANOTHER),
    **dict.fromkeys(
        (
            "single_target_shortest_path_length", "descendants", "ancestors", "descendants_at_distance",
            "connected_components", "number_connected_components", "is_connected", "node_connected_component",
            "weakly_connected_components", "number_weakly_connected_components", "is_weakly_connected",
            "strongly_connected_components", "number_strongly_connected_components", "is_strongly_connected",
        ),
        (UNWEIGHTED, ""),
    ),
    **dict.fromkeys(
        (
            "single_source_dijkstra", "single_source_dijkstra_path", "single_source_dijkstra_path_length",
            "single_source_bellman_ford", "single_source_bellman_ford_path", "single_source_bellman_ford_path_length",
            "bellman_ford_path", "bellman_ford_path_length",
        ),
        (WEIGHTED, _WEIGHTS),
    ),
    **dict.fromkeys(("dijkstra_path", "dijkstra_path_length", "bidirectional_dijkstra"), (CONVERTED_ONLY, _WEIGHTS)),
    "all_pairs_shortest_path_length": (ALL_SOURCES, ""),
    "all_pairs_dijkstra_path_length": (ALL_SOURCES, _WEIGHTS),
    "average_shortest_path_length": (ALL_SOURCES, "without weights or method"),
    "eccentricity": (ALL_SOURCES, "without weights or sp"),
    **dict.fromkeys(("diameter", "radius", "center", "periphery"), (ALL_SOURCES, "without weights or e")),
    "pagerank": (HEAVY, "weights and shares not negative"),
    "triangles": (HEAVY, ""),
    **dict.fromkeys(("clustering", "average_clustering"), (HEAVY, "no parallel edges")),
    **dict.fromkeys(("transitivity", "core_number"), (HEAVY, "undirected")),
    "betweenness_centrality": (ALL_SOURCES, "all sources, without weights or endpoints"),
    "closeness_centrality": (ALL_SOURCES, "wf_improved, without distance"),
    "harmonic_centrality": (ALL_SOURCES, "all sources, without distance"),
}  # fmt: skip


def get_info() -> dict[str, Any]:
    """For the entry point ``networkx.backend_info``."""
    return {
        "backend_name": "tandem",
        "project": "Tandem",
        "package": "tandem-graph",
        "short_summary": "Exact, checked graph algorithms in parallel on the CPU.",
        "description": "Every result is checked by code that shares nothing with what computed it.",
        "functions": {name: {"additional_docs": limits} for name, (_, limits) in FUNCTIONS.items()},
    }
