"""Communities by label propagation, as LDBC Graphalytics defines it."""

from __future__ import annotations

from typing import Any

from cpu_engine.algorithms.check_labels import check_labels
from cpu_engine.algorithms.label_propagation import label_propagation
from hybrid.library.algorithm import AGAIN, Algorithm, Arrays, Check, Found, Task
from hybrid.library.distribution import group_facts, group_headline
from hybrid.library.field import UserLabel


class LabelPropagation(Algorithm):
    name, title = "cdlp", "Communities by label propagation"
    fields = (UserLabel("community", "the label that it ended with: some vertex's id"),)
    claims = ("The same rounds, made again by sorting, give every vertex the same label.",)
    checked_by = AGAIN
    listens = ("cdlp.iterations",)

    def run(self, task: Task) -> Found:
        found = label_propagation(task.graph, iterations=task.config.cdlp.iterations)
        return Found({"community": found.label}, {"iterations": found.iterations})

    def check(self, task: Task, found: Found) -> Check:
        return check_labels(task.graph, found.arrays["community"], iterations=task.config.cdlp.iterations)

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        return group_facts(arrays["community"], "communities")

    def headline(self, facts: dict[str, Any]) -> str:
        return group_headline(facts, "community", "communities")
