"""One run for the Python interface: compute, check, bring home to the user's ids. What a job does, without its folder.

Invariant: unless the caller says ``check=False``, a result that fails its check is computed again by a plain path and
checked again; what passes neither time is an error, never a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from hybrid.algorithms.algorithm import Algorithm, Description, Found, Task
from hybrid.algorithms.proof import restore
from hybrid.api.options import configured
from hybrid.job.proof import prove_found
from hybrid.results.trace import Trace

if TYPE_CHECKING:
    from hybrid.api.graph import Graph
    from hybrid.api.results import Result

R = TypeVar("R", bound="Result")


def run_algorithm(
    kind: type[R],
    graph: Graph,
    algorithm: Algorithm,
    *,
    check: bool,
    source: Any = None,
    options: dict[str, Any] | None = None,
) -> R:
    """Run an algorithm of the library."""
    task = make_task(graph, algorithm, source, options)
    algorithm.prepare(task)
    return conclude(kind, graph, algorithm, task, algorithm.run(task), check=check)


def run_search(kind: type[R], graph: Graph, source: Any, *, check: bool) -> R:
    """A BFS by the graph's own engine."""
    from hybrid.algorithms.bfs import Bfs, reach_nothing
    from hybrid.offload.traverse import traverse_alone

    description = Bfs()
    task = make_task(graph, description, source, None)
    if task.root < 0:
        return conclude(kind, graph, description, task, reach_nothing(task), check=check)
    found = traverse_alone(graph.searcher, task.root)
    counters = {"steps": found.steps, "edges_looked_at": found.edges_looked_at}
    arrays = {"level": found.level, "parent": found.parent}
    return conclude(kind, graph, description, task, Found(arrays, counters), check=check)


def run_routes(kind: type[R], graph: Graph, source: Any, delta: float | None, *, check: bool) -> R:
    """Shortest paths by the graph's own engine."""
    from hybrid.algorithms.shortest_paths import ShortestPaths

    algorithm = ShortestPaths()
    task = make_task(graph, algorithm, source, {"sssp.delta": delta})
    if task.root < 0:
        return conclude(kind, graph, algorithm, task, algorithm.run(task), check=check)
    found = graph.router(delta).run(task.root)
    counters = {"steps": found.steps, "relaxations": found.relaxations, "delta": found.delta}
    arrays = {"distance": found.distance, "parent": found.parent}
    return conclude(kind, graph, algorithm, task, Found(arrays, counters), check=check)


def make_task(graph: Graph, description: Description, source: Any, options: dict[str, Any] | None) -> Task:
    """What is asked, with the options that are not None."""
    given = {name: value for name, value in (options or {}).items() if value is not None}
    at = graph.source(source) if description.sourced else None
    return Task(graph.rows, configured(description.name, given), at)


def conclude(kind: type[R], graph: Graph, description: Description, task: Task, found: Found, *, check: bool) -> R:
    """Prove, or repair, what was found, and make it the user's; NotCertified if nothing passes the check."""
    repair = None
    if check:
        found, repair = prove_found(description, task, found, Trace())
    arrays = restore(description, task, found)
    return kind(graph, description, task, arrays, found.counters, checked=check, repair=repair)
