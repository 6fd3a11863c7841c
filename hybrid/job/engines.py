"""An algorithm with its buffers, on one graph and core: what a job runs, one unit of sources at a time.

``alone``: the CPU does everything. ``together``: the solver does the dense core. ``prove``: the whole unit is checked.
Invariant: whatever a solver does, ``together`` ends with a result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from cpu_engine.bfs.traversal import CoreSplit, Traversal, complete_parents
from cpu_engine.graph.graph import Graph
from exchange.protocol.programs import MIN_PLUS
from hybrid.algorithms.algorithm import Algorithm, Found, Task
from hybrid.algorithms.bfs import Bfs, make_engine
from hybrid.job.proof import count_false_values, prove_found, prove_or_repair_many
from hybrid.offload.rounds import Rounds
from hybrid.offload.traverse import Traversed, traverse_alone, traverse_together
from hybrid.results.run_record import Repair
from hybrid.results.tally import Tally
from hybrid.results.trace import Trace
from hybrid.worker.core_solver import CoreSolver, Device

if TYPE_CHECKING:
    from hybrid.offload.many_sources import ManyEngine, ManyTraversed

Unit = Sequence[Task]
Proven = tuple[Found, Repair | None]
Share = Callable[[Task, CoreSolver, str, Trace], tuple[Found, Tally]]  # a run with a core solver, in a mode
PROGRAMS = {"pagerank": "plus-times", "wcc": "min-select"}  # searches ask for MIN_PLUS


@dataclass
class Computed:
    """What a unit's run gave, not yet proven: one ``Found`` per task, and what passed between CPU and solver."""

    found: list[Found]
    tally: Tally = field(default_factory=Tally)
    seconds: float = 0.0
    waited_s: float = 0.0  # part of them in which the CPU had nothing to do but wait for the solver
    batch: ManyTraversed | None = None  # of many sources at once: all of them, in place of ``found``


@dataclass(frozen=True)
class SharedCore:
    """The dense core as an algorithm gives it away: which edges, and the program that runs on them."""

    algorithm: str
    split: CoreSplit

    @property
    def indexed(self) -> bool:
        """Whether the core's index can answer for it: the index holds hops."""
        return self.algorithm == "bfs"

    def publish(self, device: Device) -> None:
        graph = self.split.graph
        rows = graph.out_offsets, graph.out_targets
        if self.algorithm == "wcc":
            from cpu_engine.components.core import core_both_ways

            rows = core_both_ways(self.split)
        weight = graph.weight if self.algorithm == "sssp" else None
        program = PROGRAMS.get(self.algorithm, MIN_PLUS)
        device.publish_edges(*rows, self.split.core_size, program=program, weight=weight)


class Engine(Protocol):
    """See the module."""

    reruns: bool  # a hybrid result that fails its check is computed again by ``alone``, else by the plain path

    def alone(self, unit: Unit, trace: Trace) -> Computed: ...

    def together(self, unit: Unit, solver: CoreSolver, mode: str, trace: Trace) -> Computed: ...

    def prove(self, unit: Unit, computed: Computed, trace: Trace, *, repair: bool = True) -> list[Proven]: ...


class PlainEngine:
    """Any algorithm; ``share`` runs it with a core solver, where it can."""

    reruns = True

    def __init__(self, algorithm: Algorithm, share: Share | None = None) -> None:
        self.algorithm, self._share = algorithm, share

    def alone(self, unit: Unit, trace: Trace) -> Computed:
        with trace.span("cpu", "run") as learned:
            (task,) = unit
            found = self.algorithm.run(task)
            learned.update(found.counters)
        return Computed([found])

    def together(self, unit: Unit, solver: CoreSolver, mode: str, trace: Trace) -> Computed:
        assert self._share is not None
        with trace.span("cpu", "run") as learned:
            (task,) = unit
            found, tally = self._share(task, solver, mode, trace)
            learned.update(found.counters)
        return Computed([found], tally)

    def prove(self, unit: Unit, computed: Computed, trace: Trace, *, repair: bool = True) -> list[Proven]:
        (task,), (found,) = unit, computed.found
        return [prove_found(self.algorithm, task, found, trace, repair=repair)]


