"""Every algorithm on graphs that nobody here wrote equals what scipy, igraph or a few lines of numpy find.

Our side is what a job writes: the library's run, and its arrays in the user's ids. Theirs starts from the file's edge
list, not from our graph.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components, dijkstra

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.graph import Graph
from hybrid.algorithms import algorithm_named
from hybrid.algorithms.algorithm import Task
from hybrid.algorithms.proof import restore
from hybrid.config import load_config
from hybrid.graphs.sources import Source
from tests.conftest import sweep
from tests.e2e.test_real_graphs import GRAPHS

igraph = pytest.importorskip("igraph")

DAMPING = 0.85
SOURCES = 3
SAMPLE = 6  # vertices whose centralities are compared
SLICE = 4096  # rows of a product at a time
LARGE = 300_000  # vertices
NEAR = 1e-4 / (1 - DAMPING)  # of GAP's ranks to their limit, in all


@dataclass(frozen=True)
class Real:
    """A graph as we built it, and as a list of weighted pairs of positions 0..n-1 in its ascending ids."""

    graph: Graph
    ids: np.ndarray
    u: np.ndarray
    v: np.ndarray
    weight: np.ndarray
    directed: bool

    def ours(self, name: str, *settings: str, source: int | None = None) -> dict[str, np.ndarray]:
        """What a job would write."""
        algorithm, config = algorithm_named(name), load_config(None, [f"algorithm={name}", *settings])
        start = None if source is None else Source(source, self.graph.internal_id(source))
        task = Task(self.graph, config, start)
        return restore(algorithm, task, algorithm.run(task))

    @cached_property
    def arcs(self) -> sparse.csr_matrix:
        """Every arc once with its smallest weight, no loops; of an undirected graph both ways."""
        u, v, weight = self.u, self.v, self.weight
        if not self.directed:
            u, v, weight = np.concatenate((u, v)), np.concatenate((v, u)), np.concatenate((weight, weight))
        proper = u != v
        u, v, weight = u[proper], v[proper], weight[proper]
        key = u * self.ids.size + v
        order = np.argsort(key, kind="stable")
        first = np.flatnonzero(np.diff(key[order], prepend=-1))
        lightest = np.minimum.reduceat(weight[order], first)
        shape = (self.ids.size, self.ids.size)
        return sparse.csr_matrix((lightest, (u[order][first], v[order][first])), shape)

    @cached_property
    def ones(self) -> sparse.csr_matrix:
        """The arcs, each counting as 1."""
        return sparse.csr_matrix((np.ones(self.arcs.nnz), self.arcs.indices, self.arcs.indptr), self.arcs.shape)

    @cached_property
    def joined(self) -> sparse.csr_matrix:
        """The simple undirected view."""
        return ((self.ones + self.ones.T) > 0).astype(np.float64).tocsr()

    @cached_property
    def drawn(self) -> igraph.Graph:
        """The arcs for igraph; of an undirected graph every edge once."""
        return as_igraph(self.ones if self.directed else sparse.triu(self.ones), self.directed)

    @cached_property
    def simple(self) -> igraph.Graph:
        """The undirected view for igraph."""
        return as_igraph(sparse.triu(self.joined), False) if self.directed else self.drawn

    def some_vertices(self, count: int) -> np.ndarray:
        """Positions of vertices that have edges, the same in every run."""
        there = np.flatnonzero(np.diff(self.joined.indptr))
        return np.sort(np.random.default_rng(5).choice(there, count, replace=False))

    def inner(self, positions: np.ndarray) -> list[int]:
        return self.ids[positions].tolist()


def as_igraph(matrix: sparse.spmatrix, directed: bool) -> igraph.Graph:
    entries = matrix.tocoo()
    return igraph.Graph(n=entries.shape[0], edges=np.stack((entries.row, entries.col), axis=1), directed=directed)


@pytest.fixture(scope="module", params=sweep(GRAPHS))
def real(request: pytest.FixtureRequest, shared_data: Path) -> Real:
    """Each graph in turn; those without weights get whole ones of 1 to 100, edge by edge of the list."""
    directed = GRAPHS[request.param]
    edges: EdgeList = read_graph(shared_data / request.param)
    if edges.weight is None:
        edges = replace(edges, weight=np.random.default_rng(7).integers(1, 101, edges.src.size))
    ids = np.unique(np.concatenate((edges.src, edges.dst)))
    if edges.id_range is not None:
        ids = np.arange(edges.id_range[0], sum(edges.id_range))
    assert edges.weight is not None
    u, v = np.searchsorted(ids, edges.src), np.searchsorted(ids, edges.dst)
    graph = build_graph(edges, directed=directed)
    assert np.array_equal(graph.user_ids, ids)
    return Real(graph, ids, u, v, edges.weight.astype(np.int64), directed)


def smallest_members(ids: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Of each vertex the smallest id in its group."""
    smallest = np.full(group.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(smallest, group, ids)
    return smallest[group]


def test_shortest_paths(real: Real) -> None:
    positions = real.some_vertices(SOURCES)
    theirs = dijkstra(real.arcs, indices=positions)
    for source, right in zip(real.inner(positions), theirs, strict=True):
        found = real.ours("sssp", source=source)["distance"]
        assert np.array_equal(np.where(found < 0, np.inf, found), right)


@pytest.mark.parametrize(("name", "connection"), [("wcc", "weak"), ("scc", "strong")])
def test_components(real: Real, name: str, connection: str) -> None:
    _, group = connected_components(real.ones, real.directed, connection)
    assert np.array_equal(real.ours(name)["component"], smallest_members(real.ids, group))


def rank_step(real: Real, rank: np.ndarray, dangling: bool) -> np.ndarray:
    n, degree = rank.size, np.diff(real.ones.indptr)
    lost = rank[degree == 0].sum() / n if dangling else 0.0
    return (1 - DAMPING) / n + DAMPING * (real.ones.T @ (rank / np.maximum(degree, 1)) + lost)


def test_pagerank_as_ldbc_defines_it(real: Real) -> None:
    rank = np.full(real.ids.size, 1 / real.ids.size)
    for _ in range(10):
        rank = rank_step(real, rank, True)
    np.testing.assert_allclose(real.ours("pagerank")["rank"], rank, rtol=1e-11)


def test_pagerank_at_its_fixed_point(real: Real) -> None:
    """igraph's ranks are the limit of LDBC's, and in their proportions of GAP's, which only loses rank on the way."""
    if real.ids.size > LARGE:
        pytest.skip("igraph takes long, and test_pagerank_as_gap_defines_it asks for the same limit")
    right = np.array(real.drawn.pagerank(damping=DAMPING))
    np.testing.assert_allclose(real.ours("pagerank", "pagerank.iterations=100")["rank"], right, rtol=1e-6)
    gap = real.ours("pagerank", "pagerank.definition=gap", "pagerank.iterations=100")["rank"]
    assert np.abs(gap / gap.sum() - right).sum() < NEAR


def test_pagerank_as_gap_defines_it(real: Real) -> None:
    """The limit to a tolerance: one more iteration changes less, so the limit is no farther than that / (1 - d)."""
    found = real.ours("pagerank", "pagerank.definition=gap", "pagerank.iterations=100")["rank"]
    assert np.abs(rank_step(real, found, False) - found).sum() < 1.01e-4  # ours are in single precision
    rank = found
    for _ in range(60):
        rank = rank_step(real, rank, False)
    assert np.abs(rank - found).sum() < NEAR


def test_core_numbers(real: Real) -> None:
    assert real.ours("kcore")["core"].tolist() == real.simple.coreness()


def test_triangles(real: Real) -> None:
    degree = np.diff(real.joined.indptr)
    share = np.array(real.simple.transitivity_local_undirected(mode="zero"))
    found = real.ours("triangles")["triangles"]
    assert np.array_equal(found, np.rint(share * degree * (degree - 1) / 2))
    assert found.sum() == 3 * len(real.simple.list_triangles()) or real.ids.size > LARGE


def test_clustering(real: Real) -> None:
    """Arcs among neighbours: for v, the sum over its neighbours u and w of [u -> w]."""
    around, n = real.joined, real.ids.size
    arcs = np.zeros(n)
    for first in range(0, n, SLICE):
        rows = around[first : first + SLICE]
        arcs[first : first + SLICE] = rows.multiply(rows @ real.ones).sum(axis=1).A1
    pairs = np.diff(around.indptr).astype(np.float64) * (np.diff(around.indptr) - 1)
    right = np.divide(arcs, pairs, out=np.zeros(n), where=pairs > 0)
    np.testing.assert_allclose(real.ours("lcc")["coefficient"], right, rtol=1e-12)
    if not real.directed:
        np.testing.assert_allclose(real.simple.transitivity_local_undirected(mode="zero"), right, rtol=1e-12)


def test_closeness(real: Real) -> None:
    positions, others = real.some_vertices(SAMPLE), real.ids.size - 1
    chosen = f"centrality.sources={real.inner(positions)}"
    found = real.ours("closeness", chosen)["closeness"]
    apart = np.array(real.drawn.distances(positions.tolist(), mode="in"))
    assert np.count_nonzero(found >= 0) == SAMPLE
    for row, score in zip(apart, found[positions], strict=True):
        reaching = np.count_nonzero(np.isfinite(row)) - 1
        farness = row[np.isfinite(row)].sum()
        assert score == pytest.approx(reaching**2 / farness / others if reaching else 0.0, rel=1e-12)
    harmonic = real.ours("closeness", chosen, "centrality.harmonic=true")["closeness"][positions]
    right = real.drawn.harmonic_centrality(positions.tolist(), mode="in", normalized=False)
    np.testing.assert_allclose(harmonic, right, rtol=1e-10)


def test_betweenness(real: Real) -> None:
    positions = real.some_vertices(SAMPLE)
    settings = f"centrality.sources={real.inner(positions)}", "centrality.normalised=false"
    found = real.ours("betweenness", *settings)["betweenness"] * SAMPLE / real.graph.n
    right = np.array(real.drawn.betweenness(directed=real.directed, sources=positions.tolist()))
    np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-9 * right.max())


