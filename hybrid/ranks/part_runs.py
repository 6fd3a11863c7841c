"""What every rank does for one run of a job: its side of the algorithm, the clock, the account; and what is gathered.

Drivers, called by all ranks. hybrid/ranks/backend.py and from_shares.py are the backends that are made of it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import time
from typing import Any

import numba
import numpy as np

from cpu_engine.comm.collectives import RankInfo, barrier, gather, gather_facts
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph
from cpu_engine.ranks.algorithms import Options, PartFinding, RankAlgorithm
from cpu_engine.sssp.rows import find_bad_weight
from hybrid.algorithms.algorithm import Found
from hybrid.config import dump_config
from hybrid.config.schema import Config
from hybrid.errors import ConfigError
from hybrid.graphs.opening import Opened
from hybrid.graphs.sources import Source
from hybrid.offload.on_ranks import RawEvent
from hybrid.ranks.algorithms import (
    algorithm_on_ranks,
    layout_on_ranks,
    options_of,
    policy_on_ranks,
    scatter,
    with_weights,
)
from hybrid.ranks.parts import OpenedPart, open_part_on_ranks
from hybrid.ranks.rendezvous import Agreed
from hybrid.ranks.summary import Statistics, add_statistics, describe_part, describe_ranks
from hybrid.ranks.trace import RankTrace
from hybrid.ranks.workers import RankCore
from hybrid.results.tally import Tally
from hybrid.results.trace import Trace

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Gathered:
    """One run of all ranks, whole at rank 0 (``found``), not yet proven."""

    found: Found | None
    seconds: float  # of the slowest rank
    by_rank: list[Statistics]


class PartRuns:
    """What every rank does for one run: its part of the graph, the run, and the masters' values to rank 0."""

    def __init__(self, info: RankInfo, config: Config) -> None:
        self.info, self.config = info, config
        self.trace = Trace()  # the job's at rank 0; elsewhere it only keeps the clock
        self.events = RankTrace(info)
        self.statistics: list[Statistics] = []  # by rank, over the runs so far; at rank 0

    def choose(self, name: str) -> tuple[RankAlgorithm, str, str]:
        """The algorithm's side on ranks, the policy and the way to synchronise; ``Agreed`` if it has none."""
        try:
            chosen = algorithm_on_ranks(name, self.config)
            policy = policy_on_ranks(self.config, chosen, self.info.size)
        except InputError as error:
            wrong = ConfigError(error.reason, value=error.value, fix=error.fix)
            raise Agreed(wrong) from error  # the configuration is the same everywhere
        sync = chosen.choose_sync(self.config.cluster.sync)
        if sync != self.config.cluster.sync:
            _log.info("%s runs bsp: %s", chosen.name, chosen.only_bsp_because)
        return chosen, policy, sync

    def open_part(self, opened: Opened, chosen: RankAlgorithm, policy: str) -> Driver[OpenedPart]:
        """This rank's part, as the algorithm needs it."""
        layout = layout_on_ranks(opened.graph, chosen, policy, self.info.size)
        mine: OpenedPart = yield from open_part_on_ranks(self.info, self.config, opened, layout)
        part = with_weights(mine.part, chosen)
        _log.info("part %d: %d arcs, %d masters, %d mirrors", self.info.rank, part.arcs, part.masters, part.mirrors)
        yield from barrier()
        return dataclasses.replace(mine, part=part)

    def run_part(
        self, chosen: RankAlgorithm, made: Any, graph: Graph | None, source: Source | None,
        core: RankCore | None = None, further: Options | None = None,
    ) -> Driver[tuple[PartFinding, float, Tally | None]]:  # fmt: skip
        """One run by all of them: what this part found, the seconds of the slowest, what passed between them and a
        core solver. ``graph``: the whole one, where there is one."""
        yield from barrier()  # rank 0 may still be proving the last one: wait without spinning
        options = options_of(self.config) | (further or {})
        if core is not None and core.mode != "off":
            options |= yield from core.begin()
        yield from barrier(patient=False)
        began = time.perf_counter()
        try:
            finding: PartFinding = yield from chosen.drive(made, -1 if source is None else source.internal, options)
        except InputError as error:  # found by all of them together; one of them can name the edge
            raise Agreed((None if graph is None else find_bad_weight(graph)) or error) from error
        slowest = yield AllReduce(np.array([round((time.perf_counter() - began) * 1e9)], np.int64), "max")
        if chosen.name == "bfs":
            made.count_redundant(finding.statistics)
        tally: Tally | None = Tally()
        rounds: list[RawEvent] = []
        if core is not None:
            tally, rounds = yield from core.end()
        self.events.extend(-1 if source is None else source.user_id, [*finding.statistics.events, *rounds])
        return finding, float(slowest[0]) * 1e-9, tally

    def run_parts(
        self, chosen: RankAlgorithm, made: Any, graph: Graph, source: Source | None,
        own: list[np.ndarray] | None, core: RankCore | None = None, further: Options | None = None,
    ) -> Driver[tuple[Gathered, Tally | None]]:  # fmt: skip
        """One run by all of them, gathered at rank 0; ``own``: each part's masters, there."""
        finding, seconds, tally = yield from self.run_part(chosen, made, graph, source, core, further)
        with self.trace.span("coordinator", "gather"):
            whole = {}
            for name, values in finding.arrays.items():
                rows = 1 if values.ndim == 1 else values.shape[0]
                gathered = yield from gather(self.info, np.ascontiguousarray(values).reshape(-1).view(np.uint8))
                if gathered is not None and own is not None:
                    whole[name] = scatter(gathered, own, values.dtype, rows)
            by_rank = yield from gather_facts(self.info, finding.statistics.as_dict())
        if by_rank is None:
            return Gathered(None, 0.0, []), None
        self.count_in(by_rank)
        return Gathered(Found(whole, finding.counters, finding.isolated), seconds, by_rank), tally

    def count_in(self, by_rank: list[Statistics]) -> None:
        """Add a run's statistics to the account, at rank 0."""
        before = self.statistics or [{}] * len(by_rank)
        self.statistics = [add_statistics(*pair) for pair in zip(before, by_rank, strict=True)]

    def describe(self, mine: OpenedPart, sync: str) -> Driver[dict[str, Any] | None]:
        """The account of the ranks, at rank 0."""
        shares = yield from gather_facts(self.info, describe_part(mine.part, numba.get_num_threads()))
        if shares is None:
            return None
        statistics = self.statistics or [{}] * self.info.size
        return describe_ranks(self.info, mine.part, sync, mine.from_cache, shares, statistics)


def config_fingerprint(config: Config) -> str:
    return hashlib.blake2b(dump_config(config).encode(), digest_size=16).hexdigest()
