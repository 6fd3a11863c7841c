"""Every engine on graphs large enough to cross thresholds: hubs, chains, grids, heavy and weightless edges.

The thresholds themselves are drawn for every property test (conftest.py, tests/thresholds.py); here the graphs have up
to some hundred vertices, so that bins fill, lists overflow and searches go from push to pull and back. With
NUMBA_DISABLE_JIT=1 (``make test-heavy``) the constants of kernels are drawn, too, on smaller graphs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpu_engine.bfs.asynchronous import AsyncBfs
from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.many.check import check_levels
from cpu_engine.bfs.many.engine import STRATEGIES as MANY_STRATEGIES
from cpu_engine.bfs.many.engine import many_bfs
from cpu_engine.bfs.ranks.engine import RankEngine
from cpu_engine.bfs.strategies.names import STRATEGIES, load_strategy
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.centrality.betweenness import betweenness
from cpu_engine.centrality.check import check_betweenness, check_closeness
from cpu_engine.centrality.closeness import closeness
from cpu_engine.communities.check_labels import check_labels
from cpu_engine.communities.check_modularity import check_modularity
from cpu_engine.communities.label_propagation import label_propagation
from cpu_engine.communities.louvain import louvain
from cpu_engine.components.check import check_components, check_strong_components
from cpu_engine.components.strong import strong_components
from cpu_engine.components.weak import components
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph, write_graph
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import POLICIES, partition_graph
from cpu_engine.graph.store.graph_store import open_store, save_store
from cpu_engine.kcore.check import check_k_core
from cpu_engine.kcore.engine import k_core
from cpu_engine.pagerank.check import check_pagerank
from cpu_engine.pagerank.check_personalised import check_personalised
from cpu_engine.pagerank.check_weighted import check_pagerank_weighted
from cpu_engine.pagerank.engine import pagerank
from cpu_engine.pagerank.personalised import personalised_pagerank
from cpu_engine.pagerank.weighted import pagerank_weighted
from cpu_engine.programs import run, run_on_parts
from cpu_engine.schedule import do_all, for_each
from cpu_engine.sssp.check import check_sssp
from cpu_engine.sssp.engine import STRATEGIES as PATH_STRATEGIES
from cpu_engine.sssp.engine import SsspEngine
from cpu_engine.sssp.rows import WeightedRows
from cpu_engine.sssp.skeleton import SkeletonSearch, find_skeleton
from cpu_engine.triangles.check import check_clustering, check_triangles
from cpu_engine.triangles.check_clustering_weighted import check_clustering_weighted
from cpu_engine.triangles.clustering import local_clustering
from cpu_engine.triangles.clustering_weighted import clustering_weighted
from cpu_engine.triangles.engine import triangles
from hybrid.offload.traverse import traverse_alone
from tests import naive
from tests.naive import centrality as naive_centrality
from tests.naive import components as naive_components
from tests.naive import k_core as naive_k_core
from tests.naive import labels as naive_labels
from tests.naive import pagerank as naive_pagerank
from tests.naive import sssp as naive_sssp
from tests.naive import triangles as naive_triangles
from tests.property import test_build_property as build_reference
from tests.property import test_loops as loops
from tests.property import test_vertex_programs as programs
from tests.property.ranks import test_many_sources_ranks as many_on_ranks
from tests.property.ranks import test_partition as partition_reference
from tests.property.ranks import test_ranks as rank_searches
from tests.property.ranks import test_ranks_library as rank_library
from tests.thresholds import interpreted, using

EXAMPLES = 6 if interpreted() else 12
MOST_VERTICES = 40 if interpreted() else 300
Check = Callable[["Case", np.random.Generator], None]


# ---------------------------------------------------------------------------------------------------- the graphs


def uniform(random: np.random.Generator, n: int) -> np.ndarray:
    return random.integers(0, n, (int(random.integers(1, 9)) * n, 2))


def hubs(random: np.random.Generator, n: int) -> np.ndarray:
    """Degrees that fall as a power: a few vertices have most of the edges."""
    return (n * random.random((int(random.integers(1, 9)) * n, 2)) ** 4).astype(np.int64)


def chain(random: np.random.Generator, n: int) -> np.ndarray:
    """A long path with a few shortcuts and dead ends."""
    path = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    return np.concatenate([path, random.integers(0, n, (n // 16, 2))])


def grid(random: np.random.Generator, n: int) -> np.ndarray:
    columns = max(2, int(random.integers(1, n + 1)) // 2)
    at = np.arange(n)
    across = np.stack([at, at + 1], axis=1)[at % columns != columns - 1]
    down = np.stack([at, at + columns], axis=1)
    both = np.concatenate([across, down])
    return both[both[:, 1] < n]


def few_sources(random: np.random.Generator, n: int) -> np.ndarray:
    """Some vertices that point at all others."""
    sources = random.integers(0, n, 3)
    return np.stack([np.repeat(sources, n), np.tile(np.arange(n), 3)], axis=1)


KINDS = (uniform, hubs, chain, grid, few_sources)
WEIGHTS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "0..99": lambda random, m: random.integers(0, 100, m),
    "1..255": lambda random, m: random.integers(1, 256, m),
    "mostly 0": lambda random, m: random.integers(0, 50, m) * (random.random(m) < 0.2),
    "real": lambda random, m: random.random(m),
    "huge": lambda random, m: random.integers(0, 2**40, m),
}


@dataclass(frozen=True, eq=False)
class Case:
    """A graph, and its arcs in internal ids as the references take them."""

    edges: EdgeList
    directed: bool
    rule: str
    graph: Graph

    @cached_property
    def arcs(self) -> list[tuple[int, int]]:
        rows = np.repeat(np.arange(self.graph.n), np.diff(self.graph.out_offsets))
        return list(zip(rows.tolist(), self.graph.out_targets.tolist(), strict=True))

    @cached_property
    def weighted(self) -> list[tuple[int, int, float]]:
        assert self.graph.weight is not None
        return [(u, v, w) for (u, v), w in zip(self.arcs, self.graph.weight.tolist(), strict=True)]

    def levels(self, root: int) -> list[int]:
        found = naive.bfs_levels(self.arcs, True, root)
        return [found.get(v, -1) for v in range(self.graph.n)]


recipes = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "kind": st.sampled_from(KINDS),
        "n": st.integers(2, MOST_VERTICES),
        "weights": st.sampled_from(sorted(WEIGHTS)),
        "directed": st.booleans(),
        "rule": st.sampled_from(["drop", "keep"]),
    }
)


def made(
    random: np.random.Generator, kind: Callable[..., np.ndarray], n: int, weights: str, directed: bool, rule: str
) -> Case:
    """The graph of a recipe; vertices are named in any order."""
    ends = random.permutation(n)[kind(random, n)]
    edges = EdgeList(ends[:, 0].copy(), ends[:, 1].copy(), WEIGHTS[weights](random, len(ends)))
    graph = build_graph(edges, directed=directed, self_loops=rule, duplicates=rule)  # type: ignore[arg-type]
    return Case(edges, directed, rule, graph)


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = numba.get_num_threads()
    numba.set_num_threads(count)
    try:
        yield
    finally:
        numba.set_num_threads(before)


# ----------------------------------------------------------------------------------------------------- the checks


def roots_of(case: Case, random: np.random.Generator, count: int = 2) -> list[int]:
    return random.integers(0, case.graph.n, count).tolist()


def check_bfs(case: Case, random: np.random.Generator) -> None:
    engines = {name: LevelBfs(CoreSplit(case.graph), load_strategy(name)) for name in STRATEGIES}
    engines |= {"async": AsyncBfs(CoreSplit(case.graph)), "level": LevelBfs(CoreSplit(case.graph))}
    for root in roots_of(case, random):
        for name, engine in engines.items():
            found = traverse_alone(engine, root)
            assert found.level.tolist() == case.levels(root), name
            assert certify(case.graph, found.level, found.parent, root).holds, name


def check_many_sources(case: Case, random: np.random.Generator) -> None:
    roots = np.array(roots_of(case, random, int(random.choice([1, 3, 33, 64, 70]))))
    expected = {root: case.levels(root) for root in set(roots.tolist())}
    for strategy in MANY_STRATEGIES:
        found = many_bfs(case.graph, roots, parents=True, strategy=strategy)
        assert found.level.tolist() == [expected[root] for root in roots.tolist()], strategy
        assert check_levels(case.graph, roots, found.level).holds, strategy
        level, parent = found.of(roots.size - 1)
        assert parent is not None
        assert certify(case.graph, level, parent, int(roots[-1])).holds, strategy


def distances(case: Case, root: int) -> list[float]:
    assert case.graph.weight is not None
    real = case.graph.weight.dtype.kind == "f"
    found = naive_sssp.distances(case.weighted, True, root, 0.0 if real else 0)
    return [found.get(v, np.inf if real else -1) for v in range(case.graph.n)]


def check_paths(case: Case, random: np.random.Generator) -> None:
    engines = {strategy: SsspEngine(case.graph, strategy=strategy) for strategy in PATH_STRATEGIES}
    for root in roots_of(case, random, 3):  # after the first run a graph of chains is searched by its skeleton
        expected = distances(case, root)
        for strategy, engine in engines.items():
            found = engine.run(root)
            assert found.distance.tolist() == expected, strategy
            assert check_sssp(case.graph, root, found.distance, found.parent).holds, strategy


def check_skeleton(case: Case, random: np.random.Generator) -> None:
    skeleton = find_skeleton(WeightedRows(case.graph), min_share=0.0)
    if skeleton is not None:
        for width in (1, 8, 2**12):
            search = SkeletonSearch(skeleton, width)
            for root in roots_of(case, random):
                distance, parent = np.full(case.graph.n, -7, np.int64), np.full(case.graph.n, -7, np.int32)
                search.run(root, distance, parent)
                assert distance.tolist() == distances(case, root)
                assert check_sssp(case.graph, root, distance, parent).holds


def check_connectivity(case: Case, random: np.random.Generator) -> None:
    everyone = list(range(case.graph.n))
    for find, check, right in (
        (components, check_components, naive_components.weak(everyone, case.arcs)),
        (strong_components, check_strong_components, naive_components.strong(everyone, case.arcs)),
    ):
        found = find(case.graph)
        assert found.label.tolist() == [right[v] for v in everyone]
        assert check(case.graph, found.label).holds


def check_ranks_of_pages(case: Case, random: np.random.Generator) -> None:
    graph, isolated = case.graph, case.graph.user_ids.size - case.graph.n
    everyone = list(range(graph.n + isolated))
    found = pagerank(graph, iterations=5)
    right = naive_pagerank.pagerank(everyone, case.arcs, True, 5, spread=True)
    assert found.rank.tolist() == pytest.approx([right[v] for v in range(graph.n)], rel=1e-9)
    found = pagerank(graph, definition="gap", tolerance=1e-6, iterations=300)
    assert found.converged
    check = check_pagerank(graph, found.rank, found.isolated_rank, "gap", tolerance=1e-5)
    assert check.holds, check.explain(graph)
    sources = np.array(roots_of(case, random, int(random.choice([1, 16, 17, 70]))))
    many = personalised_pagerank(graph, sources)
    for j, source in enumerate(sources.tolist()):
        assert check_personalised(graph, source, many.rank[:, j]).holds
    even = np.full(graph.user_ids.size, 1 / graph.user_ids.size)
    by_weight = pagerank_weighted(graph, even, even, even, iterations=300)
    assert by_weight.converged
    check_weighted = check_pagerank_weighted(graph, by_weight.rank, even, even, damping=0.85, tolerance=1e-6)
    assert check_weighted.holds, check_weighted.explain()


def check_communities(case: Case, random: np.random.Generator) -> None:
    graph = case.graph
    user = graph.user_ids[graph.user_position].tolist()
    named = [(user[u], user[v]) for u, v in case.arcs if case.directed or u <= v]
    for rounds in (1, 4):
        found = label_propagation(graph, iterations=rounds)
        right = naive_labels.propagate(named, case.directed, rounds)
        assert found.label.tolist() == [right[v] for v in user]
        assert check_labels(graph, found.label, iterations=rounds).holds
    moved = louvain(graph, seed=int(random.integers(9)))
    verdict = check_modularity(graph, moved.label, moved.count, moved.modularity)
    assert verdict.holds, verdict.explain(graph)


def check_cores(case: Case, random: np.random.Generator) -> None:
    found = k_core(case.graph)
    right = naive_k_core.core_numbers(list(range(case.graph.n)), case.arcs)
    assert found.core.tolist() == [right[v] for v in range(case.graph.n)]
    assert check_k_core(case.graph, found.core).holds


def check_triangle_counts(case: Case, random: np.random.Generator) -> None:
    graph, everyone = case.graph, range(case.graph.n)
    found, coefficients = triangles(graph), local_clustering(graph)
    right = naive_triangles.triangles_at(case.arcs)
    assert found.per_vertex.tolist() == [right[v] for v in everyone]
    assert check_triangles(graph, found.count, found.per_vertex).holds
    degree = max(len(around) for around in naive_triangles.neighbourhoods(case.arcs).values())
    if degree < 60:  # the reference tries all pairs
        expected = naive_triangles.clustering(case.arcs, True)
        assert coefficients.coefficient.tolist() == pytest.approx([float(expected[v]) for v in everyone], rel=1e-15)
    assert check_clustering(graph, coefficients.coefficient).holds
    if case.rule == "drop":
        assert check_clustering_weighted(graph, clustering_weighted(graph).coefficient, count=4).holds


def check_centralities(case: Case, random: np.random.Generator) -> None:
    graph = case.graph
    roots = np.unique(roots_of(case, random, int(random.choice([1, 17, 70]))))
    for strategy in ("auto", "together", "each"):
        score = betweenness(graph, roots=roots, normalised=None, strategy=strategy).score
        assert check_betweenness(graph, score, roots=roots).holds, strategy
    found, inverse = closeness(graph, roots=roots), closeness(graph, roots=roots, harmonic=True)
    end = int(roots[0])
    expected = naive_centrality.closeness(case.arcs, True, end, graph.user_ids.size, True)
    assert found.score[0] == pytest.approx(float(expected), rel=1e-12)
    assert check_closeness(graph, roots, found.score, sample=None).holds
    assert check_closeness(graph, roots, inverse.score, harmonic=True, sample=None).holds


def check_rank_searches(case: Case, random: np.random.Generator) -> None:
    parts = partition_graph(case.graph, str(random.choice(POLICIES)), int(random.integers(1, 5)))
    for engine, sync in rank_searches.ENGINES:
        engines = [RankEngine(part, engine=engine, sync=sync) for part in parts]
        for root in roots_of(case, random):
            rank_searches.check(case.graph, engines, root)
    roots = np.array(roots_of(case, random, 70))
    found = many_on_ranks.together(parts, case.graph, roots)
    assert found.tolist() == [case.levels(root) for root in roots.tolist()]


def check_rank_library(case: Case, random: np.random.Generator) -> None:
    graph, everyone = case.graph, range(case.graph.n)
    isolated = graph.user_ids.size - graph.n
    for name, sync in rank_library.COMBINATIONS:
        policy = str(random.choice(rank_library.rank_algorithm(name).policies))
        options = {"iterations": 3} if name in ("cdlp", "pagerank") else {}
        ranks = rank_library.Ranks(graph, name, policy, int(random.integers(1, 5)), sync, **options)
        root = roots_of(case, random, 1)[0]
        found = ranks.run(root if ranks.algorithm.sourced else -1)
        if name == "sssp":
            assert found["distance"].tolist() == distances(case, root)
            assert check_sssp(graph, root, found["distance"], found["parent"]).holds
        elif name == "wcc":
            right = naive_components.weak(list(everyone), case.arcs)
            assert found["component"].tolist() == [right[v] for v in everyone]
        elif name == "kcore":
            cores = naive_k_core.core_numbers(list(everyone), case.arcs)
            assert found["core"].tolist() == [cores[v] for v in everyone]
        elif name == "cdlp":
            own = graph.user_ids[graph.user_position].tolist()
            assert found["community"].tolist() == rank_library.naive.labels(own, case.arcs, case.directed, 3)
        else:
            assert name == "pagerank"
            expected = rank_library.naive.pagerank(graph.n, isolated, case.arcs, 3, spread=True)
            assert found["rank"].tolist() == pytest.approx(expected, rel=1e-12)


def check_vertex_programs(case: Case, random: np.random.Generator) -> None:
    weight = WEIGHTS["0..99"](random, case.edges.src.size)
    edges = EdgeList(case.edges.src, case.edges.dst, weight)
    graph = build_graph(edges, directed=case.directed, self_loops=case.rule, duplicates=case.rule)  # type: ignore[arg-type]
    root = int(random.integers(graph.n))
    arcs = programs.arcs_of(graph)
    hops = programs.naive.shortest(graph.n, [(u, v, 1) for u, v, _ in arcs], [root])
    paths = programs.naive.shortest(graph.n, arcs, [root])
    labels = programs.naive.smallest_labels(graph.n, arcs)
    cut = partition_graph(graph, str(random.choice(POLICIES)), int(random.integers(1, 5)), weighted=True)
    strategy = [None, "push", "pull"][int(random.integers(3))]
    for program, options, right in (
        (programs.BFS, {"start": [root], "strategy": strategy}, hops),
        (programs.SSSP, {"start": root, "delta": 30}, paths),
        (programs.COMPONENTS, {"strategy": strategy}, labels),
    ):
        name, neutral = program.offered.name, program.offered.neutral
        for found in (run(program, graph, **options), run_on_parts(program, cut, **options)):
            assert programs.told(found[name], neutral) == right, program.name
    isolated = graph.user_ids.size - graph.n
    given = {"vertices": graph.user_ids.size, "isolated": isolated, "strategy": strategy}
    ranks = programs.naive.ldbc_ranks(graph.n, isolated, arcs, 10)
    for found in (run(programs.PAGERANK, graph, **given), run_on_parts(programs.PAGERANK, cut, **given)):
        assert found["rank"].tolist() == pytest.approx(ranks, rel=1e-12)


def check_loops(case: Case, random: np.random.Generator) -> None:
    """Each vertex is a task that makes tasks of those after it in its rows, so that each is made as often as listed."""
    n = case.graph.n
    hits, cost = np.zeros(n, np.int64), np.ones(n, np.int64)
    assert do_all(loops.count_task, n, hits, cost, steal=True).tasks.sum() == n
    assert (hits == 1).all()
    forest = np.maximum.accumulate(np.arange(1, n) - 1 - random.integers(0, 3, n - 1).clip(max=np.arange(n - 1)))
    offsets = np.searchsorted(forest, np.arange(n + 1)).astype(np.int64)
    priority, hits = random.integers(-9, 9, n), np.zeros(n, np.int64)
    rows = (offsets, np.arange(1, n, dtype=np.int64))
    report = for_each(loops.count_and_create, [0], hits, *rows, priority, cost, priorities=priority[:1])
    assert (hits == 1).all()
    assert report.tasks.sum() == n


def check_build(case: Case, random: np.random.Generator) -> None:
    reference = build_reference.Case(case.edges, case.directed, case.rule, case.rule)
    build_reference.check(reference, case.graph)


def check_partition(case: Case, random: np.random.Generator) -> None:
    policy, count = str(random.choice(POLICIES)), int(random.integers(1, 7))
    cut = partition_graph(case.graph, policy, count)
    owner = partition_reference.owners_of(case.graph, cut[0].layout)
    in_degree = np.diff(case.graph.in_offsets).tolist()
    dealt: list[list[tuple[int, int]]] = [[] for _ in cut]
    for u, v in case.arcs:
        dealt[partition_reference.naive_part(cut[0].layout, owner, in_degree, u, v)].append((u, v))
    for part in cut:
        partition_reference.check_part(part, dealt[part.part], owner)
    partition_reference.check_links(cut)


def triples(edges: EdgeList) -> Iterable[tuple[int, int, int]]:
    assert edges.weight is not None
    return zip(edges.src.tolist(), edges.dst.tolist(), edges.weight.tolist(), strict=True)


@np.errstate(over="ignore")  # of hashes, which numpy tells when nothing is compiled
def check_files(case: Case, random: np.random.Generator) -> None:
    """What is written is read again: as text, as rows, as a store."""
    src, dst, weight = case.edges.src, case.edges.dst, case.edges.weight
    assert weight is not None
    given = EdgeList(src, dst, weight if weight.dtype.kind != "f" else np.round(weight * 1000).astype(np.int64))
    small = given.weight.max(initial=0) < 2**31
    with tempfile.TemporaryDirectory() as folder:
        for name in ("g.wel", "g.wel.gz", "g.mtx", *(["g.wsg"] if small else [])):
            path = Path(folder) / name
            write_graph(path, EdgeList(src, dst, given.weight, directed=True))
            read = read_graph(path)
            assert sorted(triples(read)) == sorted(triples(given)), name
        store = Path(folder) / "store"
        save_store(case.graph, store)
        opened = open_store(store)
        assert opened.out_targets.tolist() == case.graph.out_targets.tolist()
        assert opened.user_ids.tolist() == case.graph.user_ids.tolist()


ENGINES: dict[str, Check] = {
    "bfs": check_bfs,
    "many sources": check_many_sources,
    "shortest paths": check_paths,
    "skeleton": check_skeleton,
    "components": check_connectivity,
    "pagerank": check_ranks_of_pages,
    "communities": check_communities,
    "k-core": check_cores,
    "triangles": check_triangle_counts,
    "centralities": check_centralities,
    "searches on ranks": check_rank_searches,
    "algorithms on ranks": check_rank_library,
    "vertex programs": check_vertex_programs,
    "loops": check_loops,
    "build": check_build,
    "partition": check_partition,
    "files": check_files,
}


@pytest.mark.jitless
@pytest.mark.parametrize("engine", ENGINES)
@given(recipe=recipes, count=st.integers(1, numba.config.NUMBA_NUM_THREADS))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_exact_whatever_the_thresholds(engine: str, recipe: dict[str, Any], count: int) -> None:
    random = np.random.default_rng(recipe["seed"])
    with threads(count):
        case = made(random, **{key: value for key, value in recipe.items() if key != "seed"})
        if case.graph.n:
            ENGINES[engine](case, random)


@pytest.mark.shipped_thresholds
def test_a_stage_that_ends_within_a_bucket() -> None:
    """Buckets so wide that a stage's bound lies inside one: who falls below the bound there is expanded."""
    random = np.random.default_rng(42)
    ends, weight = random.integers(0, 40, (320, 2)), random.integers(1, 256, 320)
    graph = build_graph(EdgeList(ends[:, 0].copy(), ends[:, 1].copy(), weight), directed=False)
    stages = {"BUCKETS_PER_SPAN": 2, "PUSHED_SHARE": 0.0, "SPANS": (0.25, 0.5, 0.9), "BINS": 17}
    with using({f"sssp.delta.{name}": value for name, value in stages.items()}):
        found = SsspEngine(graph).run(0)
    assert found.distance.tolist() == distances(Case(EdgeList(*ends.T), False, "drop", graph), 0)
