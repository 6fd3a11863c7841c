"""Whether Tandem can answer a call, and whether it should: True, or the reason why not.

Invariant: ``refusal`` looks at the arguments only, never at edges, so asking costs nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from hybrid.api.graph import Graph
from hybrid.networkx_backend.info import CONVERTED_ONLY, DENSE, FUNCTIONS, SEARCH, UNWEIGHTED
from hybrid.terminal import plural

Arguments = dict[str, Any]
Verdict = bool | str


def refusal(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Arguments) -> Verdict:
    """True, or why these arguments of the function are not for Tandem."""
    try:
        bound = _signature(function).bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    bound.apply_defaults()
    for refuse in _REFUSALS.get(name, ()):
        reason = refuse(bound.arguments)
        if reason:
            return reason
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: Arguments) -> Verdict:
    """True, or why NetworkX will be quicker."""
    least, _ = FUNCTIONS[name]
    graph = args[0] if args else kwargs.get("G")
    if isinstance(graph, Graph) or "tandem" in (getattr(graph, "__networkx_cache__", None) or {}).get("backends", {}):
        return True
    if least >= CONVERTED_ONLY:
        return "one pair of vertices is quicker found without converting the graph"
    edges, nodes = _size(graph)
    if edges < least:
        return f"the graph has {plural(edges, 'edge')}, and converting it pays from {least} on"
    if least in (SEARCH, UNWEIGHTED) and edges > DENSE * nodes:
        return "the graph is dense, and NetworkX stops when it has seen every node, which is soon"
    return True


def _size(graph: Any) -> tuple[int, int]:
    """Edges (arcs of a directed graph; parallel ones once) and nodes, without looking at either."""
    rows = getattr(graph, "_adj", None)
    if rows is None:
        return 0, 0
    arcs = sum(map(len, rows.values()))
    return arcs if graph.is_directed() else arcs // 2, len(rows)


_signature = cache(inspect.signature)


def _directed(asked: Arguments) -> str:
    return "the graph is directed" if asked["G"].is_directed() else ""


def _undirected(asked: Arguments) -> str:
    return "" if asked["G"].is_directed() else "the graph is undirected"


def _multigraph(asked: Arguments) -> str:
    return "the graph has parallel edges" if asked["G"].is_multigraph() else ""


def _given(name: str, why: str = "") -> Callable[[Arguments], str]:
    return lambda asked: "" if asked[name] is None else f"{name} is given{why}"


def _not(name: str, wanted: object, reason: str) -> Callable[[Arguments], str]:
    return lambda asked: "" if asked[name] == wanted else reason


def _computed_weight(asked: Arguments) -> str:
    weight = asked["weight"]
    return "" if weight is None or isinstance(weight, str) else "the weight is no attribute's name"


def _no_source(asked: Arguments) -> str:
    return "no source is given" if asked["source"] is None else ""


def _some_method(asked: Arguments) -> str:
    return "" if asked["weight"] is None or asked["method"] == "dijkstra" else f"the method is {asked['method']}"


def _unknown_method(asked: Arguments) -> str:
    return "" if asked["method"] in ("dijkstra", "bellman-ford") else f"there is no method {asked['method']}"


_BETWEEN = (_no_source, _computed_weight, _unknown_method, _some_method)
_REFUSALS: dict[str, tuple[Callable[[Arguments], str], ...]] = {
    "shortest_path_length": _BETWEEN,
    "shortest_path": _BETWEEN,
    **dict.fromkeys(
        (
            "single_source_dijkstra", "single_source_dijkstra_path", "single_source_dijkstra_path_length",
            "dijkstra_path", "dijkstra_path_length", "bidirectional_dijkstra", "all_pairs_dijkstra_path_length",
            "single_source_bellman_ford", "single_source_bellman_ford_path", "single_source_bellman_ford_path_length",
            "bellman_ford_path", "bellman_ford_path_length",
        ),
        (_computed_weight,),
    ),
    **dict.fromkeys(
        ("connected_components", "number_connected_components", "is_connected", "node_connected_component"),
        (_directed,),
    ),
    **dict.fromkeys(
        (
            "weakly_connected_components", "number_weakly_connected_components", "is_weakly_connected",
            "strongly_connected_components", "number_strongly_connected_components", "is_strongly_connected",
        ),
        (_undirected,),
    ),
    **dict.fromkeys(("diameter", "radius", "center", "periphery"), (_given("e"), _given("weight"))),
    "eccentricity": (_given("sp"), _given("weight")),
    "average_shortest_path_length": (_given("weight"), _given("method")),
    "pagerank": (_multigraph,),
    "triangles": (_directed, _multigraph),
    "clustering": (_multigraph,),
    "average_clustering": (_multigraph,),
    "transitivity": (_directed, _multigraph),
    "core_number": (_directed, _multigraph),
    "betweenness_centrality": (
        _given("k", ", and the sample depends on NetworkX's order of nodes"),
        _given("weight"),
        _not("endpoints", False, "the ends of paths are to be counted"),
    ),
    "closeness_centrality": (
        _given("distance"), _not("wf_improved", True, "the formula is not Wasserman's and Faust's"),
    ),
    "harmonic_centrality": (_given("distance"), _given("sources")),
}  # fmt: skip
