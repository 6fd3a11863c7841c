"""Core numbers: the largest k for which a vertex is in a part of the graph in which every vertex has k neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpu_engine.kcore.check import check_k_core
from cpu_engine.kcore.engine import k_core
from cpu_engine.repair.engine import plain_core_numbers
from hybrid.algorithms.algorithm import Algorithm, Arrays, Check, Found, Task
from hybrid.algorithms.field import Field
from hybrid.terminal import count, plural


class CoreNumbers(Algorithm):
    name, title = "kcore", "Core numbers"
    fields = (Field("core", "the largest k whose k-core it is in", (np.dtype(np.int32),)),)
    claims = (
        "Every vertex has as many neighbours of its own core number or more as that number says: it is in that core.",
        "Peeling the graph in the order of the numbers removes every vertex in time: it is in no deeper core.",
    )
    plain = "peeling the vertex of lowest degree"

    def run(self, task: Task) -> Found:
        found = k_core(task.graph)
        return Found({"core": found.core}, {"iterations": found.iterations})

    def check(self, task: Task, found: Found) -> Check:
        return check_k_core(task.graph, found.arrays["core"])

    def recompute(self, task: Task) -> Found:
        return Found({"core": plain_core_numbers(task.graph)})

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        core = arrays["core"]
        deepest = int(core.max(initial=0))
        return {"largest": deepest, "vertices_in_it": int(np.count_nonzero(core == deepest))}

    def headline(self, facts: dict[str, Any]) -> str:
        inside = plural(facts["vertices_in_it"], "vertex")
        return f"the innermost core is the {count(facts['largest'])}-core, with {inside}"
