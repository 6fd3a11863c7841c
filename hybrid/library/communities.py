"""Communities: label propagation as LDBC defines it, and Louvain's modularity."""

from __future__ import annotations

from typing import Any

from cpu_engine.algorithms.check_label_propagation import check_label_propagation

from cpu_engine.algorithms.label_propagation import label_propagation
from hybrid.library.algorithm import Algorithm, Arrays, Check, Found, Task
from hybrid.library.distribution import group_facts
from hybrid.library.field import UserLabel
from hybrid.terminal import count


class LabelPropagation(Algorithm):
    name, title = "cdlp", "Communities by label propagation"
    fields = (UserLabel("community", "the label that it ended with: some vertex's id"),)
    claims = ("Propagated a second time in another way, every label comes out the same.",)
    listens = ("cdlp.iterations",)

    def run(self, task: Task) -> Found:
        found = label_propagation(task.graph, iterations=task.config.cdlp.iterations)
        return Found({"community": found.label}, {"iterations": found.iterations})

    def check(self, task: Task, found: Found) -> Check:
        return check_label_propagation(task.graph, found.arrays["community"], iterations=task.config.cdlp.iterations)

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        return group_facts(arrays["community"], "communities")

    def headline(self, facts: dict[str, Any]) -> str:
        return (
            f"{count(facts['communities'])} communities; the largest has {count(facts['largest'])} vertices "
            f"({facts['largest_share']:.1%})"
        )
