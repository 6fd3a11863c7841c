"""The backend as NetworkX loads it: conversions, rules, and a function for each one that it dispatches here."""

from __future__ import annotations

from typing import Any

from hybrid.networkx_backend.clusters import (
    average_clustering,
    clustering,
    transitivity,
)
from hybrid.networkx_backend.conversion import (
    convert_from_nx,
    convert_to_nx,
)
from hybrid.networkx_backend.distances import (
    all_pairs_dijkstra_path_length,
    all_pairs_shortest_path_length,
    average_shortest_path_length,
    center,
    diameter,
    eccentricity,
    periphery,
    radius,
)
from hybrid.networkx_backend.groups import (
    connected_components,
    is_connected,
    is_strongly_connected,
    is_weakly_connected,
    node_connected_component,
    number_connected_components,
    number_strongly_connected_components,
    number_weakly_connected_components,
    strongly_connected_components,
    weakly_connected_components,
)
from hybrid.networkx_backend.paths import (
    ancestors,
    bellman_ford_path,
    bellman_ford_path_length,
    bidirectional_dijkstra,
    bidirectional_shortest_path,
    descendants,
    descendants_at_distance,
    dijkstra_path,
    dijkstra_path_length,
    has_path,
    shortest_path,
    shortest_path_length,
    single_source_bellman_ford,
    single_source_bellman_ford_path,
    single_source_bellman_ford_path_length,
    single_source_dijkstra,
    single_source_dijkstra_path,
    single_source_dijkstra_path_length,
    single_source_shortest_path,
    single_source_shortest_path_length,
    single_target_shortest_path_length,
)
from hybrid.networkx_backend.ranks import (
    pagerank,
)
from hybrid.networkx_backend.rules import Arguments, Verdict, refusal, should_run
from hybrid.networkx_backend.scores import (
    betweenness_centrality,
    closeness_centrality,
    core_number,
    harmonic_centrality,
    triangles,
)

__all__ = [
    "all_pairs_dijkstra_path_length",
    "all_pairs_shortest_path_length",
    "ancestors",
    "average_clustering",
    "average_shortest_path_length",
    "bellman_ford_path",
    "bellman_ford_path_length",
    "betweenness_centrality",
    "bidirectional_dijkstra",
    "bidirectional_shortest_path",
    "can_run",
    "center",
    "closeness_centrality",
    "clustering",
    "connected_components",
    "convert_from_nx",
    "convert_to_nx",
    "core_number",
    "descendants",
    "descendants_at_distance",
    "diameter",
    "dijkstra_path",
    "dijkstra_path_length",
    "eccentricity",
    "harmonic_centrality",
    "has_path",
    "is_connected",
    "is_strongly_connected",
    "is_weakly_connected",
    "node_connected_component",
    "number_connected_components",
    "number_strongly_connected_components",
    "number_weakly_connected_components",
    "pagerank",
    "periphery",
    "radius",
    "shortest_path",
    "shortest_path_length",
    "should_run",
    "single_source_bellman_ford",
    "single_source_bellman_ford_path",
    "single_source_bellman_ford_path_length",
    "single_source_dijkstra",
    "single_source_dijkstra_path",
    "single_source_dijkstra_path_length",
    "single_source_shortest_path",
    "single_source_shortest_path_length",
    "single_target_shortest_path_length",
    "strongly_connected_components",
    "transitivity",
    "triangles",
    "weakly_connected_components",
]


def can_run(name: str, args: tuple[Any, ...], kwargs: Arguments) -> Verdict:
    """True, or why these arguments are not for Tandem."""
    return refusal(name, globals()[name], args, kwargs)
