"""What keeps the programs exact, and how they say that they cannot be.

Invariant: inside a program every value is an integer below 2**24, which float32 adds and compares exactly. Values are
taken relative to the smallest one of their row; what could leave the range is refused beforehand (``ProgramError``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Values = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Matrix = npt.NDArray[np.float32]
KeepGoing = Callable[[], bool]

# "No value" and "no edge". The largest float32 up to which all integers are exact; x + UNREACHED is never below it.
UNREACHED = 2**24
# Values may differ by this much, and a path may add this much: the sum is still below UNREACHED.
EXACT_SPAN = 2**23
NO_VALUE = -1  # in the values of a batch: not reached


class ProgramError(Exception):
    """Input that this program cannot compute exactly; the text says why."""


class Interrupted(Exception):
    """``keep_going`` said no before the iteration had converged."""


def relative(values: npt.NDArray[np.integer]) -> tuple[Values, IntArray]:
    """Rows of values (``NO_VALUE``: none) counted from the smallest of each row (``UNREACHED``: none), and those."""
    given = values >= 0
    largest = np.iinfo(values.dtype).max
    base = values.min(axis=1, initial=largest, where=given)
    base[~given.any(axis=1)] = 0
    above = values - base[:, None]
    span = int(above.max(initial=0, where=given))
    if span > EXACT_SPAN:
        raise ProgramError(f"values span {span}, more than the {EXACT_SPAN} that float32 holds exactly")
    return np.where(given, above, UNREACHED).astype(np.int32, copy=False), base.astype(np.int64)


def absolute(rows: Values, base: IntArray) -> IntArray:
    """The inverse of ``relative``."""
    return np.where(rows < UNREACHED, rows + base[:, None], NO_VALUE)


def lightest_weight(weight: npt.NDArray[np.integer], vertices: int) -> int:
    """The smallest weight, after a check that no path can leave the exact range."""
    lightest, heaviest = int(weight.min()), int(weight.max())
    if lightest < 0:
        raise ProgramError(f"weight {lightest} is negative")
    if heaviest * (vertices - 1) > EXACT_SPAN:
        raise ProgramError(
            f"a path over {vertices} vertices with weights up to {heaviest} may be longer than the {EXACT_SPAN} that "
            "float32 holds exactly: choose a smaller core or smaller weights"
        )
    return lightest
