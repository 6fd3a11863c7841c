"""What every BFS engine offers the coordinator: small steps, and a dense core whose values may come from outside.

The core is the vertex range [0, k). While it is *withheld*, edges inside it belong to the core solver: the engine does
not look at them, and is complete only together with the solver's values. ``closed`` is the solver's last answer: core
values that no core edge can improve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from cpu_engine.bfs.kernels.groups import InRows, OutRows
from cpu_engine.bfs.kernels.witness import find_parents_step
from cpu_engine.bfs.strategies.kernels.pull import first_sources_step
from cpu_engine.graph.graph import Graph, require_narrow_ids
from cpu_engine.hub_core.kernels.rows import skip_core_step
from cpu_engine.threads import threads_for

UNREACHED = -1


@dataclass(frozen=True)
class Step:
    """One step of an engine, as the trace records it."""

    direction: str  # push, pull or async
    level: int  # depth of the frontier; -1 where levels have no meaning
    frontier: int  # vertices expanded
    edges: int  # edges looked at


@dataclass(frozen=True)
class EdgeView:
    """The edges an engine may look at: all of them, or all but those inside the core."""

    out_begin: np.ndarray
    out_end: np.ndarray
    out_targets: np.ndarray
    in_begin: np.ndarray
    in_end: np.ndarray
    in_sources: np.ndarray
    best_in: np.ndarray  # first in-neighbour of each vertex within the view, the vertex itself where there is none
    hanging_start: int  # from here on, no vertex has a second in-neighbour

    @cached_property
    def out_rows(self) -> OutRows:
        """The out-edges as kernels take them."""
        return OutRows(*map(np.asarray, (self.out_begin, self.out_end, self.out_targets)))

    @cached_property
    def in_rows(self) -> InRows:
        """The in-edges as kernels take them."""
        begin, end, sources, best = map(np.asarray, (self.in_begin, self.in_end, self.in_sources, self.best_in))
        return InRows(begin, end, sources, best, self.hanging_start)


class CoreSplit:
    """A graph, the size of its core, and both views of its edges. Made once per graph and core, used by every run."""

    def __init__(self, graph: Graph, core_size: int = 0) -> None:
        require_narrow_ids(graph, "the engines")
        self.graph = graph
        self.core_size = core_size
        self.core_vertices = np.arange(core_size, dtype=np.int32)
        self.all_edges = self._view(graph.out_offsets[:-1], graph.in_offsets[:-1], graph.best_in)
        self.outside_core = self.all_edges
        if core_size:
            out_begin = skip_core_step(graph.out_offsets, graph.out_targets, core_size)
            in_begin = out_begin
            if graph.directed:
                in_begin = skip_core_step(graph.in_offsets, graph.in_sources, core_size)
            best_in = np.empty(graph.n, np.int32)
            first_sources_step(in_begin, graph.in_offsets[1:], graph.in_sources, best_in)
            self.outside_core = self._view(out_begin, in_begin, best_in)

    def _view(self, out_begin: np.ndarray, in_begin: np.ndarray, best_in: np.ndarray) -> EdgeView:
        graph = self.graph
        # Unsigned, because numba tests a signed index for "counted from the end" at every single access.
        return EdgeView(
            out_begin, graph.out_offsets[1:], graph.out_targets.view(np.uint32),
            in_begin, graph.in_offsets[1:], graph.in_sources.view(np.uint32),
            best_in.view(np.uint32), graph.hanging_start,
        )  # fmt: skip


@dataclass(frozen=True)
class Adoption:
    """How many of the core solver's values were taken over, and how many are provably false."""

    adopted: int
    rejected: int


class Traversal(Protocol):
    """A BFS that runs in steps. ``core`` below means the core's values, int32[k], -1 where there is none."""

    name: str

    work: int  # arcs and vertices that one launch may look at (cpu_engine/threads.py)

    def start(self, root: int, *, withhold_core: bool) -> None:
        """Forget the last run and begin at ``root``."""

    def settle(self) -> None:
        """Do what needs no edges: close a level whose members are all known."""

    def can_step(self) -> bool:
        """Whether there is an edge to look at right now."""

    def step(self) -> Step:
        """Look at some edges."""

    def core_values(self) -> np.ndarray:
        """The best known core values."""

    def adopt(self, closed: np.ndarray) -> Adoption:
        """Merge the core solver's answer, which has a value for each core vertex, monotonically."""

    def take_core_back(self) -> None:
        """The core solver is gone: look at core edges as well, from now on and for what was passed over."""

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """The levels and parents reached; parents are filled in where the run did not keep them.

        The arrays are the engine's own, valid until the next ``start``: a caller that keeps them copies them.
        """


class Searched(NamedTuple):
    """What a search found; the arrays are the engine's until that starts again."""

    level: np.ndarray
    parent: np.ndarray
    steps: int
    edges_looked_at: int


def search(engine: Traversal, root: int, step: Callable[[], Step] | None = None) -> Searched:
    """A whole search by the CPU alone; ``step``: the engine's own, watched."""
    step = step or engine.step
    steps = edges = 0
    with threads_for(engine.work):
        engine.start(root, withhold_core=False)
        while engine.can_step():
            edges += step().edges
            steps += 1
            engine.settle()
        return Searched(*engine.finish(), steps, edges)


def complete_parents(graph: Graph, level: np.ndarray, parent: np.ndarray, root: int) -> None:
    """Give each reached vertex a parent one step nearer, where the engine left none."""
    find_parents_step(graph.in_offsets, graph.in_sources, level, parent)
    parent[root] = root


def merge_core(mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """The smaller of two core value arrays, -1 counting as infinite."""
    smaller: np.ndarray = np.minimum(mine.view(np.uint32), theirs.view(np.uint32)).view(np.int32)
    return smaller
