"""The NPU's side of a job on ranks: one worker per machine, started, agreed on, counted and stopped.

Drivers, as everything on ranks. Invariant: every rank comes to the same mode and core, and knows before each search
whether the core's edges are the workers'; whatever a worker does, a search goes on without it.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from cpu_engine.bfs.ranks.engine import RankEngine
from cpu_engine.comm.requests import AllReduce, Driver
from exchange.errors import ExchangeError
from exchange.filesystem.folder import Folder
from exchange.filesystem.scratch import remove_folder
from hybrid.config import require_one_rank
from hybrid.config.schema import Config
from hybrid.interrupts import interrupts_held
from hybrid.job.opening import Opened
from hybrid.job.sources import Source
from hybrid.job.verdict import Verdict, judge
from hybrid.launch.announce import Announcer
from hybrid.offload.on_ranks import CoreOnRanks, RawEvent
from hybrid.offload.traverse import NpuTally
from hybrid.planning.plan import Plan, choose_mode, make_plan
from hybrid.ranks.collectives import Seat, barrier, broadcast_facts, gather_facts
from hybrid.ranks.parts import scratch_folder
from hybrid.results.record import COUNTED, WorkerFacts
from hybrid.results.trace import Trace
from hybrid.worker.solver import NpuPartner

LEVEL_ALONE = "on several ranks the level engine runs on the CPUs alone; engine: async takes a worker's values"
_log = logging.getLogger(__name__)
_HOSTS_TOLD = 4


class RankNpu:
    """One rank's share in it; on a machine's first rank that is the worker."""

    def __init__(
        self,
        seat: Seat,
        config: Config,
        mode: tuple[str, str],
        trace: Trace,
        log_path: Path | None,
        announcer: Announcer,
    ) -> None:
        self._seat, self._config = seat, config
        self.mode, self.reason = mode
        if self.mode != "off":
            require_one_rank(config)
        self._partner: NpuPartner | None = None
        self._core: CoreOnRanks | None = None
        self._scratch: Path | None = None
        if self.mode == "off" or seat.rank != seat.first_here:
            return
        if log_path is None:  # only rank 0 has a result folder
            self._scratch = scratch_folder("tandem-worker-")
            announcer.made(self._scratch)
            log_path = self._scratch / "worker.log"
        own, failure = _own_directory(config, seat)
        self._partner = NpuPartner(own, log_path, trace)
        announcer.made(*([] if own.exchange.dir else [self._partner.directory]))
        if failure:
            self._partner.do_without(failure)

    def close(self) -> None:
        """Stop it; right at any point after the constructor."""
        with interrupts_held():
            if self._partner is not None:
                self._partner.close()
            if self._scratch is not None:
                remove_folder(self._scratch)

    @property
    def worker(self) -> WorkerFacts | None:
        """This machine's worker, for the record."""
        partner = self._partner
        return (
            None
            if partner is None or self.mode == "off"
            else WorkerFacts(partner.device, partner.start_seconds, partner.failure)
        )

    def share_plan(self, opened: Opened) -> Driver[tuple[Plan | None, int]]:
        """The plan, at rank 0, and the size of the core, everywhere; the workers are handed the core's edges."""
        plan = None
        if self._seat.rank == 0:
            npu = dataclasses.replace(self._config.npu, mode=self.mode)
            plan = make_plan(opened.graph, dataclasses.replace(self._config, npu=npu))
            if plan.mode == self.mode:  # else it has a reason of its own
                plan = dataclasses.replace(plan, mode_reason=self.reason)
        facts = None if plan is None else [plan.mode, plan.mode_reason, plan.core_size]
        self.mode, self.reason, core_size = yield from broadcast_facts(self._seat, facts)
        if self._partner is not None and self._partner.usable and self.mode != "off":
            self._partner.start()  # it loads while the kernels are
            self._partner.publish_edges(opened.graph.out_offsets, opened.graph.out_targets, core_size)
        return plan, int(core_size)

    def attach(self, engine: RankEngine, core_size: int) -> None:
        """From now on values travel between this engine and the workers."""
        if self.mode != "off":
            rounds = self._config.npu.max_rounds
            self._core = CoreOnRanks(self._seat, engine, core_size, self._partner, rounds)

    # ------------------------------------------------------------------------------------- each search

    def begin(self) -> Driver[bool]:
        """Agree whether the core's edges are the workers' in the search to come."""
        if self._core is None:
            return False
        usable = yield from self._any_usable()
        withheld = usable and self.mode == "share"
        self._core.begin(withhold_core=withheld)
        return withheld

    @property
    def outside(self) -> CoreOnRanks | None:
        """What the engine is given for the search."""
        return self._core

    def end(self) -> Driver[tuple[NpuTally | None, list[RawEvent]]]:
        """What passed in the search that is over: the sum over all workers, at rank 0; and this rank's events."""
        if self._core is None:
            return NpuTally(outcome=f"off ({self.reason})"), []
        self._core.end()
        mine = self._core.tally
        gathered = yield from gather_facts(self._seat, None if mine is None else asdict(mine))
        events = list(self._core.events)
        if gathered is None:
            return None, events
        tallies = {rank: NpuTally(**one) for rank, one in enumerate(gathered) if one is not None}
        total = NpuTally(**{name: sum(getattr(one, name) for one in tallies.values()) for name in COUNTED})
        total.outcome = tell_outcomes({self._seat.hosts[rank]: one.outcome for rank, one in tallies.items()})
        return total, events

    def tell_repaired(self, repaired: int, source: Source) -> Driver[None]:
        """Rank 0 has proved the result; workers that took part in one that needed repair are not asked again."""
        if self._core is None:
            return
        agreed = yield AllReduce(np.array([repaired], np.int64), "max", patient=True)  # rank 0 is proving
        if agreed[0] and self._partner is not None and self._partner.usable:
            self._partner.distrust(f"the result for source {source.user_id} failed the certificate")

    def _any_usable(self) -> Driver[bool]:
        mine = self._partner is not None and self._partner.usable
        usable = yield AllReduce(np.array([mine], np.int64), "max")
        return bool(usable[0])

    def _any_serving(self) -> Driver[bool]:
        """Whether a worker would take part in a search now: race does without those that are still starting."""
        partner = self._partner
        mine = partner is not None and partner.usable and (self.mode == "share" or not partner.starting)
        serving = yield AllReduce(np.array([mine], np.int64), "max")
        return bool(serving[0])

    # -------------------------------------------------------------------------------------- the verdict

    def compare(self, engine: RankEngine, sources: list[Source], repeats: int) -> Driver[Verdict | None]:
        """CPU-only against hybrid on the same ranks, interleaved; None where a worker was lost on the way."""
        serving = yield from self._any_serving()
        if self._core is None or not serving or not sources:
            return None
        times = np.zeros((2, repeats, len(sources)))
        for column, source in enumerate(sources):
            for row in range(repeats):
                for way in (0, 1) if row % 2 == 0 else (1, 0):
                    withheld = False
                    if way:
                        withheld = yield from self.begin()
                    yield from barrier(patient=False)
                    began = time.perf_counter()
                    yield from engine.search(source.internal, self._core if way else None, withhold_core=withheld)
                    mine = np.array([round((time.perf_counter() - began) * 1e9)], np.int64)
                    slowest = yield AllReduce(mine, "max")
                    times[way, row, column] = int(slowest[0]) * 1e-9
                    if way:
                        self._core.end()
        usable = yield from self._any_usable()
        return judge(times[0], times[1], self.mode) if usable else None


