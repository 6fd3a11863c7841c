"""The plan of a job: which vertices are the dense core, and in which mode the worker takes part, and why.

Internal ids are in the order of falling degree, so every rule comes down to one number: the core is [0, k).
``npu.mode: auto`` is the planner's decision (planner.py), made from measured figures; where there are none, the graph
does not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.bfs.many.engine import ROOTS_PER_PASS
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from hybrid.config.schema import Config, CoreConfig
from hybrid.planning.core_statistics import FEWEST_RUNS, CoreStatistics, SearchFacts, core_statistics, several
from hybrid.planning.planner import SWEEPS, Prediction, Surroundings, best_of, candidate_sizes, predict, rule_out
from hybrid.planning.prediction import NOT_CALIBRATED, search_count, surroundings, typical_search
from hybrid.terminal import plural
from hybrid.worker.core_solver import MOST_AT_ONCE
from hybrid.worker.guard import REGRET_S, Patience, measuring_runs, patience_for, patience_for_sweeps

AUTOMATIC = "automatic"
CELL_BYTES = 4  # one float32 of the core's matrix
FEWEST_AT_ONCE = 4  # fewer searches are faster one by one (measured on Kronecker 14 and 18 and a uniform graph)
WORKER_START_S = 3.0  # MindSpore takes so long to load (1.4 to 3.5 s measured): a shorter job is over before
TOO_DEAR = "one answer that does not come would cost more than may be lost"
MEASURED = ("bfs", "sssp")  # predicted from a search that is measured first
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
    index: bool = False  # mode auto: only the core's index pays, rounds do not

    @property
    def core_size(self) -> int:
        return self.split.core_size

    @property
    def density(self) -> float:
        pairs = self.core_size * (self.core_size - 1)
        return self.core_edges / pairs if pairs else 0.0


def make_plan(graph: Graph, config: Config, ruled: Plan | None = None, search: SearchFacts | None = None) -> Plan:
    """Choose core, mode and batch for this graph.

    ``ruled``: what ``plan_by_rule`` said, if it was asked before. ``search``: measured already, by many ranks.
    """
    searching, mode = config.algorithm == "bfs", config.npu.mode
    if mode == "off":
        plan = plan_off(graph, "as configured")
    elif mode == "auto":
        plan = _plan_auto(graph, config, search)
    else:
        plan = ruled or plan_by_rule(graph, config)
        if searching and plan.mode != "off" and config.compare.enabled and config.ranks == 1:
            plan = replace(plan, predicted=_predict_configured(graph, config, plan))
    if not searching or config.ranks != 1 or plan.batch > 1:  # ranks choose it themselves; the planner has chosen it
        return plan
    return replace(plan, batch=choose_batch(config, search_count(config, graph.n)))


def plan_off(graph: Graph, reason: str, predicted: dict[str, Any] | None = None) -> Plan:
    """The CPU alone."""
    return Plan(CoreSplit(graph), 0, 0, "none (CPU only)", "off", reason, predicted)


def plan_by_rule(graph: Graph, config: Config, mode: str = "", why: str = "as configured") -> Plan:
    """The core by the configured rule: known at once, so that a worker can be started, or need not be."""
    degree = graph.degree()
    size, rule = choose_core_size(degree, config.core)
    split = CoreSplit(graph, size)
    if rule == AUTOMATIC:
        while size > 1 and count_core_edges(split) < config.core.min_density * size * (size - 1):
            size //= 2
            split = CoreSplit(graph, size)
        rule += f": within {config.core.max_bytes:,} bytes, density at least {config.core.min_density:g}"
    edges = count_core_edges(split)
    if not edges:
        return plan_off(graph, "the core is empty" if not size else f"the core of {size:,} has no edges")
    return Plan(split, edges, int(degree[size - 1]), rule, mode or config.npu.mode, why)


def _predict_configured(graph: Graph, config: Config, plan: Plan) -> dict[str, Any] | None:
    """What the configured mode and core should take, to be compared with what they will."""
    here = surroundings(config)
    if here.device is None:
        return None
    k, batch = plan.core_size, choose_batch(config, search_count(config, graph.n))
    statistics = core_statistics(graph, k, typical_search(graph, config, k, batch))
    table = predict(statistics, here, [k])
    return _tell(table.with_choice(plan.mode, table.candidates[0], plan.mode_reason), config, statistics)


# ------------------------------------------------------------------------------------------------- batches


def worth_measuring(config: Config, n: int) -> bool:
    """Whether mode auto may run a search beforehand, only to decide; n: vertices with edges."""
    known = config.npu.mode == "auto" and surroundings(config).device is not None
    return known and measuring_runs(search_count(config, n)) >= FEWEST_RUNS


def choose_batch(config: Config, searches: int) -> int:
    """How many sources are traversed at once; auto: a pass, which is fastest on the CPU, or one by one if few."""
    if config.npu.batch == "auto":
        return 1 if searches < FEWEST_AT_ONCE else min(ROOTS_PER_PASS, searches)
    return max(1, min(int(config.npu.batch), searches))


def choosable_batches(config: Config, searches: int) -> list[int]:
    """The batches that the planner may choose from, the CPU's choice first: whole passes that one round carries."""
    batch = choose_batch(config, searches)
    batches = [batch]
    if config.npu.batch == "auto" and batch == ROOTS_PER_PASS:
        while 2 * batches[-1] <= min(searches, MOST_AT_ONCE):
            batches.append(2 * batches[-1])
    return batches


# ----------------------------------------------------------------------------------------------- mode auto


