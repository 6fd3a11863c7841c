"""Labels computed again by sorting, without the code that made them.

There is no certificate for label propagation: a result is what a given number of rounds makes of the ids. The check
runs the rounds again, each as one sort of (vertex, label) over all edges, in numpy; it costs several times the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.graph.graph import Graph


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
            return f"{self.iterations} rounds by sorting give the same labels"
        named = graph is not None and self.example >= 0
        who = f" (vertex {int(graph.user_ids[graph.user_position[self.example]])} for one)" if graph and named else ""
        return f"{self.wrong} labels differ from those of {self.iterations} rounds by sorting{who}"


def check_labels(graph: Graph, label: np.ndarray, *, iterations: int = 10) -> LabelsCheck:
    """Check labels, given as user ids, after ``iterations`` rounds (as asked for, not as run)."""
    label = np.asarray(label)
    if label.shape != (graph.n,):
        return LabelsCheck(max(1, graph.n), -1, iterations)
    right = graph.user_ids[graph.user_position].astype(np.int64)
    rows = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))
    ends = graph.out_targets.astype(np.int64)
    if graph.directed:
        rows, ends = np.concatenate([rows, ends]), np.concatenate([ends, rows])
    for _ in range(iterations if rows.size else 0):
        before, right = right, _next_round(rows, ends, right)
        if np.array_equal(before, right):
            break
    wrong = np.flatnonzero(right != label)
    return LabelsCheck(wrong.size, int(wrong[0]) if wrong.size else -1, iterations)


def _next_round(rows: np.ndarray, ends: np.ndarray, label: np.ndarray) -> np.ndarray:
    values = label[ends]
    order = np.lexsort((values, rows))
    row, value = rows[order], values[order]
    begins = np.flatnonzero(np.concatenate([[True], (row[1:] != row[:-1]) | (value[1:] != value[:-1])]))
    sizes = np.diff(np.append(begins, row.size))
    row, value = row[begins], value[begins]
    # The last of a row's runs by (size, then label descending) is the answer: later assignments win.
    best = np.lexsort((-value, sizes, row))
    fresh = label.copy()
    fresh[row[best]] = value[best]
    return fresh
