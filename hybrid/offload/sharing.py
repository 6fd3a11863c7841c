"""How algorithms of the library share their dense core with a worker: what it runs there, and the run by two.

An algorithm that is not in ``SHARINGS`` runs on the CPU alone. Invariant: whatever the worker does, ``run`` ends with a
result; whether that is right is for the algorithm's check to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from cpu_engine.bfs.traversal import CoreSplit
from hybrid.algorithms.algorithm import Found, Task
from hybrid.offload.rounds import CoreRounds
from hybrid.offload.traverse import NpuTally, traverse_together
from hybrid.results.trace import Trace
from hybrid.worker.solver import NpuPartner


class Sharing(Protocol):
    """One algorithm beside a worker, on one graph and core."""

    def warm_up(self) -> None:
        """Run every kernel that a run by two uses, on a sample."""

    def publish(self, partner: NpuPartner) -> None:
        """Give the worker the core and its program."""

    def run(self, task: Task, partner: NpuPartner, mode: str, trace: Trace) -> tuple[Found, NpuTally]:
        """The result by two, and what passed between them."""


class SharedRanks:
    """PageRank: in every iteration the worker adds up what the core's own arcs pass on."""

    def __init__(self, task: Task, split: CoreSplit) -> None:
        from cpu_engine.pagerank.engine import PageRankEngine

        chosen = task.config.pagerank
        self._engine = PageRankEngine(
            task.graph, core_size=split.core_size, definition=chosen.definition, damping=chosen.damping
        )

    def warm_up(self) -> None:
        engine = self._engine
        for add in (lambda: engine.add_core_sums(engine.core_contributions()), engine.sum_core):
            engine.begin()
            engine.core_contributions()
            engine.sweep_outside()
            add()
            engine.finish_iteration()

    def publish(self, partner: NpuPartner) -> None:
        from hybrid.offload.pagerank import PROGRAM

        graph = self._engine.graph
        partner.publish_edges(graph.out_offsets, graph.out_targets, self._engine.core_size, program=PROGRAM)

    def run(self, task: Task, partner: NpuPartner, mode: str, trace: Trace) -> tuple[Found, NpuTally]:
        from hybrid.offload.pagerank import pagerank_together

        chosen, rounds = task.config.pagerank, CoreRounds(partner, mode, trace)
        found = pagerank_together(self._engine, rounds, trace, tolerance=chosen.tolerance, iterations=chosen.iterations)
        return Found({"rank": found.rank}, found.counters, {"rank": found.isolated_rank}), rounds.close()


class SharedComponents:
    """Components: the CPU links everything outside the core, the worker spreads labels inside it."""

    def __init__(self, task: Task, split: CoreSplit) -> None:
        from cpu_engine.components.core import CoreComponents

        self._engine, self._split = CoreComponents(split), split

    def warm_up(self) -> None:
        self._engine.start()
        self._engine.adopt(self._engine.core_labels())
        self._engine.take_core_back()
        self._engine.finish()

    def publish(self, partner: NpuPartner) -> None:
        from cpu_engine.components.core import core_both_ways
        from hybrid.offload.components import PROGRAM

        partner.publish_edges(*core_both_ways(self._split), self._split.core_size, program=PROGRAM)

    def run(self, task: Task, partner: NpuPartner, mode: str, trace: Trace) -> tuple[Found, NpuTally]:
        from hybrid.offload.components import components_together

        rounds = CoreRounds(partner, mode, trace)
        found = components_together(self._engine, rounds, trace)
        return Found({"component": found.label}, {"iterations": found.iterations}), rounds.close()


class SharedPaths:
    """Shortest paths: the worker closes the core's distances under its own edges, as in BFS."""

    def __init__(self, task: Task, split: CoreSplit) -> None:
        from cpu_engine.sssp.engine import SsspEngine

        chosen = task.config.sssp
        self._engine = SsspEngine(task.graph, strategy=chosen.strategy, delta=chosen.delta, core_size=split.core_size)
        self._split = split

    def warm_up(self) -> None:
        from hybrid.job.warm_up import exercise

        exercise(self._engine, self._split.graph.n - 1)

    def publish(self, partner: NpuPartner) -> None:
        graph = self._split.graph
        partner.publish_edges(graph.out_offsets, graph.out_targets, self._split.core_size, weight=graph.weight)

    def run(self, task: Task, partner: NpuPartner, mode: str, trace: Trace) -> tuple[Found, NpuTally]:
        found = traverse_together(self._engine, task.root, mode, partner, trace, task.config.npu.max_rounds)
        arrays = {"distance": found.level.copy(), "parent": found.parent.copy()}
        return Found(arrays, {"steps": found.steps, "relaxations": found.edges_looked_at}), found.npu


SHARINGS: dict[str, Callable[[Task, CoreSplit], Sharing]] = {
    "pagerank": SharedRanks,
    "wcc": SharedComponents,
    "sssp": SharedPaths,
}


def why_not_shared(name: str, task: Task) -> str:
    """Why this algorithm cannot share its core on this graph; empty if it can."""
    if name not in SHARINGS:
        return f"{name} runs on the CPU alone: bfs, {', '.join(SHARINGS)} share their core with a worker"
    if name != "sssp":
        return ""
    weight = task.graph.weight
    if weight is not None and weight.dtype.kind == "f":
        return "the worker takes whole weights, and these are real numbers"
    heaviest = 1 if weight is None or not weight.size else int(weight.max())
    if heaviest * max(1, task.graph.n - 1) >= np.iinfo(np.int32).max:
        return f"distances may exceed the worker's 32 bits (the heaviest edge weighs {heaviest})"
    return ""
