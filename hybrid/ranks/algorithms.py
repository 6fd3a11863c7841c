"""Algorithms on many ranks, BFS among them: how the graph is cut for each, and how its values come together."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cpu_engine.bfs.ranks.engine import RankEngine
from cpu_engine.bfs.ranks.many import ManyBfsOnRanks
from cpu_engine.bfs.ranks.proof import certify_on_ranks
from cpu_engine.comm.requests import Driver
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import make_layout
from cpu_engine.graph.partition.layout import Layout
from cpu_engine.graph.partition.part import Part
from cpu_engine.ranks.algorithms import Check, Checked, Drive, Options, PartFinding, RankAlgorithm, rank_algorithm
from cpu_engine.ranks.split import PartSplit
from hybrid.config.schema import Config
from hybrid.ranks.parts import choose_policy


def algorithm_on_ranks(name: str, config: Config) -> RankAlgorithm:
    """An algorithm's side on many ranks; InputError if it has none."""
    if name != "bfs":
        return rank_algorithm(name)
    return RankAlgorithm(
        "bfs",
        lambda part, graph, sync, options: RankEngine(
            part, engine=config.engine, sync=sync, core_size=options.get("core_size", 0)
        ),
        _drive_bfs,
        _check_bfs,
        syncs=("bsp",) if config.engine == "level" else ("bsp", "basp"),
        only_bsp_because="a level begins when the one before is over everywhere",
        sourced=True,
    )


def policy_on_ranks(config: Config, chosen: RankAlgorithm, ranks: int) -> str:
    """How the graph is cut for it; InputError if the configured policy does not serve."""
    if chosen.name == "bfs":
        return choose_policy(config.cluster.policy, config.engine, ranks)
    return chosen.choose_policy(config.cluster.policy)


def _drive_bfs(made: RankEngine, root: int, options: Options) -> Drive:
    """``outside``: the core solver's side (hybrid/offload/on_ranks.py), if it takes part in this search."""
    withhold = bool(options.get("withhold_core"))
    found = yield from made.search(root, options.get("outside"), withhold_core=withhold)
    counters = {"steps": found.statistics.rounds, "edges_looked_at": found.statistics.edges}
    arrays = {name: values.astype(np.int32, copy=False) for name, values in
              (("level", found.levels), ("parent", found.parents))}  # fmt: skip
    return PartFinding(arrays, found.statistics, counters)


def _check_bfs(checked: Checked) -> Driver[Check]:
    arrays = checked.finding.arrays
    return certify_on_ranks(checked.part, arrays["level"], arrays["parent"], checked.root)


def _check_many(checked: Checked) -> Driver[Check]:
    raise NotImplementedError("batches are proven at rank 0, on the whole graph")


def _drive_many(made: ManyBfsOnRanks, root: int, options: Options) -> Drive:
    """BFS from ``roots``, 64 to a pass: levels only, [root, master]."""
    outside, withhold = options.get("outside"), bool(options.get("withhold_core"))
    found = yield from made.search(options["roots"], outside, withhold_core=withhold)
    return PartFinding({"level": found.levels.astype(np.int32)}, found.statistics)


MANY_SOURCES = RankAlgorithm(
    "many",
    lambda part, graph, sync, options: ManyBfsOnRanks(PartSplit(part, options.get("core_size", 0))),
    _drive_many,
    _check_many,
    sourced=True,
)


def options_of(config: Config) -> Options:
    """What the driver of the configured algorithm is given."""
    if config.algorithm == "sssp":
        return {"delta": config.sssp.delta}
    if config.algorithm == "pagerank":
        return dataclasses.asdict(config.pagerank)
    return {"iterations": config.cdlp.iterations} if config.algorithm == "cdlp" else {}


def layout_on_ranks(graph: Graph, chosen: RankAlgorithm, policy: str, parts: int) -> Layout:
    weighted = chosen.weighted and graph.weight is not None
    return make_layout(graph, policy, parts, weighted=weighted, symmetric=chosen.symmetric)


def with_weights(part: Part, chosen: RankAlgorithm) -> Part:
    """Where weights are wanted and the graph has none, every edge counts as 1."""
    if not chosen.weighted or part.out_weight is not None:
        return part
    return dataclasses.replace(part, out_weight=np.ones(part.arcs, np.int64))


def masters_by_part(part: Part) -> list[np.ndarray]:
    """The internal ids of each part's masters in their order; the layout has them, so they need not travel."""
    owner_of, parts = part.layout.owner_of, part.layout.parts
    order = np.argsort(owner_of, kind="stable").astype(np.int32)
    bounds = np.searchsorted(owner_of[order], np.arange(parts + 1))
    return [order[bounds[rank] : bounds[rank + 1]] for rank in range(parts)]


def scatter(gathered: list[np.ndarray], own: list[np.ndarray], dtype: np.dtype[Any], rows: int = 1) -> np.ndarray:
    """The masters' values of all parts as one array over the whole graph, or as so many rows of one."""
    whole = np.empty((rows, sum(ids.size for ids in own)), dtype)
    for ids, payload in zip(own, gathered, strict=True):
        whole[:, ids] = payload.view(dtype).reshape(rows, ids.size)
    return whole if rows > 1 else whole[0]
