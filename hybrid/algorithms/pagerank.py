"""PageRank, as LDBC Graphalytics or as GAP define it (docs/reference/algorithms.md has both)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cpu_engine.pagerank.check import check_pagerank
from cpu_engine.pagerank.engine import limits_of, pagerank
from cpu_engine.repair.engine import enough_iterations, plain_ranks
from hybrid.algorithms.algorithm import AGAIN, Algorithm, Arrays, Check, Found, Task
from hybrid.algorithms.distribution import largest_vertex
from hybrid.algorithms.field import Shared
from hybrid.config.schema import Config
from hybrid.terminal import figure, plural


class PageRank(Algorithm):
    name, title = "pagerank", "PageRank"
    fields = (Shared("rank", "its share of all rank"),)
    claims = (
        "Definition ldbc: the same iterations, made again by pushing rank along the arcs, give every vertex the same "
        "rank, and all ranks add up to 1.",
        "Definition gap: one more iteration, made so, changes the ranks by no more than the tolerance in all; of a run "
        "that ended at its limit of iterations, by no more than its last one did.",
    )
    checked_by = AGAIN
    plain = "Jacobi iterations"
    listens = ("pagerank.definition", "pagerank.damping", "pagerank.tolerance", "pagerank.iterations")

    def for_warm_up(self, config: Config) -> Config:
        anything = None if config.pagerank.definition == "ldbc" else 10.0
        return dataclasses.replace(config, pagerank=dataclasses.replace(config.pagerank, tolerance=anything))

    def run(self, task: Task) -> Found:
        found = pagerank(task.graph, **_keywords(task.config))
        return Found({"rank": found.rank}, found.counters, {"rank": found.isolated_rank})

    def check(self, task: Task, found: Found) -> Check:
        isolated, asked = found.isolated.get("rank"), _keywords(task.config)
        if isolated is None:  # nobody has that rank, but the checker asks what one would have
            isolated = pagerank(task.graph, **asked).isolated_rank
        given = {name: value for name, value in asked.items() if value is not None}
        given["change"] = _change_at_limit(found.counters)
        return check_pagerank(task.graph, found.arrays["rank"], isolated, **given)

    def recompute(self, task: Task) -> Found:
        chosen, vertices = task.config.pagerank, max(1, task.graph.user_ids.size)
        tolerance, iterations = limits_of(chosen.definition, chosen.tolerance, chosen.iterations)
        even, lost = np.full(vertices, 1 / vertices), np.full(vertices, 1 / vertices)
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
        change = _change_at_limit(counters)
        if change is None:
            return ""
        return (
            f"after {plural(counters.get('iterations', 0), 'iteration')} the ranks still change by {change:.3g} in all"
        )

    def headline(self, facts: dict[str, Any]) -> str:
        return (
            f"vertex {facts['largest_vertex']} ranks highest with {figure(facts['largest'])}; "
            f"all ranks add up to {figure(round(facts['sum'], 9))}"
        )


def _change_at_limit(counters: dict[str, Any]) -> float | None:
    """The last iteration's change, of a run that ended at its limit; None of any other. Any counters will do."""
    change = counters.get("change")
    return float(change) if counters.get("converged") is False and isinstance(change, int | float) else None


def _keywords(config: Config) -> dict[str, Any]:
    return dataclasses.asdict(config.pagerank)
