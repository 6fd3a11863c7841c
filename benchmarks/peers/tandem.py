"""Ourselves as a contestant: both engines, every strategy, any number of threads, internal ids or the user's.

A variant is written ``engine[:strategy][@threads][+user]``: ``level``, ``level:pull@1``, ``async+user``. ``+user`` puts
the mapping of levels and parents to the user's ids on the clock.
"""

from __future__ import annotations

import dataclasses
import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np

from benchmarks.contest.digest import edges_digest, joined_finding, level_finding
from benchmarks.contest.proof import Proofs, require_batch, require_handed_over, require_search
from benchmarks.contest.questions import QUESTIONS, Question, question_of
from benchmarks.peers.adapter import Adapter, Answer, Pairs
from cpu_engine.bfs.asynchronous import AsyncBfs
from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.traversal import CoreSplit, Traversal
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.store.graph_store import map_store, save_store
from hybrid import __version__
from hybrid.algorithms import algorithm_named
from hybrid.algorithms.algorithm import Found, Task
from hybrid.algorithms.proof import restore
from hybrid.config import load_config
from hybrid.config.schema import Config
from hybrid.graphs.sources import Source
from hybrid.offload.traverse import Traversed, traverse_alone

STORE = "store"  # beside the rows that the other contestants load
_VARIANT = re.compile(r"(?P<engine>level|async)(:(?P<strategy>[\w-]+))?(@(?P<threads>\d+))?(?P<user>\+user)?")


