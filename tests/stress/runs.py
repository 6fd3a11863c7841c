"""What is run on a random graph: every algorithm, engine and strategy, each with its check, without any repair.

A run is a function of (rng, graph) that returns None if the result was proven, or what is wrong with it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cpu_engine.bfs.asynchronous import AsyncBfs
from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.many.check import check_levels
from cpu_engine.bfs.many.engine import STRATEGIES as MANY_STRATEGIES
from cpu_engine.bfs.many.engine import many_bfs
from cpu_engine.bfs.ranks.engine import RankEngine
from cpu_engine.bfs.strategies.names import STRATEGIES as BFS_STRATEGIES
from cpu_engine.bfs.traversal import CoreSplit, Traversal
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import POLICIES, partition_graph
from cpu_engine.ranks.algorithms import NAMES as RANK_NAMES
from cpu_engine.ranks.algorithms import rank_algorithm
from cpu_engine.sssp.check import check_sssp
from cpu_engine.sssp.engine import STRATEGIES as SSSP_STRATEGIES
from cpu_engine.sssp.engine import SsspEngine
from hybrid.algorithms import algorithm_named
from hybrid.algorithms.algorithm import Algorithm, Check, Found, Task
from hybrid.algorithms.pagerank import PersonalisedPageRank
from hybrid.api.options import configured
from hybrid.graphs.sources import Source
from hybrid.offload.traverse import traverse_alone

Run = Callable[[np.random.Generator, Graph], str | None]
SHARED_CORE = 48  # vertices that a run beside a core solver gives away, at most
RANKS = 5
ENGINES_ON_RANKS = (("async", "basp"), ("async", "bsp"), ("level", "bsp"))
MANY_VERTICES, MANY_ROOTS = 20_000, 70  # 70: more than one word of 64 searches


def _told(check: Check, graph: Graph) -> str | None:
    return None if check.holds else check.explain(graph)


def _root(rng: np.random.Generator, graph: Graph) -> int:
    return int(rng.integers(graph.n))


# ------------------------------------------------------------------------------------------------ searches


def _search(engine: Traversal, rng: np.random.Generator, graph: Graph) -> str | None:
    for root in (_root(rng, graph), _root(rng, graph)):  # the second one uses the first one's buffers
        found = traverse_alone(engine, root)
        wrong = _told(certify(graph, found.level, found.parent, root), graph)
        if wrong:
            return wrong
    return None


def bfs_async(rng: np.random.Generator, graph: Graph) -> str | None:
    return _search(AsyncBfs(CoreSplit(graph)), rng, graph)


def bfs_level(strategy: str) -> Run:
    return lambda rng, graph: _search(LevelBfs(CoreSplit(graph), strategy), rng, graph)


def bfs_many(strategy: str) -> Run:
    def run(rng: np.random.Generator, graph: Graph) -> str | None:
        count = MANY_ROOTS if graph.n < MANY_VERTICES else 3
        roots = rng.integers(0, graph.n, int(rng.integers(1, count + 1)))
        parents = bool(rng.integers(2))
        found = many_bfs(graph, roots, parents=parents, strategy=strategy)
        if parents:
            for i, root in enumerate(roots[:3].tolist()):
                level, parent = found.of(i)
                assert parent is not None
                wrong = _told(certify(graph, level, parent, root), graph)
                if wrong:
                    return wrong
        level = np.stack([found.of(i)[0] for i in range(roots.size)])
        return _told(check_levels(graph, roots, level), graph)

    return run


def bfs_ranks(rng: np.random.Generator, graph: Graph) -> str | None:
    kind, sync = ENGINES_ON_RANKS[rng.integers(len(ENGINES_ON_RANKS))]
    parts = partition_graph(graph, str(rng.choice(POLICIES)), int(rng.integers(1, RANKS + 1)))
    engines = [RankEngine(part, engine=kind, sync=sync) for part in parts]
    root = _root(rng, graph)
    outcomes = run_loopback([engine.search(root) for engine in engines], _order(rng))
    level, parent = np.full(graph.n, -7, np.int32), np.full(graph.n, -7, np.int32)
    for part, outcome in zip(parts, outcomes, strict=True):
        mine = part.internal_of[: part.masters]
        level[mine], parent[mine] = outcome.levels, outcome.parents
    return _told(certify(graph, level, parent, root), graph)


def _order(rng: np.random.Generator) -> Callable[[int], int]:
    return random.Random(int(rng.integers(2**31))).randrange


# ------------------------------------------------------------------------------------------- shortest paths


def _delta(rng: np.random.Generator) -> float | None:
    return None if rng.random() < 0.7 else float(np.exp(rng.uniform(-3, 12)))


def sssp(strategy: str) -> Run:
    def run(rng: np.random.Generator, graph: Graph) -> str | None:
        engine = SsspEngine(graph, strategy=strategy, delta=_delta(rng) if strategy == "delta" else None)
        for root in (_root(rng, graph), _root(rng, graph)):  # a road map's second run uses its skeleton
            found = engine.run(root)
            wrong = _told(check_sssp(graph, root, found.distance, found.parent), graph)
            if wrong:
                return wrong
        return None

    return run


def sssp_shared(rng: np.random.Generator, graph: Graph) -> str | None:
    """Beside a core solver that answers honestly for a while, and then dies or not."""
    k = int(rng.integers(1, min(graph.n, SHARED_CORE) + 1))
    engine = SsspEngine(graph, core_size=k, strategy=str(rng.choice(SSSP_STRATEGIES)))
    root, answers = _root(rng, graph), int(rng.integers(0, 12))
    engine.start(root, withhold_core=True)
    withheld = True
    while True:
        while engine.can_step() and rng.random() < 0.95:  # answers may come at any moment
            engine.step()
        if not withheld:
            if engine.can_step():
                continue
            break
        if answers == 0:
            engine.take_core_back()
            withheld = False
        else:
            answers -= 1
            adopted = engine.adopt(_close_core(graph, k, engine.core_values())).adopted
            withheld = bool(adopted) or engine.can_step()
    distance, parent = engine.finish()
    return _told(check_sssp(graph, root, distance, parent), graph)


def _close_core(graph: Graph, k: int, values: np.ndarray) -> np.ndarray:
    """Core values after the edges inside [0, k) were relaxed until nothing changes: Bellman and Ford's rounds."""
    infinity = np.inf if values.dtype.kind == "f" else np.iinfo(np.int64).max
    span = slice(0, int(graph.out_offsets[k]))
    src = np.repeat(np.arange(k), np.diff(graph.out_offsets[: k + 1]))
    dst = graph.out_targets[span]
    weight = np.ones(src.size, np.int64) if graph.weight is None else graph.weight[span]
    src, dst, weight = src[dst < k], dst[dst < k], weight[dst < k]
    best = np.where((values < 0) | (values == np.inf), infinity, values).astype(
        np.float64 if infinity == np.inf else np.int64
    )
    while True:
        known = best[src] != infinity
        lowered = best.copy()
        np.minimum.at(lowered, dst[known], best[src[known]] + weight[known])
        if np.array_equal(lowered, best):
            break
        best = lowered
    return np.where(best == infinity, np.inf if infinity == np.inf else -1, best)


