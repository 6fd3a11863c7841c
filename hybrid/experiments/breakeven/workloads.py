"""The algorithms of the break-even experiment, one adapter each: BFS one by one and in batches, PageRank, personalised.

Searches share as jobs do: core edges withheld, values out, closed values back. Sweeps share by arcs: while the core's
product is out, the CPU follows all other arcs, and adds the sums when they are due.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from cpu_engine.pagerank.check import check_pagerank
from cpu_engine.pagerank.engine import LDBC_ITERATIONS, PageRankEngine
from cpu_engine.pagerank.kernels.check import push_ranks_step
from cpu_engine.pagerank.personalised import ManyRanksEngine
from hybrid.algorithms.algorithm import Task
from hybrid.config.schema import Config
from hybrid.devices.model import DeviceModel
from hybrid.devices.profiles import fixed_delay
from hybrid.errors import NotCertified
from hybrid.experiments.breakeven.experiment import Workload
from hybrid.graphs.sources import Source
from hybrid.job.engines import PROGRAMS, BatchEngine, Computed, Engine, SearchEngine, SharedCore, Unit, rehearsal
from hybrid.job.units import units_of
from hybrid.job.warm_up import warm_up, warm_up_batches
from hybrid.planning.core_statistics import core_statistics
from hybrid.results.trace import Trace
from hybrid.worker.core_programs import core_program
from hybrid.worker.simulated import SimulatedSolver

RELATIVE = 1e-3  # of float32 sums over many arcs, against float64: ranks are compared, not certified
SWEEPS = LDBC_ITERATIONS
DAMPING = 0.85  # the engines' default
_SPIN_S = 200e-6
_FIX = "run it again; a failure that comes back is a defect of an engine"
Made = tuple[PageRankEngine | ManyRanksEngine, Callable[[], object]]  # an engine, and how it begins


class Searches:
    """BFS by the engines of a job: one search after the other, or as many at once as the batch has, levels only."""

    _engine: Engine
    _units: list[Unit]

    def __init__(self, graph: Graph, roots: np.ndarray, engine: str = "level", *, batched: bool = False) -> None:
        self.name, self.batched = "bfs-batch" if batched else "bfs", batched
        self._graph, self._roots, self._config = graph, roots, Config(engine=engine)
        self._solver = SimulatedSolver(fixed_delay("oracle", 0.0), format="direct")
        self._k = 0
        if batched:
            warm_up_batches()
        else:
            warm_up(engine)

    def inside(self) -> float:
        return _inside(self._graph, self._k)

    def prepare(self, k: int, batch: int) -> None:
        self._k, graph, batch = k, self._graph, batch if self.batched else 1
        roots = np.resize(self._roots, batch) if self.batched else self._roots
        tasks = [Task(graph, self._config, Source(int(graph.user_id_of[root]), root)) for root in roots.tolist()]
        split = CoreSplit(graph, k)
        self._engine = BatchEngine(split) if self.batched else SearchEngine(split, self._config.engine)
        self._units = units_of(tasks, batch)
        SharedCore("bfs", split).publish(self._solver)
        for unit in self._units:
            self._engine.alone(unit, Trace())
            self._solver.rehearse(rehearsal(self._engine, unit, "share"))

    def run_cpu_only(self) -> float:
        return self._run(lambda unit: self._engine.alone(unit, Trace()))

    def run_hybrid(self, device: DeviceModel) -> float:
        self._solver.model = device
        return self._run(lambda unit: self._engine.together(unit, self._solver, "share", Trace()))

    def _run(self, search: Callable[[Unit], Computed]) -> float:
        took = 0.0
        for unit in self._units:
            began = time.perf_counter()
            found = search(unit)
            took += time.perf_counter() - began
            for _, repair in self._engine.prove(unit, found, Trace()):
                if repair is not None:
                    raise NotCertified(repair.reason, path=repair.record, fix=_FIX)
        return took


class _Sweeps:
    """What both PageRank adapters have in common: a whole run of sweeps, without and with the core's arcs."""

    batched = False
    _whole: Made
    _shared: Made

    def __init__(self, graph: Graph) -> None:
        self._graph, self._k, self._batch = graph, 0, 0
        self._sums: list[np.ndarray] = []  # of the core's arcs in each sweep, as a device with float32 would have them
        self._expected = np.empty(0)

    def inside(self) -> float:
        return _inside(self._graph, self._k)

    def prepare(self, k: int, batch: int) -> None:
        if self._batch != batch:
            self._batch, self._whole, self._expected = batch, self._make(0, batch), np.empty(0)
            self.run_cpu_only()
            self._expected = self._whole[0].rank()
            self._prove_expected()
        self._k, self._shared = k, self._make(k, batch)
        engine, begin = self._shared
        multiply = core_program(self._graph.out_offsets, self._graph.out_targets, k, PROGRAMS["pagerank"])
        begin()
        self._sums.clear()
        for _ in range(SWEEPS):
            sums, _iterations = multiply(engine.core_contributions().T)
            self._sums.append(np.ascontiguousarray(sums.T))
            engine.sweep_outside()
            engine.add_core_sums(self._sums[-1])
            engine.finish_iteration()

    def run_cpu_only(self) -> float:
        engine, begin = self._whole
        begin()
        began = time.perf_counter()
        for _ in range(SWEEPS):
            engine.iterate()
        took = time.perf_counter() - began
        if self._expected.size:
            self._prove(engine.rank())
        return took

    def run_hybrid(self, device: DeviceModel) -> float:
        (engine, begin), round_s = self._shared, device.round_s(self._k, self._batch, 1, "direct")
        begin()
        began = time.perf_counter()
        for sums in self._sums:
            engine.core_contributions()  # what would be handed over: making it is the CPU's work
            due = time.perf_counter() + round_s
            engine.sweep_outside()
            _wait_until(due)
            engine.add_core_sums(sums)
            engine.finish_iteration()
        took = time.perf_counter() - began
        self._prove(engine.rank())
        return took

    def _make(self, k: int, batch: int) -> Made:
        raise NotImplementedError

    def _prove_expected(self) -> None:
        """Compute what every timed run is compared with again, by pushing rank along the arcs."""
        raise NotImplementedError

    def _prove(self, rank: np.ndarray) -> None:
        if not np.allclose(rank, self._expected, rtol=RELATIVE, atol=RELATIVE / max(1, rank.shape[0])):
            raise NotCertified("the shared sweeps gave other ranks than the whole ones", fix=_FIX)


