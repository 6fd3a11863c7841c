"""Closeness and betweenness: how near a vertex is to the others, and how many shortest paths lead through it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cpu_engine.centrality.betweenness import betweenness
from cpu_engine.centrality.check import SAMPLE as MANY
from cpu_engine.centrality.check import check_betweenness, check_closeness
from cpu_engine.centrality.closeness import closeness
from cpu_engine.repair.engine import plain_betweenness, plain_closeness
from hybrid.algorithms.algorithm import SAMPLE, SUM, Algorithm, Arrays, Check, Found, PlainCheck, Task
from hybrid.algorithms.distribution import largest_vertex
from hybrid.algorithms.field import Field, Partial
from hybrid.config.schema import Config
from hybrid.terminal import count, figure, note, plural

LONG = 1e11  # searches times edges from which on an exact answer takes minutes or more


def chosen_roots(task: Task) -> np.ndarray | None:
    """centrality.sources as internal ids; None = all. A vertex without edges has no paths, and is left out."""
    wanted, graph = task.config.centrality.sources, task.graph
    if wanted == "all":
        return None
    if isinstance(wanted, str):
        amount = int(wanted.partition(":")[2] or 1)
        return np.sort(np.random.default_rng(task.config.source_seed).permutation(graph.n)[:amount])
    ids = (wanted,) if isinstance(wanted, int) else wanted
    inner = {graph.internal_id(one) for one in ids} - {-1}
    return np.array(sorted(inner), np.int64)


def asked_roots(task: Task) -> np.ndarray:
    """The same with all of them spelled out."""
    roots = chosen_roots(task)
    return np.arange(task.graph.n) if roots is None else roots


class Centrality(Algorithm):
    """What both have in common: an exact answer needs a search from every vertex."""

    def for_warm_up(self, config: Config) -> Config:
        return dataclasses.replace(config, centrality=dataclasses.replace(config.centrality, sources="all"))

    def prepare(self, task: Task) -> None:
        searches, edges = task.graph.n, task.graph.m
        if task.config.centrality.sources == "all" and searches * edges > LONG:
            note(
                f"centrality.sources: all needs {count(searches)} searches of {count(edges)} edges, and more to check; "
                "random:256 is quicker"
            )


class Closeness(Centrality):
    name, title = "closeness", "Closeness centrality"
    fields = (Partial("closeness", "how near it is to those that reach it; -1 = not asked for"),)
    claims = (
        "No score is below 0, and just the vertices that were asked for have one.",
        "A sample of the vertices has the same score when each is searched from by itself, with a plain queue.",
    )
    checked_by = SAMPLE
    listens = ("centrality.sources", "centrality.harmonic")
    plain = "a search with a queue from each vertex"

    def run(self, task: Task) -> Found:
        found = closeness(task.graph, roots=chosen_roots(task), harmonic=task.config.centrality.harmonic)
        score = np.full(task.graph.n, -1.0)
        score[found.roots] = found.score
        return Found({"closeness": score}, {"searches": found.searches}, {"closeness": _of_isolated(task)})

    def check(self, task: Task, found: Found) -> Check:
        score, asked = found.arrays["closeness"], asked_roots(task)
        given = np.zeros(task.graph.n, bool)
        given[asked] = True
        if found.isolated.get("closeness", _of_isolated(task)) != _of_isolated(task) or np.any(score[~given] != -1):
            return PlainCheck(False, "a vertex that was not asked for has a score, or one without edges a wrong one")
        harmonic, sample = task.config.centrality.harmonic, task.sample(MANY)
        return check_closeness(task.graph, asked, score[asked], harmonic=harmonic, sample=sample)

    def recompute(self, task: Task) -> Found:
        roots, score = asked_roots(task), np.full(task.graph.n, -1.0)
        score[roots] = plain_closeness(task.graph, roots, harmonic=task.config.centrality.harmonic)
        return Found({"closeness": score}, {"searches": roots.size}, {"closeness": _of_isolated(task)})

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        score = arrays["closeness"]
        return {"scored": int(np.count_nonzero(score >= 0)), **largest_vertex(task.graph.user_ids, score)}

    def headline(self, facts: dict[str, Any]) -> str:
        scored = plural(facts["scored"], "vertex")
        return f"of {scored}, {facts['largest_vertex']} is nearest: {figure(facts['largest'])}"


def _of_isolated(task: Task) -> float:
    """No vertex is near one without edges, and only a job over all vertices asks for one."""
    return 0.0 if task.config.centrality.sources == "all" else -1.0


class Betweenness(Centrality):
    name, title = "betweenness", "Betweenness centrality"
    fields = (Field("betweenness", "shortest paths that lead through it, each pair of ends counting as 1"),)
    claims = (
        "No score is below 0.",
        "With random weights, the scores add up to what the inner vertices of all shortest paths weigh, which is found "
        "by going outwards from each root only: a wrong score could hide only behind another.",
    )
    checked_by = SUM
    listens = ("centrality.sources", "centrality.normalised")
    plain = "Brandes' algorithm with a queue"

    def run(self, task: Task) -> Found:
        found = betweenness(task.graph, roots=chosen_roots(task), normalised=None)
        score = found.score * scale_of(task)
        return Found({"betweenness": score}, {"roots": found.roots, "searches": found.searches})

    def check(self, task: Task, found: Found) -> Check:
        score = found.arrays["betweenness"]
        return check_betweenness(task.graph, score, roots=chosen_roots(task), scale=scale_of(task))

    def recompute(self, task: Task) -> Found:
        roots = asked_roots(task)
        score = plain_betweenness(task.graph, roots) * scale_of(task)
        return Found({"betweenness": score}, {"roots": roots.size, "searches": roots.size})

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        score = arrays["betweenness"]
        return {**largest_vertex(task.graph.user_ids, score), "sum": float(score.sum())}

    def headline(self, facts: dict[str, Any]) -> str:
        return f"most paths lead through vertex {facts['largest_vertex']}: {figure(facts['largest'])}"


def scale_of(task: Task) -> float:
    """What a sum over roots is multiplied by.

    From k of the n vertices with edges it is an estimate, n / k of the sum; then normalised to shares of the
    (N - 1)(N - 2) pairs of others, or halved in an undirected graph, whose pairs are met from both ends.
    """
    graph, roots = task.graph, chosen_roots(task)
    estimate = 1.0 if roots is None or not roots.size else graph.n / roots.size
    others = graph.user_ids.size - 1
    if task.config.centrality.normalised:
        return estimate / (others * (others - 1)) if others > 1 else estimate
    return estimate if graph.directed else estimate / 2
