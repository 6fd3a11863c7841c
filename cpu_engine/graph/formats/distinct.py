"""The distinct ids of long arrays.

Invariant: sorted ascending; extra memory of a byte per id in the range where the ids are dense, else of a sort.
"""

from __future__ import annotations

import numpy as np

DENSE = 8  # ids per value up to which a table of flags is smaller than a sorted copy


def distinct_ids(*arrays: np.ndarray) -> np.ndarray:
    """The ids (not negative) that occur in any of the arrays."""
    highest = max((int(ids.max()) for ids in arrays if len(ids)), default=-1)
    if highest < DENSE * sum(map(len, arrays)):
        seen = np.zeros(highest + 1, np.bool_)
        for ids in arrays:
            seen[ids] = True
        return np.flatnonzero(seen)
    return np.unique(np.concatenate(arrays))
