"""Many levels in one launch, for graphs of high diameter: tiny levels on one thread, wider ones by a team that stays.

``leap`` runs on until levels change from tiny to wide or back; ``expand`` runs one level by the same kernels.
Invariant: the queue holds the frontier and what was found of the next level; a vertex may be listed once per thread.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.bfs.frontier import QueueExpander
from cpu_engine.bfs.kernels.groups import Tree
from cpu_engine.bfs.strategies.kernels.small_levels import run_team_levels_step, run_tiny_levels_step
from cpu_engine.bfs.strategies.strategy import NO_LEAP, Expansion, Leap
from cpu_engine.bfs.traversal import CoreSplit, EdgeView
from cpu_engine.intrinsics.team import PATIENCE

TINY_VERTICES = 128  # per thread: with more vertices, or more edges, a level is worth a barrier
TINY_EDGES = 1024
LEAVE = 4  # the team ends when a level has fewer than this part of the vertices that make a team worthwhile
ALONE_LEVELS = 512  # that one thread runs after a team whose members waited long for one another,
MOST_ALONE = 16384  # twice as many after each further one, up to so many
LEVELS_PER_LAUNCH = 1024  # so that Ctrl-C and the core solver's answer are noticed within a fraction of a second
_ALL = np.iinfo(np.int64).max


class SmallLevelsExpander(QueueExpander):
    """``small-levels``: see the module. ``tiny_vertices`` and ``tiny_edges`` are per thread."""

    def __init__(
        self,
        split: CoreSplit,
        tree: Tree,
        *,
        threads: int | None = None,
        tiny_vertices: int = TINY_VERTICES,
        tiny_edges: int = TINY_EDGES,
        levels_per_launch: int = LEVELS_PER_LAUNCH,
    ) -> None:
        threads = threads or numba.get_num_threads()
        # Room for a vertex to be listed once per thread. Pages that are never touched cost nothing.
        super().__init__(tree, room=tree.level.size * threads)
        self._distances = Tree(tree.level.view(np.uint32), tree.parent)
        self._lists = np.empty((threads, tree.level.size), np.int32)
        alone = _ALL if threads == 1 else 0
        self._tiny_vertices, self._tiny_edges = max(alone, tiny_vertices * threads), max(alone, tiny_edges * threads)
        self._min_vertices = max(1, tiny_vertices * threads // LEAVE)
        self._team = np.zeros((2, 8), np.int64)  # members and barriers, a cache line each
        self._tally = np.zeros((levels_per_launch, threads, 2), np.int64)
        self._alone_levels = 0  # still to be run by one thread, however wide
        self._next_alone = ALONE_LEVELS

    def expand(self, view: EdgeView, depth: int) -> Expansion:
        ran = self._run(view, depth, self._tally[:1])
        return Expansion("push", self._queue.frontier.size, int(ran[0, 1]))

    def leap(self, view: EdgeView, depth: int) -> Leap:
        queue = self._queue
        if queue.end != queue.tail[0]:  # this level was expanded before, and its finds are not the team's
            return NO_LEAP
        count = queue.frontier.size
        ran = self._run(view, depth, self._tally)
        last = int(ran[-1, 0])
        queue.begin, queue.end = int(queue.tail[0]) - last, int(queue.tail[0])
        found, edges = ran.sum(axis=0)
        return Leap(len(ran), last, int(count + found - last), int(edges))

    def leap_from(self, frontier: np.ndarray, view: EdgeView, depth: int) -> tuple[Leap, np.ndarray]:
        """``leap`` for another strategy, from its frontier; and the frontier afterwards."""
        self._queue.restart(frontier)
        leap = self.leap(view, depth)
        return leap, self._queue.frontier

    def _run(self, view: EdgeView, depth: int, tally: np.ndarray) -> np.ndarray:
        """Run levels up to a change of size, at least one, and at most ``tally`` has room for; the last one's finds
        are behind the queue's tail, which moves. Returns, per level, vertices found and edges looked at."""
        queue = self._queue
        state = (view.out_rows, queue.bounds(), self._distances, depth)
        most = (_ALL, _ALL) if self._alone_levels else (self._tiny_vertices, self._tiny_edges)
        levels = run_tiny_levels_step(*state, *most, tally)
        if levels:
            self._alone_levels = max(0, self._alone_levels - levels)
            queue.tail[0] += tally[:levels, 0, 0].sum()
            ran: np.ndarray = tally[:levels, 0]
            return ran
        self._team.fill(0)
        tally.fill(0)
        wanted = min(self._lists.shape[0], numba.get_num_threads())
        levels = run_team_levels_step(self._team, wanted, PATIENCE, *state, self._min_vertices, self._lists, tally)
        if self._team[1, 1]:
            self._alone_levels, self._next_alone = self._next_alone, min(2 * self._next_alone, MOST_ALONE)
        else:
            self._next_alone = ALONE_LEVELS
        ran = tally[:levels].sum(axis=1)
        queue.tail[0] += ran[-1, 0]
        return ran
