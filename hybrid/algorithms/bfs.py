"""Breadth-first search: what its result means. The search_job modules of hybrid/job and hybrid/ranks run it."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpu_engine.bfs.certificate import certify
from cpu_engine.repair.engine import plain_bfs
from hybrid.algorithms.algorithm import Arrays, Check, Description, Found, PlainCheck, Task
from hybrid.algorithms.field import LDBC_UNREACHED, Level, Parent
from hybrid.cli.terminal import count

_LEVEL = Level("level", "edges from the source, -1 = not reached", own=0, ldbc_unreached=LDBC_UNREACHED)
_PARENT = Parent("parent", "a vertex one step nearer; the source's is itself, -1 = not reached")


class Bfs(Description):
    name, title = "bfs", "Breadth-first search"
    fields = (_LEVEL, _PARENT)
    claims = (
        "Every reached vertex has a parent one level nearer, joined by an edge: each level is a real path's length.",
        "No edge leads from a reached vertex to one more than one level further, or unreached: no level can improve.",
        "Only the source has level 0: there is no second starting point.",
    )
    sourced = True
    plain = "a search with a queue"

    def to_user(self, task: Task, found: Found) -> Arrays:
        """Both columns in one pass: at scale 24 the mapping takes longer than the search."""
        graph, source = task.graph, None if task.source is None else task.source.user_id
        level, parent = graph.to_user_search(found.arrays["level"], found.arrays["parent"])
        return {
            _LEVEL.name: _LEVEL.at_source(graph, level, source),
            _PARENT.name: _PARENT.at_source(graph, parent, source),
        }

    def check(self, task: Task, found: Found) -> Check:
        level, parent = found.arrays["level"], found.arrays["parent"]
        if task.root < 0:
            nobody = bool(np.all(level == -1) and np.all(parent == -1))
            return PlainCheck(nobody, "a vertex is reached from a source without edges")
        return certify(task.graph, level, parent, task.root)

    def recompute(self, task: Task) -> Found:
        if task.root < 0:
            return reach_nothing(task)
        level, parent = plain_bfs(task.graph, task.root)
        return Found({"level": level, "parent": parent})

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        level = arrays["level"]
        return {"reached": int(np.count_nonzero(level >= 0)), "max_level": int(level.max())}

    def headline(self, facts: dict[str, Any]) -> str:
        return f"{count(facts['reached'])} reached, depth {facts['max_level']}"


def reach_nothing(task: Task) -> Found:
    """What a source without edges finds."""
    blank = np.full((2, task.graph.n), -1, np.int32)
    return Found({"level": blank[0], "parent": blank[1]})
