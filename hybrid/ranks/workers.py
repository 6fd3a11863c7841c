"""The core solvers of a job on ranks: one worker per machine, started, agreed on, counted and stopped.

Drivers, as everything on ranks; on a machine's first rank the solver is a ``JobCore``, as on one rank: worker,
simulated device or index, behind a guard in mode auto. Invariant: every rank comes to the same mode and core, and
knows before each search whether the core's edges are the workers'; whatever a worker does, a search goes on without it.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.comm.collectives import RankInfo, barrier, broadcast_facts, gather_facts
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.partition.part import Part
from exchange.errors import ExchangeError
from exchange.filesystem.folder import Folder
from exchange.filesystem.scratch import remove_folder
from hybrid.config.schema import Config
from hybrid.devices.profiles import parse_device
from hybrid.graphs.opening import Opened
from hybrid.interrupts import interrupts_held
from hybrid.job.core import JobCore
from hybrid.job.engines import SHARING, SharedCore, why_not_shared
from hybrid.launch.announce import Announcer
from hybrid.offload.on_ranks import CoreOnRanks, LevelsOnRanks, RawEvent, SumsOnRanks
from hybrid.planning.core_statistics import SearchFacts
from hybrid.planning.plan import MEASURED, Plan, make_plan, plan_off, worth_measuring
from hybrid.ranks.parts import scratch_folder
from hybrid.results.record import WorkerFacts
from hybrid.results.run_record import Verdict
from hybrid.results.tally import Tally, total
from hybrid.results.trace import Trace
from hybrid.worker.core_solver import Absent, CoreSolver
from hybrid.worker.guard import Patience

LEVEL_ALONE = (
    "on several ranks the level engine runs on the CPUs alone; engine: async takes a worker's values, and so do "
    "batches (npu.batch)"
)
WEIGHTLESS = "some edges weigh 0, and then ranks cannot tell a parent from a distance alone"
_log = logging.getLogger(__name__)
_HOSTS_NAMED = 4


class RankCore:
    """One rank's share in it; on a machine's first rank that is the solver."""

    def __init__(
        self, info: RankInfo, config: Config, algorithm: str, trace: Trace, log_path: Path | None, announcer: Announcer
    ) -> None:
        self._info, self._config, self._algorithm, self._trace = info, config, algorithm, trace
        self._log_path, self._announcer = log_path, announcer
        self.mode, self.reason, self.core_size = "off", "", 0
        self._job: JobCore | None = None  # on a machine's first rank
        self._failure = ""  # why this machine can have no device
        self._outside: CoreOnRanks | SumsOnRanks | LevelsOnRanks | None = None
        self._batch = 1
        self._scratch: Path | None = None
        self.simulated = parse_device(config.npu.device) is not None  # the same everywhere

    def close(self) -> None:
        """Stop it; right at any point after the constructor."""
        with interrupts_held():
            if self._job is not None:
                self._job.close()
            if self._scratch is not None:
                remove_folder(self._scratch)

    @property
    def worker(self) -> WorkerFacts | None:
        """This machine's device, for the record."""
        return None if self._job is None or self.mode == "off" else self._job.worker

    # --------------------------------------------------------------------------------------- the plan

    @property
    def _can_share(self) -> bool:
        """Whether the configuration allows it; the graph may not."""
        if self._algorithm != "bfs":
            return self._algorithm in SHARING
        return self._config.engine == "async" or self._batch > 1

    @property
    def _leads(self) -> bool:
        """Whether this rank drives a device: one on each machine; where rounds are in step, one of the whole job."""
        one = self._algorithm == "pagerank" or self._batch > 1
        return self._info.rank == (0 if one else self._info.first_here)

    def start_early(self) -> None:
        """Let this machine's worker load while the graph is opened, if the configuration alone says that it has one."""
        config = self._config
        sure = self._can_share and self._algorithm != "sssp" and config.npu.batch == 1  # else more than that decides
        if config.npu.mode in ("race", "share") and sure and not self.simulated and self._leads:
            self._load_device()

    def wants_search(self, opened: Opened) -> Driver[bool]:
        """Whether mode auto has a search measured before it decides."""
        asked = self._info.rank == 0 and self._algorithm in MEASURED and not self._why_not(opened)
        mine = asked and worth_measuring(self._config, opened.graph.n)
        wanted = yield AllReduce(np.array([mine], np.int64), "max")
        return bool(wanted[0])

    def share_plan(
        self, opened: Opened, searches: int, batch: int = 1, search: SearchFacts | None = None
    ) -> Driver[Plan]:
        """The plan, the same everywhere as far as it matters; the workers are started and handed the core's edges.

        ``batch``: sources that are searched at once, if a solver takes part. ``search``: measured by all ranks, given
        at rank 0.
        """
        self._batch = batch
        facts = None
        plan = plan_off(opened.graph, "")
        if self._info.rank == 0:
            plan = self._plan(opened, search)
            facts = [plan.mode, plan.mode_reason, plan.core_size, asdict(plan.patience), plan.index]
        self.mode, self.reason, self.core_size, patience, index = yield from broadcast_facts(self._info, facts)
        if self._info.rank != 0 and self.mode != "off":
            split = CoreSplit(opened.graph, self.core_size)
            plan = Plan(split, 0, 0, "", self.mode, self.reason, patience=Patience(**patience), index=index)
        plan = dataclasses.replace(plan, batch=batch if self.mode != "off" else 1)
        if self.mode != "off" and self._leads:
            self._start(plan, searches)
        return plan

    def _plan(self, opened: Opened, search: SearchFacts | None) -> Plan:
        """As rank 0 sees it: machines may differ in what ``auto`` comes to."""
        config, why = self._config, self._why_not(opened)
        if config.npu.mode == "off" or not why:
            return make_plan(opened.graph, config, search=search)
        return plan_off(opened.graph, why)

    def _why_not(self, opened: Opened) -> str:
        """Why no solver can take part; empty if one can."""
        if self._algorithm == "bfs":
            return "" if self._can_share else LEVEL_ALONE
        weight = opened.graph.weight
        if self._algorithm == "sssp" and weight is not None and weight.size and not weight.min() > 0:
            return WEIGHTLESS
        return why_not_shared(self._algorithm, opened.graph)

    def _start(self, plan: Plan, searches: int) -> None:
        """Hand this machine's device the core; it loads while the kernels do."""
        job = self._job or self._load_device()
        if self._failure:
            job.make().do_without(self._failure)
            job.plan = plan
        else:
            job.attach(plan, SharedCore(self._algorithm, plan.split), searches)

    def _load_device(self) -> JobCore:
        """Start this machine's device, unless there can be none."""
        job, self._failure = self.make_device()
        if not self._failure:
            job.start()
        return job

    def make_device(self) -> tuple[JobCore, str]:
        """This machine's device, not yet started; and why there can be none."""
        log_path, announcer = self._log_path, self._announcer
        if log_path is None:  # only rank 0 has a result folder
            self._scratch = scratch_folder("tandem-worker-")
            announcer.made(self._scratch)
            log_path = self._scratch / "worker.log"
        own, failure = _own_directory(self._config, self._info)
        self._job = job = JobCore(own, self._trace, log_path)
        device = job.make()
        if device.directory is not None and own.exchange.dir is None:
            announcer.made(device.directory)
        return job, failure

    def attach(self, part: Part, sync: str) -> None:
        """From now on values travel between this part and the workers."""
        if self.mode == "off":
            return
        info, size, most = self._info, self.core_size, self._config.npu.max_rounds
        absent = None if self._job is None else Absent("")
        if self._algorithm == "pagerank":  # a round per iteration, however many there are
            self._outside = SumsOnRanks(info, part, size, absent, math.inf)
        elif self._batch > 1:
            self._outside = LevelsOnRanks(info, part, size, absent, most)
        else:
            complete = self._algorithm == "wcc"
            self._outside = CoreOnRanks(info, part, sync, size, absent, most, complete=complete)

    # ------------------------------------------------------------------------------------- each search

    def rehearse(self, search: Callable[[dict[str, Any]], Driver[Any]]) -> Driver[None]:
        """A simulated device prepares its answers by a search that does not count."""
        if not self.simulated or self._outside is None:
            return
        with nullcontext() if self._job is None else self._job.make().uncounted():
            options = yield from self.begin(None if self._job is None else self._job.make())  # no guard's clock runs
            yield from barrier()
            yield from search(options)
            self.end_run()

    def begin(self, chosen: CoreSolver | None = None) -> Driver[dict[str, Any]]:
        """Agree whether the core's edges are the workers' in the search to come; what the engine is given for it."""
        if self._outside is None:
            return {}
        solver = chosen or self._solver()
        usable = yield AllReduce(np.array([solver is not None and solver.usable], np.int64), "max")
        withheld = bool(usable[0]) and self.mode == "share"
        self._outside.begin(withhold_core=withheld, solver=solver)
        return {"outside": self._outside, "withhold_core": withheld}

    def _solver(self) -> CoreSolver | None:
        """Who is asked in the search to come; given on a machine's first rank."""
        if self._job is None:
            return None
        return self._job.solver() or Absent(self._job.why_alone)

    def end_run(self) -> None:
        """The search is over."""
        if self._outside is not None:
            self._outside.end()

    def end(self) -> Driver[tuple[Tally | None, list[RawEvent]]]:
        """What passed in the search that is over: the sum over all workers, at rank 0; and this rank's events."""
        if self._outside is None:
            return Tally(outcome=f"off ({self.reason})"), []
        self.end_run()
        mine = self._outside.tally
        if mine is not None and self._job is not None:
            mine.outcome = self._job.label + mine.outcome
        gathered = yield from gather_facts(self._info, None if mine is None else asdict(mine))
        events = list(self._outside.events)
        if self._job is not None and self._job.label:
            events = [(*event[:3], {**event[3], "simulated": self._job.make().device}) for event in events]
        if gathered is None:
            return None, events
        tallies = {rank: Tally(**one) for rank, one in enumerate(gathered) if one is not None}
        outcome = describe_outcomes({self._info.hosts[rank]: one.outcome for rank, one in tallies.items()})
        return total(tallies.values(), outcome), events

    def reject_if(self, failed: bool, what: str) -> Driver[None]:
        """Rank 0 has proved the result; solvers that took part in one that failed are not asked again."""
        if self._outside is None:
            return
        agreed = yield AllReduce(np.array([failed], np.int64), "max", patient=True)  # rank 0 is proving
        solver = self._outside.solver
        if agreed[0] and solver is not None and solver.usable:
            solver.distrust(f"{what} failed the certificate")

    def any_serving(self) -> Driver[bool]:
        """Whether a solver would take part in a search now: race does without those that are still starting."""
        solver = self._solver()
        mine = solver is not None and solver.usable and (self.mode == "share" or not solver.starting)
        serving = yield AllReduce(np.array([mine], np.int64), "max")
        return bool(serving[0])

    def label_verdict(self, verdict: Verdict) -> Verdict:
        return verdict if self._job is None else self._job.label_verdict(verdict)


