"""What a point of a sweep runs, and how its results are proven: searches one by one, or batches of them at once."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cpu_engine.bfs.traversal import CoreSplit, Traversal
from cpu_engine.graph.graph import Graph
from hybrid.job.proof import prove_or_repair
from hybrid.offload.many_sources import ManyEngine, prove_or_repair_many
from hybrid.offload.traverse import NpuTally, traverse_alone, traverse_together
from hybrid.results.trace import Trace
from hybrid.worker.simulated import SimulatedPartner
from hybrid.worker.solver import NpuPartner

Partner = NpuPartner | SimulatedPartner


@dataclass(frozen=True)
class Ran:
    """One timed run, and what its proof said afterwards."""

    seconds: float
    edges: int
    npu: NpuTally
    repaired: int


class Runs(Protocol):
    """The runs of a setting, by number."""

    count: int
    searches: int  # in all of them

    def rehearse(self, at: int, mode: str, partner: SimulatedPartner) -> None:
        """Let a simulated device prepare its answers, untimed."""

    def run(self, at: int, mode: str, partner: Partner | None) -> Ran:
        """One timed run and, off the clock, its proof."""


class SingleRuns:
    """Each root by itself."""

    def __init__(self, graph: Graph, engine: Traversal, roots: list[int], core_size: int, max_rounds: int) -> None:
        self._graph, self._engine, self._roots = graph, engine, roots
        self._core_size, self._max_rounds = core_size, max_rounds
        self.count = self.searches = len(roots)

    def rehearse(self, at: int, mode: str, partner: SimulatedPartner) -> None:
        partner.rehearse(self._engine, self._roots[at], mode, self._max_rounds)

    def run(self, at: int, mode: str, partner: Partner | None) -> Ran:
        root, began = self._roots[at], time.perf_counter()
        if partner is None:
            found = traverse_alone(self._engine, root, Trace())
        else:
            found = traverse_together(self._engine, root, mode, partner, Trace(), self._max_rounds)
        took = time.perf_counter() - began
        repaired = prove_or_repair(self._graph, found, root, self._core_size, Trace())
        return Ran(took, found.edges_looked_at, found.npu, repaired)


class ManyRuns:
    """So many roots at once, levels only."""

    def __init__(self, graph: Graph, split: CoreSplit, roots: list[int], batch: int, max_rounds: int) -> None:
        self._graph, self._engine, self._max_rounds = graph, ManyEngine(split), max_rounds
        self._batches = [np.array(roots[at : at + batch], np.int64) for at in range(0, len(roots), batch)]
        self.count, self.searches = len(self._batches), len(roots)

    def rehearse(self, at: int, mode: str, partner: SimulatedPartner) -> None:
        roots = self._batches[at]
        partner.rehearse_run(lambda: self._engine.together(roots, mode, partner, Trace(), self._max_rounds))

    def run(self, at: int, mode: str, partner: Partner | None) -> Ran:
        roots, began = self._batches[at], time.perf_counter()
        if partner is None:
            done = self._engine.alone(roots)
        else:
            done = self._engine.together(roots, mode, partner, Trace(), self._max_rounds)
        took = time.perf_counter() - began
        repaired = int(prove_or_repair_many(self._graph, done, self._engine.split.core_size, Trace()).sum())
        return Ran(took, done.edges_looked_at, done.npu, repaired)
