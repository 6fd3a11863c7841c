"""A traversal, proven or repaired in place: what a job does with a search, for tests that have no job."""

from __future__ import annotations

from cpu_engine.graph.graph import Graph
from hybrid.algorithms.algorithm import Found, Task
from hybrid.algorithms.bfs import Bfs
from hybrid.config.schema import Config
from hybrid.graphs.sources import Source
from hybrid.job.proof import count_false_values, prove_found
from hybrid.offload.traverse import Traversed
from hybrid.results.run_record import Repair
from hybrid.results.trace import Trace


def prove_in_place(
    graph: Graph, found: Traversed, root: int, core_size: int, trace: Trace
) -> tuple[int, Repair | None]:
    """How many levels had to change (at least 1 if anything had to), and the account of it.

    Of a search that a worker took part in, core values that turn out to be no path's length count as rejected.
    """
    task = Task(graph, Config(), Source(int(graph.user_id_of[root]), root))
    proven, repair = prove_found(Bfs(), task, Found({"level": found.level, "parent": found.parent}), trace)
    if repair is None:
        return 0, None
    level, parent = proven.arrays["level"], proven.arrays["parent"]
    if found.npu.rounds_merged:
        found.npu.values_rejected += count_false_values(found.level, level, core_size)
    found.level, found.parent = level, parent
    return max(1, repair.changed), repair  # of wrong parents alone, too


def prove_or_repair(graph: Graph, found: Traversed, root: int, core_size: int, trace: Trace) -> int:
    return prove_in_place(graph, found, root, core_size, trace)[0]