def describe_outcomes(by_host: dict[str, str]) -> str:
    """What became of the workers in one search: in the words of the only one, else by machine, the first few."""
    if len(by_host) == 1:
        return next(iter(by_host.values()))
    named = [f"{host}: {outcome}" for host, outcome in by_host.items()]
    more = [f"and {len(named) - _HOSTS_NAMED} more"] if len(named) > _HOSTS_NAMED else []
    return "; ".join([*named[:_HOSTS_NAMED], *more])


def _own_directory(config: Config, info: RankInfo) -> tuple[Config, str]:
    """Where several machines share the configured exchange directory, each uses a folder of its own in it.

    A user who may write there can put a link or a file under that name. Then a worker started here gets a private
    directory; one that is already running looks under that name only, so this machine does without: the reason is
    the second value.
    """
    if config.exchange.dir is None or len(set(info.hosts)) == 1:
        return config, ""
    base = Path(config.exchange.dir)
    Folder.make(base).close()  # as on one machine: a directory that cannot be had ends the job
    own: str | None = str(base / info.host)
    failure = ""
    try:
        Folder.make(base / info.host).close()
    except ExchangeError as error:
        own = None
        if config.npu.worker == "launch":
            _log.warning("%s: the worker uses a private exchange directory: %s", info.host, error)
        else:
            failure = f"the exchange directory cannot be used: {error}"
    return dataclasses.replace(config, exchange=dataclasses.replace(config.exchange, dir=own)), failure
