"""The core programs on the CPU: the answers of a simulated device, computed while no clock runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cpu_engine.hub_core.kernels.closure import close_core_rows_step
from cpu_engine.hub_core.kernels.rows import skip_core_step
from exchange.protocol.programs import MIN_PLUS
from hybrid.worker.published_core import core_arcs

Program = Callable[[np.ndarray], tuple[np.ndarray, int]]  # values [k] or [B, k] to the answer, and its iterations
_NONE = np.iinfo(np.int64).max


def core_program(
    out_offsets: np.ndarray, out_targets: np.ndarray, k: int, program: str = MIN_PLUS, weight: np.ndarray | None = None
) -> Program:
    """The program on the edges among the first ``k`` vertices; its kernels are compiled after this."""
    if program == MIN_PLUS and weight is None:
        begin, end = out_offsets[:k], skip_core_step(out_offsets[: k + 1], out_targets, k)
        targets = out_targets.view(f"u{out_targets.itemsize}")
        close_core_rows_step(begin[:0], end[:0], targets, np.empty((0, 0), np.int32), np.empty(0, np.int64))
        return lambda values: _close_hops(begin, end, targets, values)
    source, target, own = core_arcs(out_offsets, out_targets, k, weight)
    if program == "plus-times":
        each = np.ones(source.size) if own is None else own.astype(np.float64)
        return lambda values: (_sum_arcs(source, target, each, k, values), 1)
    step = np.zeros(source.size, np.int64) if own is None else own.astype(np.int64)
    return lambda values: _close_values(source, target, step, values)


def _close_hops(begin: np.ndarray, end: np.ndarray, targets: np.ndarray, sent: np.ndarray) -> tuple[np.ndarray, int]:
    values = sent.copy()
    rows = values.reshape(-1, begin.size) if values.size else values.reshape(1 if sent.ndim == 1 else len(sent), 0)
    levels = np.zeros(rows.shape[0], np.int64)
    close_core_rows_step(begin, end, targets, rows, levels)
    return values, int(levels.max(initial=0))  # all rows are iterated on until the last has no news


def _close_values(source: np.ndarray, target: np.ndarray, step: np.ndarray, sent: np.ndarray) -> tuple[np.ndarray, int]:
    """Each value the least that a path of core edges leads to; -1 is none."""
    rows = np.where(sent < 0, _NONE, sent.astype(np.int64)).reshape(-1, sent.shape[-1])
    iterations, changed = 0, bool(source.size)
    while changed:
        before = rows.copy()
        for row in rows:
            known = row[source] < _NONE
            np.minimum.at(row, target[known], row[source[known]] + step[known])
        iterations += 1
        changed = not np.array_equal(before, rows)
    return np.where(rows == _NONE, -1, rows).astype(sent.dtype).reshape(sent.shape), iterations


def _sum_arcs(source: np.ndarray, target: np.ndarray, each: np.ndarray, k: int, sent: np.ndarray) -> np.ndarray:
    """To each vertex, what its core arcs pass on."""
    rows = sent.reshape(-1, sent.shape[-1])
    sums = [np.bincount(target, row[source] * each, minlength=k) for row in rows]
    return np.array(sums, np.float32).reshape(sent.shape)