def share_pagerank(first: Task, split: CoreSplit) -> Share:
    """In every iteration the solver adds up what the core's own arcs pass on."""
    from cpu_engine.pagerank.engine import PageRankEngine
    from hybrid.offload.pagerank import pagerank_together

    chosen = first.config.pagerank
    engine = PageRankEngine(
        split.graph, core_size=split.core_size, definition=chosen.definition, damping=chosen.damping
    )

    def share(task: Task, solver: CoreSolver, mode: str, trace: Trace) -> tuple[Found, Tally]:
        rounds = Rounds(solver, mode, trace, max_rounds=float("inf"))
        found = pagerank_together(engine, rounds, trace, tolerance=chosen.tolerance, iterations=chosen.iterations)
        return Found({"rank": found.rank}, found.counters, {"rank": found.isolated_rank}), rounds.close()

    return share


def share_components(first: Task, split: CoreSplit) -> Share:
    """The CPU links everything outside the core, the solver spreads labels inside it."""
    from cpu_engine.components.core import CoreComponents
    from hybrid.offload.components import components_together

    engine, most = CoreComponents(split), first.config.npu.max_rounds

    def share(task: Task, solver: CoreSolver, mode: str, trace: Trace) -> tuple[Found, Tally]:
        rounds = Rounds(solver, mode, trace, most)
        found = components_together(engine, rounds, trace)
        return Found({"component": found.label}, {"iterations": found.iterations}), rounds.close()

    return share


def share_paths(first: Task, split: CoreSplit) -> Share:
    """Shortest paths: the solver closes the core's distances under its own edges, as in BFS."""
    from cpu_engine.sssp.engine import SsspEngine

    chosen, most = first.config.sssp, first.config.npu.max_rounds
    engine = SsspEngine(split.graph, strategy=chosen.strategy, delta=chosen.delta, core_size=split.core_size)

    def share(task: Task, solver: CoreSolver, mode: str, trace: Trace) -> tuple[Found, Tally]:
        found = traverse_together(engine, task.root, mode, solver, trace, most)
        arrays = {"distance": found.level.copy(), "parent": found.parent.copy()}
        return Found(arrays, {"steps": found.steps, "relaxations": found.edges_looked_at}), found.npu

    return share


class BfsEngine:
    """What both engines of BFS have in common: the proof, whose plain path is as quick as any."""

    reruns = False
    algorithm = Bfs()

    def __init__(self, split: CoreSplit) -> None:
        self._split = split

    def _prove(self, task: Task, found: Found, tally: Tally, trace: Trace, *, repair: bool = True) -> Proven:
        proven, repaired = prove_found(self.algorithm, task, found, trace, repair=repair)
        if repaired is not None and tally.rounds_merged:
            tally.values_rejected += count_false_values(
                found.arrays["level"], proven.arrays["level"], self._split.core_size
            )
        return proven, repaired


class SearchEngine(BfsEngine):
    """BFS, one source at a time."""

    def __init__(self, split: CoreSplit, engine: str = "level", strategy: str = "auto") -> None:
        super().__init__(split)
        self.traversal: Traversal = make_engine(engine, split, strategy)

    def alone(self, unit: Unit, trace: Trace) -> Computed:
        return self._computed(traverse_alone(self.traversal, unit[0].root, trace))

    def together(self, unit: Unit, solver: CoreSolver, mode: str, trace: Trace) -> Computed:
        (task,) = unit
        done = traverse_together(self.traversal, task.root, mode, solver, trace, task.config.npu.max_rounds)
        return self._computed(done)

    def prove(self, unit: Unit, computed: Computed, trace: Trace, *, repair: bool = True) -> list[Proven]:
        (task,), (found,) = unit, computed.found
        return [self._prove(task, found, computed.tally, trace, repair=repair)]

    def _computed(self, done: Traversed) -> Computed:
        counters = {"steps": done.steps, "edges_looked_at": done.edges_looked_at}
        return Computed([Found({"level": done.level, "parent": done.parent}, counters)], done.npu)