def propagated(real: Real, iterations: int) -> np.ndarray:
    """LDBC's label propagation by sorting pairs (vertex, label of a neighbour); labels are positions."""
    entries, n = real.ones.tocoo(), real.ids.size
    v, u = entries.row.astype(np.int64), entries.col.astype(np.int64)
    if real.directed:
        v, u = np.concatenate((v, u)), np.concatenate((u, v))
    label = np.arange(n)
    for _ in range(iterations):
        key = np.sort(v * n + label[u])
        first = np.flatnonzero(np.diff(key, prepend=-1))
        often = np.diff(first, append=key.size)
        vertex, candidate = np.divmod(key[first], n)
        ahead = np.flatnonzero(np.diff(vertex, prepend=-1))
        most = np.repeat(np.maximum.reduceat(often, ahead), np.diff(ahead, append=vertex.size))
        chosen = np.flatnonzero(often == most)  # the smallest label comes first
        chosen = chosen[np.diff(vertex[chosen], prepend=-1) > 0]
        label[vertex[chosen]] = candidate[chosen]
    return label


def test_label_propagation(real: Real) -> None:
    iterations = 10 if real.ids.size < LARGE else 4
    found = real.ours("cdlp", f"cdlp.iterations={iterations}")["community"]
    assert np.array_equal(found, real.ids[propagated(real, iterations)])


def test_modularity(real: Real) -> None:
    """Communities are no definition's only answer, but igraph finds the modularity of ours to be what we report."""
    algorithm, config = algorithm_named("louvain"), load_config(None, ["algorithm=louvain"])
    task = Task(real.graph, config)
    found = algorithm.run(task)
    outer = restore(algorithm, task, found)["community"]
    assert np.array_equal(outer, smallest_members(real.ids, np.unique(outer, return_inverse=True)[1]))
    entries = (real.arcs if real.directed else sparse.triu(real.arcs)).tocoo()
    graph = as_igraph(entries, False)
    theirs = graph.modularity(np.unique(outer, return_inverse=True)[1], weights=entries.data)
    assert found.counters["modularity"] == pytest.approx(theirs, rel=1e-9)
    assert theirs > 0.3