def _plan_auto(graph: Graph, config: Config, search: SearchFacts | None) -> Plan:
    """Predicted where device and CPU are known: off unless the gain is above the planner's margin."""
    algorithm, here = config.algorithm, surroundings(config)
    if algorithm == "pagerank":
        if here.device is None or here.rates is None:
            return plan_off(graph, f"auto: {NOT_CALIBRATED}")
        return _plan_sweeps(graph, config, here)
    if algorithm not in MEASURED:
        reason = "one run cannot be measured beforehand without losing more than mode auto may"
        return plan_off(
            graph, f"auto: nothing is predicted for {algorithm}, as {reason}; npu.mode: share or race tries it"
        )
    if here.device is not None:
        return _plan_searches(graph, config, here, search)
    if not ascend_devices():
        return plan_off(graph, f"auto: no Ascend device is present, and {NOT_CALIBRATED}")
    why = f"auto: an Ascend device is present, and racing never waits for it ({NOT_CALIBRATED})"
    return plan_by_rule(graph, config, "race", why)


def _plan_sweeps(graph: Graph, config: Config, here: Surroundings) -> Plan:
    """PageRank, from the CPU's rates."""
    chosen, rule = choose_core_size(graph.degree(), config.core)
    statistics = core_statistics(graph, chosen)
    sizes = [chosen] if rule != AUTOMATIC and chosen else candidate_sizes(statistics, here.device)
    found = _bearable(predict(statistics, here, sizes, config.algorithm), 1, config, here)
    return _take(graph, found, 1, statistics, rule, found.as_dict())


def _plan_searches(graph: Graph, config: Config, here: Surroundings, search: SearchFacts | None) -> Plan:
    """BFS and shortest paths, from a measured search - unless counting edges settles it before."""
    assert here.device is not None
    # Only a threshold needs the degrees; for all others their number will do, and this has to be quick.
    degree = graph.degree() if config.core.threshold is not None else np.empty(graph.n, np.int8)
    chosen, rule = choose_core_size(degree, config.core)
    statistics = core_statistics(graph, chosen)
    everything = search_count(config, statistics.n)
    searching = config.algorithm == "bfs"  # the others have no batches, no index, and other rates
    batches = choosable_batches(config, everything) if searching and config.ranks == 1 else [1]
    batch = batches[0]

    def sizes_for(batch: int) -> list[int]:
        fixed = rule != AUTOMATIC and chosen
        return [chosen] if fixed else candidate_sizes(statistics, here.device, batch)

    uses = everything if config.npu.index != "off" and searching else 0
    searches, sizes, reason = -(-everything // batch), sizes_for(batch), ""  # a batch is one search
    runs = measuring_runs(searches)
    if here.rates is not None and batch == 1 and searching:  # what a batch looks at is only known once one was searched
        reason = rule_out(statistics, here, sizes, uses)
    if not reason and not sizes:
        reason = "the core is empty"
    elif not reason and runs < FEWEST_RUNS:
        what = "searches" if batch == 1 else f"batches of {batch}"
        reason = f"a device may pay, but to measure one first would cost too much of {searches} {what}"
    if reason:
        told = {"device": here.device.name, "kind": here.device.kind, "mode": "off", "reason": reason}
        return plan_off(graph, f"auto: {reason}", told)
    measured = search or typical_search(graph, config, chosen, batch, runs)
    tables = []
    for one in batches:  # the CPU takes a multiple of the measured time
        known = replace(statistics, search=several(measured, one // batch))
        table = predict(known, here, sizes_for(one), config.algorithm, index_uses=-(-uses // one))
        tables.append(_bearable(table, everything, config, here))
    found = best_of(tables)
    if rule == AUTOMATIC:
        rule = f"automatic: the planner's choice of {len(sizes)} sizes"
    return _take(graph, found, everything, statistics, rule, _tell(found, config, statistics))


def _bearable(found: Prediction, searches: int, config: Config, here: Surroundings) -> Prediction:
    """The choice, or none where the job is over too soon, or an answer that does not come would cost it too much."""
    if found.mode == "off":
        return found
    whole_s = searches / found.batch * found.cpu_only_s
    if config.npu.worker == "launch" and not here.simulated and whole_s < WORKER_START_S:
        return found.without(
            f"the CPU alone is done after {whole_s:.2g} s, before a worker is ready ({WORKER_START_S:g} s)"
        )
    return found if found.index or _patience(found, searches) is not None else found.without(TOO_DEAR)


def _patience(found: Prediction, searches: int) -> Patience | None:
    round_s = found.round_s or 0.0
    if found.algorithm == "pagerank":
        saved_s = next(one.saved_s for one in found.candidates if one.k == found.k)
        return patience_for_sweeps(round_s, found.cpu_only_s, saved_s, SWEEPS)
    return patience_for(round_s, found.cpu_only_s, -(-searches // found.batch))


def _take(
    graph: Graph, found: Prediction, searches: int, statistics: CoreStatistics, rule: str, predicted: dict[str, Any]
) -> Plan:
    """The plan that follows from a prediction."""
    reason = f"auto: {found.reason}"
    if found.mode == "off":
        return plan_off(graph, reason, predicted)
    threshold, inside = int(statistics.degree[found.k - 1]), int(statistics.inside[found.k])
    patience = _patience(found, searches) or BLIND  # the core's index answers at once and needs none
    return Plan(
        CoreSplit(graph, found.k), inside, threshold, rule, found.mode, reason, predicted, patience, found.batch,
        found.index,
    )  # fmt: skip


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
        wanted, rule = core.size, f"the {plural(core.size, 'vertex')} of highest degree"
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
