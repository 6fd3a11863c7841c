"""A core's index as the coordinator gets it: the hops between all core vertices, and what they say of the diameter."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from exchange.errors import ExchangeError

NO_PATH = 255
_FIX = "correct the worker; the job goes on without the index"


@dataclass(frozen=True)
class CoreIndexArrays:
    """distance[u, v] in edges inside the core, uint8[k, k], 255 where there is no path. Read only."""

    distance: npt.NDArray[np.uint8]
    diameter: int | None  # None: some vertex does not reach some other one
    farthest: int  # the largest distance that there is
    facts: dict[str, str] = field(default_factory=dict)


def index_arrays(distance: npt.NDArray[np.uint8], facts: dict[str, str] | None = None) -> CoreIndexArrays:
    """The index, its largest distance, and its diameter if every vertex reaches every other."""
    counts = np.bincount(distance.ravel(), minlength=NO_PATH + 1)
    there = np.flatnonzero(counts[:NO_PATH])
    farthest = int(there[-1]) if there.size else 0
    return CoreIndexArrays(distance, None if counts[NO_PATH] else farthest, farthest, facts or {})


def require_index_of(
    distance: npt.NDArray[np.uint8], offsets: npt.NDArray[np.integer], targets: npt.NDArray[np.integer], k: int
) -> None:
    """An index that belongs to this core: 0 exactly on the diagonal, 1 exactly where there is an edge.

    What is farther is not looked at: that would be the whole computation. The certificate at the end of the job finds
    values that a wrong distance gave.
    """
    source = np.repeat(np.arange(k), np.diff(offsets[: k + 1]))
    target = targets[: int(offsets[k])]
    near = np.zeros((k, k), bool)
    inside = target < k
    near[source[inside], target[inside]] = True
    np.fill_diagonal(near, False)
    zeros, ones = distance == 0, distance == 1
    if int(np.count_nonzero(zeros)) != k or not bool(zeros.diagonal().all()):
        raise ExchangeError("an index has 0 on its diagonal, and nowhere else", fix=_FIX)
    if not np.array_equal(ones, near):
        u, v = (int(place) for place in np.argwhere(ones != near)[0])
        raise ExchangeError(
            f"the index is not that of this core: {u} and {v} are {'' if near[u, v] else 'not '}next to each other",
            value=int(distance[u, v]),
            fix=_FIX,
        )
