"""The proof that the levels of many searches are right, made from the levels and the graph alone; no parents needed.

Levels are certified when only the root has level 0, every other reached vertex has an in-neighbour one level nearer,
and no edge leads from a reached vertex more than one level further. Then every value is the length of a real path and
none can be shortened, whatever code computed it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from cpu_engine.bfs.many.kernels.levels_check import check_levels_step
from cpu_engine.counted import plural
from cpu_engine.findings import explain_counts
from cpu_engine.graph.graph import Graph
from cpu_engine.threads import threads_for

CLAIMS = (  # of one finding, of several
    (
        "reached vertex without an in-neighbour one step nearer",
        "reached vertices without an in-neighbour one step nearer",
    ),
    ("vertex with an edge from more than one level nearer", "vertices with an edge from more than one level nearer"),
    ("vertex that wrongly is, or is not, the root", "vertices that wrongly are, or are not, the root"),
)
_COLUMNS = 64  # of the table at once: a row of bytes is a cache line


@dataclass(frozen=True, eq=False)
class LevelsCertificate:
    """The findings by [root, kind]; ``holds`` when there are none."""

    findings: np.ndarray
    examples: np.ndarray  # one internal vertex per root and kind, -1 where there is none

    @property
    def holds(self) -> bool:
        return not self.findings.any()

    @property
    def wrong(self) -> np.ndarray:
        """Which searches are not proven."""
        return np.flatnonzero(self.findings.any(axis=1))

    def explain(self, graph: Graph | None = None) -> str:
        """One sentence on what is wrong; with the graph, one vertex of each kind is named by the user's id."""
        if self.holds:
            return "every level has a witness and no edge can improve one"
        wrong = explain_counts(CLAIMS, self.findings.sum(axis=0), self.examples.max(axis=0), graph)
        return f"{wrong}; in {self.wrong.size} of {plural(self.findings.shape[0], 'search')}"


def check_levels(graph: Graph, roots: np.ndarray, level: np.ndarray) -> LevelsCertificate:
    """Check level[root, vertex] in internal ids, any signed type, -1 = not reached, against the graph."""
    roots = np.asarray(roots, np.int64)
    threads, kinds = numba.get_num_threads(), len(CLAIMS)
    findings, examples = np.zeros((roots.size, kinds), np.int64), np.full((roots.size, kinds), -1, np.int64)
    cells, stride = _flat(level)
    sources = graph.in_sources.view(f"u{graph.in_sources.itemsize}")
    for first in range(0, roots.size, _COLUMNS):
        some = roots[first : first + _COLUMNS]
        found = np.zeros((threads, some.size, kinds), np.int64)
        example = np.full((threads, some.size, kinds), -1, np.int64)
        with threads_for((graph.n + graph.m) * some.size):
            check_levels_step(graph.in_offsets, sources, cells, stride, first, some, found, example)
        findings[first : first + _COLUMNS] = found.sum(axis=0)
        examples[first : first + _COLUMNS] = example.max(axis=0)
    return LevelsCertificate(findings, examples)


def _flat(level: np.ndarray) -> tuple[np.ndarray, int]:
    """The table with a row per vertex as one stretch, unsigned, and the length of a row; copied only if need be."""
    rows = level.T
    size = rows.itemsize
    if (
        (rows.shape[1] > 1 and rows.strides[1] != size)
        or rows.strides[0] < rows.shape[1] * size
        or rows.strides[0] % size
    ):
        rows = np.ascontiguousarray(rows)
    if not rows.size:
        return np.empty(0, f"u{size}"), 0
    stride = rows.strides[0] // size
    length = (rows.shape[0] - 1) * stride + rows.shape[1]
    flat = np.lib.stride_tricks.as_strided(rows, (length,), (size,), writeable=False)
    return flat.view(f"u{size}"), stride
