"""PageRank, as LDBC Graphalytics or as GAP define it (docs/algorithms.md has both)."""

from __future__ import annotations

import dataclasses
from typing import Any

from cpu_engine.algorithms.check_pagerank import check_pagerank
from cpu_engine.algorithms.pagerank import pagerank
from hybrid.errors import NotCertified
from hybrid.library.algorithm import AGAIN, Algorithm, Arrays, Check, Found, Task
from hybrid.library.distribution import largest_vertex
from hybrid.library.field import Shared
from hybrid.schema import Config
from hybrid.terminal import figure


class PageRank(Algorithm):
    name, title = "pagerank", "PageRank"
    fields = (Shared("rank", "its share of all rank"),)
    claims = (
        "Definition ldbc: the same iterations, made again by pushing rank along the arcs, give every vertex the same "
        "rank, and all ranks add up to 1.",
        "Definition gap: one more iteration, made so, changes the ranks by no more than the tolerance in all.",
    )
    checked_by = AGAIN
    listens = ("pagerank.definition", "pagerank.damping", "pagerank.tolerance", "pagerank.iterations")

    def for_warm_up(self, config: Config) -> Config:
        anything = None if config.pagerank.definition == "ldbc" else 10.0
        return dataclasses.replace(config, pagerank=dataclasses.replace(config.pagerank, tolerance=anything))

    def run(self, task: Task) -> Found:
        found = pagerank(task.graph, **_keywords(task.config))
        if not found.converged:
            raise NotCertified(
                f"pagerank: after {found.iterations} iterations the ranks still change by {found.change:.3g} in all",
                fix="raise pagerank.iterations, or pagerank.tolerance",
            )
        counters = {"iterations": found.iterations, "change": found.change}
        return Found({"rank": found.rank}, counters, {"rank": found.isolated_rank})

    def check(self, task: Task, found: Found) -> Check:
        isolated, asked = found.isolated.get("rank"), _keywords(task.config)
        if isolated is None:  # nobody has that rank, but the checker asks what one would have
            isolated = pagerank(task.graph, **asked).isolated_rank
        given = {name: value for name, value in asked.items() if value is not None}
        return check_pagerank(task.graph, found.arrays["rank"], isolated, **given)

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        rank = arrays["rank"]
        return {"sum": float(rank.sum()), **largest_vertex(task.graph.user_ids, rank)}

    def headline(self, facts: dict[str, Any]) -> str:
        return (
            f"vertex {facts['largest_vertex']} ranks highest with {figure(facts['largest'])}; "
            f"all ranks add up to {figure(round(facts['sum'], 9))}"
        )


def _keywords(config: Config) -> dict[str, Any]:
    return dataclasses.asdict(config.pagerank)
