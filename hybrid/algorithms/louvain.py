"""Communities of high modularity, by Louvain's method."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpu_engine.communities.check_modularity import check_modularity, recompute_modularity
from cpu_engine.communities.louvain import louvain
from cpu_engine.repair.engine import plain_louvain
from hybrid.algorithms.algorithm import FIGURE, Algorithm, Arrays, Check, Found, Task
from hybrid.algorithms.distribution import group_facts, group_headline
from hybrid.algorithms.field import Label


class Louvain(Algorithm):
    name, title = "louvain", "Communities by modularity"
    fields = (Label("community", "the smallest vertex of its community"),)
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
        return {"modularity": modularity, **group_facts(arrays["community"], "communities")}

    def headline(self, facts: dict[str, Any]) -> str:
        return f"modularity {facts['modularity']:.4f}; {group_headline(facts, 'community', 'communities')}"