# ------------------------------------------------------------------------------------- the algorithm library


def library(name: str, draw: Callable[[np.random.Generator], dict[str, Any]] = lambda rng: {}) -> Run:
    """One of hybrid/library, with options that ``draw`` makes."""

    def run(rng: np.random.Generator, graph: Graph) -> str | None:
        algorithm = algorithm_named(name)
        return _run_and_check(algorithm, _task(rng, graph, algorithm, configured(name, draw(rng))))

    return run


def personalised(rng: np.random.Generator, graph: Graph) -> str | None:
    algorithm = PersonalisedPageRank(float(rng.uniform(0, 0.9)), 1e-4, 500)
    return _run_and_check(algorithm, _task(rng, graph, algorithm, configured("pagerank")))


def _task(rng: np.random.Generator, graph: Graph, algorithm: Algorithm, config: Any) -> Task:
    root = _root(rng, graph)
    user_id = int(graph.user_ids[graph.user_position[root]])
    return Task(graph, config, Source(user_id, root) if algorithm.sourced else None)


def _run_and_check(algorithm: Algorithm, task: Task) -> str | None:
    algorithm.prepare(task)
    return _told(algorithm.check(task, algorithm.run(task)), task.graph)


def on_ranks(name: str) -> Run:
    """An algorithm on up to RANKS parts, messages in any order, checked as its library form is."""

    def run(rng: np.random.Generator, graph: Graph) -> str | None:
        chosen, algorithm = rank_algorithm(name), algorithm_named(name)
        policy, count = str(rng.choice(chosen.policies)), int(rng.integers(1, RANKS + 1))
        if chosen.weighted and graph.weight is None:
            graph = replace(graph, weight=np.ones(graph.m, np.int64))
        parts = partition_graph(graph, policy, count, weighted=chosen.weighted, symmetric=chosen.symmetric)
        task = _task(rng, graph, algorithm, configured(name))
        options = {key.partition(".")[2]: value for key, value in algorithm.options(task.config).items()}
        options.pop("strategy", None)
        sync = str(rng.choice(chosen.syncs))
        made = [chosen.make(part, graph, sync, options) for part in parts]
        root = task.root if algorithm.sourced else -1
        found = run_loopback([chosen.drive(one, root, options) for one in made], _order(rng))
        arrays: dict[str, np.ndarray] = {}
        for part, one in zip(parts, found, strict=True):
            for key, values in one.arrays.items():
                arrays.setdefault(key, np.empty(graph.n, values.dtype))[part.internal_of[: part.masters]] = values
        return _told(algorithm.check(task, Found(arrays, found[0].counters, found[0].isolated)), graph)

    return run


