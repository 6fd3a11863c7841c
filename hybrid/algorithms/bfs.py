"""Breadth-first search. Jobs keep an engine with its buffers for all sources (hybrid/job/engines.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cpu_engine.bfs.asynchronous import AsyncBfs
from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.traversal import CoreSplit, Traversal, search
from cpu_engine.repair.engine import plain_bfs
from hybrid.algorithms.algorithm import Algorithm, Arrays, Check, Found, PlainCheck, Task
from hybrid.algorithms.field import LDBC_UNREACHED, Level, Parent
from hybrid.terminal import count

_LEVEL = Level("level", "edges from the source, -1 = not reached", own=0, ldbc_unreached=LDBC_UNREACHED)
_PARENT = Parent("parent", "a vertex one step nearer; the source's is itself, -1 = not reached")


class Bfs(Algorithm):
    name, title = "bfs", "Breadth-first search"
    fields = (_LEVEL, _PARENT)
    claims = (
        "Every reached vertex has a parent one level nearer, joined by an edge: each level is a real path's length.",
        "No edge leads from a reached vertex to one more than one level further, or unreached: no level can improve.",
        "Only the source has level 0: there is no second starting point.",
    )
    sourced = True
    plain = "a search with a queue"
    doing = "traversing"

    def to_user(self, task: Task, found: Found) -> Arrays:
        """Both columns in one pass: at scale 24 the mapping takes longer than the search."""
        graph, source = task.graph, None if task.source is None else task.source.user_id
        level, parent = graph.to_user_search(found.arrays["level"], found.arrays["parent"])
        return {
            _LEVEL.name: _LEVEL.at_source(graph, level, source),
            _PARENT.name: _PARENT.at_source(graph, parent, source),
        }

    def run(self, task: Task) -> Found:
        if task.root < 0:
            return reach_nothing(task)
        engine = make_engine(task.config.engine, CoreSplit(task.graph), task.config.bfs.strategy)
        found = search(engine, task.root)
        counters = {"steps": found.steps, "edges_looked_at": found.edges_looked_at}
        return Found({"level": found.level, "parent": found.parent}, counters)

    def edges_reached(self, task: Task, found: Found) -> int:
        """Each once."""
        graph, level = task.graph, found.arrays["level"]
        return int(np.diff(graph.out_offsets)[level >= 0].sum()) // (1 if graph.directed else 2)

    def check(self, task: Task, found: Found) -> Check:
        level, parent = found.arrays["level"], found.arrays["parent"]
        if task.root < 0:
            none_reached = bool(np.all(level == -1) and np.all(parent == -1))
            return PlainCheck(none_reached, "a vertex is reached from a source without edges")
        return certify(task.graph, level, parent, task.root)

    def recompute(self, task: Task) -> Found:
        if task.root < 0:
            return reach_nothing(task)
        level, parent = plain_bfs(task.graph, task.root)
        return Found({"level": level, "parent": parent})

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        level = arrays["level"]
        return {"reached": int(np.count_nonzero(level >= 0)), "max_level": int(level.max())}

    def over_runs(self, facts: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {"reached": sum(one["reached"] for one in facts), "max_level": max(one["max_level"] for one in facts)}

    def headline(self, facts: dict[str, Any]) -> str:
        return f"{count(facts['reached'])} reached, depth {facts['max_level']}"


def reach_nothing(task: Task) -> Found:
    """What a source without edges finds."""
    blank = np.full((2, task.graph.n), -1, np.int32)
    return Found({"level": blank[0], "parent": blank[1]})


def make_engine(name: str, split: CoreSplit, strategy: str = "auto") -> Traversal:
    """The configured engine on this graph; the strategy is the level engine's."""
    return AsyncBfs(split) if name == AsyncBfs.name else LevelBfs(split, strategy)
