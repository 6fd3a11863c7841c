"""BFS from up to 64 roots at once beside a core solver that owns the edges inside the dense core [0, k).

While the core is withheld, a root whose level has core vertices that the core solver has not answered for waits, unless
every core vertex is known to be as near as these could bring it: its frontier is put aside, and the other roots go on.
So roots are at different depths, and when none can go on, everything that is left depends on the core: the values of
all of them are sent together. Most searches come to the core within two levels, when their frontiers are still thin;
after the answer they make their thick levels together, and mostly no root has to wait a second time.

Invariant: between steps, each root's levels up to its depth are exact, if the core solver's answers are true; values of
its answers that are further away wait in ``closed`` until their level comes, unless the vertex is reached before.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.bfs.many.engine import _ALL, LIST_VERTICES, ROOTS_PER_PASS, ManyBfs, ManyResult, Table
from cpu_engine.bfs.many.kernels.core import (
    BLOCK,
    admit_core_step,
    join_core_step,
    merge_closed_step,
    move_listed_step,
    move_words_step,
    read_core_step,
)
from cpu_engine.bfs.many.kernels.groups import Core
from cpu_engine.bfs.many.kernels.levels import count_list_edges_step, count_up
from cpu_engine.bfs.traversal import Adoption, CoreSplit, EdgeView, Step

_NONE = np.uint64(0)


class CoreManyBfs(ManyBfs):
    """See the module. One of these holds up to 64 roots; its buffers are reused by every run on the same split."""

    name = "many"

    def __init__(self, split: CoreSplit) -> None:
        super().__init__(split.graph)
        k = split.core_size
        self.split = split
        known, due = np.zeros((2, k), np.uint64)
        closed = np.zeros((self._planes.shape[0], k), np.uint64)
        has_core_source = split.outside_core.in_begin[:k] > split.all_edges.in_begin[:k]
        self._core = Core(known, closed, np.where(has_core_source, np.uint64(_ALL), _NONE), due)
        self._held = np.zeros(0, np.uint64)  # made when a root waits for the first time
        self._held_list = np.empty(0, np.int32)
        self._held_count = 0
        self._held_listed = True
        self._waiting = _NONE
        self.width = 0
        self._withheld = self._merged = False

    # ------------------------------------------------------------------------------------------------ stepping

    def start(self, roots: np.ndarray, *, withhold_core: bool) -> None:
        """Forget the last run and begin at these roots."""
        roots = np.asarray(roots, np.int64)
        if not 0 < roots.size <= ROOTS_PER_PASS:
            raise ValueError(f"1 to {ROOTS_PER_PASS} roots at once, not {roots.size}")
        self._forget()
        self.width, self._withheld = roots.size, withhold_core and self.split.core_size > 0
        self._look_at(self.split.outside_core if self._withheld else self.split.all_edges)
        self._start(roots)
        self._join_core()

    def can_step(self) -> bool:
        """Whether there is an edge to look at that does not depend on the core."""
        return self._count > 0

    def step(self) -> Step:
        """One more level of all roots that can go on."""
        frontier, looked, depth, direction = self._count, self.edges_looked_at, self._depth, "push"
        self._make_room_for_depth()
        if self._merged:
            self._admit_core()
        if self._listed:
            # With the core in play, levels are made one by one: each may be the one that a root has to wait at.
            self._push_thin_levels(depth + 1 if self._withheld or self._merged else self._deepest)
        if self._depth == depth:
            direction = self._make_level()
        self._join_core()
        return Step(direction, depth, frontier, self.edges_looked_at - looked)

    @property
    def waiting(self) -> np.ndarray:
        """The roots (0..63) that wait for the core solver."""
        return np.flatnonzero((self._waiting >> np.arange(self.width, dtype=np.uint64)) & np.uint64(1))

    # ------------------------------------------------------------------------------------------------ the core

    def core_values(self, roots: np.ndarray, into: np.ndarray) -> None:
        """The best known core values of these roots, into[i] those of roots[i]; -1 where there is none."""
        known, closed = self._core.known, self._core.closed
        words = np.empty((closed.shape[0] + 1, known.size), np.uint64)
        read_core_step(self._seen, self._planes, known, closed, roots, words, into)

    def touching(self) -> int:
        """How many roots have a core vertex."""
        union = np.bitwise_or.reduce(self._seen[: self._core.known.size], initial=_NONE)
        return int(union.item().bit_count())

    def adopt(self, roots: np.ndarray, sent: np.ndarray, answer: np.ndarray) -> Adoption:
        """Merge the answer to what was sent of these roots, monotonically; those that waited go on."""
        self._make_room_for_value(int(answer.max(initial=0)))
        core, depth_of = self._core, self._depth_of()[roots]
        findings = np.zeros((-(-core.known.size // BLOCK), 2), np.int64)
        merge_closed_step(sent, answer, roots, depth_of, self._seen, core.known, core.closed, findings)
        self._merged = True
        self._release(np.bitwise_or.reduce(np.uint64(1) << roots.astype(np.uint64), initial=_NONE))
        return Adoption(*findings.sum(axis=0).tolist())

    def take_core_back(self) -> None:
        """The core solver is gone: look at core edges as well, for the roots that waited and from now on."""
        self._withheld = False
        self._look_at(self.split.all_edges)
        self._release(self._waiting)

    # ---------------------------------------------------------------------------------------------- the result

    def write(self, level: Table, parent: Table | None, column: int) -> None:
        """The levels, and parents if asked for, from this column on."""
        level.make_room_for(self._depth)
        level.write_levels(self._seen, self._planes[: self._planes_used()], column, self.width)
        if parent is not None:
            self._write_parents(parent, column, self.width)
        self._ended = True

    @property
    def edges_looked_at(self) -> int:
        return int(self._tally[:, 0].sum())

    # ------------------------------------------------------------------------------------------------ inside

    def _forget(self) -> None:
        if self._waiting:  # the last run was left in the middle
            self._held.fill(0)
        self._waiting, self._going = _NONE, np.uint64(_ALL)
        self._held_count, self._held_listed = 0, True
        if self._merged:
            for words in (self._core.known, self._core.closed, self._core.due):
                words.fill(0)
        self._merged = False

    def _look_at(self, edges: EdgeView) -> None:
        self._out, self._in = edges.out_rows, edges.in_rows

    def _make_room_for_depth(self) -> None:
        super()._make_room_for_depth()
        self._make_room_for_value(self._deepest)

    def _make_room_for_value(self, value: int) -> None:
        planes = value.bit_length()
        closed = self._core.closed
        if planes > closed.shape[0]:
            more = np.zeros((planes, closed.shape[1]), np.uint64)
            more[: closed.shape[0]] = closed
            self._core = self._core._replace(closed=more)

    def _depth_of(self) -> np.ndarray:
        """Each root's depth as a number."""
        bits = (self._depths[:, np.newaxis] >> np.arange(ROOTS_PER_PASS, dtype=np.uint64)) & np.uint64(1)
        return (bits.astype(np.int64) << np.arange(self._depths.size)[:, np.newaxis]).sum(axis=0)

    def _admit_core(self) -> None:
        after = self._depths.copy()
        count_up(after, self._going)
        admit_core_step(self._seen, self._planes, self._core, after, self._going)

    def _join_core(self) -> None:
        """Core vertices that are due join the level; roots that have to wait are put aside."""
        if not (self._withheld or self._merged):
            return
        wait, joined, count = join_core_step(
            self._seen, self._front, self._core, self._depths, self._going, self._withheld,
            self._frontier if self._listed else self._spare, self._count if self._listed else 0,
        )  # fmt: skip
        self._count = count if self._listed else self._count + count
        self._active |= np.uint64(joined)
        if wait:
            self._hold(np.uint64(wait))
        if self._listed:
            self._edges = int(count_list_edges_step(self._out, self._frontier, self._count))

    def _hold(self, roots: np.uint64) -> None:
        if not self._held.size:
            self._held, self._held_list = np.zeros(self._graph.n, np.uint64), np.empty(self._graph.n, np.int32)
        if self._listed and self._held_listed:
            self._count, self._held_count = move_listed_step(
                self._front, self._held, roots, self._frontier, self._count, self._held_list, self._held_count
            )
        else:
            self._held_listed = False
            self._count = self._move_words(self._front, self._held, roots)[0]
            self._list_again()
        self._waiting |= roots
        self._going &= ~roots
        self._active &= ~roots

    def _release(self, roots: np.uint64) -> None:
        roots &= self._waiting
        if not roots:
            return
        if self._held_listed and self._listed:
            self._held_count, self._count = move_listed_step(
                self._held, self._front, roots, self._held_list, self._held_count, self._frontier, self._count
            )
        else:
            left, self._count = self._move_words(self._held, self._front, roots)
            if not left:
                self._held_count, self._held_listed = 0, True
            self._list_again()
        self._waiting &= ~roots
        self._going |= roots
        self._active |= roots
        if self._listed:
            self._edges = int(count_list_edges_step(self._out, self._frontier, self._count))

    def _move_words(self, source: np.ndarray, target: np.ndarray, roots: np.uint64) -> tuple[int, int]:
        counts = np.zeros((2, numba.get_num_threads()), np.int64)
        move_words_step(source, target, roots, counts[0], counts[1])
        return int(counts[0].sum()), int(counts[1].sum())

    def _list_again(self) -> None:
        """After a move of whole words: list the frontier if it is short."""
        if self._count <= self._graph.n // LIST_VERTICES:
            self._frontier[: self._count] = np.flatnonzero(self._front)
            self._listed = True
            self._clean_fresh()
        else:
            self._listed = False


class ManyTable:
    """The levels (and parents) of any number of roots, put together from groups of 64."""

    def __init__(self, n: int, roots: int, *, parents: bool) -> None:
        self.level = Table(n, roots, np.uint8)
        self.parent = Table(n, roots, np.int32) if parents else None

    def fits(self, roots: int, *, parents: bool) -> bool:
        """Whether it can be used again for so many; one whose cells had to be widened cannot."""
        return self.level.columns == roots and self.level.cells.itemsize == 1 and (self.parent is not None) == parents

    def result(self, levels_run: int, edges_looked_at: int) -> ManyResult:
        parent = None if self.parent is None else self.parent.by_root()
        return ManyResult(self.level.by_root(), parent, levels_run, edges_looked_at)
