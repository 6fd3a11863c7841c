"""Arrays of results that went out of use, kept for the next: fresh pages of a large array cost as much as its values.

Invariant: an array is handed out again only when nothing else refers to it - no view, no buffer of it - so a result
is never written to while a caller can see it. At most one array per name is kept.
"""

from __future__ import annotations

import sys

import numpy as np

_OURS = 2  # references while an array is tried: the local name, and getrefcount's argument


class SpareArrays:
    """Arrays by name. Threads may share it: taking an array out of the dictionary is one operation."""

    def __init__(self) -> None:
        self._kept: dict[str, np.ndarray] = {}

    def take(self, name: str, size: int, dtype: type[np.generic]) -> np.ndarray:
        """An array of this size and type with any values, kept under ``name`` for the next call."""
        array = self._kept.pop(name, None)
        if array is None or sys.getrefcount(array) > _OURS or array.shape != (size,) or array.dtype != dtype:
            array = np.empty(size, dtype)
        self._kept[name] = array
        return array
