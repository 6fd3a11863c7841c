"""BFS from many roots at once: one bit per root, 64 roots per pass over the graph, levels and (if asked) parents.

Data structure: 64-bit words per vertex (kernels/levels.py). While few edges lead out of the frontiers, their union is a
list that is pushed; a level as thick as most of the graph is settled by one sweep over all vertices, in which each
looks for the bits that it misses among its in-neighbours. Roots that lag behind are thin where others are thick: they
would keep every vertex looking through its whole list for the one bit that is not there, so that each root is pushed or
pulled by its own thickness. Where the searches turn out not to meet (road maps), each root is searched by itself, one
thread each.

Invariant: the result is the exact level from every root, whatever was pushed or pulled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.bfs.kernels.groups import InRows, OutRows
from cpu_engine.bfs.many.kernels.bitplanes import expand_bytes_step, expand_numbers_step, find_parents_many_step
from cpu_engine.bfs.many.kernels.groups import Words
from cpu_engine.bfs.many.kernels.levels import (
    clear_words_step,
    collect_step,
    count_bits_step,
    count_up,
    push_listed_step,
    push_step,
    push_thin_levels_step,
    settle_step,
)
from cpu_engine.bfs.many.kernels.queue_search import search_each_step
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph

ROOTS_PER_PASS = 64
STRATEGIES = ("auto", "push", "pull", "each")
SERIAL_EDGES = 4096  # below this a level costs less than waking the other threads
ALPHA = 48  # a root is pulled once its frontier's edges exceed its unexplored ones / ALPHA (measured; flat from 24 on)
UNION_ALPHA = 4  # all roots are pushed while their frontiers' edges together are below the unexplored ones / this
LIST_EDGES = 4  # a listed frontier is pushed into a new list while it has fewer edges than n / LIST_EDGES
LIST_VERTICES = 16  # a frontier is listed again when it has fewer vertices than n / LIST_VERTICES
SAMPLE = 1024  # edges whose ends show how thick each root's frontier is
FEW_ROOTS = 8  # searches do not meet if a frontier's vertices have fewer roots each ...
DEEP = 32  # ... when this many levels were run, and most is still unexplored; looked at again with twice the levels
_FEWEST_PLANES, _MOST_PLANES = 4, 32
_LINE = 64  # bytes; a row that begins a cache line can be streamed to memory
_ALL = 2**64 - 1


@dataclass(frozen=True)
class ManyResult:
    """Levels and parents by [root, vertex], internal ids; -1 = not reached.

    The arrays lie in memory by vertex (they are transposed views), because that is how they are made; ``level`` has the
    smallest signed type that holds the depth. ``of`` gives one root's as ordinary arrays.
    """

    level: np.ndarray
    parent: np.ndarray | None
    levels_run: int
    edges_looked_at: int

    def of(self, i: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Root i's level and parent, contiguous int32[n]."""
        level = np.ascontiguousarray(self.level[i], dtype=np.int32)
        return level, None if self.parent is None else np.ascontiguousarray(self.parent[i])


