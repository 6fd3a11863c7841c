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

FUNCTIONS: dict[str, tuple[int, str]] = {
    "single_source_shortest_path_length": (SEARCH, ""),
    "single_target_shortest_path_length": (UNWEIGHTED, ""),
    "single_source_shortest_path": (UNWEIGHTED, "of several shortest paths it may be another"),
    "shortest_path_length": (UNWEIGHTED, "a source must be given; weights not negative"),
    "shortest_path": (UNWEIGHTED, "a source must be given; weights not negative; of several it may be another"),
    "has_path": (CONVERTED_ONLY, ""),
    "descendants": (UNWEIGHTED, ""),
    "ancestors": (UNWEIGHTED, ""),
    "single_source_dijkstra": (WEIGHTED, _WEIGHTS),
    "single_source_dijkstra_path": (WEIGHTED, _WEIGHTS),
    "single_source_dijkstra_path_length": (WEIGHTED, _WEIGHTS),
    "dijkstra_path": (CONVERTED_ONLY, _WEIGHTS),
    "dijkstra_path_length": (CONVERTED_ONLY, _WEIGHTS),
    "connected_components": (UNWEIGHTED, ""),
    "number_connected_components": (UNWEIGHTED, ""),
    "is_connected": (UNWEIGHTED, ""),
    "node_connected_component": (UNWEIGHTED, ""),
    "weakly_connected_components": (UNWEIGHTED, ""),
    "number_weakly_connected_components": (UNWEIGHTED, ""),
    "is_weakly_connected": (UNWEIGHTED, ""),
    "strongly_connected_components": (UNWEIGHTED, ""),
    "number_strongly_connected_components": (UNWEIGHTED, ""),
    "is_strongly_connected": (UNWEIGHTED, ""),
    "descendants_at_distance": (UNWEIGHTED, ""),
    "single_source_bellman_ford": (WEIGHTED, _WEIGHTS),
    "single_source_bellman_ford_path": (WEIGHTED, _WEIGHTS),
    "single_source_bellman_ford_path_length": (WEIGHTED, _WEIGHTS),
    "bellman_ford_path": (WEIGHTED, _WEIGHTS),
    "bellman_ford_path_length": (WEIGHTED, _WEIGHTS),
    "bidirectional_dijkstra": (CONVERTED_ONLY, _WEIGHTS),
    "bidirectional_shortest_path": (CONVERTED_ONLY, "of several shortest paths it may be another"),
    "all_pairs_shortest_path_length": (ALL_SOURCES, ""),
    "all_pairs_dijkstra_path_length": (ALL_SOURCES, _WEIGHTS),
    "average_shortest_path_length": (ALL_SOURCES, "without weights or method"),
    "eccentricity": (ALL_SOURCES, "without weights or sp"),
    "diameter": (ALL_SOURCES, "without weights or e"),
    "radius": (ALL_SOURCES, "without weights or e"),
    "center": (ALL_SOURCES, "without weights or e"),
    "periphery": (ALL_SOURCES, "without weights or e"),
    "pagerank": (HEAVY, "weights and shares not negative"),
    "triangles": (HEAVY, ""),
    "clustering": (HEAVY, "no parallel edges"),
    "average_clustering": (HEAVY, "no parallel edges"),
    "transitivity": (HEAVY, "undirected"),
    "core_number": (HEAVY, "undirected"),
    "betweenness_centrality": (ALL_SOURCES, "all sources, without weights or endpoints"),
    "closeness_centrality": (ALL_SOURCES, "wf_improved, without distance"),
    "harmonic_centrality": (ALL_SOURCES, "all sources, without distance"),
}


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
