"""The programs that a round can ask for: their names, their kind of value, and what an answer to each looks like.

Pure facts, shared by both sides. ``min-plus`` is the protocol's own program, which needs no name in a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exchange.errors import ExchangeError

MIN_PLUS = "min-plus"
NONE = -1  # in integer rows: this vertex has no value
Rows = npt.NDArray[Any]  # [B, k], int32 or float32


@dataclass(frozen=True)
class ProgramFacts:
    """One program. ``closes``: to the fixed point, and -1 is "none"; else one step, and every vertex has a value."""

    name: str
    kind: str  # of its values: int32 or float32
    closes: bool
    weights: str | None  # of its edges: int, float32, or none at all

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.kind)

    @property
    def empty(self) -> int:
        """What a vertex holds that has no line."""
        return NONE if self.closes else 0


PROGRAMS = {
    program.name: program
    for program in (
        ProgramFacts(MIN_PLUS, "int32", closes=True, weights="int"),
        ProgramFacts("min-select", "int32", closes=True, weights=None),
        ProgramFacts("plus-times", "float32", closes=False, weights="float32"),
        ProgramFacts("or-and", "int32", closes=False, weights=None),
    )
}


def program_facts(name: str, path: object = None) -> ProgramFacts:
    """The program of that name; ExchangeError when there is none."""
    if name not in PROGRAMS:
        raise ExchangeError(
            "there is no such program",
            path=None if path is None else str(path),
            value=name,
            fix=f"name one of {', '.join(PROGRAMS)}",
        )
    return PROGRAMS[name]


def require_rows(program: ProgramFacts, rows: Rows) -> None:
    """Rows that may be sent: the program's type, and no number that means nothing to it."""
    if rows.ndim != 2 or rows.dtype != program.dtype:
        raise ExchangeError(
            f"{program.name} takes {program.kind} values, one vector or [B, k]",
            value=f"{rows.dtype} {list(rows.shape)}",
            fix=f"send an array of {program.kind}",
        )
    problem = row_problem(program, rows)
    if problem:
        raise ExchangeError(problem, fix=f"see the values of {program.name} in docs/reference/protocol.md")


def row_problem(program: ProgramFacts, rows: Rows) -> str:
    """Why rows of the right type cannot be values of this program; empty when they can."""
    if not rows.size:
        return ""
    if program.kind == "float32":
        return "" if np.isfinite(rows).all() else "a value is not a finite number"
    least = int(rows.min())
    if least < program.empty:
        return f"a value of {least} is below the least possible, {program.empty}"
    if program.name == "or-and" and int(rows.max()) > 1:
        return f"a value of {int(rows.max())}, where only 0 and 1 belong"
    return ""
