"""What is measured: the graph, its start vertices, and what a right answer from each of them is.

Invariant: every reference answer carries the certificate; a contestant is compared with it in its own numbering.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numba

from benchmarks.contest.digest import level_finding
from benchmarks.contest.gap import write_sg
from benchmarks.contest.relabel import internal_rows, user_rows
from benchmarks.contest.rounds import Finding, Root
from benchmarks.peers.tandem import STORE, graph_arrays
from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.store.graph_store import is_store, open_store, save_store
from hybrid.config import load_config
from hybrid.config.schema import Config
from hybrid.errors import EnvironmentProblem, NotCertified
from hybrid.graphs.opening import generator_name, read_edges, require_room_for
from hybrid.graphs.sources import resolve_sources
from hybrid.offload.traverse import traverse_alone

_GENERATOR_KEYS = ("kind", "scale", "edge_factor", "seed", "rows", "cols")


@dataclass(frozen=True)
class Workload:
    """A graph and its start vertices."""

    name: str
    graph: Graph
    roots: list[Root]
    seconds_build: float | None  # None: it was opened, not built

    def as_dict(self) -> dict[str, Any]:
        graph = self.graph
        return {
            "name": self.name,
            "vertices": int(graph.user_ids.size),
            "isolated": int(graph.user_ids.size - graph.n),
            "edges": graph.m if graph.directed else graph.m // 2,
            "directed": graph.directed,
            "bytes": sum(array.nbytes for array in graph_arrays(graph).values()),
            "build_seconds": self.seconds_build,
            "roots": [root.user_id for root in self.roots],
        }


def set_threads(threads: int) -> None:
    """Let our own kernels use this many threads; an error if the process has fewer."""
    most = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    if threads > most:
        raise EnvironmentProblem(
            f"{threads} threads are asked for, this process may use {most}",
            fix=f"ask for at most {most}, or set NUMBA_NUM_THREADS={threads} to measure with more threads than cores",
        )
    numba.set_num_threads(threads)


def config_of(options: argparse.Namespace, **changes: Any) -> Config:
    """The configuration that the options describe; ``changes`` replace generator keys."""
    chosen = {name: getattr(options, name) for name in _GENERATOR_KEYS if hasattr(options, name)} | changes
    keys: dict[str, object] = {f"graph.generator.{name}": value for name, value in chosen.items()}
    if getattr(options, "graph", None) is not None:
        keys["graph.path"] = options.graph
    if getattr(options, "undirected", False):
        keys["graph.directed"] = False
    if hasattr(options, "root_seed"):
        keys["source"] = options.root or f"random:{options.roots}"
        keys["source_seed"] = options.root_seed
    return load_config(None, options=keys)


def load_edges(config: Config) -> EdgeList:
    """The configured graph as an edge list, if it and a build from it fit into memory."""
    require_room_for(config.graph, consume=False)
    return read_edges(config.graph)


def open_workload(config: Config) -> Workload:
    """Open or build the configured graph, and draw its start vertices."""
    path = config.graph.path
    if path is not None and is_store(Path(path)):
        graph, seconds = open_store(Path(path)), None
    else:
        edges = load_edges(config)
        _warm_up_build()
        directed = None if config.graph.directed == "auto" else bool(config.graph.directed)
        began = time.perf_counter()
        graph = build_graph(edges, directed=directed)
        seconds = time.perf_counter() - began
    name = generator_name(config.graph.generator) if path is None else Path(path).name
    return Workload(name, graph, roots_of(graph, config), seconds)


def roots_of(graph: Graph, config: Config) -> list[Root]:
    """The configured start vertices that have an edge, in every numbering."""
    sources = [source for source in resolve_sources(graph, config) if source.internal >= 0]
    if not sources:
        raise EnvironmentProblem(
            "no start vertex has an edge, so there is nothing to time", fix="choose others (--root)"
        )
    return [Root(one.user_id, int(graph.user_position[one.internal]), one.internal) for one in sources]


def references(workload: Workload) -> dict[str, dict[Root, Finding]]:
    """The certified answers, by numbering: ``internal`` and ``user``."""
    graph = workload.graph
    engine = LevelBfs(CoreSplit(graph))
    found: dict[str, dict[Root, Finding]] = {"internal": {}, "user": {}}
    for root in workload.roots:
        answer = traverse_alone(engine, root.internal)
        certificate = certify(graph, answer.level, answer.parent, root.internal)
        if not certificate.holds:
            raise NotCertified(
                f"our own BFS from {root.user_id} is wrong: {certificate.explain()}", fix="report it as a defect"
            )
        found["internal"][root] = level_finding(answer.level)
        found["user"][root] = level_finding(graph.to_user_levels(answer.level))
    return found


@contextmanager
def work_folder(options: argparse.Namespace) -> Iterator[Path]:
    """A folder for what passes between processes; gone afterwards."""
    parent = options.work
    if parent is not None:
        Path(parent).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="tandem-bench-", dir=parent) as name:
        yield Path(name)


def hand_out(
    graph: Graph, folder: Path, numberings: set[str], *, gap: bool, weighted: bool = False, own_weights: bool = False
) -> None:
    """Write the graph for the contestants: ours as a store, for others rows (and .sg files) per numbering."""
    save_store(graph, folder / STORE)
    for ids in sorted(numberings):
        rows = internal_rows(graph) if ids == "internal" else user_rows(graph, own_weights=own_weights)
        rows.save(folder / ids)
        if gap:
            write_sg(rows, folder / f"{ids}.{'wsg' if weighted else 'sg'}", weighted=weighted)


def _warm_up_build() -> None:
    """Compile what a build uses, off the clock."""
    from cpu_engine.graph.generators import kronecker

    build_graph(kronecker(12, 16))  # large enough for the parallel kernels
