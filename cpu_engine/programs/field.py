"""A value per vertex: its type, how it begins, how offers to it are combined, and where it is written and read."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cpu_engine.schedule.errors import OperatorError

Written = Literal["target", "any", "vertex"]  # along arcs, along arcs both ways, by the update operator
Read = Literal["source", "any", "vertex"]
REDUCTIONS = ("min", "max", "or", "add")


@dataclass(frozen=True)
class Field:
    """One field of a vertex program.

    ``initial``: a number, an array by internal id, or an operator of vertex, degree and parameters; without it the
    neutral element of the reduction (which is what a vertex has that nothing was offered to), or 0.
    ``reduction``: min, max, or, add; None for a field that the update operator assigns.
    """

    name: str
    dtype: Any
    initial: float | np.ndarray | Callable[..., Any] | None = None
    reduction: str | None = None
    written: Written = "target"
    read: Read = "source"

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise OperatorError(f"field {self.name!r} has no name that an argument can have", fix="use a plain name")
        dtype = np.dtype(self.dtype)
        object.__setattr__(self, "dtype", dtype)
        if dtype.kind not in "iuf" or dtype.itemsize not in (4, 8):
            raise self._wrong(f"has the type {dtype}", "use an integer or float of 32 or 64 bits")
        _one_of(self, "written", self.written, ("target", "any", "vertex"))
        _one_of(self, "read", self.read, ("source", "any", "vertex"))
        if self.written == "vertex":
            if self.reduction is not None:
                raise self._wrong("is written at the vertex, where nothing is reduced", "leave the reduction out")
        else:
            _one_of(self, "reduction", self.reduction, REDUCTIONS)
        if self.reduction == "or" and dtype.kind == "f":
            raise self._wrong("is reduced by or, which floats have no bits for", "use numpy.uint64")
        if (self.written == "any") != (self.read == "any") and "vertex" not in (self.written, self.read):
            raise self._wrong("is written and read along arcs in different ways", "use any for both or for neither")

    @property
    def neutral(self) -> Any:
        """What changes nothing: the value of a vertex that nothing was offered to."""
        dtype: np.dtype = self.dtype
        if self.reduction == "min":
            return dtype.type(np.inf if dtype.kind == "f" else np.iinfo(dtype).max)
        if self.reduction == "max":
            return dtype.type(-np.inf if dtype.kind == "f" else np.iinfo(dtype).min)
        return dtype.type(0)

    def _wrong(self, what: str, fix: str) -> OperatorError:
        return OperatorError(f"field {self.name!r} {what}", fix=fix)


def _one_of(field: Field, key: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        near = difflib.get_close_matches(str(value), allowed, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise OperatorError(
            f"field {field.name!r}: {key} is {value!r}", fix=f"{hint}it must be one of {', '.join(allowed)}"
        )
