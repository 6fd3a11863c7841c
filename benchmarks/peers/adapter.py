"""What the contest asks of a library, and the two forms in which it is handed a graph.

Invariant: only ``open_rows``, ``run``, ``build_pairs`` and ``read_text`` are on the clock. A library is given its input
in the form that it likes best, and is asked for the least that answers the question (levels or parents).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest.digest import edges_digest
from benchmarks.contest.questions import edge_weights

Answer = Callable[[int, list[int]], Any]
_ROWS = ("out_offsets", "out_targets", "in_offsets", "in_sources")


@dataclass(frozen=True)
class Rows:
    """A finished graph: sorted rows without loops or duplicates, over 0..n-1. Undirected: in-rows are the out-rows."""

    n: int
    directed: bool
    out_offsets: np.ndarray  # int64
    out_targets: np.ndarray  # int32
    in_offsets: np.ndarray
    in_sources: np.ndarray
    own_weight: np.ndarray | None = None  # int64, of each out-entry; None: weights are made up

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        for name in _ROWS if self.directed else _ROWS[:2]:
            np.save(folder / f"{name}.npy", getattr(self, name))
        if self.own_weight is not None:
            np.save(folder / "own_weight.npy", self.own_weight)
        (folder / "rows.json").write_text(json.dumps({"n": self.n, "directed": self.directed}))

    @classmethod
    def load(cls, folder: Path) -> Rows:
        facts = json.loads((folder / "rows.json").read_text())
        arrays = [np.load(folder / f"{name}.npy") for name in (_ROWS if facts["directed"] else _ROWS[:2])]
        own = folder / "own_weight.npy"
        weight = np.load(own) if own.exists() else None
        out_offsets, out_targets, *into = arrays if facts["directed"] else arrays * 2
        return cls(facts["n"], facts["directed"], out_offsets, out_targets, into[0], into[1], weight)

    def sources(self) -> np.ndarray:
        """The row of every entry, int32: with out_targets the graph as a list of pairs."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.out_offsets))

    def weights(self) -> np.ndarray:
        """The weight of every entry, int64: the graph's own, or what all make up in the same way."""
        return edge_weights(self.sources(), self.out_targets) if self.own_weight is None else self.own_weight

    def in_weights(self) -> np.ndarray:
        """The same of every in-entry."""
        if self.own_weight is None:
            return edge_weights(np.repeat(np.arange(self.n), np.diff(self.in_offsets)), self.in_sources)
        return self.own_weight[np.lexsort((self.sources(), self.out_targets))]

    def once(self) -> tuple[np.ndarray, np.ndarray]:
        """Every edge once: of an undirected graph, from the smaller end."""
        src, dst = self.sources(), self.out_targets
        if self.directed:
            return src, dst
        kept = src <= dst
        return src[kept], dst[kept]

    def weights_once(self) -> np.ndarray:
        """The weights of these edges."""
        weight = self.weights()
        return weight if self.directed else weight[self.sources() <= self.out_targets]


@dataclass(frozen=True)
class Pairs:
    """A raw edge list over 0..count-1, loops and duplicates included."""

    src: np.ndarray  # int64
    dst: np.ndarray
    count: int
    directed: bool

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        np.save(folder / "src.npy", self.src)
        np.save(folder / "dst.npy", self.dst)
        (folder / "pairs.json").write_text(json.dumps({"count": self.count, "directed": self.directed}))

    @classmethod
    def load(cls, folder: Path) -> Pairs:
        facts = json.loads((folder / "pairs.json").read_text())
        return cls(np.load(folder / "src.npy"), np.load(folder / "dst.npy"), facts["count"], facts["directed"])

    def both_ways(self) -> tuple[np.ndarray, np.ndarray]:
        """Entries of the adjacency matrix: no loops, and an undirected edge in both directions."""
        proper = self.src != self.dst
        src, dst = self.src[proper], self.dst[proper]
        if self.directed:
            return src, dst
        return np.concatenate((src, dst)), np.concatenate((dst, src))

    def digest(self) -> str:
        """What a right graph's arcs come to: without loops and duplicates."""
        src, dst = self.both_ways()
        code = np.unique(src.astype(np.int64) * self.count + dst)
        return edges_digest(code // self.count, code % self.count)


class Adapter:
    """The base: everything that a library may leave out."""

    library: Any = None  # the module whose release is measured
    variants: tuple[str, ...] = ("",)
    threads_used = 1  # how many it makes use of, which may be fewer than it was given

    def __init__(self) -> None:
        self.weighted = False  # whether graphs get weights
        self.phases: dict[str, float] = {}  # parts of the last build or read, in seconds

    def version(self) -> str:
        """Which release is measured."""
        return str(self.library.__version__)

    def warm_up(self) -> None:
        """Load what does not depend on the graph, so that it is not counted as the graph's memory."""

    def load_graph(self, folder: Path, ids: str) -> Any:
        """Read the graph that the contest handed out, in the numbering ``ids``."""
        return self.prepare_rows(Rows.load(folder / ids))

    def prepare_rows(self, rows: Rows) -> Any:
        """The graph in the form that ``open_rows`` takes."""
        return rows

    def open_rows(self, prepared: Any) -> None:
        """Make the library's own graph, and keep it."""
        raise NotImplementedError

    def run(self, variant: str, root: int) -> Any:
        """One BFS; the outcome in the library's own form."""
        raise NotImplementedError

    def levels(self, variant: str, outcome: Any) -> np.ndarray:
        """The levels of an outcome, int32, -1 = not reached."""
        raise NotImplementedError

    @property
    def answers(self) -> dict[str, Answer]:
        """The other algorithms that it has: functions of the start vertex, and of all start vertices."""
        return {}

    def threads_of(self, name: str) -> int:
        """How many threads one of these algorithms makes use of."""
        return self.threads_used

    def values(self, name: str, outcome: Any) -> np.ndarray:
        """An answer as an array by vertex."""
        return np.asarray(outcome)

    def prove(self, variant: str, outcome: Any, root: int) -> None:
        """Raise NotCertified if the adapter sees that an outcome is wrong: our own engines have checkers."""

    def prepare_pairs(self, pairs: Pairs) -> Any:
        """The edge list in the form that ``build_pairs`` takes."""
        return pairs

    def build_pairs(self, prepared: Any) -> Any:
        """A graph without loops and duplicates, ready to traverse."""
        raise NotImplementedError

    def read_text(self, path: Path, scratch: Path) -> Any:
        """A graph from a text file, ready to traverse; ``scratch`` is a folder for what is written on the way."""
        raise NotImplementedError(f"{type(self).__module__.rpartition('.')[2]} reads no edge lists")

    def edge_count(self, built: Any) -> int | None:
        """Edges of a built graph, an undirected one counted once; None if the library kept loops or duplicates."""
        raise NotImplementedError

    def arcs_digest(self, built: Any) -> str | None:
        """``Pairs.digest`` of a built graph; None if the library does not show its arcs."""
        return None

    def held_bytes(self, built: Any) -> int | None:
        """Size of a built graph; None if the library does not say."""
        return None

    def trace_levels(self, **details: Any) -> dict[str, Any]:
        """One run level by level; our own engines only."""
        raise NotImplementedError

    def run_batch(self, **details: Any) -> dict[str, Any]:
        """Many roots at once, or one after the other; our own engines only."""
        raise NotImplementedError
