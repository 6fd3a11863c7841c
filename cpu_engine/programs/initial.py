"""The values that a field begins with; an operator that gives them is compiled once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cpu_engine.programs.field import Field
from cpu_engine.programs.program import VertexProgram
from cpu_engine.programs.rows import Rows
from cpu_engine.programs.text import NAMES, call_of, given, initial_text
from cpu_engine.schedule.entry import Bound, Kernel, real_threads


class Initial:
    """A field's initial value at each vertex of the rows."""

    def __init__(
        self,
        program: VertexProgram,
        field: Field,
        rows: Rows,
        scalars: Mapping[str, Any],
        degrees: np.ndarray | None,
    ) -> None:
        self._field, self._rows, self._threads = field, rows, real_threads()
        self._bound = self._bind(program, field.initial, scalars, degrees) if callable(field.initial) else None

    @property
    def constant(self) -> Any:
        """The value, if all have the same; else None."""
        initial = self._field.initial
        if initial is None:
            return self._field.neutral
        return None if callable(initial) or isinstance(initial, np.ndarray) else initial

    def fill(self, values: np.ndarray) -> None:
        """Give each vertex its value."""
        if self._bound is not None:
            self._bound.set("values", values)
            self._bound.run(self._threads)
        elif isinstance(self._field.initial, np.ndarray):
            values[:] = self._field.initial.astype(self._field.dtype)[self._rows.ids]
        else:
            values.fill(self.constant)

    def _bind(
        self, program: VertexProgram, initial: Any, scalars: Mapping[str, Any], degrees: np.ndarray | None
    ) -> Bound:
        call = call_of(program, "initial", initial, "now", scalars)
        text, parameters = initial_text(call)
        available: dict[str, Any] = {
            "threads": np.int64(self._threads),
            "values": np.empty(self._rows.n, self._field.dtype),
            **{given(name): value for name, value in scalars.items()},
        }
        if "ids" in parameters:
            available["ids"] = self._rows.ids
        if "degrees" in parameters:
            available["degrees"] = self._rows.degree if degrees is None else degrees
        passed = {name: available[name] for name in parameters}
        names = NAMES | {"initial": initial}
        return Kernel(text, names, passed, {"initial": call.like}, {"initial": self._field}).bind(**passed)
