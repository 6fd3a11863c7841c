"""Errors that ranks agree on: what one rank finds wrong, all of them raise at the same point.

Invariant: of several errors it is the one of the lowest rank, so that the first in a file's order wins where ranks read
ranges of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from cpu_engine.comm.collectives import RankInfo, broadcast_facts
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.errors import InputError

T = TypeVar("T")


class AgreedInputError(InputError):
    """An InputError that every rank raises."""


def agree(info: RankInfo, error: InputError | None) -> Driver[None]:
    """Go on if no rank comes with an error; else ``AgreedInputError`` at every rank."""
    mine = info.size if error is None else info.rank
    first = int((yield AllReduce(np.array([mine], np.int64), "min", patient=True))[0])
    if first == info.size:
        return
    facts: dict[str, Any] = {}
    if error is not None:
        value = error.value if isinstance(error.value, (int, float, str, type(None))) else str(error.value)
        path = None if error.path is None else str(error.path)
        facts = {"reason": error.reason, "path": path, "line": error.line, "value": value, "fix": error.fix}
    found = yield from broadcast_facts(info, facts, first)
    raise AgreedInputError(found.pop("reason"), **found)


def together(info: RankInfo, work: Callable[[], T]) -> Driver[T]:
    """What this rank's work returns, once no rank's work has ended in an InputError."""
    error, done = None, None
    try:
        done = work()
    except InputError as wrong:
        error = wrong
    yield from agree(info, error)
    return done  # type: ignore[return-value]
