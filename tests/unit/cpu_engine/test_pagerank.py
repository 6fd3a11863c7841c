"""PageRank against outputs that nobody here wrote, a plain matrix iteration on real graphs, and wrong ranks."""

from __future__ import annotations

import os
from pathlib import Path

import numba
import numpy as np
import pytest
import scipy.sparse as sparse

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.pagerank.check import check_pagerank
from cpu_engine.pagerank.engine import PageRankEngine, pagerank
from cpu_engine.pagerank.personalised import ManyRanksEngine, personalised_pagerank

with_compiler = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="real graphs take minutes without the compiler"
)
LDBC_RUNS = {"example-directed": 2, "example-undirected": 2, "test-pr-directed": 14, "test-pr-undirected": 26}
REAL = {
    "wiki-Vote/wiki-Vote.txt": True,
    "email-Enron/email-Enron.txt.gz": False,
    "soc-Epinions1/soc-Epinions1.txt.gz": True,
}


def restored(graph: Graph, rank: np.ndarray, isolated: float) -> dict[int, float]:
    found = np.full(graph.user_ids.size, isolated)
    found[graph.user_position] = rank
    return dict(zip(graph.user_ids.tolist(), found.tolist(), strict=True))


@pytest.mark.jitless
@pytest.mark.parametrize("name", LDBC_RUNS)
def test_ldbc_expected_output(name: str, shared_data: Path) -> None:
    folder = shared_data / "ldbc-validation" / "example-data-sets"
    properties = (folder / f"{name}.properties").read_text()
    assert f"num-iterations = {LDBC_RUNS[name]}" in properties
    graph = build_graph(read_graph(folder / f"{name}.e"))
    found = pagerank(graph, iterations=LDBC_RUNS[name])
    lines = [line.split() for line in (folder / f"{name}-PR").read_text().splitlines()]
    expected = {int(v): float(rank) for v, rank in lines}
    assert restored(graph, found.rank, found.isolated_rank) == pytest.approx(expected, rel=1e-4)  # as LDBC compares


def power_iteration(
    graph: Graph, start: np.ndarray, restart: np.ndarray, iterations: int, *, spread: bool
) -> np.ndarray:
    """d = 0.85 with scipy's matrices; lost rank goes where restarts go."""
    matrix = sparse.csr_matrix((np.ones(graph.m), graph.out_targets, graph.out_offsets), (graph.n, graph.n))
    degree = np.diff(graph.out_offsets)
    rank = start
    for _ in range(iterations):
        lost = rank[degree == 0].sum() if spread else 0.0
        rank = restart * (0.15 + 0.85 * lost) + 0.85 * (matrix.T @ (rank / np.maximum(degree, 1)))
    return rank


