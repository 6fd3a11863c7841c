"""The tuning sweep: every setting measured in turns with the CPU alone, every search certified.

Invariant: a time is only kept if the search that it belongs to was proven right; a point is kept as soon as it is
finished, and is not measured again; simulated devices stay apart from real ones in everything that is written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

import numpy as np

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from hybrid.algorithms.algorithm import Task
from hybrid.algorithms.bfs import Bfs
from hybrid.config.schema import Config
from hybrid.errors import ConfigError
from hybrid.experiments.tune.advice import ORACLE_DEVICE
from hybrid.experiments.tune.points import NO_DEVICE, Journal, Point, Setting, many_engine
from hybrid.graphs.sources import Source
from hybrid.interrupts import interrupts_held
from hybrid.job.core import device_of
from hybrid.job.engines import Engine, SharedCore, Unit, engine_for, rehearsal
from hybrid.job.units import units_of
from hybrid.job.verdict import turns
from hybrid.job.warm_up import looks_deep, warm_up, warm_up_batches
from hybrid.planning.core_statistics import CoreStatistics, core_statistics
from hybrid.planning.plan import CELL_BYTES, largest_core
from hybrid.planning.planner import SMALLEST_CORE, Candidate, predict
from hybrid.planning.prediction import surroundings, typical_search
from hybrid.results.tally import Tally
from hybrid.results.trace import Trace
from hybrid.terminal import note
from hybrid.worker.core_solver import Device


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
            reason = f"{word}: the graph has {graph.n:,} vertices with edges"
            raise ConfigError(reason, value=k, fix=f"give 0 to {graph.n}")
    too_large = f"vertices is over the budget, which allows {bound:,}"
    over = {k: f"{word}: a core of {k:,} {too_large}" for word, k in asked if k > bound}
    fitting = {k for _, k in asked if k <= bound}
    if not fitting:
        k = min(over)
        raise ConfigError(over[k], value=k, fix=f"--set core.max_bytes={CELL_BYTES * k * k}, or a smaller core")
    for k, remark in over.items():
        note(f"{remark}: left out (--set core.max_bytes={CELL_BYTES * k * k} includes it)")
    return tuple(sorted(fitting))


class Sweep:
    """Measures settings on one graph. The caller must call ``close``."""

    def __init__(self, config: Config, graph: Graph, sources: Sequence[Source], journal: Journal) -> None:
        self.config, self.graph, self.journal = config, graph, journal
        self.sources = [source for source in sources if source.internal >= 0]
        if not self.sources:
            raise ConfigError(
                "source: no source has an edge, so there is nothing to measure",
                value=config.source,
                fix="choose others, for example --set source=random:8",
            )
        self.statistics = core_statistics(graph, max(1, min(graph.n, largest_core(config.core))))
        self._measured = 0
        self._solver: Device | None = None
        self._device = ""
        self._published = -1
        self._split = CoreSplit(graph)
        self._runs: dict[str, tuple[Engine, list[Unit]]] = {}
        self._searches: dict[str, CoreStatistics] = {}
        self._hopeless: dict[str, str] = {}  # real devices that never served, and why

    def run(
        self, settings: Sequence[Setting], report: Callable[[int, int, Point], None], later: int = 0
    ) -> list[Point]:
        """Measure what is not in the journal yet; all points, in the order of the settings.

        ``report`` is called with each point, how many were measured so far, and how many there will be in all,
        ``later`` ones included.
        """
        known = self.journal.points
        left = [one for one in settings if one not in known or not known[one].good]
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
        return [known[setting] for setting in settings]

    def close(self) -> None:
        solver, self._solver = self._solver, None
        if solver is not None:
            with interrupts_held():
                solver.close()

    def _strategy(self, engine: str) -> str:
        return self.config.bfs.strategy if engine == "level" else "auto"

    # --------------------------------------------------------------------------------------------- one point

    def _measure(self, setting: Setting) -> Point:
        engine, units = self._runs_of(setting)
        solver, empty = self._solver_for(setting), self._empty(setting)
        if setting.k and (solver is None or not solver.usable):
            return self._failed(setting, empty, solver)
        clocked = 0.0 if solver is None else solver.on_clock_s
        repeats, mode = self.config.compare.repeats, setting.mode
        times = np.zeros((2, repeats, len(units)))
        edges, tally = np.zeros(2), Tally()
        for way, row, column in turns(repeats, len(units)):
            unit, beside = units[column], solver if way else None
            if way == row == 0 and solver is not None:
                solver.rehearse(rehearsal(engine, unit, mode))
            began = time.perf_counter()
            done = engine.alone(unit, Trace()) if beside is None else engine.together(unit, beside, mode, Trace())
            times[way, row, column] = time.perf_counter() - began
            proven = engine.prove(unit, done, Trace())
            edges[way] += sum(found.counters["edges_looked_at"] for found, _ in proven)
            if beside is not None:
                tally.add(done.tally)
                if done.tally.rounds_merged and beside.usable and any(repair is not None for _, repair in proven):
                    beside.distrust("a result that it took part in failed the certificate")
                if not beside.usable:
                    return self._failed(setting, empty, beside)
        each = repeats * len(self.sources)
        named = ("rounds_sent", "rounds_merged", "values_adopted", "values_received")
        predicted = [None, None] if (found := self._predict(setting)) is None else [len(units) * one for one in found]
        cpu_only, hybrid = (tuple(map(tuple, some.tolist())) for some in times)
        if solver is not None:
            empty = replace(empty, ran_on=solver.device, on_clock_s=solver.on_clock_s - clocked)
        return replace(
            empty, cpu_only=cpu_only, hybrid=hybrid, certified=2 * each,
            edges_cpu_only=float(edges[0]) / each, edges_hybrid=float(edges[1]) / each,
            predicted_cpu_only_s=predicted[0], predicted_s=predicted[1],
            **{name: getattr(tally, name) / each for name in named},
        )  # fmt: skip

    def _empty(self, setting: Setting) -> Point:
        k, known = setting.k, self.statistics
        part = float(known.inside[k]) / known.m if known.m else 0.0
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
        threshold = int(known.degree[k - 1]) if k else 0
        return Point(setting, threshold, int(known.inside[k]), part, known.density(k), measured_at=now)

    def _failed(self, setting: Setting, empty: Point, solver: Device | None) -> Point:
        reason = self._hopeless.get(setting.device, "") if solver is None else solver.failure
        served = any(one.good and one.setting.device == setting.device for one in self.journal.points.values())
        if not setting.simulated and not served:
            self._hopeless[setting.device] = reason
        self.close()
        return replace(empty, failure=reason or "the device was lost")

    # ------------------------------------------------------------------------------------- device and engine

    def _solver_for(self, setting: Setting) -> Device | None:
        """The device of a setting, started, with its core, after a first round that is not timed.

        None without a core, or where it has never served.
        """
        if setting.k == 0 or setting.device in self._hopeless:
            return None
        if self._solver is None or self._device != setting.device:
            self.close()
            npu = replace(self.config.npu, device=setting.device, mode=setting.mode)
            log = self.journal.folder / "worker.log"
            self._solver = device_of(replace(self.config, npu=npu), log, Trace())
            self._device, self._published = setting.device, -1
            self._solver.start()
        if self._published != setting.k:
            SharedCore("bfs", self._split).publish(self._solver)
            self._published = setting.k
            self._solver.warm_up("share", setting.batch)
        return self._solver

    def _runs_of(self, setting: Setting) -> tuple[Engine, list[Unit]]:
        """What is run and proven: each root by itself, or so many at once."""
        if self._split.core_size != setting.k:
            self._split, self._runs = CoreSplit(self.graph, setting.k), {}
        if setting.engine not in self._runs:
            config = self.config
            if setting.batch == 1:
                bfs = replace(config.bfs, strategy=self._strategy(setting.engine))
                config = replace(config, engine=setting.engine, bfs=bfs)
            tasks = [Task(self.graph, config, source) for source in self.sources]
            engine = engine_for(Bfs(), tasks[0], self._split, batch=setting.batch)
            self._runs[setting.engine] = engine, units_of(tasks, setting.batch)
        return self._runs[setting.engine]

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
        table = predict(self._searches[setting.engine], here, [setting.k])
        row: Candidate = table.candidates[0]
        return table.cpu_only_s, row.share_s if setting.mode == "share" else row.race_s
