"""Labels computed again in another way, without the code that made them.

There is no certificate for label propagation: a result is what a given number of rounds makes of the ids. The check
runs all rounds again for every vertex: it sorts the labels of few neighbours and counts those of many in an array of
all labels, where the run has hash tables. That takes about as long as the run (docs/explanation/performance.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.communities.kernels.check_labels import repeat_round_step
from cpu_engine.counted import plural
from cpu_engine.findings import for_one
from cpu_engine.graph.graph import Graph
from cpu_engine.threads import alone_if_small


@dataclass(frozen=True)
class LabelsCheck:
    """How many labels differ from those computed again, and one internal vertex that has one (-1: none)."""

    wrong: int
    example: int
    iterations: int

    @property
    def holds(self) -> bool:
        return not self.wrong

    def explain(self, graph: Graph | None = None) -> str:
        """One sentence; with the graph, the example is named by the user's id."""
        if self.holds:
            return f"{plural(self.iterations, 'round made again gives', 'rounds made again give')} the same labels"
        differ = plural(self.wrong, "label differs", "labels differ")
        return f"{differ} from those of {plural(self.iterations, 'round')} made again{for_one(graph, self.example)}"


@alone_if_small
def check_labels(graph: Graph, label: np.ndarray, *, iterations: int = 10) -> LabelsCheck:
    """Check labels, given as user ids, after ``iterations`` rounds (as asked for, not as run)."""
    label = np.asarray(label)
    if label.shape != (graph.n,):
        return LabelsCheck(max(1, graph.n), -1, iterations)
    threads = numba.get_num_threads()
    right = graph.user_position.astype(np.int32)  # as positions of user ids, which ascend with them
    fresh = right.copy()
    counts = np.zeros((threads, graph.user_ids.size), np.int32)
    changed = np.zeros(threads, np.int64)
    for _ in range(iterations if graph.n else 0):
        repeat_round_step(
            graph.out_offsets, graph.out_targets, graph.in_offsets, graph.in_sources, graph.directed, right, fresh,
            counts, changed, np.zeros(1, np.int64),
        )  # fmt: skip
        right, fresh = fresh, right
        if not changed.any():
            break
    wrong = np.flatnonzero(graph.user_ids[right] != label)
    return LabelsCheck(wrong.size, int(wrong[0]) if wrong.size else -1, iterations)
