"""A rank's rows of a result: its masters' proven values as columns over its own vertices, in the user's ids.

The rows of all ranks, one after the other, are the arrays that a job on the whole graph writes, value by value
(hybrid/algorithms/field.py). Drivers, called by all ranks at the same point.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.comm.requests import Driver
from cpu_engine.ranks.algorithms import PartFinding
from hybrid.algorithms.algorithm import Arrays, Description
from hybrid.algorithms.field import INT, Field, Label, Parent, UserLabel
from hybrid.ranks.shared_graph import SharedGraph


def rows_of(description: Description, shared: SharedGraph, finding: PartFinding, source: int | None) -> Driver[Arrays]:
    """Every column; ``source``: the user's id of the start vertex."""
    arrays: Arrays = {}
    for one in description.fields:
        field = one.settled(finding.isolated)
        arrays[one.name] = yield from _column(field, shared, finding.arrays[one.name], source)
    return arrays


def _column(field: Field, shared: SharedGraph, values: np.ndarray, source: int | None) -> Driver[np.ndarray]:
    if isinstance(field, Label | UserLabel):
        rows = shared.row_ids.astype(INT)  # an isolated vertex is a group of its own
        named = isinstance(field, Label)
        rows[shared.places] = (yield from shared.smallest_members(values)) if named else values
        return rows
    own: float | None = field.own
    if isinstance(field, Parent):
        rows = np.full(shared.rows, -1, INT)
        rows[shared.places] = yield from shared.names_of(values)
        own = source
    else:
        blank = field.isolated if own is None else field.unreached(values.dtype)
        rows = np.full(shared.rows, blank, values.dtype)
        rows[shared.places] = values
    if source is not None and own is not None:
        at = int(np.searchsorted(shared.row_ids, source))
        if at < shared.rows and shared.row_ids[at] == source:
            rows[at] = own  # also right for a source without edges
    return rows
