"""Connected components, weak and strong: vertices that reach each other, by edges of either or of one direction."""

from __future__ import annotations

from cpu_engine.components.check import check_components, check_strong_components
from cpu_engine.components.strong import strong_components
from cpu_engine.components.weak import components
from cpu_engine.repair.engine import plain_components, plain_strong_components
from hybrid.algorithms.algorithm import Check, Found, Task
from hybrid.algorithms.distribution import Groups
from hybrid.algorithms.field import Label


class WeakComponents(Groups):
    name, title = "wcc", "Weakly connected components"
    fields = (Label("component", "the smallest vertex of its component"),)
    nouns = "components"
    claims = (
        "No edge joins two components: what is connected is together.",
        "Every vertex is connected to the one that names its component: what is together is connected.",
    )
    plain = "union-find"

    def run(self, task: Task) -> Found:
        found = components(task.graph)
        return Found({"component": found.label}, {"iterations": found.iterations})

    def check(self, task: Task, found: Found) -> Check:
        return check_components(task.graph, found.arrays["component"])

    def recompute(self, task: Task) -> Found:
        return Found({"component": plain_components(task.graph)})


class StrongComponents(WeakComponents):
    name, title = "scc", "Strongly connected components"
    claims = (
        "Every vertex reaches the one that names its component, and is reached from it, by edges inside the component.",
        "Between components edges lead in one order only: no two of them reach each other.",
    )
    plain = "Tarjan's algorithm"

    def run(self, task: Task) -> Found:
        found = strong_components(task.graph)
        return Found({"component": found.label}, {"iterations": found.iterations})

    def check(self, task: Task, found: Found) -> Check:
        return check_strong_components(task.graph, found.arrays["component"])

    def recompute(self, task: Task) -> Found:
        return Found({"component": plain_strong_components(task.graph)})