class BatchEngine(BfsEngine):
    """BFS from many sources at once: levels are computed and timed, parents filled in from the certified levels."""

    @cached_property
    def many(self) -> ManyEngine:
        from hybrid.offload.many_sources import ManyEngine

        return ManyEngine(self._split)

    def alone(self, unit: Unit, trace: Trace) -> Computed:
        done = self.many.alone(roots_of(unit), trace=trace)
        return Computed([], done.npu, batch=done)

    def together(self, unit: Unit, solver: CoreSolver, mode: str, trace: Trace) -> Computed:
        done = self.many.together(roots_of(unit), mode, solver, trace, unit[0].config.npu.max_rounds)
        return Computed([], done.npu, batch=done)

    def prove(self, unit: Unit, computed: Computed, trace: Trace, *, repair: bool = True) -> list[Proven]:
        graph, config, done = unit[0].graph, unit[0].config, computed.batch
        assert done is not None
        repaired = prove_or_repair_many(graph, done, self._split.core_size, trace, config)
        proven = []
        for i, task in enumerate(unit):
            assert task.source is not None
            trace.source = task.source.user_id
            level, _ = done.found.of(i)
            parent = np.full(graph.n, -1, np.int32)
            complete_parents(graph, level, parent, task.root)
            steps, edges = (done.steps, done.edges_looked_at) if i == 0 else (0, 0)
            found = Found({"level": level, "parent": parent}, {"steps": steps, "edges_looked_at": edges})
            right, again = self._prove(task, found, computed.tally, trace)
            if repaired[i] and done.repair is not None:
                again = dataclasses.replace(done.repair, source=task.source.user_id, changed=int(repaired[i]))
            proven.append((right, again))
        trace.source = None
        return proven


_SHARES = {"pagerank": share_pagerank, "wcc": share_components, "sssp": share_paths}
SHARING = ("bfs", *_SHARES)  # the algorithms that can give their dense core to a solver


def engine_for(algorithm: Algorithm, task: Task, split: CoreSplit, *, batch: int = 1, mode: str = "off") -> Engine:
    """The configured engine of this algorithm, for units of up to ``batch`` sources."""
    if algorithm.name == "bfs":
        config = task.config
        return BatchEngine(split) if batch > 1 else SearchEngine(split, config.engine, config.bfs.strategy)
    share = None if mode == "off" else _SHARES.get(algorithm.name)
    return PlainEngine(algorithm, None if share is None else share(task, split))


def why_not_shared(name: str, graph: Graph) -> str:
    """Why this algorithm cannot share its core on this graph; empty if it can."""
    if name not in SHARING:
        return f"{name} runs on the CPU alone"
    if name != "sssp":
        return ""
    weight = graph.weight
    if weight is not None and weight.dtype.kind == "f":
        return "the worker takes whole weights, and these are real numbers"
    heaviest = 1 if weight is None or not weight.size else int(weight.max())
    if heaviest * max(1, graph.n - 1) >= np.iinfo(np.int32).max:
        return f"distances may exceed the worker's 32 bits (the heaviest edge weighs {heaviest})"
    return ""


def rehearsal(engine: Engine, unit: Unit, mode: str) -> Callable[[CoreSolver], object]:
    """The run by which a simulated device prepares its answers."""
    return lambda solver: engine.together(unit, solver, mode, Trace())


def roots_of(unit: Unit) -> np.ndarray:
    return np.array([task.root for task in unit], np.int64)
