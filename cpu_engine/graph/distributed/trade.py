"""What ranks exchange while they build: stretches of keys, values and weights, each to the rank that it is for.

Invariant: what comes from a rank is in that rank's order; weights take no room where there are none.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.comm.collectives import RankInfo, all_to_all
from cpu_engine.comm.requests import Driver

Pieces = list[tuple[np.ndarray, np.ndarray, np.ndarray]]  # keys, values, weights


def trade(
    info: RankInfo, stretch: np.ndarray, arrays: tuple[np.ndarray, np.ndarray, np.ndarray], *, weighted: bool
) -> Driver[Pieces]:
    """Each rank's stretch of keys, values and weights to that rank; what came, by rank."""
    keys, _, weight = arrays
    sent = arrays if weighted else arrays[:2]
    payloads = [
        np.concatenate([array[stretch[q] : stretch[q + 1]].view(np.uint8) for array in sent]) for q in range(info.size)
    ]
    came = yield from all_to_all(info, payloads)
    found: Pieces = []
    for payload in came:
        cut = payload.size // sum(array.itemsize for array in sent) * keys.itemsize
        mine = payload[: 2 * cut].view(keys.dtype).reshape(2, -1)
        found.append((mine[0], mine[1], payload[2 * cut :].view(weight.dtype)))
    return found


def offsets_of(sizes: np.ndarray) -> np.ndarray:
    """Where each of several stretches of these sizes begins, and where the last one ends."""
    offsets = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