def _pagerank(rng: np.random.Generator) -> dict[str, Any]:
    if rng.integers(2):
        return {"pagerank.iterations": int(rng.integers(1, 30)), "pagerank.damping": float(rng.uniform(0, 1))}
    return {"pagerank.definition": "gap", "pagerank.iterations": 500, "pagerank.damping": float(rng.uniform(0, 0.9))}


def _centrality(rng: np.random.Generator) -> dict[str, Any]:
    return {"centrality.sources": f"random:{int(rng.integers(1, 20))}", "centrality.harmonic": bool(rng.integers(2))}


SSSP_RUNS: dict[str, Run] = {
    **{f"sssp {strategy}": sssp(strategy) for strategy in SSSP_STRATEGIES},
    "sssp beside a core solver": sssp_shared,
    "sssp on ranks": on_ranks("sssp"),
}
OTHER_RUNS: dict[str, Run] = {
    "bfs async": bfs_async,
    **{f"bfs {strategy}": bfs_level(strategy) for strategy in BFS_STRATEGIES},
    **{f"many bfs {strategy}": bfs_many(strategy) for strategy in MANY_STRATEGIES},
    "bfs on ranks": bfs_ranks,
    "wcc": library("wcc"),
    "scc": library("scc"),
    "pagerank": library("pagerank", _pagerank),
    "personalised pagerank": personalised,
    "cdlp": library("cdlp", lambda rng: {"cdlp.iterations": int(rng.integers(0, 12))}),
    "louvain": library("louvain", lambda rng: {"louvain.resolution": float(rng.uniform(0.2, 3))}),
    "kcore": library("kcore"),
    "triangles": library("triangles"),
    "lcc": library("lcc"),
    "closeness": library("closeness", _centrality),
    "betweenness": library("betweenness", lambda rng: {"centrality.sources": f"random:{int(rng.integers(1, 20))}"}),
    **{f"{name} on ranks": on_ranks(name) for name in RANK_NAMES if name != "sssp"},
}
RUNS = SSSP_RUNS | OTHER_RUNS
EVERY_LEVEL_LOOKS_AT_ALL = {
    "sssp pull", "bfs pull", "bfs pull-numa", "bfs edge-centric", "bfs push-bucketed", "bfs switching", "many bfs pull",
    "bfs push-private", "bfs push-edge",
}  # fmt: skip
