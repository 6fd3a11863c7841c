"""The tuning sweep: every setting measured in turns with the CPU alone, every search certified.

Invariant: a time is only kept if the search that it belongs to was proven right; a point is kept as soon as it is
finished, and is not measured again; simulated devices stay apart from real ones in everything that is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

import numpy as np

from cpu_engine.bfs.traversal import CoreSplit, Traversal
from cpu_engine.graph.graph import Graph
from hybrid.cli.terminal import note
from hybrid.config.schema import Config
from hybrid.errors import ConfigError
from hybrid.experiments.tune.advice import ORACLE_DEVICE
from hybrid.experiments.tune.points import NO_DEVICE, Journal, Point, Setting, many_engine
from hybrid.experiments.tune.runs import ManyRuns, Partner, Runs, SingleRuns
from hybrid.interrupts import interrupts_held
from hybrid.job.batches import warm_up_batches
from hybrid.job.sources import Source
from hybrid.job.warm_up import looks_deep, make_engine, warm_up
from hybrid.offload.traverse import NpuTally, traverse_together
from hybrid.planning.core_statistics import CoreStatistics, core_statistics
from hybrid.planning.plan import CELL_BYTES, largest_core
from hybrid.planning.planner import SMALLEST_CORE, Candidate, predict
from hybrid.planning.prediction import surroundings, typical_root, typical_search
from hybrid.results.trace import Trace
from hybrid.worker.simulated import SimulatedPartner, simulated_partner
from hybrid.worker.solver import NpuPartner


@dataclass(frozen=True)
class Grid:
    """What is to be swept."""

    sizes: tuple[int, ...]
    engines: tuple[str, ...]
    devices: tuple[str, ...]
    modes: tuple[str, ...]
    batches: tuple[int, ...] = (1,)

    def settings(self) -> list[Setting]:
        """All settings, ordered so that each device is started once and each core published once."""
        ways = [(engine, 1) for engine in self.engines if 1 in self.batches]
        ways += [(many_engine(batch), batch) for batch in self.batches if batch > 1]
        found = [Setting(engine, NO_DEVICE, "off", 0, batch) for engine, batch in ways if 0 in self.sizes]
        for device in self.devices:
            for k in self.sizes:
                found += [Setting(engine, device, mode, k, batch) for engine, batch in ways for mode in self.modes if k]
        return found


def break_even_points(grid: Grid, delays: Sequence[str]) -> int:
    """How many points the break-even curves add to the grid's: each has one core, which only the sweep finds."""
    devices = [one for one in dict.fromkeys([ORACLE_DEVICE, *delays]) if one not in grid.devices]
    ways = {setting.engine for setting in grid.settings() if setting.k}
    return len(ways) * len(devices) * len(grid.modes) if delays else 0


def core_sizes(
    graph: Graph, config: Config, sizes: Sequence[int] | None = None, thresholds: Sequence[int] | None = None
) -> tuple[int, ...]:
    """The core sizes to sweep: those asked for, or doubling ones from none to what the budget allows.

    What is over the budget is left out with a note; a ConfigError if nothing is left.
    """
    bound = min(graph.n, largest_core(config.core))
    if sizes is None and thresholds is None:
        doubled = [SMALLEST_CORE << i for i in range(bound.bit_length()) if SMALLEST_CORE << i < bound]
        return tuple(dict.fromkeys([0, *doubled, bound]))
    degree = graph.degree()
    asked = [(f"--sizes {k}", k) for k in sizes or ()]
    asked += [(f"--thresholds {t}", int(np.count_nonzero(degree >= t))) for t in thresholds or ()]
    for word, k in asked:
        if not 0 <= k <= graph.n:
            raise ConfigError(
                f"{word}: the graph has {graph.n:,} vertices with edges", value=k, fix=f"give 0 to {graph.n}"
            )
    over = [(word, k) for word, k in asked if k > bound]
    remarks = [f"{word}: a core of {k:,} vertices is over the budget, which allows {bound:,}" for word, k in over]
    if len(over) == len(asked):
        word, k = min(over, key=lambda one: one[1])
        raise ConfigError(
            remarks[over.index((word, k))], value=k, fix=f"--set core.max_bytes={CELL_BYTES * k * k}, or a smaller core"
        )
    for (_, k), remark in zip(over, remarks, strict=True):
        note(f"{remark}: left out (--set core.max_bytes={CELL_BYTES * k * k} includes it)")
    return tuple(sorted({k for _, k in asked if k <= bound}))


