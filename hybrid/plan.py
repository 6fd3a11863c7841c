"""The split: which vertices are the dense core, and in which mode the worker takes part. Reads, decides, explains.

Internal ids fall with degree, so every rule comes down to one number: the core is [0, k). ``npu.mode: auto`` is the
planner's decision (hybrid/planner.py), made from measured figures; where there are none, it is made without the graph.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.algorithms.bfs_many import ROOTS_PER_PASS
from cpu_engine.algorithms.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from hybrid.core_statistics import FEWEST_RUNS, CoreStatistics, core_statistics
from hybrid.no_regret import REGRET_S, Patience, measuring_runs, patience_for
from hybrid.planner import Prediction, candidate_sizes, predict, rule_out
from hybrid.prediction import NOT_CALIBRATED, Surroundings, search_count, surroundings, typical_search
from hybrid.schema import Config, CoreConfig

AUTOMATIC = "automatic"
CELL_BYTES = 4  # one float32 of the core's matrix
WORKER_START_S = 3.0  # MindSpore takes so long to load (1.4 to 3.5 s measured): a shorter job is over before
BLIND = Patience(own_s=REGRET_S)  # mode auto without figures: it races, and its rounds may cost this much in all


@dataclass(frozen=True)
class Plan:
    """The decision and its reasons."""

    split: CoreSplit
    core_edges: int
    threshold: int  # smallest degree inside the core
    rule: str
    mode: str
    mode_reason: str
    predicted: dict[str, Any] | None = None  # None: nothing is known to predict from
    patience: Patience = BLIND  # of mode auto, with the worker
    batch: int = 1  # sources traversed at once

    @property
    def core_size(self) -> int:
        return self.split.core_size

    @property
    def density(self) -> float:
        pairs = self.core_size * (self.core_size - 1)
        return self.core_edges / pairs if pairs else 0.0


def make_plan(graph: Graph, config: Config) -> Plan:
    """Choose core, mode and batch for this graph."""
    plan = _plan_core(graph, config)
    return replace(plan, batch=choose_batch(config, search_count(config, graph.n))) if config.ranks == 1 else plan


def plan_library(graph: Graph, config: Config, algorithm: str) -> Plan:
    """Core and mode for an algorithm of the library; mode auto is predicted for sweeps over all edges only."""
    if config.npu.mode != "auto":
        return _plan_by_rule(graph, config, config.npu.mode, "as configured")
    if algorithm != "pagerank":
        return _plan_off(graph, f"auto: nothing is predicted for {algorithm}; npu.mode: share or race tries it")
    here = surroundings(config)
    if here.device is None or here.rates is None:
        return _plan_off(graph, f"auto: {NOT_CALIBRATED}")
    chosen, rule = choose_core_size(graph.degree(), config.core)
    statistics = core_statistics(graph, chosen)
    sizes = [chosen] if rule != AUTOMATIC and chosen else candidate_sizes(statistics, here.device)
    table = predict(statistics, here.device, here.rates, here.around, sizes, algorithm)
    if table.mode == "off":
        return _plan_off(graph, f"auto: {table.reason}", table.as_dict())
    split = CoreSplit(graph, table.k)
    threshold, inside = int(statistics.degree[table.k - 1]), int(statistics.inside[table.k])
    return Plan(split, inside, threshold, rule, table.mode, f"auto: {table.reason}", table.as_dict())


def choose_batch(config: Config, searches: int) -> int:
    """How many sources are traversed at once; auto: as many as the bit-parallel engine takes in one pass."""
    wanted = ROOTS_PER_PASS if config.npu.batch == "auto" else int(config.npu.batch)
    return max(1, min(wanted, searches))


def _plan_core(graph: Graph, config: Config) -> Plan:
    if config.npu.mode == "auto":
        here = surroundings(config)
        if here.device is not None:
            return _plan_by_prediction(graph, config, here)
    mode, mode_reason = choose_mode(config.npu.mode, NOT_CALIBRATED)
    if mode == "off":
        return _plan_off(graph, mode_reason)
    plan = _plan_by_rule(graph, config, mode, mode_reason)
    if plan.mode == "off" or not config.compare.enabled or config.ranks > 1:
        return plan
    return replace(plan, predicted=_predict_configured(graph, config, plan))


def _plan_off(graph: Graph, reason: str, predicted: dict[str, Any] | None = None) -> Plan:
    return Plan(CoreSplit(graph), 0, 0, "none (CPU only)", "off", reason, predicted)


def _plan_by_rule(graph: Graph, config: Config, mode: str, mode_reason: str) -> Plan:
    """The core by the configured rule."""
    degree = graph.degree()
    size, rule = choose_core_size(degree, config.core)
    split = CoreSplit(graph, size)
    if rule == AUTOMATIC:
        while size > 1 and count_core_edges(split) < config.core.min_density * size * (size - 1):
            size //= 2
            split = CoreSplit(graph, size)
        rule += f": within {config.core.max_bytes:,} bytes, density at least {config.core.min_density:g}"
    threshold = int(degree[size - 1]) if size else 0
    if not size:
        mode, mode_reason = "off", "the core is empty"
    return Plan(split, count_core_edges(split), threshold, rule, mode, mode_reason)


def _predict_configured(graph: Graph, config: Config, plan: Plan) -> dict[str, Any] | None:
    """What the configured mode and core should take, to be compared with what they will."""
    here = surroundings(config)
    if here.device is None:
        return None
    k, batch = plan.core_size, choose_batch(config, search_count(config, graph.n))
    statistics = core_statistics(graph, k, typical_search(graph, config, k, batch))
    table = predict(statistics, here.device, here.rates, here.around, [k])
    return _tell(table.with_choice(plan.mode, table.candidates[0], plan.mode_reason), config, statistics)


def _plan_by_prediction(graph: Graph, config: Config, here: Surroundings) -> Plan:
    """Mode auto where device and CPU are known: off unless the gain is above the planner's margin."""
    assert here.device is not None
    # Only a threshold needs the degrees; for all others their number will do, and this has to be quick.
    degree = graph.degree() if config.core.threshold is not None else np.empty(graph.n, np.int8)
    chosen, rule = choose_core_size(degree, config.core)
    statistics = core_statistics(graph, chosen)
    batch = choose_batch(config, search_count(config, statistics.n))
    sizes = [chosen] if rule != AUTOMATIC and chosen else candidate_sizes(statistics, here.device, batch)
    ruled_out = ""
    if here.rates is not None and batch == 1:  # what a batch looks at is only known once one was searched
        ruled_out = rule_out(statistics, here.device, here.rates, here.around, sizes)
    told = {"device": here.device.name, "kind": here.device.kind, "mode": "off"}
    if ruled_out or not sizes:  # for most graphs this settles it, before anything is searched
        reason = ruled_out or "the core is empty"
        return _plan_off(graph, f"auto: {reason}", {**told, "reason": reason})
    searches = -(-search_count(config, statistics.n) // batch)  # a batch is one
    runs = measuring_runs(searches)
    if runs < FEWEST_RUNS:
        what = "searches" if batch == 1 else f"batches of {batch}"
        reason = f"a device may pay, but to measure one first would cost too much of {searches} {what}"
        return _plan_off(graph, f"auto: {reason}", {**told, "reason": reason})
    statistics = replace(statistics, search=typical_search(graph, config, chosen, batch, runs))
    found = predict(statistics, here.device, here.rates, here.around, sizes)
    if found.mode != "off" and config.npu.worker == "launch" and not here.simulated:
        whole_s = searches * found.cpu_only_s
        if whole_s < WORKER_START_S:
            found = found.without(
                f"the CPU alone is done after {whole_s:.2g} s, before a worker is ready ({WORKER_START_S:g} s)"
            )
    patience = patience_for(found.round_s or 0.0, found.cpu_only_s, searches)
    if found.mode != "off" and patience is None:
        found = found.without("one answer that does not come would cost more than may be lost")
    predicted = _tell(found, config, statistics)
    if found.mode == "off" or patience is None:
        return _plan_off(graph, f"auto: {found.reason}", predicted)
    split = CoreSplit(graph, found.k)
    if rule == AUTOMATIC:
        rule = f"automatic: the planner's choice of {len(sizes)} sizes"
    threshold, edges = int(statistics.degree[found.k - 1]), count_core_edges(split)
    return Plan(split, edges, threshold, rule, found.mode, f"auto: {found.reason}", predicted, patience)


def _tell(found: Prediction, config: Config, statistics: CoreStatistics) -> dict[str, Any]:
    """A prediction for the record: of one search - of a batch, its part - and how many the job makes."""
    told = found.as_dict()
    for name in ("cpu_only_s", "hybrid_s"):
        told[name] = None if told[name] is None else told[name] / found.batch
    return {**told, "searches": search_count(config, statistics.n)}


def largest_core(core: CoreConfig) -> int:
    """The largest core that the memory bound allows."""
    return math.isqrt(core.max_bytes // CELL_BYTES)


def choose_core_size(degree: np.ndarray, core: CoreConfig) -> tuple[int, str]:
    """The number of core vertices by the configured rule, and the rule in words."""
    n = degree.size
    bound = min(n, largest_core(core))
    if core.threshold is not None:
        wanted, rule = int(np.count_nonzero(degree >= core.threshold)), f"degree at least {core.threshold}"
    elif core.quantile is not None:
        wanted, rule = n - math.ceil(core.quantile * n), f"degree quantile {core.quantile:g}"
    elif core.size is not None:
        wanted, rule = core.size, f"the {core.size} vertices of highest degree"
    else:
        return bound, AUTOMATIC
    if wanted > bound:
        rule += f", cut to {bound} by core.max_bytes or the graph"
    return min(wanted, bound), rule


def count_core_edges(split: CoreSplit) -> int:
    """Edges with both ends in the core."""
    k = split.core_size
    return int(np.sum(split.outside_core.out_begin[:k] - split.all_edges.out_begin[:k]))


def ascend_devices() -> list[str]:
    """The Ascend devices that the driver shows."""
    return sorted(path.name for path in Path("/dev").glob("davinci[0-9]*"))


def choose_mode(mode: str, why_blind: str = "on several ranks nothing is predicted") -> tuple[str, str]:
    """Resolve ``auto`` without figures: it only races, and only where a device is idle anyway."""
    if mode != "auto":
        return mode, "as configured"
    if ascend_devices():
        return "race", f"auto: an Ascend device is present, and racing never waits for it ({why_blind})"
    return "off", f"auto: no Ascend device is present, and {why_blind}"
