"""Every algorithm of the library on graphs at the edge: as its naive reference has it, checked, in the user's ids.

Loops, parallel edges of different weights, cycles without length, parts that nothing joins, a single vertex, weights
that nearly overflow - with loops and repetitions dropped or kept, directed or not, on one rank and on three.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.ranks.algorithms import NAMES as RANKED
from hybrid.algorithms import algorithm_named
from hybrid.algorithms.algorithm import Task
from hybrid.config import load_config
from hybrid.graphs.sources import Source
from hybrid.job.units import run_once
from hybrid.ranks.rendezvous import Agreed
from hybrid.registry import ALGORITHMS
from hybrid.results.trace import Trace
from tests import naive
from tests.naive import centrality, components, k_core, labels, louvain, pagerank, sssp, triangles
from tests.property.ranks.test_ranks_library_job import run_on

LARGEST = 2**63 - 1
Edges = list[tuple[int, int, Any]]
TRIANGLE: Edges = [(1, 2, 3), (2, 3, 1), (1, 3, 9)]

CORNERS: dict[str, tuple[Edges, list[int]]] = {  # edges, and vertices that may have none
    "one vertex": ([], [7]),
    "one vertex with a loop": ([(7, 7, 2)], [7]),
    "loops of different weights at one vertex": ([(7, 7, 2), (7, 7, 0)], [7]),
    "one edge": ([(7, 9, 4)], [7, 9]),
    "there and back": ([(7, 9, 4), (9, 7, 6)], [7, 9]),
    "nothing but isolated vertices": ([], [3, 7, 9]),
    "parallel edges": ([(1, 2, 9), (1, 2, 2), (2, 1, 5), (2, 3, 1), (2, 3, 1), (3, 1, 0), (3, 1, 8)], [1, 2, 3]),
    "loops in a triangle": ([*TRIANGLE, (1, 1, 0), (3, 3, 5), (3, 3, 2)], [1, 2, 3]),
    "cycle without length": ([(1, 2, 1), (2, 3, 0), (3, 4, 0), (4, 2, 0), (4, 5, 7)], [1, 2, 3, 4, 5]),
    "no length at all": ([(1, 2, 0), (2, 3, 0), (3, 1, 0), (3, 4, 0)], [1, 2, 3, 4]),
    "parts that nothing joins": (
        [*TRIANGLE, (11, 12, 3), (12, 13, 1), (13, 11, 9), (20, 21, 1)], [1, 2, 3, 11, 12, 13, 20, 21, 99],
    ),
    "two ways of equal length": ([(1, 2, 1), (1, 3, 1), (2, 4, 1), (3, 4, 1), (4, 5, 2)], [1, 2, 3, 4, 5]),
    "star": ([(1, leaf, leaf) for leaf in range(2, 9)], list(range(1, 9))),
    "star inwards": ([(leaf, 1, leaf) for leaf in range(2, 9)], list(range(1, 9))),
    "just fits": ([(1, 2, LARGEST - 10), (2, 3, 5), (2, 4, 0)], [1, 2, 3, 4]),
    "just fits, and a way that does not": ([(1, 2, LARGEST - 1), (2, 3, 9), (1, 3, 5)], [1, 2, 3]),
    "just fits into 32 bits": ([(1, 2, 2**31 - 2), (2, 3, 1), (1, 4, 2**30), (4, 5, 2**30)], [1, 2, 3, 4, 5]),
    "real and huge": ([(1, 2, 1e308), (2, 3, 1e290), (1, 3, 1.5e308)], [1, 2, 3]),
    "real and tiny": ([(1, 2, 1e-320), (2, 3, 5e-324), (1, 3, 1.0), (3, 4, 0.0)], [1, 2, 3, 4]),
}  # fmt: skip


def left_over(edges: Edges, directed: bool, rule: str) -> Edges:
    """The edges that the graph has."""
    if rule == "keep":
        return edges
    lightest: dict[tuple[int, int], Any] = {}
    for u, v, w in edges:
        if u != v:
            key = (u, v) if directed else (min(u, v), max(u, v))
            lightest[key] = min(w, lightest.get(key, w))
    return [(u, v, w) for (u, v), w in lightest.items()]


def expected(name: str, edges: Edges, vertices: list[int], directed: bool) -> dict[int, Any]:
    """What the naive reference says of every vertex; from vertex[0] where there is a source."""
    pairs = [(u, v) for u, v, _ in edges]
    if name == "bfs":
        return dict.fromkeys(vertices, -1) | naive.bfs_levels(pairs, directed, vertices[0])
    if name == "sssp":
        zero: Any = 0.0 if any(isinstance(w, float) for *_, w in edges) else 0
        none: Any = np.inf if isinstance(zero, float) else -1
        return dict.fromkeys(vertices, none) | sssp.distances(edges, directed, vertices[0], zero)
    both = pairs if directed else pairs + [(v, u) for u, v in pairs]
    simple = list({(u, v) for u, v in pairs if u != v})
    everybody = {
        "wcc": lambda: components.weak(vertices, pairs),
        "scc": lambda: components.strong(vertices, both),
        "kcore": lambda: k_core.core_numbers(vertices, pairs),
        "pagerank": lambda: pagerank.pagerank(vertices, pairs, directed, 10, spread=True),
        "closeness": lambda: {v: centrality.closeness(simple, directed, v, len(vertices), True) for v in vertices},
    }
    if name in everybody:
        return everybody[name]()
    some: dict[str, Callable[[], dict[int, Any]]] = {
        "cdlp": lambda: labels.propagate(pairs, directed, 10),
        "triangles": lambda: triangles.triangles_at(pairs),
        "lcc": lambda: triangles.clustering(pairs, directed),
        "betweenness": lambda: centrality.betweenness(simple, directed, vertices),
    }
    return {v: v if name == "cdlp" else 0 for v in vertices} | some[name]()


def edge_list(edges: Edges, vertices: list[int], directed: bool) -> EdgeList:
    columns = [np.array([edge[i] for edge in edges], np.int64) for i in (0, 1)]
    weight = np.array([w for *_, w in edges]) if edges else np.empty(0, np.int64)
    return EdgeList(*columns, weight, vertices=np.array(vertices), directed=directed)


def answer(name: str, edges: Edges, vertices: list[int], directed: bool, rule: str) -> dict[int, Any]:
    """The library's checked answer by the user's ids."""
    graph = build_graph(edge_list(edges, vertices, directed), self_loops=rule, duplicates=rule)  # type: ignore[arg-type]
    algorithm = algorithm_named(name)
    config = load_config(None, [f"algorithm={name}", "centrality.normalised=false"] if name == "betweenness" else [])
    source = Source(vertices[0], graph.internal_id(vertices[0]))
    run = run_once(algorithm, Task(graph, config, source if algorithm.sourced else None), Trace())
    assert graph.user_ids.tolist() == vertices
    return dict(zip(vertices, run.arrays[algorithm.fields[0].name].tolist(), strict=True))


@pytest.mark.parametrize("rule", ["drop", "keep"])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", [one for one in ALGORITHMS if one not in ("bfs", "louvain")])
def test_as_the_naive_reference(name: str, directed: bool, rule: str) -> None:
    for corner, (edges, vertices) in CORNERS.items():
        if name == "betweenness" and rule == "keep":
            continue  # paths over parallel edges are paths of their own: below
        right = expected(name, left_over(edges, directed, rule), vertices, directed)
        if name == "betweenness" and not directed:
            right = {v: score / 2 for v, score in right.items()}
        found = answer(name, edges, vertices, directed, rule)
        exact = name in ("sssp", "wcc", "scc", "cdlp", "kcore", "triangles")
        assert found == (right if exact else pytest.approx({v: float(x) for v, x in right.items()}, rel=1e-12)), corner


@pytest.mark.parametrize("rule", ["drop", "keep"])
@pytest.mark.parametrize("directed", [True, False])
def test_communities(directed: bool, rule: str) -> None:
    """Louvain has several right answers: each class is called by its smallest vertex, and better than all alone."""
    for corner, (edges, vertices) in CORNERS.items():
        label = answer("louvain", edges, vertices, directed, rule)
        assert all(label[v] == min(u for u in vertices if label[u] == label[v]) for v in vertices), corner
        heaviest = max((w for *_, w in edges), default=1) or 1  # modularity has no unit
        kept = [(u, v, w / heaviest) for u, v, w in left_over(edges, directed, rule)]
        alone = louvain.modularity(kept, {v: v for v in vertices})
        assert louvain.modularity(kept, label) >= alone - 1e-9, corner


@pytest.mark.heavy
@pytest.mark.parametrize("name", [one for one in RANKED if one != "bfs"])
@pytest.mark.parametrize("directed", [True, False])
def test_on_ranks(name: str, directed: bool, tmp_path: Path) -> None:
    """Three ranks, some of them without a single vertex. They refuse weights of which n would not fit into 64 bits."""
    for corner, (edges, vertices) in CORNERS.items():
        (tmp_path / "g.v").write_text("".join(f"{v}\n" for v in vertices))
        (tmp_path / "g.e").write_text("".join(f"{u} {v} {w!r}\n" for u, v, w in edges))
        kind = "real" if corner.startswith("real") else "int"
        (tmp_path / "g.properties").write_text(
            f"graph.g.vertex-file = g.v\ngraph.g.edge-file = g.e\ngraph.g.directed = {str(directed).lower()}\n"
            f"graph.g.edge-properties.names = weight\ngraph.g.edge-properties.types = {kind}\n"
        )
        settings = [f"graph.path={tmp_path / 'g.properties'}", f"algorithm={name}", f"source={vertices[0]}"]
        config = load_config(None, [*settings, f"output={tmp_path / 'out'}", "result.report=false", "npu.mode=off"])
        if name == "sssp" and max((w for *_, w in edges if isinstance(w, int)), default=0) >= LARGEST // 8:
            with pytest.raises(Agreed, match=r"64 bits.*--set ranks=1"):  # by the weights alone: see below
                run_on("aab", config)
            continue
        finished = run_on("aab", config)
        found = np.load(finished.folder / f"{algorithm_named(name).fields[0].name}.npy").tolist()
        right = expected(name, left_over(edges, directed, "drop"), vertices, directed)
        wanted = [right[v] for v in vertices]
        assert found == (pytest.approx(wanted, rel=1e-12) if name == "pagerank" else wanted), corner


@pytest.mark.parametrize("weight", ["-3", "-0.5"])
def test_ranks_name_the_edge_that_they_refuse(weight: str, tmp_path: Path) -> None:
    path = tmp_path / "g.wel"
    path.write_text(f"1 2 {weight.strip('-')}\n40 50 {weight}\n")
    settings = [f"graph.path={path}", "graph.directed=true", "algorithm=sssp", "source=1", f"output={tmp_path / 'out'}"]
    with pytest.raises(Agreed, match="edge from 40 to 50 is negative"):
        run_on("aab", load_config(None, [*settings, "npu.mode=off"]))


@pytest.mark.parametrize("kind", ["one rank", "three ranks"])
def test_a_distance_that_overflows_is_refused_everywhere(kind: str, tmp_path: Path) -> None:
    edges: Edges = [(1, 2, LARGEST - 1), (2, 3, 2)]
    if kind == "one rank":
        with pytest.raises(InputError, match="does not fit into 64 bits"):
            answer("sssp", edges, [1, 2, 3], True, "drop")
        return
    path = tmp_path / "g.wel"
    path.write_text("".join(f"{u} {v} {w}\n" for u, v, w in edges))
    settings = [f"graph.path={path}", "graph.directed=true", "algorithm=sssp", "source=1", f"output={tmp_path / 'out'}"]
    with pytest.raises(Agreed, match=r"64 bits.*--set ranks=1"):
        run_on("aab", load_config(None, [*settings, "npu.mode=off"]))
