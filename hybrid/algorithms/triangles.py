"""Triangles, and how close to a clique a vertex's neighbourhood is (LDBC's local clustering coefficient)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpu_engine.repair.engine import plain_clustering, plain_triangles
from cpu_engine.triangles.check import SAMPLE as MANY
from cpu_engine.triangles.check import check_clustering, check_triangles
from cpu_engine.triangles.clustering import local_clustering
from cpu_engine.triangles.engine import triangles
from hybrid.algorithms.algorithm import SAMPLE, Algorithm, Arrays, Check, Found, Task
from hybrid.algorithms.field import INT, Field
from hybrid.terminal import figure, plural


class Triangles(Algorithm):
    name, title = "triangles", "Triangles"
    fields = (Field("triangles", "triangles that it is a corner of", (INT,)),)
    claims = (
        "The corners are three for every triangle.",
        "The largest hubs and a sample of other vertices are in as many triangles when counted again in another way.",
    )
    checked_by = SAMPLE
    plain = "listing every triangle"

    def run(self, task: Task) -> Found:
        found = triangles(task.graph)
        return Found({"triangles": found.per_vertex})

    def check(self, task: Task, found: Found) -> Check:
        corners = found.arrays["triangles"]
        return check_triangles(task.graph, int(corners.sum()) // 3, corners, sample=task.sample(MANY))

    def recompute(self, task: Task) -> Found:
        return Found({"triangles": plain_triangles(task.graph)})

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        corners = arrays["triangles"]
        return {"triangles": int(corners.sum()) // 3, "vertices_in_one": int(np.count_nonzero(corners))}

    def headline(self, facts: dict[str, Any]) -> str:
        return f"{plural(facts['triangles'], 'triangle')}; {plural(facts['vertices_in_one'], 'vertex')} are in one"


class Clustering(Algorithm):
    name, title = "lcc", "Local clustering coefficient"
    fields = (Field("coefficient", "share of its neighbour pairs that are joined, by LDBC's definition"),)
    claims = (
        "Every coefficient is between 0 and 1.",
        "The largest hubs and a sample of other vertices have the same coefficient when counted again in another way.",
    )
    checked_by = SAMPLE
    plain = "listing every triangle"

    def run(self, task: Task) -> Found:
        found = local_clustering(task.graph)
        return Found({"coefficient": found.coefficient})

    def check(self, task: Task, found: Found) -> Check:
        return check_clustering(task.graph, found.arrays["coefficient"], sample=task.sample(MANY))

    def recompute(self, task: Task) -> Found:
        return Found({"coefficient": plain_clustering(task.graph)})

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        coefficient = arrays["coefficient"]
        average = float(coefficient.mean()) if coefficient.size else 0.0
        return {"average": average, "vertices_in_a_triangle": int(np.count_nonzero(coefficient))}

    def headline(self, facts: dict[str, Any]) -> str:
        return f"the average coefficient is {figure(facts['average'])} (isolated vertices count as 0)"
