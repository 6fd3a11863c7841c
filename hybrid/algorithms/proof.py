"""From what a run found to arrays in the user's ids, and the proof of such arrays without the run.

Invariant: ``prove`` trusts the arrays, the graph and the configuration alone. What the run said of itself is a claim to
be proven: that it ended at its limit, and how near it was. It raises NotCertified with the reason, or answers with the
facts that the arrays bear out.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.graph.graph import Graph
from hybrid.algorithms.algorithm import Arrays, Description, Found, Task
from hybrid.algorithms.field import Shared, Unfit
from hybrid.errors import NotCertified

_CLOSE = 1e-9  # of facts that are sums of reals


def restore(description: Description, task: Task, found: Found) -> Arrays:
    """The arrays in the user's ids, aligned with graph.user_ids."""
    return description.to_user(task, found)


def take_in(description: Description, task: Task, outer: Arrays, claims: dict[str, Any] | None = None) -> Found:
    """The same backwards; Unfit if ``restore`` could not have written these arrays."""
    graph, isolated = task.graph, _isolated_values(description, task.graph, outer)
    found = Found(
        {one.name: one.to_internal(graph, outer[one.name]) for one in description.fields}, claims or {}, isolated
    )
    for name, again in restore(description, task, found).items():
        if not np.array_equal(again, outer[name]):
            at = int(np.argmax(again != outer[name]))
            raise Unfit(f"{name} of vertex {graph.user_ids[at]} is {outer[name][at]}, which cannot be")
    return found


def prove(
    description: Description, task: Task, outer: Arrays, folder: Path, claims: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The facts of a result whose arrays (in the user's ids) are right, and bear out the counters that the run claims.

    NotCertified otherwise.
    """
    try:
        found = take_in(description, task, outer, claims)
        check = description.check(task, found)
        reason = "" if check.holds else check.explain(task.graph)
    except Unfit as unfit:
        reason = str(unfit)
    if reason:
        about = "" if task.source is None else f"source {task.source.user_id}: "
        raise NotCertified(about + reason, path=folder, fix="run the job again; keep this folder as evidence")
    return description.facts(task, outer)


def same_facts(told: Any, borne_out: dict[str, Any]) -> bool:
    """Whether a summary tells what the arrays say; reals may differ by rounding."""

    def same(name: str, value: Any) -> bool:
        other = told.get(name)
        if isinstance(value, float) and isinstance(other, int | float) and abs(other) <= sys.float_info.max:
            return math.isclose(value, other, rel_tol=_CLOSE, abs_tol=_CLOSE)
        return bool(value == other)

    return isinstance(told, dict) and all(same(name, value) for name, value in borne_out.items())


def _isolated_values(description: Description, graph: Graph, outer: Arrays) -> dict[str, float]:
    """What isolated vertices share, read from one of them; nothing where there is none."""
    alone = np.flatnonzero(graph.internal_of_position < 0)[:1]
    shared = [one.name for one in description.fields if isinstance(one, Shared)]
    return {name: float(outer[name][alone[0]]) for name in shared if alone.size}
