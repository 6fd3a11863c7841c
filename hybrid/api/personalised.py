"""PageRank as seen from one vertex: its description, for the Python interface alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpu_engine.pagerank.check_personalised import check_personalised
from cpu_engine.pagerank.personalised import personalised_pagerank
from cpu_engine.repair.engine import enough_iterations, plain_ranks
from hybrid.algorithms.algorithm import AGAIN, Algorithm, Arrays, Check, Found, PlainCheck, Task
from hybrid.algorithms.distribution import largest_vertex
from hybrid.algorithms.field import Field
from hybrid.errors import ConfigError, NotCertified
from hybrid.terminal import figure, plural


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
    plain = "Jacobi iterations"

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
                f"after {plural(found.iterations, 'iteration')} the ranks still change by "
                f"{found.change.max():.3g} in all",
                fix="raise iterations, or the tolerance",
            )
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

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        return {"sum": float(arrays["rank"].sum()), **largest_vertex(task.graph.user_ids, arrays["rank"])}

    def headline(self, facts: dict[str, Any]) -> str:
        return f"vertex {facts['largest_vertex']} ranks highest with {figure(facts['largest'])}"
