"""Out-degrees: the smallest algorithm there can be."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybrid.algorithms.algorithm import Algorithm, Arrays, Check, Found, PlainCheck, Task
from hybrid.algorithms.field import Field


class Degrees(Algorithm):
    name, title = "degrees", "Degrees"
    fields = (Field("degree", "edges that leave it", (np.dtype(np.int64),)),)
    claims = ("Every vertex has the number of edges that a count over the edge list gives.",)
    plain = "a count over the edge list"

    def run(self, task: Task) -> Found:
        return Found({"degree": np.diff(task.graph.out_offsets)})

    def check(self, task: Task, found: Found) -> Check:
        return PlainCheck(np.array_equal(found.arrays["degree"], _count(task)), "a degree is wrong")

    def recompute(self, task: Task) -> Found:
        return Found({"degree": _count(task)})

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        return {"largest": int(arrays["degree"].max(initial=0))}

    def headline(self, facts: dict[str, Any]) -> str:
        return f"the largest degree is {facts['largest']}"


def _count(task: Task) -> np.ndarray:
    """From the other direction's rows."""
    return np.bincount(task.graph.in_sources, minlength=task.graph.n).astype(np.int64)