class ManyBfs:
    """The engine with its buffers: eight words per vertex, reused by every run on the same graph."""

    def __init__(self, graph: Graph, strategy: str = "auto", serial_edges: int = SERIAL_EDGES) -> None:
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy {strategy!r} is none of {', '.join(STRATEGIES)}")
        if graph.n > np.iinfo(np.int32).max:
            raise ValueError(f"{graph.n} vertices are more than 32-bit ids can number")
        n, threads = graph.n, numba.get_num_threads()
        self._graph, self._strategy, self._serial_edges = graph, strategy, serial_edges
        # Indices as unsigned numbers: numba then has no negative ones to think of.
        self._targets, self._sources, best = (
            np.asarray(ids).view(f"u{ids.itemsize}") for ids in (graph.out_targets, graph.in_sources, graph.best_in)
        )
        out_offsets, in_offsets = np.asarray(graph.out_offsets), np.asarray(graph.in_offsets)
        self._out = OutRows(out_offsets[:-1], out_offsets[1:], self._targets)
        self._in = InRows(in_offsets[:-1], in_offsets[1:], self._sources, best, graph.hanging_start)
        self._bounds = np.searchsorted(graph.in_offsets, np.arange(threads + 1) * graph.m // threads)
        self._bounds[0], self._bounds[-1] = 0, n
        self._seen, self._front, self._fresh = (np.zeros(n, np.uint64) for _ in range(3))
        self._planes = np.zeros((_FEWEST_PLANES, n), np.uint64)
        self._depths = np.zeros(_MOST_PLANES, np.uint64)
        self._frontier, self._spare = np.empty(n, np.int32), np.empty(n, np.int32)
        self._settled = np.empty((threads, n // (LIST_VERTICES * threads) + 1), np.int32)
        self._unions, self._sizes = np.zeros(threads, np.uint64), np.zeros(threads, np.int64)
        self._tally = np.zeros((threads, 3), np.int64)
        stride = max(1, graph.m // SAMPLE)
        self._from, self._to = self._sources[::stride].astype(np.int64), self._targets[::stride].astype(np.int64)
        self._counts = np.zeros((2, ROOTS_PER_PASS), np.int64)
        self._tables: dict[str, Table] = {}
        self._depth = self._count = self._edges = self._levels_run = 0
        self._active = np.uint64(0)
        self._going = np.uint64(_ALL)  # roots that make their next level when one is made
        self._listed = self._clean = self._ended = True

    def run(self, roots: np.ndarray, *, parents: bool = False) -> ManyResult:
        """Levels (and parents) from each root, in internal ids; roots may repeat.

        The arrays are the engine's own, valid until its next run: a caller that keeps them copies them.
        """
        roots = np.asarray(roots, np.int64)
        if roots.size and not 0 <= int(roots.min()) <= int(roots.max()) < self._graph.n:
            raise ValueError(f"roots must be internal ids, 0..{self._graph.n - 1}")
        level = self._table("level", roots.size, np.uint8)
        parent = self._table("parent", roots.size, np.int32) if parents else None
        levels = looked = 0
        for first in range(0, roots.size, ROOTS_PER_PASS):
            width = min(ROOTS_PER_PASS, roots.size - first)
            if self._strategy != "each" and self._traverse(roots[first : first + width]):
                level.make_room_for(self._depth)
                level.write_levels(self._seen, self._planes[: self._planes_used()], first, width)
                if parent is not None:
                    self._write_parents(parent, first, width)
            else:
                self._search_each(roots[first : first + width], level, parent, first)
            levels += self._levels_run
            looked += int(self._tally[:, 0].sum())
        return ManyResult(level.by_root(), None if parent is None else parent.by_root(), levels, looked)

    def _table(self, name: str, columns: int, dtype: type[np.generic]) -> Table:
        """The last run's table if it has the size: pages that were touched before cost nothing."""
        known = self._tables.get(name)
        if known is None or known.columns != columns or known.cells.dtype != dtype:
            known = self._tables[name] = Table(self._graph.n, columns, dtype)
        return known

    def _write_parents(self, parent: Table, column: int, width: int) -> None:
        width = ROOTS_PER_PASS if parent.stride % ROOTS_PER_PASS == 0 else width
        find_parents_many_step(
            self._graph.in_offsets, self._sources, self._seen, self._planes[: self._planes_used()], parent.cells,
            parent.stride, column, width, numba.get_num_threads(),
        )  # fmt: skip

    @property
    def _words(self) -> Words:
        return Words(self._seen, self._front, self._fresh, self._planes)

    def _planes_used(self) -> int:
        return self._depth.bit_length()

    def _search_each(self, roots: np.ndarray, level: Table, parent: Table | None, column: int) -> None:
        graph, threads = self._graph, min(numba.get_num_threads(), roots.size)
        level.make_room_for(graph.n)  # how deep it will be is known afterwards
        parents = np.empty(0, np.int32) if parent is None else parent.cells
        scratch = np.empty((threads, 3, graph.n), np.int32)
        self._tally.fill(0)
        search_each_step(
            graph.out_offsets, self._targets, roots, scratch, level.cells.view(level.signed), parents, level.stride,
            column, self._tally,
        )  # fmt: skip
        self._levels_run = int(self._tally[:, 1].max())

    def _traverse(self, roots: np.ndarray) -> bool:
        """All levels of one pass, in seen and planes; False where it is better to search from each root by itself."""
        self._start(roots)
        look_at = DEEP if self._strategy == "auto" else None
        while self._count:
            self._make_room_for_depth()
            if look_at is not None and self._depth >= look_at:
                look_at *= 2
                if not self._searches_meet():
                    return False
            if self._listed:
                self._push_thin_levels(look_at or self._deepest)
                if not self._count or self._depth in (self._deepest, look_at):
                    continue
            self._make_level()
        self._ended = True
        return True

    def _make_level(self) -> str:
        """One level of all roots that go on; returns the direction."""
        if self._listed and self._strategy != "pull" and self._edges * LIST_EDGES < self._graph.n:
            self._push_list()
            return "push"
        push, pull = self._choose()
        self._settle(push, pull)
        return "pull" if pull else "push"

    def _start(self, roots: np.ndarray) -> None:
        clear_words_step(self._seen, self._planes[: self._planes_used()])  # no other plane was written
        if not self._ended:  # the last run was interrupted; one that ended leaves no bit in the front
            self._front.fill(0)
            self._clean = False
            self._clean_fresh()
        self._ended = False
        bits = np.uint64(1) << np.arange(roots.size, dtype=np.uint64)
        np.bitwise_or.at(self._seen, roots, bits)
        np.bitwise_or.at(self._front, roots, bits)
        distinct = np.unique(roots)
        self._count = distinct.size
        self._frontier[: self._count] = distinct
        self._active = np.bitwise_or.reduce(bits)
        self._depth = self._levels_run = 0
        self._depths.fill(0)
        self._tally.fill(0)
        self._listed = True
        self._clean_fresh()

    @property
    def _deepest(self) -> int:
        """The last level that the planes can hold."""
        return int(2 ** self._planes.shape[0] - 1)

    def _make_room_for_depth(self) -> None:
        if self._depth >= self._deepest:
            more = np.zeros((2 * self._planes.shape[0], self._graph.n), np.uint64)
            more[: self._planes.shape[0]] = self._planes
            self._planes = more

    def _searches_meet(self) -> bool:
        """Whether it pays to go on together: words carry several bits, or most of the graph is explored anyway."""
        words = self._front[self._frontier[: self._count]] if self._listed else self._front
        bits = int(np.unpackbits(words.view(np.uint8)).sum())
        unexplored = self._counts[1]
        count_bits_step(self._seen, self._to, np.uint64(_ALL), self._active, unexplored)
        roots = self._active.item().bit_count()
        return bits >= FEW_ROOTS * self._count or int(unexplored.sum()) * 2 < roots * self._to.size

    def _push_thin_levels(self, last: int) -> None:
        most = min(last, self._deepest) - self._depth
        budget = -1 if self._strategy == "pull" else self._serial_edges
        self._count, self._edges, levels = push_thin_levels_step(
            self._out, self._words, self._frontier, self._count, self._spare, self._depths, self._going, most, budget,
            self._tally,
        )  # fmt: skip
        self._depth += levels
        self._levels_run += levels
        if levels % 2:
            self._frontier, self._spare = self._spare, self._frontier
            self._front, self._fresh = self._fresh, self._front

    def _push_list(self) -> None:
        count_up(self._depths, self._going)
        push_listed_step(
            self._out, self._words, self._frontier, self._count, self._spare, self._bounds, self._depths, self._tally
        )
        self._front[self._frontier[: self._count]] = 0
        self._count = _gather(self._spare, self._bounds, self._tally[:, 1], self._frontier)
        self._next_level()

    def _settle(self, push: np.uint64, pull: np.uint64) -> None:
        threads = self._unions.size
        if push:
            self._push_bits(push)
        count_up(self._depths, self._going)
        settle_step(self._in, self._words, self._depths, pull, bool(push), self._settled, self._unions, self._tally)
        self._clean = False
        self._next_level()
        self._active = np.bitwise_or.reduce(self._unions)
        sizes = self._tally[:, 1]
        self._count = int(sizes.sum())
        self._listed = bool(sizes.max() <= self._settled.shape[1])
        if self._listed:
            starts = np.arange(threads + 1) * self._settled.shape[1]
            _gather(self._settled.ravel(), starts, sizes, self._frontier)
            self._clean_fresh()

    def _next_level(self) -> None:
        self._front, self._fresh = self._fresh, self._front
        self._depth += 1
        self._levels_run += 1

    def _push_bits(self, mask: np.uint64) -> None:
        """Push the frontiers of the roots in ``mask``; what they reach is settled afterwards."""
        count = self._count
        self._clean_fresh()
        if not self._listed:
            stretches = np.arange(self._sizes.size + 1) * self._graph.n // self._sizes.size
            collect_step(self._front, mask, self._spare, self._sizes)
            count = _gather(self._spare, stretches, self._sizes, self._frontier)
        push_step(self._out, self._front, mask, self._frontier, count, self._fresh, self._bounds, self._tally)

    def _clean_fresh(self) -> None:
        if not self._clean:
            self._fresh.fill(0)
            self._clean = True

    def _choose(self) -> tuple[np.uint64, np.uint64]:
        """Which roots to push and which to pull, by the edges of their frontiers and those not yet explored."""
        nothing = np.uint64(0)
        if self._strategy != "auto":
            return (self._active, nothing) if self._strategy == "push" else (nothing, self._active)
        thick, unexplored = self._counts
        some_thick = count_bits_step(self._front, self._from, nothing, self._active, thick)
        some_unexplored = count_bits_step(self._seen, self._to, np.uint64(_ALL), self._active, unexplored)
        if some_thick * UNION_ALPHA < some_unexplored:
            return self._active, nothing
        thin = np.flatnonzero(thick * ALPHA < unexplored).astype(np.uint64)
        push = np.bitwise_or.reduce(np.uint64(1) << thin) & self._active if thin.size else nothing
        return push, self._active & ~push


class Table:
    """A row per vertex and a column per root, in one stretch of memory whose rows are aligned if they are long."""

    def __init__(self, rows: int, columns: int, dtype: type[np.generic]) -> None:
        self.rows, self.columns = rows, columns
        self.stride = columns if columns <= ROOTS_PER_PASS // 2 else -(-columns // ROOTS_PER_PASS) * ROOTS_PER_PASS
        self.cells = self._allocate(np.dtype(dtype))

    def _allocate(self, dtype: np.dtype) -> np.ndarray:
        size = self.rows * self.stride * dtype.itemsize
        raw = np.empty(size + _LINE, np.uint8)
        skipped = -raw.ctypes.data % _LINE
        return raw[skipped : skipped + size].view(dtype)

    def make_room_for(self, depth: int) -> None:
        """Widen the cells until they hold ``depth`` as a signed number."""
        dtype = np.min_scalar_type(-depth - 1)
        if dtype.itemsize > self.cells.itemsize:
            narrow = self.cells.view(self.signed)
            self.cells = self._allocate(np.dtype(f"u{dtype.itemsize}"))
            self.cells.view(dtype)[:] = narrow

    def write_levels(self, seen: np.ndarray, planes: np.ndarray, column: int, width: int) -> None:
        """Expand bit-sliced levels of ``width`` roots into the columns from ``column`` on."""
        threads = numba.get_num_threads()
        if self.cells.itemsize == 1 and self.stride % ROOTS_PER_PASS == 0:
            expand_bytes_step(seen, planes, self.cells, self.stride, column, threads)
        else:
            expand_numbers_step(seen, planes, self.cells, self.stride, column, width, threads)

    @property
    def signed(self) -> np.dtype:
        return np.dtype(f"i{self.cells.itemsize}")

    def by_root(self) -> np.ndarray:
        """[root, vertex], signed."""
        return self.cells.view(self.signed).reshape(self.rows, self.stride)[:, : self.columns].T


def _gather(stretches: np.ndarray, starts: np.ndarray, sizes: np.ndarray, into: np.ndarray) -> int:
    """Put the used beginnings of stretches of an array one after the other; returns their total length."""
    at = 0
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=False):
        into[at : at + size] = stretches[start : start + size]
        at += size
    return at


def many_bfs(graph: Graph, roots: np.ndarray, *, parents: bool = False, strategy: str = "auto") -> ManyResult:
    """Levels (and parents) from each of any number of roots, in internal ids; roots may repeat."""
    return ManyBfs(graph, strategy).run(roots, parents=parents)


def warm_up_many() -> None:
    """Compile, or load, every kernel that a run may use: a star with a path has thin and thick levels."""
    leaves, steps = 40, 20
    star = np.stack([np.zeros(leaves, np.int64), np.arange(1, leaves + 1)])
    path = np.stack([np.arange(leaves, leaves + steps), np.arange(leaves + 1, leaves + steps + 1)])
    src, dst = np.concatenate([star, path], axis=1)
    graph = build_graph(EdgeList(src, dst), directed=False)
    vertices = np.arange(graph.n)
    for strategy in STRATEGIES:
        for serial_edges in (-1, SERIAL_EDGES):
            engine = ManyBfs(graph, strategy, serial_edges)
            engine.run(vertices[-1:], parents=True)
            engine.run(vertices, parents=True)