def tell_outcomes(by_host: dict[str, str]) -> str:
    """What became of the workers in one search: in the words of the only one, else by machine, the first few."""
    if len(by_host) == 1:
        return next(iter(by_host.values()))
    told = [f"{host}: {outcome}" for host, outcome in by_host.items()]
    more = [f"and {len(told) - _HOSTS_TOLD} more"] if len(told) > _HOSTS_TOLD else []
    return "; ".join([*told[:_HOSTS_TOLD], *more])


def share_mode(seat: Seat, config: Config) -> Driver[tuple[str, str]]:
    """Mode and reason as rank 0 sees them: machines may differ in what ``auto`` comes to."""
    mode, reason = choose_mode(config.npu.mode)
    if config.engine == "level" and mode != "off":
        mode, reason = "off", LEVEL_ALONE
    mode, reason = yield from broadcast_facts(seat, [mode, reason])
    return mode, reason


def _own_directory(config: Config, seat: Seat) -> tuple[Config, str]:
    """Where several machines share the configured exchange directory, each uses a folder of its own in it.

    Whoever may write there can put a link or a file under that name. Then a worker that is started here gets a private
    directory; one that is already running looks under that name only, so this machine does without: the reason is
    the second value.
    """
    if config.exchange.dir is None or len(set(seat.hosts)) == 1:
        return config, ""
    base = Path(config.exchange.dir)
    Folder.make(base).close()  # as on one machine: a directory that cannot be had ends the job
    own: str | None = str(base / seat.host)
    failure = ""
    try:
        Folder.make(base / seat.host).close()
    except ExchangeError as error:
        own = None
        if config.npu.worker == "launch":
            _log.warning("%s: the worker uses a private exchange directory: %s", seat.host, error)
        else:
            failure = f"the exchange directory cannot be used: {error}"
    return dataclasses.replace(config, exchange=dataclasses.replace(config.exchange, dir=own)), failure
