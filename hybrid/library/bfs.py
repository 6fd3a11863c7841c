"""Breadth-first search: what its result means. hybrid/job.py and hybrid/ranks.py run it, together with the NPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpu_engine.algorithms.certificate import certify
from hybrid.library.algorithm import Arrays, Check, Description, Found, PlainCheck, Task
from hybrid.library.field import LDBC_UNREACHED, Level, Parent
from hybrid.terminal import count


class Bfs(Description):
    name, title = "bfs", "Breadth-first search"
    fields = (
        Level("level", "edges from the source, -1 = not reached", own=0, ldbc_unreached=LDBC_UNREACHED),
        Parent("parent", "a vertex one step nearer; the source's is itself, -1 = not reached"),
    )
    claims = (
        "Every reached vertex has a parent one level nearer, joined by an edge: each level is a real path's length.",
        "No edge leads from a reached vertex to one more than one level further, or unreached: no level can improve.",
        "Only the source has level 0: there is no second starting point.",
    )
    sourced = True

    def check(self, task: Task, found: Found) -> Check:
        level, parent = found.arrays["level"], found.arrays["parent"]
        if task.root < 0:
            nobody = bool(np.all(level == -1) and np.all(parent == -1))
            return PlainCheck(nobody, "a vertex is reached from a source without edges")
        return certify(task.graph, level, parent, task.root)

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        level = arrays["level"]
        return {"reached": int(np.count_nonzero(level >= 0)), "max_level": int(level.max())}

    def headline(self, facts: dict[str, Any]) -> str:
        return f"{count(facts['reached'])} reached, depth {facts['max_level']}"