class SweepRanks(_Sweeps):
    """PageRank as LDBC defines it, a fixed number of sweeps."""

    name = "pagerank"

    def _make(self, k: int, batch: int) -> Made:
        engine = PageRankEngine(self._graph, core_size=k)
        return engine, engine.begin

    def _prove_expected(self) -> None:
        engine, _ = self._whole
        assert isinstance(engine, PageRankEngine)
        check = check_pagerank(self._graph, self._expected, engine.isolated_rank, iterations=SWEEPS)
        if not check.holds:
            raise NotCertified(check.explain(self._graph), fix=_FIX)


class BatchRanks(_Sweeps):
    """Personalised PageRank from as many vertices at once as the batch has: matrix times matrix."""

    name, batched = "ppr-batch", True

    def __init__(self, graph: Graph, roots: np.ndarray) -> None:
        super().__init__(graph)
        self._roots = roots

    def _make(self, k: int, batch: int) -> Made:
        engine = ManyRanksEngine(self._graph, batch, core_size=k)
        return engine, partial(engine.begin, np.resize(self._roots, batch))

    def _prove_expected(self) -> None:
        graph, columns = self._graph, np.resize(self._roots, self._batch).tolist()
        for at in {0, len(columns) - 1}:
            rank = np.zeros(graph.n)
            rank[columns[at]] = 1.0
            for _ in range(SWEEPS):
                received = np.zeros(graph.n + 1)
                stranded = push_ranks_step(graph.out_offsets, graph.out_targets, rank, received)
                rank = DAMPING * received[:-1]
                rank[columns[at]] += 1 - DAMPING + DAMPING * stranded
            if not np.allclose(self._expected[:, at], rank, rtol=RELATIVE, atol=RELATIVE / max(1, graph.n)):
                raise NotCertified("personalised ranks differ from those computed again", fix=_FIX)


ALGORITHMS = ("bfs", "bfs-batch", "pagerank", "ppr-batch")
_SINGLE = 4  # roots of the searches one by one: few are enough, each is measured by itself


def make_workloads(names: Sequence[str], graph: Graph, roots: np.ndarray, engine: str) -> list[Workload]:
    """The adapters of these names."""
    makers: dict[str, Callable[[], Workload]] = {
        "bfs": partial(Searches, graph, roots[:_SINGLE], engine),
        "bfs-batch": partial(Searches, graph, roots, engine, batched=True),
        "pagerank": partial(SweepRanks, graph),
        "ppr-batch": partial(BatchRanks, graph, roots),
    }
    return [makers[name]() for name in names]


def _inside(graph: Graph, k: int) -> float:
    return float(core_statistics(graph, k).inside[k]) / graph.m if k and graph.m else 0.0


def _wait_until(due: float) -> None:
    left = due - time.perf_counter()
    if left > _SPIN_S:
        time.sleep(left - _SPIN_S)
    while time.perf_counter() < due:
        pass
