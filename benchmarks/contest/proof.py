"""The proof of what the benchmarks time: off the clock, by the algorithms' own checkers, which share no code with them.

Invariant: a result of ours that fails raises NotCertified, so the benchmark ends with exit code 5 and prints no time.
"""

from __future__ import annotations

import hashlib

import numpy as np

from benchmarks.contest.rounds import FIX
from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.many.check import check_levels
from cpu_engine.bfs.many.engine import ManyResult
from cpu_engine.graph.graph import Graph
from hybrid.algorithms.algorithm import Check, Description, Found, Task
from hybrid.errors import NotCertified

_ROUNDING = 1e-4  # of float32 sums of positive values
_NONE = 2**40  # above every value that a core can have


def require(check: Check, graph: Graph, what: str) -> None:
    """NotCertified unless the check holds."""
    if not check.holds:
        raise NotCertified(f"{what}: a timed result is wrong: {check.explain(graph)}", fix=FIX)


def require_search(graph: Graph, level: np.ndarray, parent: np.ndarray, root: int, what: str = "bfs") -> None:
    """Levels and parents of one search, in internal ids."""
    require(certify(graph, level, parent, root), graph, what)


def require_batch(graph: Graph, roots: np.ndarray, found: ManyResult, what: str) -> None:
    """The levels of many searches, and their parents if there are any."""
    require(check_levels(graph, roots, found.level), graph, what)
    for at, root in enumerate(roots.tolist()):
        level, parent = found.of(at)
        if parent is not None:
            require_search(graph, level, parent, root, what)


def require_handed_over(
    graph: Graph, level: np.ndarray, parent: np.ndarray, user_level: np.ndarray, user_parent: np.ndarray, what: str
) -> None:
    """The user's arrays are the internal ones, vertex by vertex; isolated vertices have neither level nor parent."""
    levels = np.full(graph.user_ids.size, -1, np.int64)
    levels[graph.user_position] = level
    parents = np.full(graph.user_ids.size, -1, np.int64)
    parents[graph.user_position] = np.where(parent < 0, -1, graph.user_ids[graph.user_position[parent]])
    if not (np.array_equal(levels, user_level) and np.array_equal(parents, user_parent)):
        raise NotCertified(f"{what}: a timed result differs in the user's ids from the internal one", fix=FIX)


def require_equal(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    """Two ways to compute the same, of which ``expected`` is proven."""
    if not np.array_equal(found, expected):
        raise NotCertified(f"{what}: a timed result differs from the proven one", fix=FIX)


def require_close(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    """The same for an answer of the device: whole numbers exactly, float32 sums up to their rounding."""
    whole = expected.dtype.kind == "i"
    if not (np.array_equal(found, expected) if whole else np.allclose(found, expected, rtol=_ROUNDING, atol=0)):
        raise NotCertified(f"{what}: a timed answer of the worker is wrong", fix=FIX)


def core_answer(graph: Graph, k: int, program: str, values: np.ndarray) -> np.ndarray:
    """The answer of a program (docs/reference/protocol.md) on the core's edges, computed one step after the other."""
    end = int(graph.out_offsets[k])
    source, target = np.repeat(np.arange(k), np.diff(graph.out_offsets[: k + 1])), graph.out_targets[:end]
    inside = target < k
    source, target = source[inside], target[inside]
    answers = [_one_answer(program, source, target, row) for row in np.atleast_2d(values)]
    return np.array(answers).reshape(values.shape)


def _one_answer(program: str, source: np.ndarray, target: np.ndarray, row: np.ndarray) -> np.ndarray:
    if program in ("plus-times", "or-and"):
        sums = np.bincount(target, row[source].astype(np.float64), row.size)
        return sums if program == "plus-times" else (sums > 0).astype(np.int64)
    length = 1 if program == "min-plus" else 0
    value = np.where(row < 0, _NONE, row).astype(np.int64)
    while True:
        nearer = value.copy()
        np.minimum.at(nearer, target, value[source] + length)
        if np.array_equal(nearer, value):
            return np.where(value >= _NONE, -1, value)
        value = nearer


class Proofs:
    """Proves results of algorithms; one that equals a proven one bit for bit is not proven again."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def require(self, description: Description, task: Task, found: Found, what: str = "") -> None:
        """NotCertified unless the algorithm's own check holds."""
        key = self._key(description, task, found)
        if key not in self._known:
            require(description.check(task, found), task.graph, what or description.name)
            self._known.add(key)

    @staticmethod
    def _key(description: Description, task: Task, found: Found) -> bytes:
        about = (description.name, task.source, sorted(found.isolated.items()), task.config)
        digest = hashlib.blake2b(repr(about).encode(), digest_size=16)
        for name, values in sorted(found.arrays.items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(values).data)
        return digest.digest()