@with_compiler
@pytest.mark.parametrize("name", REAL)
def test_real_graphs(name: str, shared_data: Path) -> None:
    """No vertex of these is isolated."""
    graph = build_graph(read_graph(shared_data / name), directed=REAL[name])
    everywhere = np.full(graph.n, 1 / graph.n)
    ldbc = pagerank(graph)
    np.testing.assert_allclose(ldbc.rank, power_iteration(graph, everywhere, everywhere, 10, spread=True), rtol=1e-9)
    gap = pagerank(graph, definition="gap", iterations=60)
    fixpoint = power_iteration(graph, everywhere, everywhere, 150, spread=False)
    assert gap.converged
    assert abs(gap.rank - fixpoint).sum() < 1e-3  # change / (1 - d)
    assert check_pagerank(graph, gap.rank, gap.isolated_rank, "gap").holds
    sources = np.array([0, 1, graph.n // 2, graph.n - 1])
    many = personalised_pagerank(graph, sources)
    assert many.converged
    for j, source in enumerate(sources):
        only = np.zeros(graph.n)
        only[source] = 1
        expected = power_iteration(graph, only, only, many.iterations, spread=True)
        np.testing.assert_allclose(many.rank[:, j], expected, rtol=1e-4, atol=1e-9)


@with_compiler
def test_threads_do_not_show() -> None:
    """The shares of the rows are fixed, whoever takes them."""
    graph = build_graph(kronecker(12, 8, 1))
    before = numba.get_num_threads()
    try:
        found = []
        for threads in (1, before):
            numba.set_num_threads(threads)
            found.append([pagerank(graph, definition=d) for d in ("ldbc", "gap")])
    finally:
        numba.set_num_threads(before)
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one.rank, other.rank)
        assert (one.iterations, one.change) == (other.iterations, other.change)


@with_compiler
@pytest.mark.parametrize("k", [0, 64, 700])
def test_an_engine_serves_many_runs(k: int) -> None:
    graph = build_graph(kronecker(10, 8, 1))
    one, many = PageRankEngine(graph, core_size=k), ManyRanksEngine(graph, 3, core_size=k)
    whole = pagerank(graph, iterations=5)
    for _ in range(2):
        one.begin()
        many.begin(np.array([0, 5, 9]))
        changes = [(one.iterate(), many.iterate()) for _ in range(5)]
        np.testing.assert_allclose(one.rank(), whole.rank, rtol=1e-12)
        assert changes[-1][0] == pytest.approx(whole.change)
        alone = personalised_pagerank(graph, np.array([0, 5, 9]), tolerance=0, iterations=5)
        np.testing.assert_allclose(many.rank(), alone.rank, rtol=1e-5, atol=1e-9)


def small(directed: bool = True) -> Graph:
    return build_graph(EdgeList(np.array([0, 1, 2]), np.array([1, 2, 3]), id_range=(0, 6)), directed=directed)


@pytest.mark.jitless
@pytest.mark.parametrize("definition", ["ldbc", "gap"])
@pytest.mark.parametrize("vertices", [0, 3])
def test_no_edges(definition: str, vertices: int) -> None:
    nobody = np.empty(0, np.int64)
    graph = build_graph(EdgeList(nobody, nobody, id_range=(0, vertices)))
    found = pagerank(graph, definition=definition)
    assert found.rank.shape == (0,)
    if vertices:
        assert found.isolated_rank == pytest.approx(1 / 3 if definition == "ldbc" else 0.15 / 3)
    assert check_pagerank(graph, found.rank, found.isolated_rank, definition).holds
    assert personalised_pagerank(graph, nobody).rank.shape == (0, 0)


@pytest.mark.jitless
def test_gap_stops_at_its_limit_and_says_so() -> None:
    found = pagerank(small(), definition="gap", tolerance=1e-30, iterations=2)
    assert not found.converged
    assert found.iterations == 2
    assert pagerank(small(), tolerance=0.5, iterations=100).iterations < 100


@pytest.mark.jitless
@pytest.mark.parametrize("iterations", [1, 2, 3, 5])
def test_what_a_run_at_its_limit_promises_is_checked(iterations: int) -> None:
    graph = small()
    found = pagerank(graph, definition="gap", tolerance=1e-30, iterations=iterations)
    at = {"tolerance": 1e-30, "change": found.change}
    assert check_pagerank(graph, found.rank, found.isolated_rank, "gap", **at).holds
    wrong = found.rank.copy()
    wrong[0] += 3 * found.change
    assert not check_pagerank(graph, wrong, found.isolated_rank, "gap", **at).holds


@pytest.mark.jitless
@pytest.mark.parametrize("definition", ["ldbc", "gap"])
def test_wrong_ranks_are_found(definition: str) -> None:
    graph = small()
    right = pagerank(graph, definition=definition, tolerance=1e-7 if definition == "gap" else None)
    arguments = (right.isolated_rank, definition)
    assert check_pagerank(graph, right.rank, *arguments).holds
    for v in range(graph.n):
        for wrong in (float("nan"), -1.0, 0.0, right.rank[v] * 1.01):
            changed = right.rank.copy()
            changed[v] = wrong
            verdict = check_pagerank(graph, changed, *arguments, tolerance=1e-6)
            assert not verdict.holds
            assert "vertex" in verdict.explain(graph)
    assert not check_pagerank(graph, right.rank, right.isolated_rank * 1.01, definition, tolerance=1e-6).holds
    assert "allowed" in check_pagerank(graph, right.rank, *arguments).explain()


@pytest.mark.jitless
@pytest.mark.parametrize("bad", [{"definition": "google"}, {"damping": 1.0}, {"damping": -0.1}, {"iterations": -1}])
def test_options_that_mean_nothing(bad: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        pagerank(small(), **bad)


@pytest.mark.jitless
def test_an_iteration_has_an_order() -> None:
    graph = small()
    for engine in (PageRankEngine(graph, core_size=2), ManyRanksEngine(graph, 2, core_size=2)):
        if isinstance(engine, ManyRanksEngine):
            engine.begin(np.array([0, 1]))
        for early in (engine.finish_iteration, engine.sum_core):
            with pytest.raises(RuntimeError, match="sweep_outside"):
                early()
        engine.sweep_outside()
        with pytest.raises(RuntimeError, match="sum_core"):
            engine.finish_iteration()
    with pytest.raises(RuntimeError, match="gap"):
        PageRankEngine(graph).relax()
    with pytest.raises(ValueError, match="core"):
        PageRankEngine(graph, core_size=5)
    with pytest.raises(ValueError, match="core"):
        ManyRanksEngine(graph, 1, core_size=-1)
    with pytest.raises(ValueError, match="damping"):
        ManyRanksEngine(graph, 1, damping=1)
    with pytest.raises(ValueError, match="sources"):
        personalised_pagerank(graph, np.array([4]))
    with pytest.raises(ValueError, match="2 sources"):
        ManyRanksEngine(graph, 2).begin(np.array([1]))
    with pytest.raises(ValueError, match="google"):
        check_pagerank(graph, np.ones(4), 1.0, "google")


@pytest.mark.parametrize("damping", [0.85, 0.89])
def test_personalised_ranks_come_to_rest_beside_a_hub(damping: float) -> None:
    """In float32 alone the hub's sum of equal terms would move by thousands of roundings at once, back and forth."""
    leaves = np.arange(1, 5001)
    hub = np.zeros(leaves.size, np.int64)
    extra = np.arange(1, 5000)
    graph = build_graph(EdgeList(np.concatenate([hub, extra]), np.concatenate([leaves, extra + 1])), directed=False)
    for source in (0, 1, graph.n - 1):
        found = personalised_pagerank(graph, np.array([source]), damping=damping, tolerance=1e-5, iterations=300)
        assert found.converged, found.change