class Sweep:
    """Measures settings on one graph. The caller must call ``close``."""

    def __init__(self, config: Config, graph: Graph, sources: Sequence[Source], journal: Journal) -> None:
        self.config, self.graph, self.journal = config, graph, journal
        self.roots = [source.internal for source in sources if source.internal >= 0]
        if not self.roots:
            raise ConfigError(
                "source: no source has an edge, so there is nothing to measure",
                value=config.source,
                fix="choose others, for example --set source=random:8",
            )
        self.statistics = core_statistics(graph, max(1, min(graph.n, largest_core(config.core))))
        self._measured = 0
        self._partner: Partner | None = None
        self._device = ""
        self._published = -1
        self._split = CoreSplit(graph)
        self._engines: dict[str, Traversal] = {}
        self._runs: dict[str, Runs] = {}
        self._searches: dict[str, CoreStatistics] = {}
        self._hopeless: dict[str, str] = {}  # real devices that never served, and why

    def run(
        self, settings: Sequence[Setting], report: Callable[[int, int, Point], None], later: int = 0
    ) -> list[Point]:
        """Measure what is not in the journal yet; all points, in the order of the settings.

        ``report`` is called with each point, how many were measured so far, and how many there will be in all,
        ``later`` ones included.
        """
        left = [one for one in settings if not self._done(one)]
        total = self._measured + len(left) + later
        for engine in {one.engine for one in left if one.batch == 1}:
            warm_up(engine, self._strategy(engine), deep=looks_deep(self.graph))
        if any(one.batch > 1 for one in left):
            warm_up_batches()
        for setting in left:
            point = self._measure(setting)
            self.journal.add(point)
            self._measured += 1
            report(self._measured, total, point)
        return [self.journal.points[setting] for setting in settings]

    def close(self) -> None:
        partner, self._partner = self._partner, None
        if partner is not None:
            with interrupts_held():
                partner.close()

    def _done(self, setting: Setting) -> bool:
        known = self.journal.points.get(setting)
        return known is not None and known.good

    def _strategy(self, engine: str) -> str:
        return self.config.bfs.strategy if engine == "level" else "auto"

    # --------------------------------------------------------------------------------------------- one point

    def _measure(self, setting: Setting) -> Point:
        runs, partner = self._runs_of(setting), self._partner_for(setting)
        empty = self._empty(setting)
        if partner is not None:
            self._hand_over(partner, setting.k)
        if setting.k and (partner is None or not partner.usable):
            return self._failed(setting, empty, partner)
        clocked = partner.on_clock_s if isinstance(partner, SimulatedPartner) else 0.0
        repeats, searches = self.config.compare.repeats, runs.searches
        times = np.zeros((2, repeats, runs.count))
        edges, tally = np.zeros(2), NpuTally()
        for column in range(runs.count):
            if isinstance(partner, SimulatedPartner):
                runs.rehearse(column, setting.mode, partner)
            for row in range(repeats):
                for way in (0, 1) if row % 2 == 0 else (1, 0):  # in turns, and neither always first
                    ran = runs.run(column, setting.mode, partner if way else None)
                    times[way, row, column] = ran.seconds
                    edges[way] += ran.edges
                    if way and partner is not None:
                        _add(tally, ran.npu)
                        if ran.repaired and ran.npu.rounds_merged and partner.usable:
                            partner.distrust("a result that it took part in failed the certificate")
                        if not partner.usable:
                            return self._failed(setting, empty, partner)
        each = repeats * searches
        predicted = self._predict(setting)
        return replace(
            empty,
            ran_on="" if partner is None else partner.device,
            cpu_only=tuple(map(tuple, times[0].tolist())),
            hybrid=tuple(map(tuple, times[1].tolist())),
            rounds_sent=tally.rounds_sent / each,
            rounds_merged=tally.rounds_merged / each,
            values_adopted=tally.values_adopted / each,
            values_received=tally.values_received / each,
            edges_cpu_only=float(edges[0]) / each,
            edges_hybrid=float(edges[1]) / each,
            on_clock_s=partner.on_clock_s - clocked if isinstance(partner, SimulatedPartner) else 0.0,
            certified=2 * each,
            predicted_cpu_only_s=None if predicted is None else runs.count * predicted[0],
            predicted_s=None if predicted is None else runs.count * predicted[1],
        )

    def _empty(self, setting: Setting) -> Point:
        k, known = setting.k, self.statistics
        part = float(known.inside[k]) / known.m if known.m else 0.0
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
        threshold = int(known.degree[k - 1]) if k else 0
        return Point(setting, threshold, int(known.inside[k]), part, known.density(k), measured_at=now)

    def _failed(self, setting: Setting, empty: Point, partner: Partner | None) -> Point:
        reason = self._hopeless.get(setting.device, "") if partner is None else partner.failure
        served = any(one.good and one.setting.device == setting.device for one in self.journal.points.values())
        if not setting.simulated and not served:
            self._hopeless[setting.device] = reason
        self.close()
        return replace(empty, failure=reason or "the device was lost")

    # ------------------------------------------------------------------------------------- device and engine

    def _partner_for(self, setting: Setting) -> Partner | None:
        """The device of a setting, started if need be; None without a core, or where it has never served."""
        if setting.k == 0 or setting.device in self._hopeless:
            return None
        if self._partner is None or self._device != setting.device:
            self.close()
            npu = replace(self.config.npu, device=setting.device, mode=setting.mode)
            config = replace(self.config, npu=npu)
            log = self.journal.folder / "worker.log"
            self._partner = simulated_partner(config) or NpuPartner(config, log, Trace())
            self._device, self._published = setting.device, -1
            self._partner.start()
        return self._partner

    def _hand_over(self, partner: Partner, k: int) -> None:
        """Publish the core, and let the device serve a first round that is not timed."""
        if self._published != k:
            partner.publish_edges(self.graph.out_offsets, self.graph.out_targets, k)
            self._published = k
            if isinstance(partner, NpuPartner):
                root, engine = typical_root(self.graph), self._engine(self.config.engine)
                traverse_together(engine, root, "share", partner, Trace(), self.config.npu.max_rounds)

    def _runs_of(self, setting: Setting) -> Runs:
        if self._split.core_size != setting.k:
            self._split, self._engines, self._runs = CoreSplit(self.graph, setting.k), {}, {}
        if setting.engine not in self._runs:
            max_rounds = self.config.npu.max_rounds
            if setting.batch > 1:
                made: Runs = ManyRuns(self.graph, self._split, self.roots, setting.batch, max_rounds)
            else:
                made = SingleRuns(self.graph, self._engine(setting.engine), self.roots, setting.k, max_rounds)
            self._runs[setting.engine] = made
        return self._runs[setting.engine]

    def _engine(self, name: str) -> Traversal:
        if name not in self._engines:
            self._engines[name] = make_engine(name, self._split, self._strategy(name))
        return self._engines[name]

    # --------------------------------------------------------------------------------------------- prediction

    def _predict(self, setting: Setting) -> tuple[float, float] | None:
        """CPU-only and hybrid seconds of one search or batch, by the planner; None where nothing is known."""
        if not setting.k:
            return None
        npu = replace(self.config.npu, device=setting.device)
        engine = self.config.engine if setting.batch > 1 else setting.engine
        config = replace(self.config, engine=engine, npu=npu)
        here = surroundings(config)
        if here.device is None:
            return None
        if setting.engine not in self._searches:
            bfs = replace(config.bfs, strategy=self._strategy(setting.engine))
            search = typical_search(self.graph, replace(config, bfs=bfs), self.statistics.limit, setting.batch)
            self._searches[setting.engine] = replace(self.statistics, search=search)
        table = predict(self._searches[setting.engine], here.device, here.rates, here.around, [setting.k])
        row: Candidate = table.candidates[0]
        return table.cpu_only_s, row.share_s if setting.mode == "share" else row.race_s


def _add(total: NpuTally, one: NpuTally) -> None:
    for name in ("rounds_sent", "rounds_merged", "values_adopted", "values_received"):
        setattr(total, name, getattr(total, name) + getattr(one, name))
