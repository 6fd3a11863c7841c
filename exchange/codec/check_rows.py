"""Judges the rows of an answer, [B, k], against the rows that were asked about: pure, and all or nothing.

Invariant: rows without problems can be merged without harming a value that was sent (closing programs), and are of
the right mass (plus-times). They may still be wrong inside these bounds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from exchange.codec.text import VALUE_LIMIT
from exchange.counted import plural
from exchange.errors import ExchangeError
from exchange.protocol.programs import MIN_PLUS, ProgramFacts, Rows

_FIX = "correct the worker; the job goes on without it"
_ROUNDING = 2.0**-23  # of float32, twice over


def require_good_rows(
    program: ProgramFacts,
    found: Rows,
    sent: Rows,
    *,
    path: str | Path | None = None,
    min_step: int = 1,
    value_limit: int = VALUE_LIMIT,
    out_weight: npt.NDArray[np.float64] | None = None,
) -> None:
    """``check_rows``, raised as an ExchangeError when there is any problem."""
    limits = {"min_step": min_step, "value_limit": value_limit}
    problems = check_rows(program, found, sent, **limits, out_weight=out_weight)
    if problems:
        raise ExchangeError("; ".join(problems), path=path, fix=_FIX)


def check_rows(
    program: ProgramFacts,
    found: Rows,
    sent: Rows,
    *,
    min_step: int = 1,
    value_limit: int = VALUE_LIMIT,
    out_weight: npt.NDArray[np.float64] | None = None,
) -> list[str]:
    """What is wrong with an answer, one sentence per kind of problem; an empty list means that it may be used.

    ``min_step`` and ``value_limit``: as in ``check_answer``, for min-plus. ``out_weight[2, k]``: the sum of each
    vertex's weights inside the core, and that of their absolute values, for plus-times; None: not checked.
    """
    if found.shape != sent.shape or found.dtype != sent.dtype:
        return [f"{found.dtype} {list(found.shape)} in answer to {sent.dtype} {list(sent.shape)}"]
    if program.name == MIN_PLUS:
        return _check_closed(found, sent, min_step, value_limit)
    if program.name == "min-select":
        return _check_closed(found, sent, 0, VALUE_LIMIT) or _check_labels(found, sent)
    if program.name == "or-and":
        ghosts = (found > 0).any(axis=1) & ~(sent > 0).any(axis=1)
        return [f"{plural(_count(ghosts), 'row')} with marks although none were sent"] if ghosts.any() else []
    return [] if out_weight is None else _check_mass(found, sent, out_weight)


def _check_closed(found: Rows, sent: Rows, min_step: int, value_limit: int) -> list[str]:
    problems: list[str] = []
    given = sent >= 0
    impossible = found >= value_limit
    if impossible.any():
        limit = f"0..{value_limit - 1}"
        problems.append(f"{plural(_count(impossible), 'value')} outside {limit}, such as {_example(found, impossible)}")
    lacking = given & (found < 0)
    if lacking.any():
        problems.append(f"values sent are missing: {_count(lacking):,} of {_count(given):,}{_place(lacking)}")
    ghosts = (found >= 0).any(axis=1) & ~given.any(axis=1)
    if ghosts.any():
        problems.append(f"values in {plural(_count(ghosts), 'row')} although none were sent")
    if problems:
        return problems
    larger = given & (found > sent)
    if larger.any():
        problems.append(f"{plural(_count(larger), 'value')} larger than sent, such as {_example(found, larger)}")
    # Every new value is a sent one of its row plus at least one edge.
    floor = sent.min(axis=1, initial=VALUE_LIMIT - 1, where=given).astype(np.int64) + min_step
    small = (found >= 0) & (found < floor[:, None]) & (~given | (found < sent))
    if small.any():
        problems.append(f"{plural(_count(small), 'value')} too small to be true, such as {_example(found, small)}")
    return problems


def _check_labels(found: Rows, sent: Rows) -> list[str]:
    for row, (labels, known) in enumerate(zip(found, sent, strict=True)):
        new = np.setdiff1d(labels[labels >= 0], known[known >= 0])
        if new.size:
            return [
                f"{plural(new.size, 'label that was', 'labels that were')} not sent, such as {int(new[0])} in row {row}"
            ]
    return []


def _check_mass(found: Rows, sent: Rows, out_weight: npt.NDArray[np.float64]) -> list[str]:
    """What leaves the vertices arrives somewhere: row sums, to what float32 may lose on the way."""
    given = sent.astype(np.float64)
    expected = given @ out_weight[0]
    most = np.abs(given) @ out_weight[1]
    wrong = np.abs(found.astype(np.float64).sum(axis=1) - expected) > _ROUNDING * sent.shape[1] * most + 1e-30
    if not wrong.any():
        return []
    row = int(np.flatnonzero(wrong)[0])
    return [
        f"{plural(_count(wrong), 'row')} with a wrong sum, such as {float(found[row].sum()):.6g} in row {row} "
        f"where {expected[row]:.6g} belongs"
    ]


def _example(values: Rows, mask: npt.NDArray[np.bool_]) -> str:
    row, vertex = (int(place) for place in np.argwhere(mask)[0])
    return f"{int(values[row, vertex])} for vertex {vertex} in row {row}"


def _place(mask: npt.NDArray[np.bool_]) -> str:
    row, vertex = (int(place) for place in np.argwhere(mask)[0])
    return f", such as vertex {vertex} in row {row}"


def _count(mask: npt.NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(mask))
