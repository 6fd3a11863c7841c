"""PageRank, as LDBC Graphalytics or as GAP define it (docs/reference/algorithms.md has both), and personalised."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cpu_engine.pagerank.check import check_pagerank
from cpu_engine.pagerank.check_personalised import check_personalised
from cpu_engine.pagerank.engine import limits_of, pagerank
from cpu_engine.pagerank.personalised import personalised_pagerank
from cpu_engine.repair.engine import enough_iterations, plain_ranks
from hybrid.algorithms.algorithm import AGAIN, Algorithm, Arrays, Check, Found, PlainCheck, Task
from hybrid.algorithms.distribution import largest_vertex
from hybrid.algorithms.field import Field, Shared
from hybrid.config.schema import Config
from hybrid.errors import ConfigError, NotCertified
from hybrid.terminal import figure, plural


class PageRank(Algorithm):
    name, title = "pagerank", "PageRank"
    fields: tuple[Field, ...] = (Shared("rank", "its share of all rank"),)
    claims = (
        "Definition ldbc: the same iterations, made again by pushing rank along the arcs, give every vertex the same "
        "rank, and all ranks add up to 1.",
        "Definition gap: one more iteration, made so, changes the ranks by no more than the tolerance in all; of a run "
        "that ended at its limit of iterations, by no more than its last one did.",
    )
    checked_by = AGAIN
    plain = "Jacobi iterations"
    listens: tuple[str, ...] = ("pagerank.definition", "pagerank.damping", "pagerank.tolerance", "pagerank.iterations")

    def for_warm_up(self, config: Config) -> Config:
        anything = None if config.pagerank.definition == "ldbc" else 10.0
        return dataclasses.replace(config, pagerank=dataclasses.replace(config.pagerank, tolerance=anything))

    def run(self, task: Task) -> Found:
        found = pagerank(task.graph, **dataclasses.asdict(task.config.pagerank))
        return Found({"rank": found.rank}, found.counters, {"rank": found.isolated_rank})

    def check(self, task: Task, found: Found) -> Check:
        isolated, asked = found.isolated.get("rank"), dataclasses.asdict(task.config.pagerank)
        if isolated is None:  # no vertex has that rank, but the checker asks what one would have
            isolated = pagerank(task.graph, **asked).isolated_rank
        given = {name: value for name, value in asked.items() if value is not None}
        given["change"] = _change_at_limit(found.counters)
        return check_pagerank(task.graph, found.arrays["rank"], isolated, **given)

    def recompute(self, task: Task) -> Found:
        chosen, vertices = task.config.pagerank, max(1, task.graph.user_ids.size)
        tolerance, iterations = limits_of(chosen.definition, chosen.tolerance, chosen.iterations)
        even = lost = np.full(vertices, 1 / vertices)
        if chosen.definition == "gap" and tolerance is not None:  # the fixpoint counts; the engine is quicker
            lost, iterations = np.zeros(vertices), max(iterations, enough_iterations(chosen.damping, tolerance))
        found = plain_ranks(
            task.graph, even, even, lost, damping=chosen.damping, iterations=iterations, tolerance=tolerance
        )
        settled = tolerance is None or found.change < tolerance
        counters = {"iterations": found.iterations, "change": found.change, "converged": settled}
        return Found({"rank": found.rank[task.graph.user_position]}, counters, {"rank": float(found.base[0])})

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        rank = arrays["rank"]
        return {"sum": float(rank.sum()), **largest_vertex(task.graph.user_ids, rank)}

    def unfinished(self, counters: dict[str, Any]) -> str:
        change, made = _change_at_limit(counters), plural(counters.get("iterations", 0), "iteration")
        return "" if change is None else f"after {made} the ranks still change by {change:.3g} in all"

    def headline(self, facts: dict[str, Any]) -> str:
        return f"{_highest(facts)}; all ranks add up to {figure(round(facts['sum'], 9))}"


class PersonalisedPageRank(PageRank):
    """PageRank as seen from one vertex; the Python interface has it, the configuration has not."""

    name = "personalised_pagerank"
    fields = (Field("rank", "share of its time that a walk from the source, which often returns there, is at it"),)
    claims = (
        "One more iteration, made by pushing rank along the arcs, changes the ranks by no more than the tolerance in "
        "all.",
        "All ranks add up to 1.",
    )
    sourced = True
    listens = ()

    def __init__(self, damping: float, tolerance: float, iterations: int) -> None:
        if not 0 <= damping < 1:
            raise ConfigError("the damping must be at least 0 and below 1", value=damping, fix="write 0.85")
        if not tolerance > 0:
            raise ConfigError("the tolerance must be above 0", value=tolerance, fix="write 1e-4")
        self.damping, self.tolerance, self.iterations = damping, tolerance, iterations

    def run(self, task: Task) -> Found:
        if task.root < 0:
            return Found({"rank": np.zeros(task.graph.n)})
        chosen = {"damping": self.damping, "tolerance": self.tolerance, "iterations": self.iterations}
        found = personalised_pagerank(task.graph, np.array([task.root]), **chosen)  # type: ignore[arg-type]
        if not found.converged:
            made = plural(found.iterations, "iteration")
            reason = f"after {made} the ranks still change by {found.change.max():.3g} in all"
            raise NotCertified(reason, fix="raise iterations, or the tolerance")
        counters = {"iterations": found.iterations, "change": float(found.change.max())}
        return Found({"rank": found.rank[:, 0].astype(np.float64)}, counters)

    def check(self, task: Task, found: Found) -> Check:
        rank = found.arrays["rank"]
        if task.root < 0:
            return PlainCheck(not rank.any(), "a walk that cannot leave is somewhere else")
        return check_personalised(task.graph, task.root, rank, damping=self.damping, tolerance=self.tolerance)

    def recompute(self, task: Task) -> Found:
        if task.root < 0:
            return Found({"rank": np.zeros(task.graph.n)})
        here, start = task.graph.user_position, np.zeros(task.graph.user_ids.size)
        start[here[task.root]] = 1.0
        enough = enough_iterations(self.damping, self.tolerance)
        found = plain_ranks(
            task.graph, start, start, start, damping=self.damping, iterations=enough, tolerance=self.tolerance
        )
        return Found({"rank": found.rank[here]}, {"iterations": found.iterations, "change": found.change})

    def headline(self, facts: dict[str, Any]) -> str:
        return _highest(facts)


def _highest(facts: dict[str, Any]) -> str:
    return f"vertex {facts['largest_vertex']} ranks highest with {figure(facts['largest'])}"


def _change_at_limit(counters: dict[str, Any]) -> float | None:
    """The last iteration's change, of a run that ended at its limit; None of any other. Any counters will do."""
    change = counters.get("change")
    return float(change) if counters.get("converged") is False and isinstance(change, int | float) else None
