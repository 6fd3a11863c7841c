"""PageRank as seen from one vertex: its description, for the Python interface alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpu_engine.algorithms.check_personalised import check_personalised
from cpu_engine.algorithms.pagerank_many import personalised_pagerank
from hybrid.errors import ConfigError, NotCertified
from hybrid.library.algorithm import AGAIN, Algorithm, Arrays, Check, Found, PlainCheck, Task
from hybrid.library.distribution import largest_vertex
from hybrid.library.field import Field
from hybrid.terminal import figure


class PersonalisedPageRank(Algorithm):
    name, title = "personalised_pagerank", "PageRank"
    fields = (Field("rank", "share of its time that a walk from the source, which often returns there, is at it"),)
    claims = (
        "One more iteration, made by pushing rank along the arcs, changes the ranks by no more than the tolerance in "
        "all.",
        "All ranks add up to 1.",
    )
    checked_by = AGAIN
    sourced = True

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
            raise NotCertified(
                f"after {found.iterations} iterations the ranks still change by {found.change.max():.3g} in all",
                fix="raise iterations, or the tolerance",
            )
        counters = {"iterations": found.iterations, "change": float(found.change.max())}
        return Found({"rank": found.rank[:, 0].astype(np.float64)}, counters)

    def check(self, task: Task, found: Found) -> Check:
        rank = found.arrays["rank"]
        if task.root < 0:
            return PlainCheck(not rank.any(), "a walk that cannot leave is somewhere else")
        return check_personalised(task.graph, task.root, rank, damping=self.damping, tolerance=self.tolerance)

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        return {"sum": float(arrays["rank"].sum()), **largest_vertex(task.graph.user_ids, arrays["rank"])}

    def headline(self, facts: dict[str, Any]) -> str:
        return f"vertex {facts['largest_vertex']} ranks highest with {figure(facts['largest'])}"
