"""A job's sources in batches (``npu.batch``): traversed together, certified together, told one by one.

Levels are what is traversed and timed; the result's parents are filled in afterwards from the certified levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from cpu_engine.bfs.many.engine import warm_up_many
from cpu_engine.bfs.traversal import CoreSplit, complete_parents
from cpu_engine.graph.graph import Graph
from hybrid.cli.terminal import plural
from hybrid.config.schema import Config
from hybrid.job.proof import prove_or_repair
from hybrid.job.sample_graphs import star_with_tail
from hybrid.job.sources import Source
from hybrid.job.verdict import Verdict, judge, time_in_turns
from hybrid.job.warm_up import say_if_slow
from hybrid.offload.many_sources import ManyEngine, ManyTraversed, prove_or_repair_many
from hybrid.offload.traverse import NpuTally, Partner, Traversed
from hybrid.planning.device_profiles import fixed_delay
from hybrid.results.run_record import Run, edges_reached, run_without_edges
from hybrid.results.trace import Trace
from hybrid.worker.index_solver import IndexPartner
from hybrid.worker.simulated import SimulatedPartner


def batches_of(sources: Sequence[Source], batch: int) -> list[list[Source]]:
    """The sources with edges, so many at a time."""
    searched = [source for source in sources if source.internal >= 0]
    return [searched[first : first + batch] for first in range(0, len(searched), batch)]


def roots_of(sources: Sequence[Source]) -> np.ndarray:
    return np.array([source.internal for source in sources], np.int64)


class BatchRuns:
    """Traverses batches for a job. ``served_by`` tells who may be sent rounds now, if anybody; else ``why_alone`` why.

    ``simulated``: the device behind them is not there; it rehearses, and every outcome says so.
    """

    def __init__(
        self, graph: Graph, split: CoreSplit, mode: str, max_rounds: int, trace: Trace,
        served_by: Callable[[], Partner | None], why_alone: Callable[[], str] = lambda: "",
        simulated: SimulatedPartner | None = None, config: Config | None = None,
    ) -> None:  # fmt: skip
        self.engine = ManyEngine(split)
        self._graph, self._mode, self._max_rounds, self._trace = graph, mode, max_rounds, trace
        self._served_by, self._why_alone, self._simulated = served_by, why_alone, simulated
        self._config = config

    def run(self, batch: Sequence[Source]) -> list[Run]:
        """One batch, certified."""
        graph, trace, roots, partner = self._graph, self._trace, roots_of(batch), self._served_by()
        self._rehearse(roots, partner)
        seen, t0 = len(trace.events), trace.now()
        if partner is None:
            done = self.engine.alone(roots, trace=trace)
            done.npu.outcome = self._why_alone() or done.npu.outcome
        else:
            done = self.engine.together(roots, self._mode, partner, trace, self._max_rounds)
            if self._simulated is not None:
                done.npu.outcome = f"simulated: {done.npu.outcome}"
        t1 = trace.now()
        waited = sum(event["t1"] - event["t0"] for event in trace.events[seen:] if event["kind"] == "wait")
        repaired = prove_or_repair_many(graph, done, self.engine.split.core_size, trace, self._config)
        if done.repair is not None and done.npu.rounds_merged and partner is not None and partner.usable:
            partner.distrust(f"a batch of {plural(len(batch), 'source')} in which it took part failed the certificate")
            done.npu.outcome = partner.failure
        certified_s = (trace.now() - t1) / len(batch)
        each = (t1 - t0) / len(batch), waited / len(batch), certified_s
        return [self._told(batch, i, done, each, int(repaired[i])) for i in range(len(batch))]

    def _rehearse(self, roots: np.ndarray, partner: Partner | None) -> None:
        device = self._simulated
        if device is not None and partner is not None and not isinstance(partner, IndexPartner):
            device.rehearse_run(lambda: self.engine.together(roots, self._mode, device, Trace(), self._max_rounds))

    def _told(
        self, batch: Sequence[Source], i: int, done: ManyTraversed, each: tuple[float, float, float], repaired: int
    ) -> Run:
        """One source of a batch: its parents, their proof, and its part of the account."""
        graph, source, trace = self._graph, batch[i], self._trace
        began = trace.now()
        level, _ = done.found.of(i)
        parent = np.full(graph.n, -1, np.int32)
        complete_parents(graph, level, parent, source.internal)
        # What passed between the two belongs to the batch: it is counted once, with its first source.
        tally = replace(done.npu) if i == 0 else NpuTally(outcome=f"in one batch with source {batch[0].user_id}")
        steps, edges = (done.steps, done.edges_looked_at) if i == 0 else (0, 0)
        found = Traversed(level, parent, tally, steps, edges)
        trace.source = source.user_id
        prove_or_repair(graph, found, source.internal, self.engine.split.core_size, trace, self._config)
        repair = found.repair
        if repaired and done.repair is not None:
            repair = replace(done.repair, source=source.user_id, changed=repaired)
        trace.source = None
        traverse_s, waited_s, certify_s = each
        return Run(
            source, found.level, found.parent, tally, steps, edges, traverse_s, waited_s,
            certify_s + trace.now() - began, repaired, edges_reached(graph, level) / traverse_s,
            {"batch": {"first": batch[0].user_id, "sources": len(batch), "seconds": traverse_s * len(batch)}}, repair,
        )  # fmt: skip

    def run_all(self, sources: Sequence[Source], batch: int, tell: Callable[[int, int], None]) -> list[Run]:
        """All sources, in their order."""
        found: dict[int, Run] = {}
        done = 0
        for some in batches_of(sources, batch):
            tell(done, len(sources))
            found.update((id(run.source), run) for run in self.run(some))
            done += len(some)
        return [found[id(one)] if one.internal >= 0 else run_without_edges(self._graph, one) for one in sources]

    def verdict(self, sources: Sequence[Source], batch: int, partner: Partner, repeats: int) -> Verdict | None:
        """Every batch both ways, in turns; None when the worker was lost on the way."""
        batches = batches_of(sources, batch)
        every = [roots_of(some) for some in batches]
        for roots in every:
            self._rehearse(roots, partner)

        def together(column: int) -> None:
            self.engine.together(every[column], self._mode, partner, Trace(), self._max_rounds)

        ways = (lambda column: self.engine.alone(every[column]), together)
        times = time_in_turns(ways, repeats, len(every), lambda: partner.usable)
        return None if times is None else judge(times[0], times[1], f"{self._mode}, {batch} at once")


def warm_up_batches() -> None:
    """Compile, or load, what batches use."""
    with say_if_slow("compiling the kernels for batches: this happens once, and is kept for the next run"):
        warm_up_many()
        graph = star_with_tail(40)
        engine, partner = ManyEngine(CoreSplit(graph, 2)), SimulatedPartner(fixed_delay("oracle", 0.0))
        partner.publish_edges(graph.out_offsets, graph.out_targets, 2)
        for roots in (np.arange(graph.n), np.array([graph.n - 1])):
            for mode in ("share", "race"):
                done = engine.together(roots, mode, partner, Trace())
            prove_or_repair_many(graph, done, 2, Trace())
