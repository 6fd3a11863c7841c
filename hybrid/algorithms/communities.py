"""Communities, by label propagation as LDBC Graphalytics defines it and by Louvain's method."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpu_engine.communities.check_labels import check_labels
from cpu_engine.communities.check_modularity import check_modularity, recompute_modularity
from cpu_engine.communities.label_propagation import label_propagation
from cpu_engine.communities.louvain import louvain
from cpu_engine.repair.engine import plain_labels, plain_louvain
from hybrid.algorithms.algorithm import AGAIN, FIGURE, Arrays, Check, Found, Task
from hybrid.algorithms.distribution import Groups
from hybrid.algorithms.field import Label, UserLabel


class LabelPropagation(Groups):
    name, title = "cdlp", "Communities by label propagation"
    fields = (UserLabel("community", "the label that it ended with: some vertex's id"),)
    nouns = "communities"
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


class Louvain(Groups):
    name, title = "louvain", "Communities by modularity"
    fields = (Label("community", "the smallest vertex of its community"),)
    nouns = "communities"
    claims = (
        "Every community is called after its smallest vertex.",
        "The modularity is what the definition gives for these communities. That there are none better, nobody can "
        "check.",
    )
    checked_by = FIGURE
    listens = ("louvain.resolution", "louvain.seed")
    plain = "Louvain's method by sweeps over all vertices"

    def run(self, task: Task) -> Found:
        chosen = task.config.louvain
        found = louvain(task.graph, resolution=chosen.resolution, seed=chosen.seed)
        counters = {"modularity": found.modularity, "levels": found.levels, "moves": found.moves}
        return Found({"community": found.label}, counters)

    def check(self, task: Task, found: Found) -> Check:
        label, resolution = found.arrays["community"], task.config.louvain.resolution
        told = found.counters.get("modularity")  # of a result from a folder: the facts are compared
        claimed = recompute_modularity(task.graph, label, resolution) if told is None else told
        return check_modularity(task.graph, label, np.unique(label).size, claimed, resolution=resolution)

    def recompute(self, task: Task) -> Found:
        resolution = task.config.louvain.resolution
        label = plain_louvain(task.graph, resolution)
        return Found({"community": label}, {"modularity": recompute_modularity(task.graph, label, resolution)})

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        inner = self.fields[0].to_internal(task.graph, arrays["community"])
        modularity = recompute_modularity(task.graph, inner, task.config.louvain.resolution)
        return {"modularity": modularity, **super().facts(task, arrays)}

    def headline(self, facts: dict[str, Any]) -> str:
        return f"modularity {facts['modularity']:.4f}; {super().headline(facts)}"
