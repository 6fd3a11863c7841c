"""Check the numbers of an answer against what was asked: pure, and all or nothing.

Invariant: an answer without problems can be merged by `keep the smaller value` without harming a value that was sent.
It may still be wrong inside these bounds; the certificate at the end of the job finds that.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from exchange.codec.text import VALUE_LIMIT
from exchange.counted import plural
from exchange.errors import ExchangeError

_FIX = "correct the worker; the job goes on without it"


def check_answer(
    pairs: npt.NDArray[np.integer],
    k: int,
    sent_vertices: npt.NDArray[np.integer],
    sent_values: npt.NDArray[np.integer],
    *,
    min_step: int = 1,
    value_limit: int = VALUE_LIMIT,
) -> list[str]:
    """What is wrong with an answer, one sentence per kind of problem; an empty list means that it may be merged.

    ``pairs`` is [r, 2] `vertex value`; the core is the vertices [0, k); ``min_step`` is the smallest edge length (1 for
    hops): a value that was not sent must come from a sent one over at least one edge. No value may reach
    ``value_limit`` (for hops: the number of vertices of the graph).
    """
    vertex, value = pairs[:, 0], pairs[:, 1]
    problems: list[str] = []
    outside = (vertex < 0) | (vertex >= k)
    if outside.any():
        unknown = plural(_count(outside), "unknown vertex", "unknown vertices")
        problems.append(f"{unknown}, such as {int(vertex[outside][0])} in a core of {k}")
    impossible = (value < 0) | (value >= value_limit)
    if impossible.any():
        problems.append(
            f"{plural(_count(impossible), 'value')} outside 0..{value_limit - 1}, such as {int(value[impossible][0])}"
        )
    if problems:
        return problems
    lacking = np.setdiff1d(sent_vertices, vertex)
    if lacking.size:
        # An answer cut off between two lines looks whole; and a right one has every vertex that was sent.
        return [f"vertices sent are missing: {lacking.size:,} of {len(sent_vertices):,}, such as {int(lacking[0])}"]
    if not len(pairs):
        return []
    if not len(sent_values):
        return [f"{plural(len(pairs), 'value')} although none were sent"]
    sent = np.full(k, VALUE_LIMIT, dtype=np.int64)
    np.minimum.at(sent, sent_vertices, sent_values)
    return _contradictions(pairs, sent, int(sent_values.min()) + min_step)


def _contradictions(pairs: npt.NDArray[np.integer], sent: npt.NDArray[np.int64], floor: int) -> list[str]:
    """What no right answer has, given the values sent by vertex and ``floor``, the least that a new value can be.

    Every new value is a sent value plus at least one edge, so nothing new can be below the smallest one plus a step.
    """
    vertex, value, problems, k = pairs[:, 0], pairs[:, 1], [], sent.size
    best = np.full(k, VALUE_LIMIT, dtype=np.int64)
    worst = np.full(k, -1, dtype=np.int64)
    np.minimum.at(best, vertex, value)
    np.maximum.at(worst, vertex, value)
    twice = (worst >= 0) & (best != worst)
    if twice.any():
        first = int(np.flatnonzero(twice)[0])
        problems.append(f"{plural(_count(twice), 'vertex', 'vertices')} with two different values, such as {first}")
    larger = (worst >= 0) & (sent < VALUE_LIMIT) & (worst > sent)
    if larger.any():
        first = int(np.flatnonzero(larger)[0])
        problems.append(
            f"{plural(_count(larger), 'value')} larger than sent, such as {int(worst[first])} "
            f"for vertex {first} which had {int(sent[first])}"
        )
    small = (worst >= 0) & (best < sent) & (best < floor)
    if small.any():
        first = int(np.flatnonzero(small)[0])
        problems.append(
            f"{plural(_count(small), 'value')} too small to be true, such as {int(best[first])} "
            f"for vertex {first} where {floor} is the least possible"
        )
    return problems


def require_good_answer(
    pairs: npt.NDArray[np.integer],
    k: int,
    sent_vertices: npt.NDArray[np.integer],
    sent_values: npt.NDArray[np.integer],
    *,
    path: str | Path | None = None,
    min_step: int = 1,
    value_limit: int = VALUE_LIMIT,
) -> None:
    """``check_answer``, raised as an ExchangeError when there is any problem."""
    problems = check_answer(pairs, k, sent_vertices, sent_values, min_step=min_step, value_limit=value_limit)
    if problems:
        raise ExchangeError("; ".join(problems), path=path, fix=_FIX)


def _count(mask: npt.NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(mask))
