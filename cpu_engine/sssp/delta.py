"""Delta-stepping that looks at few edges: waiting vertices in buckets, and heavy edges looked at from the far side.

A vertex at distance d can only gain from edges lighter than d minus the distance of the nearest source. On graphs with
hubs nearly all vertices are near, so nearly all edges are too heavy to matter - but a push cannot know that. Hence
*stages*. At first whole rows are pushed. When that has become ``PUSHED_SHARE`` of all edges, ``low`` is the distance of
the nearest that still waits, and vertices push only edges that lead nearer than ``low`` + a span; rows are lightest
first, so that is a prefix. When no vertex waits below this bound, all nearer than it are final, and those beyond look
along their own in-edges, lightest first and no heavier than may matter; they are many, but have few edges. Then comes
the next span, and last no bound at all. Spans are quantiles of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from cpu_engine.intrinsics.team import PATIENCE
from cpu_engine.sssp.kernels.bins import BLOCK, Bins, put_in_bin
from cpu_engine.sssp.kernels.buckets import (
    APART,
    ASIDE,
    ENOUGH_WORK,
    NOTHING_LEFT,
    REFILL,
    VOTE_EDGES,
    VOTE_EXPANDED,
    Aside,
    Schedule,
    Search,
    find_nearest_step,
    forget_distances_step,
    refill_bins_step,
    run_rounds_share_step,
    run_rounds_step,
)
from cpu_engine.sssp.kernels.pull import pull_beyond_all_step, pull_beyond_rest_step
from cpu_engine.sssp.kernels.values import Scale, bucket_of
from cpu_engine.sssp.rows import WeightedRows

BINS = 2048
ALONE_ROUNDS = 256  # that one thread runs after a team whose members waited long for one another,
MOST_ALONE = 8192  # twice as many after each further one, up to so many
ROUNDS = 4096  # per launch, so that Ctrl-C is noticed within a fraction of a second
SERIAL_EDGES = 1 << 16  # a graph with fewer is run by one thread
PUSHED_SHARE = 1 / 64
SPANS = (1 / 32, 1 / 8)  # quantiles of the weights
MIN_DEGREE = 8  # with fewer edges per vertex there is little to be saved by stages
BUCKETS_PER_SPAN = 4
MIN_WIDTH = 1e-290  # its inverse is finite
SCARCE = 16  # bins that had to be filled again after less than a SCARCE-th of n edges are too narrow


@dataclass(frozen=True)
class Effort:
    """What a step did."""

    edges: int
    expanded: int
    rounds: int
    pulled: bool


class Buckets:
    """Distances, the bins of waiting vertices, and the stages. ``width`` None: one bucket, which is plain push."""

    def __init__(
        self, rows: WeightedRows, dtype: type, width: float | None, spans: tuple[float, ...], *, bins: int = BINS,
        serial_edges: int = SERIAL_EDGES, pushed_share: float = PUSHED_SHARE, threads: int | None = None,
    ) -> None:  # fmt: skip
        n, lanes = rows.graph.n, threads or numba.get_num_threads()
        self._rows, self.lanes = rows, lanes
        self._is_float = dtype is np.float64
        self.unreached: Any = dtype(np.inf) if self._is_float else np.iinfo(dtype).max
        self.dist: np.ndarray = np.empty(n, dtype)
        self._expanded: np.ndarray = np.empty(n, dtype)
        count = 1 if width is None else bins
        blocks = -(-n // BLOCK) + count + 1
        self._bins = Bins(
            np.empty(lanes * blocks * BLOCK, np.int32),
            np.empty(lanes * blocks, np.int32),
            np.empty((lanes, count), np.int32),
            np.empty((lanes, count), np.int32),
            np.zeros((lanes, 16), np.int32),
        )
        self._aside = Aside(np.empty((lanes, ASIDE), np.uint32), np.empty((lanes, ASIDE), dtype))
        self._schedule = Schedule(
            np.zeros((lanes, 16), np.int64),
            np.empty((lanes, lanes * blocks), np.int32),
            np.zeros(2 * lanes * APART, np.int64),
        )
        self._team = np.zeros((2, 8), np.int64)
        self._rest = np.empty((lanes, n + 1 if spans else 1), np.int32)
        self._tally = np.zeros((lanes, 8), np.int64)
        self._alone = lanes == 1 or rows.graph.m < serial_edges
        self._alone_rounds = 0  # still to be run by one thread
        self._next_alone = ALONE_ROUNDS
        self._enough = int(rows.graph.m * pushed_share)
        self._final_width, self._spans = width, spans
        self._core = 0
        self.waiting = False

    # ------------------------------------------------------------------------------------------- the run

    def start(self, root: int, *, core: int = 0, stages: bool = True) -> None:
        """Begin at ``root``; edges inside [0, core) are not looked at, and then there are no stages."""
        self.start_from([root], [0], core=core, stages=stages)

    def start_from(
        self, vertices: Sequence[int], distances: Sequence[int], *, core: int = 0, stages: bool = True
    ) -> None:
        """Begin at vertices that have distances already; of several of one vertex the smallest counts."""
        forget_distances_step(self.dist, self._expanded, self._bins, self.unreached)
        self._core = core
        self._bound, self._base, self._bucket = self.unreached, self.dist.dtype.type(0), 0
        self._low = self._settled = self._base
        self._stages = self._spans if stages and not core else ()
        self._staged, self._listed = False, False
        self._since_refill = 0  # edges looked at
        self._set_width(self._spans[0] / BUCKETS_PER_SPAN if self._stages else self._final_width)
        for v, distance in zip(vertices, distances, strict=True):
            if distance < self.dist[v]:
                self.dist[v] = distance
                put_in_bin(self._bins, 0, bucket_of(distance, self._base, self._width), np.int32(v))
        self.waiting = True

    @np.errstate(over="ignore")  # sums that overflow are noticed by their sign; numpy would warn when the JIT is off
    def step(self, rounds: int = ROUNDS) -> Effort:
        """Go on until a stage ends, ``rounds`` rounds were run, or the bins must be filled anew."""
        board = self._schedule.board
        board.fill(0)
        end, ran = self._run(rounds)
        edges, expanded = int(board[:, VOTE_EDGES].sum()), int(board[:, VOTE_EXPANDED].sum())
        pulled = False
        self._since_refill += edges
        if end == REFILL:
            if self._since_refill * SCARCE < self.dist.size:
                self._double_width()
            self.refill()
        elif end == ENOUGH_WORK:
            self._begin_stages()
        elif end == NOTHING_LEFT:
            pulled = self._bound < self.unreached
            self.waiting = pulled
            if pulled:
                edges += self._next_stage()
        return Effort(edges, expanded, ran, pulled)

    def refill(self) -> None:
        """Fill the bins anew, from the distances alone. Call it after distances were lowered from outside.

        Afterwards no lost entry is flagged. That holds as well if all are expanded meanwhile and only the next stage
        is due: a flag that stayed would ask for another refill, forever.
        """
        self._since_refill = 0
        nearest = self._nearest()
        self.waiting = nearest < self.unreached or self._bound < self.unreached
        if self.waiting:
            self._base, self._bucket = nearest, 0
            refill_bins_step(self._bins, self.dist, self._scale())

    def reactivate(self, vertices: np.ndarray, core: int) -> None:
        """From now on edges inside [0, core) only are not looked at; these vertices look at theirs once more."""
        self._core = core
        self._expanded[vertices] = self.unreached
        self.refill()

    # ---------------------------------------------------------------------------------------- its parts

    def _set_width(self, width: float | None) -> None:
        if width is None:  # everything in bucket 0
            self._width = 0.0 if self._is_float else 63
        elif self._is_float:
            self._width = 1.0 / max(width, MIN_WIDTH)
        else:
            self._width = max(0, round(np.log2(max(width, 1))))

    def _double_width(self) -> None:
        """Twice as wide buckets, if the bins are filled again right after.

        A refill looks at every vertex. Where the waiting vertices lie farther apart than all bins together, as on a
        chain of heavy edges among light ones, each would need a refill of its own; doubled widths soon hold them.
        """
        self._width = self._width / 2 if self._is_float else min(self._width + 1, 63)

    def _run(self, rounds: int) -> tuple[int, int]:
        self._team.fill(0)
        self._schedule.tickets.fill(0)
        rounds = min(rounds, self._alone_rounds or rounds)
        enough = self._enough if self._stages and not self._staged else -1
        search = Search(*self._rows.out, self.dist, self._expanded, *self._scale(), self._core)
        run = (search, self._bucket, self._schedule, self._aside, self._bins, rounds, enough)
        if self._alone or self._alone_rounds:
            self._alone_rounds = max(0, self._alone_rounds - rounds)
            self._bucket, end, ran = run_rounds_share_step(0, 1, self._team[1], *run)
        else:
            self._bucket, end, ran = run_rounds_step(self._team, self.lanes, PATIENCE, *run)
            if self._team[1, 1]:
                self._alone_rounds, self._next_alone = self._next_alone, min(2 * self._next_alone, MOST_ALONE)
            else:
                self._next_alone = ALONE_ROUNDS
        return end, ran

    def _scale(self) -> Scale:
        return Scale(self._base, self._width, self._bound)

    def _nearest(self) -> Any:
        nearest = np.full(self.lanes, self.unreached, self.dist.dtype)
        find_nearest_step(self.dist, self._expanded, nearest)
        return nearest.min()

    def _begin_stages(self) -> None:
        self._staged = True
        self._low = self._nearest()
        self._set_bound()
        self.refill()

    def _set_bound(self) -> None:
        """Take the next span; bounds that would not fit are none."""
        self._bound = self.unreached
        if self._stages:
            bound = self._low.item() + self._stages[0]
            self._bound = min(bound if self._is_float else int(bound), self.unreached)
            self._set_width(self._stages[0] / BUCKETS_PER_SPAN)
            self._stages = self._stages[1:]
        else:
            self._set_width(self._final_width)

    def _next_stage(self) -> int:
        """Every distance below the bound is final: raise it, and let the other vertices pull."""
        self._settled = self.dist.dtype.type(self._bound)
        self._set_bound()
        self._base, self._bucket = self._settled, 0
        run = (self._rows.into, self.dist, self._low, self._settled, self._scale(), self._bins)
        if self._listed:
            pull_beyond_rest_step(*run, self._rest, self._tally)
        else:
            ticket = np.zeros(1, np.int64)
            pull_beyond_all_step(self._rows.in_cuts, *run, ticket, self._rest, self._tally)
            self._listed = True
        return int(self._tally[:, 1].sum())
