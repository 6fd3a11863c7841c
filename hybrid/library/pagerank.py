"""PageRank, as LDBC Graphalytics or as GAP define it (docs/algorithms.md has both)."""

from __future__ import annotations

from typing import Any

from cpu_engine.algorithms.check_pagerank import check_pagerank
from cpu_engine.algorithms.pagerank import pagerank

from hybrid.library.algorithm import Algorithm, Arrays, Check, Found, Task
from hybrid.library.distribution import largest_vertex
from hybrid.library.field import Shared
from hybrid.schema import Config
from hybrid.terminal import figure


class PageRank(Algorithm):
    name, title = "pagerank", "PageRank"
    fields = (Shared("rank", "its share of all rank"),)
    claims = (
        "One more iteration, computed in another way, changes the ranks by no more than the definition allows.",
        "Rank is neither made nor lost beyond what the definition says.",
    )
    listens = ("pagerank.definition", "pagerank.damping", "pagerank.tolerance", "pagerank.iterations")

    def run(self, task: Task) -> Found:
        found = pagerank(task.graph, **_keywords(task.config))
        counters = {"iterations": found.iterations, "change": found.change}
        return Found({"rank": found.rank}, counters, {"rank": found.isolated_rank})

    def check(self, task: Task, found: Found) -> Check:
        return check_pagerank(task.graph, found.arrays["rank"], found.isolated["rank"], **_keywords(task.config))

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        rank = arrays["rank"]
        return {"sum": float(rank.sum()), **largest_vertex(task.graph.user_ids, rank)}

    def headline(self, facts: dict[str, Any]) -> str:
        return (
            f"vertex {facts['largest_vertex']} ranks highest with {figure(facts['largest'])}; "
            f"all ranks add up to {figure(round(facts['sum'], 9))}"
        )


def _keywords(config: Config) -> dict[str, Any]:
    chosen = config.pagerank
    return {
        "definition": chosen.definition,
        "damping": chosen.damping,
        "tolerance": chosen.tolerance,
        "iterations": chosen.iterations,
    }
