"""What the backend tells NetworkX before it is used: which functions it has, and when it is quicker.

Invariant: FUNCTIONS names just the functions that dispatch.py has (a test proves it).
"""

from __future__ import annotations

from typing import Any

# From so many edges on it is used by itself, where NetworkX is told that it may be (backend_priority). Below, NetworkX
# has its own answer before the graph is converted; a graph that is converted already is always taken.
ONE_PASS, HEAVY, ALL_SOURCES, CONVERTED_ONLY = 50_000, 5_000, 500, 1 << 62

FUNCTIONS: dict[str, tuple[int, str]] = {
    "single_source_shortest_path_length": (ONE_PASS, ""),
    "single_target_shortest_path_length": (ONE_PASS, ""),
    "single_source_shortest_path": (ONE_PASS, "of several shortest paths it may be another"),
    "shortest_path_length": (ONE_PASS, "a source must be given; weights not negative"),
    "shortest_path": (ONE_PASS, "a source must be given; weights not negative; of several it may be another"),
    "has_path": (CONVERTED_ONLY, ""),
    "descendants": (ONE_PASS, ""),
    "ancestors": (ONE_PASS, ""),
    "single_source_dijkstra": (ONE_PASS, "weights are an attribute, not negative"),
    "single_source_dijkstra_path": (ONE_PASS, "weights are an attribute, not negative"),
    "single_source_dijkstra_path_length": (ONE_PASS, "weights are an attribute, not negative"),
    "dijkstra_path": (CONVERTED_ONLY, "weights are an attribute, not negative"),
    "dijkstra_path_length": (CONVERTED_ONLY, "weights are an attribute, not negative"),
    "connected_components": (ONE_PASS, ""),
    "number_connected_components": (ONE_PASS, ""),
    "is_connected": (ONE_PASS, ""),
    "node_connected_component": (ONE_PASS, ""),
    "weakly_connected_components": (ONE_PASS, ""),
    "number_weakly_connected_components": (ONE_PASS, ""),
    "is_weakly_connected": (ONE_PASS, ""),
    "strongly_connected_components": (ONE_PASS, ""),
    "number_strongly_connected_components": (ONE_PASS, ""),
    "is_strongly_connected": (ONE_PASS, ""),
    "pagerank": (HEAVY, "equal weights; no personalization, nstart or dangling"),
    "triangles": (HEAVY, ""),
    "clustering": (HEAVY, "undirected, without weights"),
    "average_clustering": (HEAVY, "undirected, without weights"),
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
