"""Programs whose values spread: offers reduced by min, max or or, from the vertices that changed, until none does.

A round takes the frontier - the vertices whose value changed - and either pushes from it or, when it is thick and the
program can, lets every vertex pull. With a priority only those of least priority are taken, and the others wait in
piles.
Invariant: a vertex whose value changed since its offers were last made is in the frontier or in a pile. Without
``rounds`` values of this round may be seen in this round: that only makes offers better. Thin rounds are run one after
the other in one launch (thin_text.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from cpu_engine.bfs.strategies.kernels.push import measure_frontier_step
from cpu_engine.programs.base import ProgramRun
from cpu_engine.programs.initial import Initial
from cpu_engine.programs.launch import Launch, Step
from cpu_engine.programs.text import NAMES, given, local, pile_text, pull_text, push_text
from cpu_engine.programs.thin_text import FRONTIER, LIMIT, ROUNDS, thin_text
from cpu_engine.schedule.entry import Bound, Kernel
from cpu_engine.schedule.fingerprint import plain_function

PULL_SHARE = 1 / 8  # of the arcs in the frontier: with more, a bounded pull pays (the asynchronous BFS has the same)
UNBOUNDED_SHARE = 1 / 2  # a pull that must look at every arc
THIN_EDGES = 4096  # a frontier with at most as many arcs runs on one thread
THIN_ROUNDS = 4096  # per launch, so that Ctrl-C is noticed
BLOCK = 1024  # vertices that a thread pulls for at a time
_MOST = np.iinfo(np.int64).max


@njit(cache=True)
def gather_found_step(found, sizes, mark, frontier):
    """The threads' finds become the frontier, and are no longer marked; return how many.

    Invariant  a find is listed once.   Races  none, serial.   Work  O(finds).
    """
    count = 0
    for t in range(found.shape[0]):
        for i in range(sizes[t, 0]):
            v = found[t, i]
            frontier[count] = v
            mark[v] = 0
            count += 1
        sizes[t, 0] = 0
    return count


@dataclass(frozen=True)
class _Side:
    """Rows to push along, and the same arcs from the other end to pull along."""

    offsets: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None


class Spread(ProgramRun):
    """See the module."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        program, rows = self.program, self.rows
        field, n = program.offered, rows.n
        self.values = np.full(n, field.neutral, field.dtype)
        self._read = np.full(n, field.neutral, field.dtype) if program.synchronous else self.values
        self._mark = np.zeros(n, np.uint8)
        self._found = np.empty((self.threads, n), np.int32)
        self._sizes = np.zeros((self.threads, 8), np.int64)
        self._frontier, self._count = np.empty(n, np.int32), 0
        self._all_vertices = np.empty(0, np.int32)  # as a frontier, once there was one
        self._starts = np.empty(n + 1, np.int64)
        self._least, self._ticket = np.zeros(2, np.int64), np.zeros(1, np.int64)
        self._pushes: list[tuple[_Side, Bound]] = []
        self._pulls: list[Bound] = []
        self._pile: Bound | None = None
        self._thin: Bound | None = None  # made when there is a thin round
        self._history, self._left = np.empty((0, 2), np.int64), np.zeros(8, np.int64)
        self._initial = Initial(program, field, rows, self._scalars, self._degrees)
        self._none_better: Any = None  # than this one, of the values in the frontier, where that is known
        self._piles = np.empty((self.threads, n if program.priority else 0), np.int32)
        self._bounded = program.pull is not None and program.monotone and self._can_bound()
        self._prepare()

    # ------------------------------------------------------------------------------ what is compiled

    def _prepare(self) -> None:
        program, rows = self.program, self.rows
        out = _Side(rows.out_offsets, rows.out_targets, None)
        into = _Side(rows.in_offsets, rows.in_sources, None)
        both = program.both_ways and not rows.mirrored
        near = self._call("priority", program.priority, "now") if program.priority else None
        if program.push is not None and self.strategy != "pull":
            call = self._call("push", program.push, "read")
            for side in [out, into] if both else [out]:
                text, parameters = push_text(program.offered, call, near)
                like = {"push": call.like, **({"priority": near.like} if near else {})}
                self._pushes.append((side, self._bind(text, parameters, like, side, side is out)))
        if program.pull is not None and self.strategy != "push" and program.priority is None:
            call = self._call("pull", program.pull, "read")
            for side in [into, out] if both else [into]:
                text, parameters = pull_text(
                    program.offered, call, self._bounded, f"{local(program.offered.name)}_read"
                )
                self._pulls.append(self._bind(text, parameters, {"pull": call.like}, side, side is out))
        if near is not None:
            text, parameters = pile_text(program.offered, near)
            self._pile = self._bind(text, parameters, {"priority": near.like}, out, True)

    def _bind(
        self, text: str, parameters: list[str], like: Mapping[str, Any], side: _Side, out: bool, **further: Any
    ) -> Bound:
        field = self.program.offered
        available: dict[str, Any] = {
            **further,
            "threads": np.int64(self.threads), "count": np.int64(0), "frontier": self._frontier,
            "starts": self._starts, "begin": side.offsets[:-1], "end": side.offsets[1:], "targets": side.targets,
            "sources": side.targets, "mark": self._mark, "found": self._found, "sizes": self._sizes,
            "limit": np.int64(_MOST), "piles": self._piles, "least": self._least, "ticket": self._ticket,
            "block": np.int64(BLOCK), "bound": field.neutral, "neutral": field.neutral,
            f"{local(field.name)}_now": self.values, f"{local(field.name)}_read": self._read,
            **{given(name): value for name, value in self._scalars.items()},
        }  # fmt: skip
        available |= self._row_arrays(parameters, out)
        passed = {name: available[name] for name in parameters}
        operators = {name: getattr(self.program, name) for name in like}
        expected = {name: field if name != "priority" else None for name in like}
        return Kernel(text, NAMES | operators, passed, like, expected).bind(**passed)

    def _bind_thin(self) -> Bound:
        """The share that runs thin rounds; a pull that pays ends it."""
        program, rows = self.program, self.rows
        assert program.push is not None
        call = self._call("push", program.push, "read")
        near = self._call("priority", program.priority, "now") if program.priority else None
        text, parameters = thin_text(program.offered, call, near, len(self._pushes), program.synchronous)
        self._history = np.empty((THIN_ROUNDS, 2), np.int64)
        share = (PULL_SHARE if self._bounded else UNBOUNDED_SHARE) if self._pulls else 1.0
        further: dict[str, Any] = {
            "rounds": np.int64(0), "thin": np.int64(min(THIN_EDGES, rows.m * share if self._pulls else THIN_EDGES)),
            "crowd": np.int64(rows.n * share), "history": self._history, "left": self._left,
        }  # fmt: skip
        for i, (side, _) in enumerate(self._pushes):
            further |= {f"begin_{i}": side.offsets[:-1], f"end_{i}": side.offsets[1:], f"targets_{i}": side.targets}
            if f"weights_{i}" in parameters:
                further[f"weights_{i}"] = rows.needed_weight if i == 0 else rows.in_weight
        like = {"push": call.like, **({"priority": near.like} if near else {})}
        return self._bind(text, parameters, like, self._pushes[0][0], True, **further)

    def _can_bound(self) -> bool:
        assert self.program.pull is not None
        wishes = set(self.program.wishes("pull", self.program.pull))
        return wishes <= {self.program.offered.name, "round", *self.program.parameters()}

    # ------------------------------------------------------------------------------ a run

    def start(self, start: np.ndarray | None) -> None:
        """Begin: these vertices (local ids; None for all) have their initial value, the others the neutral one."""
        field = self.program.offered
        self.steps, self.launches, self.round, self._none_better = [], [], 0, None
        self._sizes[:] = 0
        self._mark[:] = 0
        if start is None:
            self._initial.fill(self.values)
            changed = self.values != field.neutral
            active = self._all() if changed.all() else np.flatnonzero(changed).astype(np.int32)
        else:
            self.values.fill(field.neutral)
            constant = self._initial.constant
            if constant is not None:
                self.values[start] = constant
            else:
                initial = np.empty_like(self.values)
                self._initial.fill(initial)
                self.values[start] = initial[start]
            active = np.unique(start[self.values[start] != field.neutral]).astype(np.int32)
        if self._read is not self.values:
            self._read[:] = self.values
        self._count = 0
        if self._pile is not None:
            self.activate(active)
        else:
            self._frontier[: active.size], self._count = active, active.size

    def _all(self) -> np.ndarray:
        if self._all_vertices.size != self.rows.n:
            self._all_vertices = np.arange(self.rows.n, dtype=np.int32)
        return self._all_vertices

    @property
    def over(self) -> bool:
        """Whether nothing is left to do here."""
        if self.program.rounds is not None and self.round >= self.program.rounds:
            return True
        return self._count == 0 and not self._sizes[:, 1].any()

    @property
    def in_bucket(self) -> bool:
        """Whether vertices of the least priority, or all that there are, are left."""
        return self._count > 0

    def activate(self, vertices: np.ndarray) -> None:
        """The values of these were changed from outside."""
        self._none_better = None
        if self._pile is not None:
            fresh = vertices[self._mark[vertices] == 0]
            self._mark[fresh] = 2
            size = int(self._sizes[0, 1])
            if size + fresh.size > self._piles.shape[1]:  # entries that are no longer true take the room
                fresh, size = np.flatnonzero(self._mark == 2).astype(np.int32), 0
                self._sizes[:, 1] = 0
            self._piles[0, size : size + fresh.size] = fresh
            self._sizes[0, 1] = size + fresh.size
            return
        merged = np.union1d(self._frontier[: self._count], vertices) if self._count else np.unique(vertices)
        self._frontier[: merged.size], self._count = merged, merged.size

    def advance(self) -> None:
        """One round, or the thin rounds that come now."""
        if not self._pushes or not self._run_thin():
            self.step()

    def step(self) -> Step:
        """One round."""
        if self._read is not self.values:
            now = self._frontier[: self._count]
            self._read[now] = self.values[now]
        if self._count == 0 and self._pile is not None:
            self._open_pile()
        step = self._pull() if self._shall_pull() else self._push()
        self._count = int(gather_found_step(self._found, self._sizes, self._mark, self._frontier))
        self.round += 1
        self.steps.append(step)
        return step

    def results(self) -> dict[str, np.ndarray]:
        """The fields; copies, as the engine's own arrays are used again."""
        return {self.program.offered.name: self.values.copy()}

    def totals(self) -> dict[str, float]:
        return {}

    def _open_pile(self) -> None:
        assert self._pile is not None
        self._pile.run_one(0)
        lowest, self._count = (int(one) for one in self._least)
        self._set_limit(lowest)

    def _set_limit(self, limit: int) -> None:
        self._left[LIMIT] = limit
        if self._pile is not None:
            for _, bound in self._pushes:
                bound.set("limit", limit)

    def _run_thin(self) -> bool:
        """Run the thin rounds that come now; whether there were any."""
        if self._count > THIN_EDGES:
            return False
        if self._thin is None:
            self._thin = self._bind_thin()
        most = self.program.rounds
        self._thin.set("rounds", THIN_ROUNDS if most is None else min(most - self.round, THIN_ROUNDS))
        self._left[FRONTIER] = self._count
        spans = self._run(self._thin, 1)
        self._count, rounds = int(self._left[FRONTIER]), int(self._left[ROUNDS])
        if self._pile is not None:
            self._set_limit(int(self._left[LIMIT]))
        if rounds == 0:
            return False
        self._none_better = None
        ran = self._history[:rounds].tolist()
        self._note("push", ran[0][0], (sum(edges for _, edges in ran),), spans, rounds)
        self.steps += [Step("push", frontier, edges) for frontier, edges in ran]
        self.round += rounds
        return True

    def _note(self, kind: str, frontier: int, edges: tuple[int, ...], spans: np.ndarray, rounds: int = 1) -> None:
        self.launches.append(Launch(kind, self.round, rounds, frontier, edges, spans))

    def _shall_pull(self) -> bool:
        if not self._pulls or not self._pushes:
            return not self._pushes
        share = PULL_SHARE if self._bounded else UNBOUNDED_SHARE
        if self._count > self.rows.n * share:
            return True
        offsets = self._pushes[0][0].offsets
        edges = measure_frontier_step(offsets[:-1], offsets[1:], self._frontier, self._count, self._starts)
        return int(edges) > self.rows.m * share

    def _push(self) -> Step:
        self._none_better = None
        looked, frontier = 0, self._count
        for side, bound in self._pushes:
            begin, end = side.offsets[:-1], side.offsets[1:]
            edges = int(measure_frontier_step(begin, end, self._frontier, frontier, self._starts))
            threads = 1 if edges <= THIN_EDGES else self.threads
            bound.set("threads", threads)
            bound.set("count", frontier)
            spans = self._run(bound, threads)
            cuts = [edges * thread // threads for thread in range(threads + 1)]
            self._note("push", frontier, tuple(b - a for a, b in itertools.pairwise(cuts)), spans)
            looked += edges
        return Step("push", frontier, looked)

    def _pull(self) -> Step:
        frontier, best, looked = self._count, None, 0
        for bound in self._pulls:
            if self._bounded:
                best = self._best_offer()
                bound.set("bound", best)
            self._ticket[0] = 0
            self._sizes[:, 2] = 0
            spans = self._run(bound, self.threads)
            self._note("pull", frontier, tuple(self._sizes[:, 2].tolist()), spans)
            looked += int(self._sizes[:, 2].sum())
        self._none_better = best
        return Step("pull", frontier, looked)

    def _run(self, bound: Bound, threads: int) -> np.ndarray:
        if given("round") in bound.names:
            bound.set(given("round"), self.round)
        return bound.run(threads)

    def _best_offer(self) -> Any:
        """What no offer of this round is better than."""
        program, field = self.program, self.program.offered
        assert program.pull is not None
        best = self._none_better  # what a bounded pull has changed is no better than its bound
        if best is None:
            whole = self._count == self.rows.n
            active = self._read if whole else self._read[self._frontier[: self._count]]
            best = active.min() if field.reduction == "min" else active.max()
        known = {**self._scalars, "round": self.round, field.name: best}
        wishes = program.wishes("pull", program.pull)
        return field.dtype.type(plain_function(program.pull)(**{name: known[name] for name in wishes}))
