"""Communities by label propagation, as LDBC Graphalytics defines it."""

from __future__ import annotations

from typing import Any

from cpu_engine.communities.check_labels import check_labels
from cpu_engine.communities.label_propagation import label_propagation
from cpu_engine.repair.engine import plain_labels
from hybrid.algorithms.algorithm import AGAIN, Algorithm, Arrays, Check, Found, Task
from hybrid.algorithms.distribution import group_facts, group_headline
from hybrid.algorithms.field import UserLabel


class LabelPropagation(Algorithm):
    name, title = "cdlp", "Communities by label propagation"
    fields = (UserLabel("community", "the label that it ended with: some vertex's id"),)
    claims = ("The same rounds, all made again with sorting and plain counting, give every vertex the same label.",)
    checked_by = AGAIN
    listens = ("cdlp.iterations",)
    plain = "counting every neighbour's label"

    def run(self, task: Task) -> Found:
        found = label_propagation(task.graph, iterations=task.config.cdlp.iterations)
        return Found({"community": found.label}, {"iterations": found.iterations})

    def check(self, task: Task, found: Found) -> Check:
        return check_labels(task.graph, found.arrays["community"], iterations=task.config.cdlp.iterations)

    def recompute(self, task: Task) -> Found:
        return Found({"community": plain_labels(task.graph, task.config.cdlp.iterations)})

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        return group_facts(arrays["community"], "communities")

    def headline(self, facts: dict[str, Any]) -> str:
        return group_headline(facts, "community", "communities")
