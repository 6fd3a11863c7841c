"""The graphs that are in memory: where each came from, in which state it is, and what clients see of it."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.graph.graph import Graph
from hybrid.config.schema import Config, GraphConfig, ServiceConfig
from hybrid.graphs.opening import generator_name, open_graph
from hybrid.graphs.sources import Source
from hybrid.planning.core_statistics import core_statistics
from hybrid.planning.plan import make_plan
from hybrid.results.trace import Trace
from hybrid.service.http.problems import Problem, problem_of
from hybrid.service.queue.searches import Searcher, warm_up_searches
from hybrid.terminal import plural

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_TOLD = ("vertices", "edges", "isolated", "directed", "weighted", "bytes")
_PICTURE = 48  # points of the picture of cores
_LARGEST_CORE = 1 << 14


@dataclass(eq=False)
class Entry:
    """One graph."""

    id: str
    origin: dict[str, Any]  # how it was asked for: enough to open it again
    config: GraphConfig
    state: str = "waiting"  # waiting, loading, ready, failed
    problem: Problem | None = None
    graph: Graph | None = None
    store: Path | None = None  # the folder that other processes can map it from, if it was kept
    built: bool = False  # not found in the cache
    searcher: Searcher | None = None
    created: float = field(default_factory=time.time)
    seconds: float = 0.0
    jobs: int = 0  # that wait or run on it
    load: Any = None  # the work that opens it, while that waits or runs
    kept: bool = True  # in the journal
    facts: dict[str, Any] = field(default_factory=dict)
    core: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The graph as clients see it."""
        return {
            "id": self.id, "state": self.state, "origin": self.origin, "created": self.created,
            "seconds": self.seconds, "problem": None if self.problem is None else self.problem.document(),
            **{name: self.facts.get(name) for name in _TOLD},
        }  # fmt: skip

    def source(self, vertex: int) -> Source:
        """A vertex of the user's; Problem if there is none."""
        assert self.graph is not None
        try:
            return Source(vertex, self.graph.internal_id(vertex))
        except Exception as error:
            raise problem_of(error) from None


class Catalogue:
    """All graphs, by id. Read by the loop, filled by the computing thread."""

    def __init__(self, settings: ServiceConfig) -> None:
        self._settings = settings
        self._entries: dict[str, Entry] = {}
        self._lock = threading.RLock()

    def add(self, wanted: str | None, origin: dict[str, Any], config: GraphConfig) -> Entry:
        """Take a new graph in; Problem if there are too many, or one of that name."""
        with self._lock:
            if len(self._entries) >= self._settings.max_graphs:
                there = plural(len(self._entries), "graph is", "graphs are")
                raise Problem(429, f"{there} in memory", "unload one", retry_after_s=5)
            name = wanted or self._free(default_name(config))
            if not _NAME.fullmatch(name):
                raise Problem(422, "a graph's id has small letters, digits, dot, dash and underscore", "rename it")
            if name in self._entries:
                raise Problem(409, f"there is a graph {name!r} already", "choose another id, or unload that one")
            entry = self._entries[name] = Entry(name, origin, config)
            return entry

    def _free(self, name: str) -> str:
        if name not in self._entries:
            return name
        return next(f"{name}-{i}" for i in range(2, 1 << 20) if f"{name}-{i}" not in self._entries)

    def get(self, name: str) -> Entry:
        """Problem 404 if there is none."""
        entry = self._entries.get(name)
        if entry is None:
            raise Problem(404, f"there is no graph {name!r}", "GET /v1/graphs lists them")
        return entry

    def ready(self, name: str) -> Entry:
        """A graph that can be asked."""
        entry = self.get(name)
        if entry.state == "failed":
            assert entry.problem is not None
            raise Problem(409, f"the graph could not be opened: {entry.problem.detail}", entry.problem.fix)
        if entry.state != "ready":
            raise Problem(503, "the graph is being opened", "ask again soon", retry_after_s=1)
        return entry

    def remove(self, name: str) -> Entry:
        """Forget a graph that no job uses."""
        with self._lock:
            entry = self.get(name)
            if entry.jobs or entry.state in ("waiting", "loading"):
                raise Problem(409, "the graph is in use", "wait for its jobs, or cancel them")
            return self._entries.pop(name)

    def drop(self, entry: Entry) -> None:
        """Forget a graph that was not accepted after all."""
        with self._lock:
            self._entries.pop(entry.id, None)

    def all(self) -> list[Entry]:
        with self._lock:
            return list(self._entries.values())


def default_name(config: GraphConfig) -> str:
    """The id of a graph for which the request gives none."""
    name = generator_name(config.generator) if config.path is None else Path(config.path).name
    cleaned = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._") or "graph"
    return cleaned[:56]


def open_entry(entry: Entry, most_vertices: int) -> None:
    """Open, or build, a graph and get ready to search it; on the computing thread, which then calls it ready."""
    began = time.perf_counter()
    entry.state = "loading"
    try:
        opened = open_graph(entry.config, Trace())
        graph, entry.store, entry.built = opened.graph, opened.store, not opened.from_store
        if graph.user_ids.size > most_vertices:
            most = f"at most {most_vertices} vertices (service.max_vertices)"
            raise Problem(422, f"a graph of {graph.user_ids.size} vertices is too large", most)
        entry.searcher = warm_up_searches(graph)
        entry.graph = graph
        entry.facts = describe(graph)
        entry.core = picture_core(graph)
    except Exception as error:
        entry.problem = problem_of(error)
        entry.state = "failed"
        raise
    finally:
        entry.seconds = time.perf_counter() - began


def describe(graph: Graph) -> dict[str, Any]:
    degree = graph.degree()
    arrays = (graph.out_offsets, graph.out_targets, graph.user_ids, graph.user_position, graph.internal_of_position)
    size = sum(array.nbytes for array in arrays) + (graph.in_offsets.nbytes + graph.in_sources.nbytes) * graph.directed
    return {
        "vertices": int(graph.user_ids.size),
        "edges": int(graph.meta.get("edges") or (graph.m if graph.directed else graph.m // 2)),
        "isolated": int(graph.user_ids.size - graph.n),
        "directed": bool(graph.directed),
        "weighted": graph.weight is not None,
        "bytes": int(size + (0 if graph.weight is None else graph.weight.nbytes)),
        "first_id": int(graph.user_ids[0]) if graph.user_ids.size else None,
        "last_id": int(graph.user_ids[-1]) if graph.user_ids.size else None,
        "degree_max": int(degree.max(initial=0)),
        "degree_mean": float(degree.mean()) if graph.n else 0.0,
        "hubs": graph.user_ids[graph.user_position[:8]].tolist(),
    }


def picture_core(graph: Graph) -> dict[str, Any]:
    """Share of edges inside cores of k vertices, and the core that the automatic rule chooses."""
    limit = min(graph.n, _LARGEST_CORE)
    if limit < 2:
        return {"points": [], "chosen": None}
    statistics = core_statistics(graph, limit)
    sizes = np.unique(np.geomspace(1, limit, _PICTURE).astype(np.int64))
    plan = make_plan(graph, Config())  # mode share, automatic core
    points = [
        {
            "size": int(k), "degree": int(statistics.degree[k - 1]), "density": statistics.density(int(k)),
            "inside": float(statistics.inside[k] / graph.m), "touching": float(statistics.touching[k] / graph.m),
        }
        for k in sizes
    ]  # fmt: skip
    chosen = {
        "size": plan.core_size, "threshold": plan.threshold, "edges": plan.core_edges, "density": plan.density,
        "rule": plan.rule,
    }  # fmt: skip
    return {"points": points, "chosen": chosen}
