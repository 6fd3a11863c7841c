"""The core solver's part in a job: planned, started, given the core, asked, compared with the CPU alone, stopped.

In mode auto every device is behind a guard (hybrid/worker/guard.py), whatever the algorithm, so that what a job may
lose is bounded. Invariant: a solver that took part in a result that failed its check is not asked again; nothing of it
stays behind, however the job ends. Every method may be called whether or not there is a solver.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Sequence
from pathlib import Path

from hybrid.config.schema import Config
from hybrid.interrupts import interrupts_held
from hybrid.job.engines import Computed, Engine, SharedCore, Unit, rehearsal
from hybrid.job.verdict import judge, time_in_turns
from hybrid.offload.rounds import STILL_STARTING
from hybrid.planning.plan import Plan
from hybrid.results.record import WorkerFacts
from hybrid.results.run_record import Verdict
from hybrid.results.tally import Tally
from hybrid.results.trace import Trace
from hybrid.terminal import note
from hybrid.worker.core_solver import CoreSolver, Device
from hybrid.worker.guard import Guard
from hybrid.worker.index_keeper import IndexKeeper, index_keeper
from hybrid.worker.simulated import simulated_solver
from hybrid.worker.solver import WorkerSolver

_log = logging.getLogger(__name__)


def device_of(config: Config, log_path: Path, trace: Trace) -> Device:
    """The device that the configuration names: a worker, or a simulated one."""
    return simulated_solver(config) or WorkerSolver(config, log_path, trace)


class JobCore:
    """See the module. ``lent``: a device that outlives the job; else ``start`` makes one that logs to ``log_path``."""

    def __init__(self, config: Config, trace: Trace, log_path: Path | None = None, lent: Device | None = None) -> None:
        self.config, self.trace, self._log_path = config, trace, log_path
        self.device: Device | None = lent
        self._lent, self._started = lent is not None, False
        self._guard: Guard | None = None
        self._keeper: IndexKeeper | None = None
        self.plan: Plan | None = None

    @property
    def mode(self) -> str:
        return "off" if self.plan is None else self.plan.mode

    def make(self) -> Device:
        """The device that the configuration names."""
        if self.device is None:
            assert self._log_path is not None, "a job without a folder has a lent device"
            self.device = device_of(self.config, self._log_path, self.trace)
        return self.device

    def start(self) -> None:
        """Let a device load while the job goes on."""
        if not self._started and not self._lent:
            self._started = True
            self.make().start()

    def attach(self, plan: Plan, core: SharedCore, searches: int, *, publish: bool = True) -> None:
        """Give the planned core to the device; ``publish=False``: it holds the core already."""
        self.plan = plan
        if plan.mode == "off":
            return
        self.start()
        device = self.device
        assert device is not None
        if publish:
            core.publish(device)
        if self.config.npu.mode == "auto":
            self._guard = Guard(device, plan.patience)
            if device.cold and not self._lent and not plan.index and device.usable:
                self._guard.send_first(device.first_values(plan.batch))
        if core.indexed and not self._lent:
            self._keeper = index_keeper(
                self.config, plan.split.graph, plan.core_size, math.inf if plan.index else searches, device
            )

    def warm_up(self) -> None:
        """Let the device start and answer a round before the first run is timed; mode auto does not wait for it."""
        if self.device is not None and self.mode != "off" and self._guard is None and not self._lent:
            assert self.plan is not None
            self.device.warm_up(self.mode, self.plan.batch)

    # ------------------------------------------------------------------------------------------- each run

    def solver(self) -> CoreSolver | None:
        """The solver that may be sent rounds now, or None; mode auto does without a worker that is still starting."""
        plan = self.plan
        if plan is None or plan.mode == "off":
            return None
        indexed = None if self._keeper is None else self._keeper.solver()
        if indexed is not None or plan.index:
            return indexed
        if self._guard is not None:
            return self._guard if self._guard.ready else None
        return self.device if self.device is not None and self.device.usable else None

    @property
    def why_alone(self) -> str:
        """Why this run has no solver: the guard's reason in mode auto, else the device's failure."""
        if self._guard is None:
            return "" if self.device is None else self.device.failure
        if self.plan is not None and self.plan.index and self._keeper is not None:
            return self._keeper.failure or "mode auto did not wait for the worker to make the core's index"
        return self._guard.failure or "mode auto did not wait for the worker to start"

    def run(self, engine: Engine, unit: Unit) -> tuple[Computed, CoreSolver | None]:
        """The unit, timed, with a solver if there is one for it, else by the CPU alone; and that solver."""
        solver, trace = self.solver(), self.trace
        if solver is not None:
            solver.rehearse(rehearsal(engine, unit, self.mode))
        seen, t0 = len(trace.events), trace.now()
        computed = engine.alone(unit, trace) if solver is None else engine.together(unit, solver, self.mode, trace)
        computed.seconds = trace.now() - t0
        waits = [event for event in trace.events[seen:] if event["kind"] == "wait"]
        computed.waited_s = sum(event["t1"] - event["t0"] for event in waits)
        if solver is not None:
            computed.tally.outcome = self.label + computed.tally.outcome
        elif self.mode != "off":
            computed.tally.outcome = self.why_alone or computed.tally.outcome
        return computed, solver

    def reject(self, solver: CoreSolver, tally: Tally, reason: str) -> None:
        """A hybrid result failed its check: a solver whose values are in it is not asked again."""
        _log.warning("a hybrid result failed its check: %s", reason)
        if tally.rounds_merged and solver.usable:
            solver.distrust(reason)
            tally.outcome = solver.failure

    @property
    def label(self) -> str:
        """Put before every outcome: ``simulated: `` where no real device stands behind it."""
        return "" if self.device is None else self.device.label

    # ------------------------------------------------------------------------------------------- the verdict

    def why_not_compared(self) -> str:
        """Why there is nothing to compare now; empty if there is."""
        solver = self.solver()
        if not self.config.compare.enabled:
            return "not compared (compare.enabled is false)"
        if self.mode == "off":
            return "the CPU worked alone"
        if solver is None or not solver.usable:
            return "the worker was lost"
        return STILL_STARTING if self.mode == "race" and solver.starting else ""

    def compare(self, engine: Engine, units: Sequence[Unit]) -> Verdict | None:
        """Time every unit both ways, in turns; None where that is not wanted, or the solver is or was lost."""
        solver = None if self.why_not_compared() or not units else self.solver()
        if solver is None:
            return None
        mode, repeats = self.mode, self.config.compare.repeats
        with self.trace.span("coordinator", "compare", repeats=repeats):
            for unit in units:
                solver.rehearse(rehearsal(engine, unit, mode))
            times = time_in_turns(
                (
                    lambda column: engine.alone(units[column], Trace()),
                    lambda column: engine.together(units[column], solver, mode, Trace()),
                ),
                repeats, len(units), lambda: solver.usable,
            )  # fmt: skip
        if times is None:
            return None
        assert self.plan is not None
        batch = self.plan.batch
        verdict = judge(times[0], times[1], mode if batch == 1 else f"{mode}, {batch} at once")
        return self.label_verdict(verdict)

    def label_verdict(self, verdict: Verdict) -> Verdict:
        """The same verdict; its text names the simulated device, if the device is one."""
        if not self.label:
            return verdict
        assert self.device is not None
        return dataclasses.replace(verdict, text=f"{self.device.device}: {verdict.text}; no real NPU was used")

    # ------------------------------------------------------------------------------------------- the end

    @property
    def worker(self) -> WorkerFacts | None:
        """The device, for the record; None: there was none."""
        device = self.device
        return None if device is None else WorkerFacts(
            device.device, device.start_seconds, device.failure, device.describe()
        )  # fmt: skip

    def close(self) -> None:
        """Stop the device, unless it was lent."""
        if self.device is not None and not self._lent:
            with interrupts_held():
                self.device.close()
            if self.config.exchange.keep and self.device.directory is not None:
                note(f"the exchange directory is kept: {self.device.directory}")
