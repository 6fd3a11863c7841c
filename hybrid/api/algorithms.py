"""Every algorithm as a function of a graph.

They are the methods of `hybrid.Graph`; ``hybrid.NAME`` takes anything that is a graph: a path, arrays, a matrix, a
table, NetworkX. Each result is checked as docs/reference/algorithms.md says, by code that shares nothing with what
computed it; ``check=False`` leaves that out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from hybrid.api import results
from hybrid.api.running import run

GraphLike: TypeAlias = Any  # a Graph, a path, arrays, a sparse matrix, an edge table, a NetworkX graph


def bfs(graph: GraphLike, source: Any, *, check: bool = True) -> results.BfsResult:
    """Edges from a source to every vertex, along outgoing arcs.

    Args:
        graph: a `Graph`, or anything that `hybrid.from_edges` or `hybrid.load` takes.
        source: the vertex to start from.
        check: prove the result.

    Examples:
        >>> import hybrid
        >>> found = hybrid.bfs([(0, 1), (1, 2), (3, 0)], 0)
        >>> found.to_dict()
        {0: 0, 1: 1, 2: 2}
        >>> found.path(2)
        [0, 1, 2]
        >>> found
        Breadth-first search from 0: 3 reached, depth 2
        certified: proof
        vertex  level  parent
        ------  -----  ------
             0      0       0
             1      1       0
             2      2       1
             3     -1      -1
    """
    return run(results.BfsResult, graph, "bfs", source=source, check=check)


def sssp(graph: GraphLike, source: Any, *, delta: float | None = None, check: bool = True) -> results.SsspResult:
    """Lengths of shortest paths from a source; weights of 0 or more, 1 where the graph has none.

    Args:
        graph: a `Graph`, or anything that is one.
        source: the vertex to start from.
        delta: width of a bucket of distances; None is by the weights.
        check: prove the result.

    Examples:
        >>> import hybrid
        >>> roads = [("Ulm", "Jena", 350), ("Jena", "Bonn", 370), ("Ulm", "Bonn", 410), ("Bonn", "Kiel", 510)]
        >>> found = hybrid.from_edges(roads, directed=False).sssp("Ulm")
        >>> found.path("Kiel"), found["Kiel"]
        (['Ulm', 'Bonn', 'Kiel'], 920)
    """
    return run(results.SsspResult, graph, "sssp", source=source, options={"sssp.delta": delta}, check=check)


def components(graph: GraphLike, *, check: bool = True) -> results.ComponentsResult:
    """Connected components, direction ignored.

    Examples:
        >>> import hybrid
        >>> found = hybrid.components([(0, 1), (2, 1), (5, 6)])
        >>> found.count, found.to_dict()
        (2, {0: 0, 1: 0, 2: 0, 5: 5, 6: 5})
        >>> found.groups()
        [[0, 1, 2], [5, 6]]
    """
    return run(results.ComponentsResult, graph, "wcc", check=check)


def strong_components(graph: GraphLike, *, check: bool = True) -> results.ComponentsResult:
    """Components of vertices that reach each other along arcs.

    Examples:
        >>> import hybrid
        >>> hybrid.strong_components([(0, 1), (1, 0), (1, 2)]).groups()
        [[0, 1], [2]]
    """
    return run(results.ComponentsResult, graph, "scc", check=check)


def pagerank(
    graph: GraphLike,
    *,
    definition: Literal["ldbc", "gap"] = "ldbc",
    damping: float = 0.85,
    iterations: int | None = None,
    tolerance: float | None = None,
    check: bool = True,
) -> results.RankResult:
    """PageRank; weights are not looked at.

    Args:
        graph: a `Graph`, or anything that is one.
        definition: "ldbc" makes a fixed number of iterations, and the rank of vertices without out-arcs goes to all;
            "gap" goes on until the change is small, and that rank is lost.
        damping: share of its rank that a vertex hands on.
        iterations: ldbc: so many (10); gap: at most so many (20), and `converged` of the result says whether they
            were enough.
        tolerance: gap: stop when all ranks together change by less (1e-4).
        check: compute it again, in another way.

    Examples:
        >>> import hybrid
        >>> hybrid.pagerank([(0, 1), (2, 1), (3, 1), (1, 0)], iterations=50).top(2)
        [(1, 0.479...), (0, 0.445...)]
    """
    options = {
        "pagerank.definition": definition, "pagerank.damping": damping, "pagerank.iterations": iterations,
        "pagerank.tolerance": tolerance,
    }  # fmt: skip
    return run(results.RankResult, graph, "pagerank", options=options, check=check)


def personalised_pagerank(
    graph: GraphLike,
    source: Any,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-4,
    iterations: int = 100,
    check: bool = True,
) -> results.RankResult:
    """PageRank as seen from one vertex: where a walk is that returns there with probability ``1 - damping`` per step.

    Args:
        graph: a `Graph`, or anything that is one.
        source: the vertex that walks return to, also from vertices without out-arcs.
        damping: probability of going on.
        tolerance: stop when all ranks together change by less.
        iterations: NotCertified if so many are not enough.
        check: one more iteration, made in another way, changes the ranks by no more than the tolerance.

    Examples:
        >>> import hybrid
        >>> star = hybrid.from_edges([(0, 1), (0, 2), (2, 3)], directed=False)
        >>> star.personalised_pagerank(3).top(1)
        [(2, 0.358...)]
    """
    from hybrid.algorithms.pagerank import PersonalisedPageRank

    kept = PersonalisedPageRank(damping, tolerance, iterations)
    return run(results.RankResult, graph, kept, source=source, check=check)


def label_propagation(graph: GraphLike, *, iterations: int = 10, check: bool = True) -> results.CommunityResult:
    """Communities as LDBC's label propagation (CDLP) finds them, in so many rounds.

    Examples:
        >>> import hybrid
        >>> two = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)]
        >>> hybrid.from_edges(two, directed=False).label_propagation().groups()
        [[0, 1, 2], [3, 4, 5]]
    """
    options = {"cdlp.iterations": iterations}
    return run(results.CommunityResult, graph, "cdlp", options=options, check=check)


def louvain(graph: GraphLike, *, resolution: float = 1.0, seed: int = 0, check: bool = True) -> results.CommunityResult:
    """Communities of high modularity, direction ignored. A heuristic: there may be better ones.

    Args:
        graph: a `Graph`, or anything that is one.
        resolution: above 1 more and smaller communities, below fewer and larger.
        seed: of the order in which vertices are looked at.
        check: compute the modularity again.

    Examples:
        >>> import hybrid
        >>> hybrid.louvain(hybrid.load("examples/karate.el", directed=False)).facts["modularity"] > 0.41
        True
    """
    options = {"louvain.resolution": resolution, "louvain.seed": seed}
    return run(results.CommunityResult, graph, "louvain", options=options, check=check)


def k_core(graph: GraphLike, *, check: bool = True) -> results.CoreResult:
    """Core numbers; direction, loops and parallel edges are ignored.

    Examples:
        >>> import hybrid
        >>> hybrid.k_core([(0, 1), (1, 2), (2, 0), (2, 3)]).to_dict()
        {0: 2, 1: 2, 2: 2, 3: 1}
    """
    return run(results.CoreResult, graph, "kcore", check=check)


def triangles(graph: GraphLike, *, check: bool = True) -> results.TrianglesResult:
    """Triangles that each vertex is a corner of; direction, loops and parallel edges are ignored.

    Examples:
        >>> import hybrid
        >>> found = hybrid.triangles([(0, 1), (1, 2), (2, 0), (2, 3)])
        >>> found.total, found.to_dict()
        (1, {0: 1, 1: 1, 2: 1, 3: 0})
    """
    return run(results.TrianglesResult, graph, "triangles", check=check)


def clustering(graph: GraphLike, *, check: bool = True) -> results.ClusteringResult:
    """Local clustering coefficients as LDBC defines them.

    Examples:
        >>> import hybrid
        >>> square = hybrid.from_edges([(0, 1), (1, 2), (2, 0), (2, 3), (3, 0)], directed=False)
        >>> found = square.clustering()
        >>> found[1], round(found.average, 3)
        (1.0, 0.833)
    """
    return run(results.ClusteringResult, graph, "lcc", check=check)


def closeness(
    graph: GraphLike,
    *,
    vertices: Sequence[Any] | None = None,
    sample: int | None = None,
    seed: int = 1,
    harmonic: bool = False,
    check: bool = True,
) -> results.ClosenessResult:
    """How near a vertex is to those that reach it (Wasserman and Faust), or the sum of reciprocal distances.

    Args:
        graph: a `Graph`, or anything that is one. Weights are not looked at.
        vertices: of whom; None is all of them. Others are absent from the result.
        sample: of so many, drawn.
        seed: of the draw.
        harmonic: sum of reciprocal distances instead.
        check: compute a sample again, each by a search of its own.

    Examples:
        >>> import hybrid
        >>> hybrid.from_edges([(0, 1), (1, 2)], directed=False).closeness().to_dict()
        {0: 0.666..., 1: 1.0, 2: 0.666...}
    """
    options = {**_chosen(graph, vertices, sample, seed), "centrality.harmonic": harmonic}
    return run(results.ClosenessResult, graph, "closeness", options=options, check=check)


def betweenness(
    graph: GraphLike,
    *,
    sources: Sequence[Any] | None = None,
    sample: int | None = None,
    seed: int = 1,
    normalised: bool = True,
    check: bool = True,
) -> results.BetweennessResult:
    """How many shortest paths lead through a vertex (Brandes).

    Args:
        graph: a `Graph`, or anything that is one. Weights are not looked at.
        sources: count paths from these, an estimate; None is from all, exact.
        sample: from so many, drawn.
        seed: of the draw.
        normalised: as a share of the pairs of other vertices.
        check: the scores, weighted at random, must add up to what all paths weigh.

    Examples:
        >>> import hybrid
        >>> hybrid.from_edges([(0, 1), (1, 2)], directed=False).betweenness().to_dict()
        {0: 0.0, 1: 1.0, 2: 0.0}
    """
    options = {**_chosen(graph, sources, sample, seed), "centrality.normalised": normalised}
    return run(results.BetweennessResult, graph, "betweenness", options=options, check=check)


def _chosen(graph: Any, vertices: Sequence[Any] | None, sample: int | None, seed: int) -> dict[str, Any]:
    if vertices is not None:
        return {"centrality.sources": [graph.user_id(vertex) for vertex in vertices]}
    return {"centrality.sources": f"random:{sample}", "source_seed": seed} if sample is not None else {}
