"""One run for the Python interface: a unit of a job (hybrid/job/units.py), without plan, solver and folder.

Invariant: unless the caller says ``check=False``, a result that fails its check is computed again by a plain path and
checked again; what passes neither time is an error, never a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from hybrid.algorithms import algorithm_named
from hybrid.algorithms.algorithm import Algorithm, Task
from hybrid.api.options import configured
from hybrid.job.units import CpuAlone, compute_unit, prove_unit

if TYPE_CHECKING:
    from hybrid.api.graph import Graph
    from hybrid.api.results import Result

R = TypeVar("R", bound="Result")


def run(
    kind: type[R],
    graph: Graph,
    asked: str | Algorithm,
    *,
    check: bool,
    source: Any = None,
    options: dict[str, Any] | None = None,
) -> R:
    """Run an algorithm, of the library or given; options that are None are left to the defaults."""
    algorithm = algorithm_named(asked) if isinstance(asked, str) else asked
    given = {name: value for name, value in (options or {}).items() if value is not None}
    at = graph.source(source) if algorithm.sourced else None
    task = Task(graph.rows, configured(algorithm.name, given), at)
    algorithm.prepare(task)
    engine, alone, repair = graph.engine(algorithm), CpuAlone(), None
    if check:
        _, ((found, repair),), _ = prove_unit(algorithm, engine, [task], alone)
    else:
        (found,) = compute_unit(algorithm, engine, [task], alone)[0].found
    arrays = algorithm.to_user(task, found)
    return kind(graph, algorithm, task, arrays, found.counters, checked=check, repair=repair)
