"""What runs of all programs on rows have in common, whether values spread or are swept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cpu_engine.programs.launch import Launch, Step
from cpu_engine.programs.program import VertexProgram
from cpu_engine.programs.rows import Rows
from cpu_engine.programs.text import Call, call_of
from cpu_engine.schedule.entry import real_threads


class ProgramRun:
    """A program on rows. ``strategy``: push or pull, if it is not to be chosen by the run."""

    def __init__(
        self,
        program: VertexProgram,
        rows: Rows,
        parameters: Mapping[str, Any],
        *,
        degrees: np.ndarray | None = None,
        strategy: str | None = None,
        threads: int | None = None,
    ) -> None:
        self.program, self.rows, self.threads = program, rows, threads or real_threads()
        self.strategy = strategy
        self.round, self.steps, self.launches = 0, list[Step](), list[Launch]()
        self._parameters = dict(parameters)
        self._scalars = {**parameters, "round": 0, **dict.fromkeys(program.totals, 0.0)}
        self._degrees = degrees

    def _call(self, role: str, operator: Any, suffix: str) -> Call:
        weight = None
        if "weight" in self.program.wishes(role, operator):
            weight = self.rows.needed_weight.dtype.type(0)
        return call_of(self.program, role, operator, suffix, self._scalars, weight)

    def _row_arrays(self, parameters: list[str], out: bool) -> dict[str, Any]:
        """Those of a kernel's parameters that belong to the rows, of out-arcs or of in-arcs."""
        rows, arrays = self.rows, dict[str, Any]()
        if "weights" in parameters:
            arrays["weights"] = rows.needed_weight if out else rows.in_weight
        if "ids" in parameters:
            arrays["ids"] = rows.ids
        if "degrees" in parameters:
            arrays["degrees"] = rows.degree if self._degrees is None else self._degrees
        return arrays
