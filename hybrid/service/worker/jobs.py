"""The resident worker's part in one job: lent for its length, asked, compared with the CPU alone, told in its summary.

Invariant: ``open`` and ``close`` are called where the job cannot be stopped; in between it may be, at any instruction.
What a check refuses is thrown away: the CPU searches again, and the process that said it is not asked any more.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cpu_engine.bfs.many.engine import ROOTS_PER_PASS
from cpu_engine.bfs.traversal import CoreSplit, Traversal
from cpu_engine.graph.graph import Graph
from hybrid.algorithms import algorithm_named
from hybrid.algorithms.algorithm import Task
from hybrid.cli.terminal import plural
from hybrid.config.schema import Config
from hybrid.job.algorithm_worker import LibraryNpu
from hybrid.job.verdict import Verdict, judge
from hybrid.offload.many_sources import ManyEngine, ManyTraversed
from hybrid.offload.sharing import SHARINGS, why_not_shared
from hybrid.offload.traverse import NpuTally, Traversed, traverse_alone, traverse_together
from hybrid.planning.plan import Plan, plan_library
from hybrid.results.trace import Trace
from hybrid.service.events import LiveTrace
from hybrid.service.worker.pool import Worker, Workers
from hybrid.service.worker.resident import Core
from hybrid.worker.guard import NoRegretPartner
from hybrid.worker.simulated import SimulatedPartner
from hybrid.worker.solver import NpuPartner

_log = logging.getLogger(__name__)
_LONGEST_COMPARISON_S = 10.0
_COUNTED = ("rounds_sent", "rounds_merged", "values_sent", "values_received", "values_adopted", "values_rejected")


class JobHelp:
    """See the module. Every method may be called whether or not there is a worker; ``None`` means: the CPU alone."""

    def __init__(self, workers: Workers, name: str, task: Task, algorithm: str, sources: int, trace: LiveTrace) -> None:
        self._workers, self._name, self._graph, self._task = workers, name, task.graph, task
        self._algorithm, self._sources, self._trace = algorithm, sources, trace
        self._config: Config = task.config
        self._worker: Worker | None = None
        self._lent: NpuPartner | SimulatedPartner | None = None
        self._partner: NpuPartner | SimulatedPartner | NoRegretPartner | None = None
        self._plan: Plan | None = None
        self._many: ManyEngine | None = None
        self._tally = NpuTally()
        self._failure = ""
        self.device = "none"
        self.npu: LibraryNpu | None = None
        self.mode, self.reason = self._config.npu.mode, ""
        self.not_compared = ""

    # --------------------------------------------------------------------------------------------- lending

    def open(self) -> None:
        """Borrow a worker, if one is wanted and there."""
        try:
            self.reason = self._decide()
        except Exception as error:  # a plan that cannot be made is no reason for a job to fail
            _log.exception("no plan for %s on %s", self._algorithm, self._name)
            self.reason = f"no plan could be made: {type(error).__name__}"
        if self.reason:
            self.mode = "off"
            return
        assert self._plan is not None
        core = self._core()
        worker = self._workers.worker_for(core)
        if worker is None:
            self.reason = "the worker is busy with another graph"
            return
        lent = worker.lend(core, any_core=True)
        if lent is None:
            told = worker.tell()
            self.reason = f"the worker was {told['state']}, and nobody waits for it ({told['why']})"
            return
        self._worker, self._lent, self._partner = worker, lent, lent
        self.device, self._trace.simulated = worker.device, worker.tell()["simulated"] and worker.device
        if self._algorithm == "bfs":
            worker.publish(core)
            if self._config.npu.mode == "auto":
                self._partner = NoRegretPartner(lent, self._plan.patience)

    def _decide(self) -> str:
        """Why the CPU works alone; empty if a worker is wanted."""
        mode, name = self._config.npu.mode, self._algorithm
        if mode == "off":
            return "npu.mode is off"
        if not self._workers.possible:
            return "service.workers is 0"
        if name != "bfs":
            why = why_not_shared(name, self._task) if name in SHARINGS else f"{name} runs on the CPU alone"
            if not why and self._config.npu.device.startswith("simulated:"):
                why = "simulated devices serve bfs only"
            if why:
                return why
            self._plan = plan_library(self._graph, self._config, name)
        else:
            plans = self._workers.plans(self._name, self._graph, mode)
            self._plan = plans.single if self._sources < 2 else plans.batch
            if self._plan.mode == "off" and plans.single.mode != "off":
                self._plan = plans.single
        self.mode = self._plan.mode
        return self._plan.mode_reason if self._plan.mode == "off" else ""

    def _core(self) -> Core:
        assert self._plan is not None
        core = self._workers.plans(self._name, self._graph, self._config.npu.mode).core
        same = core is not None and core.size == self._plan.core_size
        return core if core is not None and same else Core(self._name, self._graph, self._plan.core_size)

    def prepare(self) -> None:
        """What a job of the library gives the worker; in the job's own time."""
        if self._algorithm != "bfs" and isinstance(self._lent, NpuPartner):
            assert self._worker is not None
            self._worker.taken_over()
            npu = LibraryNpu(algorithm_named(self._algorithm), self._config, None, self._trace, lent=self._lent)
            npu.plan(self._task)
            self.npu = npu

    def close(self) -> None:
        """Give the worker back."""
        worker, self._worker = self._worker, None
        if worker is not None:
            assert self._lent is not None
            self._failure = self._lent.failure
            worker.give_back()

    # ------------------------------------------------------------------------------------------- searching

    @property
    def helps(self) -> bool:
        return self._partner is not None and self._partner.usable

    def split(self, graph: Graph) -> CoreSplit:
        """For the engine of single searches."""
        return CoreSplit(graph) if self._plan is None else self._plan.split

    def search(self, engine: Traversal, root: int) -> Traversed | None:
        """One search by two, not yet certified."""
        if not self.helps:
            return None
        assert self._partner is not None
        max_rounds = self._config.npu.max_rounds
        if isinstance(self._lent, SimulatedPartner):
            self._lent.rehearse(engine, root, self.mode, max_rounds)
        if isinstance(self._partner, NoRegretPartner) and not self._partner.ready:
            return None
        done = traverse_together(engine, root, self.mode, self._partner, self._trace, max_rounds)
        self._count(done.npu)
        return done

    def search_many(self, roots: np.ndarray, trace: Trace | None = None) -> ManyTraversed | None:
        """Up to 64 searches by two, with parents, not yet certified."""
        if not self.helps:
            return None
        assert self._partner is not None
        assert self._plan is not None
        if self._many is None:
            self._many = ManyEngine(self._plan.split)
        engine, partner, max_rounds = self._many, self._partner, self._config.npu.max_rounds
        if isinstance(partner, NoRegretPartner) and not partner.ready:
            return None
        if isinstance(self._lent, SimulatedPartner):
            self._lent.rehearse_run(lambda: engine.together(roots, self.mode, partner, Trace(), max_rounds))
        done = engine.together(roots, self.mode, partner, trace or self._trace, max_rounds, parents=True)
        self._count(done.npu)
        return done

    def _count(self, tally: NpuTally) -> None:
        for name in _COUNTED:
            setattr(self._tally, name, getattr(self._tally, name) + getattr(tally, name))

    def reject(self, reason: str) -> None:
        """A hybrid result failed its check."""
        assert self._worker is not None
        now = self._trace.now()
        self._tally.values_rejected += self._tally.values_adopted
        self._trace.add("coordinator", "repair", now, findings=reason)
        _log.warning("not certified, computing again without the worker: %s", reason)
        self._worker.refuse(f"a result that it took part in failed the certificate: {reason}")

    # ------------------------------------------------------------------------------------------- comparing

    def compare(self, engine: Traversal | None, tasks: Sequence[Task], seconds: float) -> Verdict | None:
        """The same sources both ways, in turns; None, and ``not_compared``, where that cannot be or is not wanted."""
        self.not_compared = self._why_not_compared(seconds)
        if self.not_compared:
            return None
        repeats = self._config.compare.repeats
        if self.npu is not None:
            verdict = self.npu.compare(tasks)
        else:
            roots = np.array([task.root for task in tasks if task.root >= 0], np.int64)
            with self._trace.span("coordinator", "compare", repeats=repeats):
                verdict = self._judge(self._pieces(engine, roots), repeats)
        if verdict is None:
            self.not_compared = "the worker was lost meanwhile"
        elif self._trace.simulated:
            verdict = dataclasses.replace(verdict, text=f"{self.device}: {verdict.text}; no real NPU was used")
        return verdict

    def _why_not_compared(self, seconds: float) -> str:
        compare = self._config.compare
        if not self._tally.rounds_sent and self.npu is None:
            return "the CPU worked alone"
        if not self.helps:
            return "the worker was lost"
        if not compare.enabled:
            return "not compared (compare.enabled is false)"
        if 2 * compare.repeats * seconds > _LONGEST_COMPARISON_S:
            return "not compared: it would take longer than the job"
        return ""

    def _pieces(
        self, engine: Traversal | None, roots: np.ndarray
    ) -> list[tuple[Callable[[], object], Callable[[], object]]]:
        """What is timed, a piece at a time: by the CPU alone, and by two."""
        partner, rounds = self._partner, self._config.npu.max_rounds
        assert partner is not None
        if engine is not None:
            return [
                (partial(traverse_alone, engine, root, Trace()),
                 partial(traverse_together, engine, root, self.mode, partner, Trace(), rounds))
                for root in roots.tolist()
            ]  # fmt: skip
        many = self._many
        assert many is not None
        parts = [roots[first : first + ROOTS_PER_PASS] for first in range(0, roots.size, ROOTS_PER_PASS)]
        return [
            (partial(many.alone, part), partial(many.together, part, self.mode, partner, Trace(), rounds))
            for part in parts
        ]

    def _judge(
        self, pieces: list[tuple[Callable[[], object], Callable[[], object]]], repeats: int
    ) -> Verdict | None:  # fmt: skip
        times = np.zeros((2, repeats, len(pieces)))
        for column, ways in enumerate(pieces):
            for row in range(repeats):
                for way in (0, 1) if row % 2 == 0 else (1, 0):
                    began = time.perf_counter()
                    ways[way]()
                    times[way, row, column] = time.perf_counter() - began
                if not self.helps:
                    return None
        return judge(times[0], times[1], self.mode)

    # --------------------------------------------------------------------------------------------- telling

    def describe(self) -> dict[str, Any]:
        """The summary's account of it; after ``close``."""
        if self.npu is not None:
            told = self.npu.describe()
        else:
            tally, plan = self._tally, self._plan
            if self.reason:
                tally.outcome = self.reason
            elif self._failure:
                tally.outcome = self._failure
            else:
                tally.outcome = f"merged {tally.rounds_merged} of {plural(tally.rounds_sent, 'round')}"
            core = None
            if plan is not None and plan.core_size:
                core = {"size": plan.core_size, "edges": plan.core_edges, "density": plan.density, "rule": plan.rule}
            told = {
                "mode": self.mode, "device": self.device, "configured": self._config.npu.mode,
                **dataclasses.asdict(tally), "core": core, "predicted": None if plan is None else plan.predicted,
            }  # fmt: skip
        return {**told, "not_compared": self.not_compared}
