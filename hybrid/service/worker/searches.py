"""Batches of queries beside a resident worker: the core's part of all of them is one matrix-matrix round.

Invariant: levels leave here only with their certificate. What the certificate refuses is thrown away and the worker
with it; the caller searches again, by the CPU alone. A lone query is none of this: a round takes longer than it does.
"""

from __future__ import annotations

import logging

import numpy as np

from cpu_engine.bfs.many.check import check_levels
from hybrid.offload.many_sources import ManyEngine
from hybrid.results.trace import Trace
from hybrid.service.worker.pool import GraphPlans, Workers
from hybrid.service.worker.resident import ResidentWorker
from hybrid.terminal import plural
from hybrid.worker.core_solver import CoreSolver
from hybrid.worker.guard import STRIKES, Guard, Patience

_log = logging.getLogger(__name__)
_PATIENCE_S = 1.0  # mode share: everybody who asks waits with the batch


class BatchHelp:
    """The worker's part in the batches on one graph. Engine and buffers are the queries' own."""

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
