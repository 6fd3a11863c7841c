"""The resident workers of a service: which graph has one, and whether one is worth having.

``npu.mode``: race and share keep a worker warm on the graph that was asked for last; auto only if the planner finds
that it pays for searches or for batches of them; off not at all. A job may ask for another mode: then a worker is
started for it, in the background. Invariant: everything here is done on the computing thread, and nothing in it waits
for a worker; ``tell`` and ``gauges`` may be called from any thread. The levels of a batch leave only with their
certificate.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.bfs.many.check import check_levels
from cpu_engine.bfs.many.engine import ROOTS_PER_PASS
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.store.npy import open_regular
from hybrid.config.schema import Config
from hybrid.job.warm_up import warm_up_batches
from hybrid.offload.many_sources import ManyEngine
from hybrid.planning.plan import Plan, make_plan
from hybrid.results.trace import Trace
from hybrid.service.lives import OFF, READY
from hybrid.service.worker.resident import Core, ResidentWorker, SimulatedWorker
from hybrid.terminal import plural
from hybrid.worker.core_solver import CoreSolver
from hybrid.worker.exchange_directory import remove_directory_of_killed
from hybrid.worker.guard import STRIKES, Guard, Patience
from hybrid.worker.simulated import simulated_solver

_log = logging.getLogger(__name__)
_SETTLED_S = 5.0  # a worker stays with its graph at least so long after it was last asked
_MANY = 1 << 16  # searches: a service goes on
_BEFORE = "no graph is there yet"
_LONGEST_NOTE = 1 << 16  # bytes of a path
_PATIENCE_S = 1.0  # mode share: every client of the batch waits with it


@dataclass(frozen=True, eq=False)
class GraphPlans:
    """What is planned for one graph in one mode."""

    name: str
    graph: Graph
    single: Plan  # one search
    batch: Plan  # as many at once as fit into a pass
    core: Core | None  # that a worker would hold; None if neither pays

    def core_of(self, plan: Plan) -> Core:
        """The core of one of the two, or of another plan for this graph: they may differ in size."""
        if self.core is not None and plan.core_size == self.core.size:
            return self.core
        return Core(self.name, self.graph, plan.core_size)


class Workers:
    """See the module."""

    def __init__(self, config: Config, folder: Path, changed: Callable[[], None]) -> None:
        self.config, self.mode = config, config.npu.mode
        self._folder, self._changed = folder, changed
        self._plans: dict[Graph, dict[str, GraphPlans]] = {}
        self.all: list[ResidentWorker] = []

    def open(self) -> None:
        """Remove what a service that was killed left, and start what is surely wanted: it loads while graphs do."""
        self.sweep()
        logging.getLogger("hybrid.worker.solver").setLevel(logging.WARNING)  # else it tells of every abandoned round
        why = "npu.mode is off" if self.mode == "off" else _BEFORE
        simulated = simulated_solver(self.config)
        if simulated is not None:
            if self.config.service.workers:
                self.all.append(SimulatedWorker(simulated, why))
            return
        most = self.config.service.workers
        if self.config.exchange.dir is not None or self.config.npu.worker == "external":
            most = min(1, most)  # a directory has one coordinator
        for number in range(most):
            log, note = (self._folder / f"worker-{number}.{kind}" for kind in ("log", "directory"))
            self.all.append(ResidentWorker(self.config, log, note, self._changed, why))
        if self.mode in ("race", "share") and self.config.service.preload and self.all:
            self.all[0].want(None, _BEFORE, lasting=True)

    def close(self) -> None:
        for worker in self.all:
            worker.close()

    def sweep(self) -> None:
        """Remove exchange directories that a service which was killed noted in this journal."""
        for note in self._folder.glob("worker-*.directory"):
            with contextlib.suppress(OSError, ValueError):  # a damaged note names no directory
                with open_regular(note) as stream:
                    remove_directory_of_killed(Path(stream.read(_LONGEST_NOTE).decode()))
                note.unlink()

    def plans(self, name: str, graph: Graph, mode: str) -> GraphPlans:
        """Core and mode for this graph; measured and predicted once, in mode auto."""
        known = self._plans.setdefault(graph, {})
        if mode not in known:
            known[mode] = self._plan(name, graph, mode)
        return known[mode]

    def _plan(self, name: str, graph: Graph, mode: str) -> GraphPlans:
        def planned(batch: int) -> Plan:
            npu = dataclasses.replace(self.config.npu, mode=mode, batch=batch, index="off", worker="external")
            quiet = dataclasses.replace(self.config.compare, enabled=False)  # nothing to compare a prediction with
            wanted = dataclasses.replace(
                self.config, npu=npu, compare=quiet, engine="level", ranks=1, source=f"random:{_MANY}"
            )
            return make_plan(graph, wanted)

        single = planned(1)
        batch = planned(ROOTS_PER_PASS) if mode == "auto" else single
        chosen = next((plan for plan in (batch, single) if plan.mode != "off" and plan.core_size), None)
        core = None if chosen is None else Core(name, graph, chosen.core_size)
        return GraphPlans(name, graph, single, batch, core)

    def settle(self, name: str, graph: Graph) -> BatchHelp | None:
        """A graph has come: keep a worker warm for it if the mode says so and one is free; its help with queries."""
        if not self.all or self.mode == "off":
            return None
        plans = self.plans(name, graph, self.mode)
        if plans.core is not None:
            self.worker_for(plans.core, lasting=True)
            if plans.batch.mode != "off":
                warm_up_batches()
                return BatchHelp(self, plans)
        elif all(worker.core is None for worker in self.all):
            why = plans.batch.mode_reason if plans.single.mode == "off" else plans.single.mode_reason
            for worker in self.all:
                worker.let_go(why)
        return None

    def forget(self, graph: Graph, kept: Iterable[Graph]) -> None:
        """A graph has gone; those that a late question planned for after they had gone go with it."""
        known = {id(one) for one in kept}
        self._plans = {one: plans for one, plans in list(self._plans.items()) if id(one) in known}
        for worker in self.all:
            if worker.core is not None and worker.core.graph is graph:
                worker.let_go(_BEFORE)

    def worker_for(self, core: Core, *, lasting: bool = False) -> ResidentWorker | None:
        """The worker that has this graph, or takes it up now; None if all have one that was asked for just now."""
        for worker in self.all:
            if worker.core is not None and worker.core.graph is core.graph:
                return worker
        if not self.all:
            return None
        least = min(self.all, key=lambda one: (one.core is not None, one.used_at))
        if least.core is not None and (lasting or least.busy or time.monotonic() - least.used_at < _SETTLED_S):
            return None
        lasting = lasting or self.mode in ("race", "share")
        least.want(core, f"it is started for {core.name}", lasting=lasting)
        return least

    @property
    def state(self) -> str:
        """Of the one that is best off."""
        told = [worker.tell()["state"] for worker in self.all]
        order = ("busy", READY, "starting", "restarting", "failed")
        return next((state for state in order if state in told), OFF)

    def tell(self) -> list[dict[str, Any]]:
        return [worker.tell() for worker in self.all]

    def gauges(self) -> dict[str, tuple[str, float]]:
        told = self.tell()
        totals = {
            "rounds": "rounds sent to workers",
            "searches": "jobs and batches that a worker was lent to",
            "refused": "times that a certificate refused a worker's word",
            "restarts": "workers started again",
            "deaths": "workers that died, hung or were given up",
        }
        serving = sum(one["state"] in ("ready", "busy") for one in told)
        gauges = {f"worker_{name}_total": (text, sum(one[name] for one in told)) for name, text in totals.items()}
        return {"workers_ready": ("resident workers that can be asked", serving), **gauges}


class BatchHelp:
    """The worker's part in the batches of queries on one graph: all of a batch is one matrix-matrix round of the core.

    Engine and buffers are the queries' own. What the certificate refuses is thrown away and the worker with it; the
    caller searches again, by the CPU alone. A lone query is none of this: a round takes longer than it does.
    """

    def __init__(self, workers: Workers, plans: GraphPlans) -> None:
        self._workers, self._plan = workers, plans.batch
        self._core = plans.core_of(plans.batch)
        self._engine = ManyEngine(plans.batch.split)
        npu = workers.config.npu
        self._max_rounds = npu.max_rounds
        # Of all modes only auto has a prediction to be measured by.
        waiting = Patience(min(npu.round_timeout_s, _PATIENCE_S), STRIKES)
        self._patience = plans.batch.patience if workers.mode == "auto" else waiting
        self._guarded: tuple[CoreSolver, Guard] | None = None

    def search(self, roots: np.ndarray) -> np.ndarray | None:
        """Proven levels by [root, vertex], the engine's own; None if the CPU has to do it."""
        worker = self._workers.worker_for(self._core)
        solver = None if worker is None else worker.lend(self._core)
        if worker is None or solver is None:
            return None
        try:
            return self._search(roots, worker, self._guard(solver))
        finally:
            worker.give_back()

    def _search(self, roots: np.ndarray, worker: ResidentWorker, guard: Guard) -> np.ndarray | None:
        if not guard.ready:
            worker.refuse(guard.failure, lied=False)
            return None
        done = self._engine.together(roots, self._plan.mode, guard, Trace(), self._max_rounds)
        certificate = check_levels(self._core.graph, roots, done.found.level)
        if not certificate.holds:
            _log.warning("a batch is searched again without the worker: %s", certificate.explain(self._core.graph))
            worker.refuse(f"a batch of {plural(roots.size, 'source')} in which it took part failed the certificate")
            return None
        if done.npu.values_rejected:
            worker.refuse(f"{done.npu.values_rejected} of its values were false")
        return done.found.level

    def _guard(self, solver: CoreSolver) -> Guard:
        """One per process: an answer that did not come is remembered."""
        if self._guarded is None or self._guarded[0] is not solver:
            self._guarded = solver, Guard(solver, self._patience)
        return self._guarded[1]