def make_adapter(threads: int) -> Adapter:
    return TandemAdapter(threads)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A traversal, and the arrays handed to the user where that was asked for."""

    traversed: Traversed
    user_level: np.ndarray | None = None
    user_parent: np.ndarray | None = None


class TandemAdapter(Adapter):
    variants = ("level", "level+user", "async", "async+user")

    def __init__(self, threads: int) -> None:
        super().__init__()
        self.threads_used = threads
        numba.set_num_threads(threads)
        self._graph: Graph | None = None
        self._split: CoreSplit | None = None
        self._engines: dict[str, Traversal] = {}
        self._many: Any = None
        self._configs: dict[tuple[Any, ...], Config] = {}
        self._proofs = Proofs()

    def version(self) -> str:
        return __version__

    def warm_up(self) -> None:
        graph = build_graph(kronecker(12, 16))  # large enough for the parallel kernels
        split = CoreSplit(graph)
        for engine in (AsyncBfs(split), LevelBfs(split)):
            found = traverse_alone(engine, 0)
            certify(graph, found.level, found.parent, 0)

    def load_graph(self, folder: Path, ids: str) -> Any:
        return folder / STORE

    def open_rows(self, prepared: Any) -> None:
        self._graph = in_memory(map_store(prepared))
        self._split = CoreSplit(self._graph)
        self._engines.clear()
        self._many = None

    def run(self, variant: str, root: int) -> Outcome:
        graph = self._graph
        assert graph is not None
        # An engine makes its buffers once and is used for many roots, as in a job.
        found = traverse_alone(self._engine(variant), root)
        if not variant.endswith("+user"):
            return Outcome(found)
        return Outcome(found, *graph.to_user_search(found.level, found.parent))

    @property
    def answers(self) -> dict[str, Answer]:
        """Every algorithm, in internal ids."""
        return {name: partial(self._ask, name) for name in QUESTIONS}

    def _ask(self, name: str, root: int, roots: list[int]) -> Found:
        return algorithm_named(name).run(self._task(name, root, roots))

    def _task(self, name: str, root: int, roots: list[int]) -> Task:
        assert self._graph is not None
        ids = self._graph.user_ids[self._graph.user_position[[root, *roots]]].tolist()
        key = (name, *ids[1:])
        if key not in self._configs:
            self._configs[key] = job_settings(QUESTIONS[name], ids[1:])
        return Task(self._graph, self._configs[key], Source(ids[0], root))

    def values(self, name: str, outcome: Found) -> np.ndarray:
        assert self._graph is not None
        algorithm = algorithm_named(name)
        value = restore(algorithm, Task(self._graph, Config()), outcome)[algorithm.fields[0].name]
        return value.sum(keepdims=True) // 3 if name == "triangles" else value

    def levels(self, variant: str, outcome: Outcome) -> np.ndarray:
        return outcome.traversed.level if outcome.user_level is None else outcome.user_level

    def prove(self, variant: str, outcome: Outcome | Found, root: int) -> None:
        assert self._graph is not None
        question, roots = question_of(variant)
        if question is not None:
            assert isinstance(outcome, Found)
            self._proofs.require(algorithm_named(question.name), self._task(question.name, root, roots), outcome)
            return
        assert isinstance(outcome, Outcome)
        found = outcome.traversed
        require_search(self._graph, found.level, found.parent, root, variant)
        if outcome.user_level is not None and outcome.user_parent is not None:
            require_handed_over(
                self._graph, found.level, found.parent, outcome.user_level, outcome.user_parent, variant
            )

    def build_pairs(self, prepared: Pairs) -> Graph:
        count, directed = prepared.count, prepared.directed
        edges = EdgeList(prepared.src, prepared.dst, id_range=(0, count), directed=directed)
        graph = build_graph(edges, directed=directed)
        CoreSplit(graph)  # what an engine needs besides the graph belongs to "ready to traverse"
        return graph

    def read_text(self, path: Path, scratch: Path) -> Graph:
        began = time.perf_counter()
        edges = read_graph(path)
        parsed = time.perf_counter()
        graph = build_graph(edges, directed=False)
        del edges
        built = time.perf_counter()
        save_store(graph, scratch / STORE)
        stored = time.perf_counter()
        self.phases = {"parse": parsed - began, "build": built - parsed, "store": stored - built}
        return graph

    def edge_count(self, built: Graph) -> int:
        return built.m if built.directed else built.m // 2

    def arcs_digest(self, built: Graph) -> str:
        """Both sides of the rows, in the input's ids; an undirected graph has one side."""
        ids = built.user_ids[built.user_position]
        sides = [edges_digest(ids.repeat(np.diff(built.out_offsets)), ids[built.out_targets])]
        if built.directed:
            sides.append(edges_digest(ids[built.in_sources], ids.repeat(np.diff(built.in_offsets))))
        return sides[0] if len(set(sides)) == 1 else " and ".join(sides)

    def held_bytes(self, built: Graph) -> int:
        return sum(array.nbytes for array in graph_arrays(built).values())

    def trace_levels(self, **details: Any) -> dict[str, Any]:
        """One traversal, step by step: where its time and its edges went."""
        engine = self._engine(details["variant"])
        root = int(details["root"])
        steps = []
        began = time.perf_counter()
        engine.start(root, withhold_core=False)
        since = began
        while engine.can_step():
            step = engine.step()
            engine.settle()
            now = time.perf_counter()
            steps.append({**dataclasses.asdict(step), "seconds": now - since})
            since = now
        level, parent = engine.finish()
        spent = time.perf_counter() - began
        assert self._graph is not None
        require_search(self._graph, level, parent, root, details["variant"])
        return {"seconds": spent, "steps": steps, **dataclasses.asdict(level_finding(level))}

    def run_batch(self, **details: Any) -> dict[str, Any]:
        """Many roots: one run after another, or all at once. Proving and digesting the results is off the clock."""
        assert self._graph is not None
        roots = np.asarray(details["roots"], np.int64)
        findings, spent = [], 0.0
        if details["variant"] == "single":
            engine = self._engine("level")
            for root in roots:
                began = time.perf_counter()
                found = traverse_alone(engine, int(root))
                spent += time.perf_counter() - began
                require_search(self._graph, found.level, found.parent, int(root), "one by one")
                findings.append(level_finding(found.level))
        else:
            together = self._many_engine()
            began = time.perf_counter()
            result = together.run(roots, parents=details["variant"] == "many+parents")
            spent = time.perf_counter() - began
            require_batch(self._graph, roots, result, "all at once")
            findings = [level_finding(result.of(i)[0]) for i in range(roots.size)]
        return {"seconds": spent, **dataclasses.asdict(joined_finding(findings))}

    def _many_engine(self) -> Any:
        from cpu_engine.bfs.many.engine import ManyBfs  # its kernels are only this benchmark's business

        assert self._graph is not None
        if self._many is None:
            self._many = ManyBfs(self._graph)
        return self._many

    def _engine(self, variant: str) -> Traversal:
        engine = variant.removesuffix("+user")
        found = _VARIANT.fullmatch(engine)
        if found is None:
            raise ValueError(f"'{variant}' is not engine[:strategy][@threads][+user]")
        numba.set_num_threads(int(found["threads"] or self.threads_used))
        if engine not in self._engines:
            assert self._split is not None
            self._engines[engine] = (
                AsyncBfs(self._split)
                if found["engine"] == "async"
                else LevelBfs(self._split, found["strategy"] or "auto")
            )
        return self._engines[engine]


def job_settings(question: Question, sources: list[int]) -> Config:
    """The configuration of our job that answers the question, from these vertices where it wants several."""
    listed = [f"centrality.sources={sources}"] if question.batched else []
    return load_config(None, [f"algorithm={question.name}", *question.settings, *listed])


def graph_arrays(graph: Graph) -> dict[str, np.ndarray]:
    """Every array of a graph by its field's name, each array once."""
    fields = {field.name: getattr(graph, field.name) for field in dataclasses.fields(graph)}
    seen: dict[int, str] = {}
    arrays = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
    return {name: value for name, value in arrays.items() if seen.setdefault(id(value), name) == name}


def in_memory(graph: Graph) -> Graph:
    """The graph with its mapped arrays copied to memory, as if it had just been built."""
    fields = {field.name: getattr(graph, field.name) for field in dataclasses.fields(graph)}
    copies: dict[int, np.ndarray] = {}
    changed: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            if id(value) not in copies:  # an undirected graph's in-rows are its out-rows, and stay so
                copies[id(value)] = np.array(value)
            changed[name] = copies[id(value)]
    return dataclasses.replace(graph, **changed)
