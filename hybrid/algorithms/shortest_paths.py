"""Single-source shortest paths over non-negative weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.repair.engine import plain_sssp
from cpu_engine.sssp.check import check_sssp
from cpu_engine.sssp.engine import sssp
from hybrid.algorithms.algorithm import Algorithm, Arrays, Check, Found, PlainCheck, Task
from hybrid.algorithms.field import INT, REAL, Field, Parent
from hybrid.config.schema import Config
from hybrid.terminal import figure, plural


class ShortestPaths(Algorithm):
    name, title = "sssp", "Single-source shortest paths"
    fields = (
        Field(
            "distance", "length of a shortest path from the source; not reached = -1 (whole weights) or infinity (real "
            "ones)", (INT, REAL), own=0, ldbc_unreached="infinity",
        ),
        Parent("parent", "the vertex before it on such a path; the source's is itself, -1 = not reached"),
    )  # fmt: skip
    claims = (
        "Every reached vertex has a parent over a real edge whose weight is the difference of their distances: each "
        "distance is a real path's length.",
        "No edge leads from a reached vertex to one that is farther than the edge is long, or unreached: no distance "
        "can improve.",
    )
    sourced, weighted = True, True
    listens = ("sssp.strategy", "sssp.delta")
    plain = "Dijkstra's algorithm with a heap"

    def for_warm_up(self, config: Config) -> Config:
        return dataclasses.replace(config, sssp=dataclasses.replace(config.sssp, delta=None))

    def run(self, task: Task) -> Found:
        graph, chosen = task.graph, task.config.sssp
        if task.root < 0:
            return self._reach_nothing(graph)
        found = sssp(graph, task.root, strategy=chosen.strategy, delta=chosen.delta)
        counters = {"steps": found.steps, "relaxations": found.relaxations, "delta": found.delta}
        return Found({"distance": found.distance, "parent": found.parent}, counters)

    def check(self, task: Task, found: Found) -> Check:
        distance, parent = found.arrays["distance"], found.arrays["parent"]
        if task.root < 0:
            none_reached = not self.fields[0].reached(distance).any() and bool(np.all(parent == -1))
            return PlainCheck(none_reached, "a vertex is reached from a source without edges")
        return check_sssp(task.graph, task.root, distance, parent)

    def recompute(self, task: Task) -> Found:
        if task.root < 0:
            return self._reach_nothing(task.graph)
        distance, parent = plain_sssp(task.graph, task.root)
        return Found({"distance": distance, "parent": parent})

    def _reach_nothing(self, graph: Graph) -> Found:
        dtype = INT if graph.weight is None else graph.weight.dtype
        blank = self.fields[0].unreached(dtype)
        return Found({"distance": np.full(graph.n, blank, dtype), "parent": np.full(graph.n, -1, np.int32)})

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        distance = arrays["distance"]
        inside = distance[self.fields[0].reached(distance)]
        return {"reached": int(inside.size), "farthest": inside.max().item()}

    def over_runs(self, facts: Sequence[dict[str, Any]]) -> dict[str, Any]:
        reached, farthest = sum(one["reached"] for one in facts), max(one["farthest"] for one in facts)
        return {"sources": len(facts), "reached": reached, "farthest": farthest}

    def headline(self, facts: dict[str, Any]) -> str:
        several = f" from {plural(facts['sources'], 'source')}, in all" if facts.get("sources", 1) > 1 else ""
        farthest = figure(facts["farthest"])
        return f"{plural(facts['reached'], 'vertex')} reached{several}; the farthest at distance {farthest}"
