"""Graphs made on the spot: Graph500 Kronecker, uniform random, 2D grid.

Invariant: the edge list is a function of the arguments alone - not of the machine, the thread count or earlier calls.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.kernels.generate import fill_kronecker_step, fill_uniform_step
from cpu_engine.graph.memory import require_bytes
from cpu_engine.threads import threads_for

MAX_SCALE = 30  # of a whole list: internal ids are int32
MAX_SCALE_IN_PIECES, MAX_UNIFORM_SCALE = 36, 32  # vertices that can be numbered at all; bits of a draw
_EDGE_BYTES = 8  # two int32 ends
_SCRAMBLE_ROUNDS = 3
_U64 = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def kronecker(
    scale: int, edge_factor: int = 16, seed: int = 1, a: float = 0.57, b: float = 0.19, c: float = 0.19,
    *, edges: tuple[int, int] | None = None,
) -> EdgeList:  # fmt: skip
    """``edge_factor * 2**scale`` edges of a Graph500 Kronecker graph with scrambled ids.

    The fourth probability is 1 - a - b - c. Self-loops and duplicates are left in, as the specification has them.
    ``edges``: only those with a number in [first, last).
    """
    src, dst, first = _allocate(scale, edge_factor, edges)
    if min(a, b, c) < 0 or a + b + c > 1 + 1e-9:
        raise InputError(
            "the Kronecker probabilities must be non-negative with a + b + c <= 1",
            value=(a, b, c),
            fix="use Graph500's a=0.57, b=0.19, c=0.19",
        )
    below_a, below_ab, below_abc = (np.uint64(round(p * 2**32)) for p in (a, a + b, a + b + c))
    keys = [_draw(seed, i) for i in range(2 * _SCRAMBLE_ROUNDS + 1)]
    factor = np.array([k | 1 for k in keys[1::2]], np.uint64)
    addend = np.array(keys[2::2], np.uint64)
    shift = np.uint64((scale + 1) // 2 or 1)
    # The arithmetic wraps by design; numpy would warn when the JIT is off.
    with threads_for(src.size), np.errstate(over="ignore"):
        fill_kronecker_step(
            src, dst, first, scale, np.uint64(keys[0]), below_a, below_ab, below_abc, shift, factor, addend
        )
    return _undirected(src, dst, 2**scale, f"kronecker scale={scale} edge_factor={edge_factor} seed={seed}")


def uniform(scale: int, edge_factor: int = 16, seed: int = 1, *, edges: tuple[int, int] | None = None) -> EdgeList:
    """``edge_factor * 2**scale`` edges whose ends are drawn uniformly and independently from ``2**scale`` vertices.

    ``edges``: only those with a number in [first, last).
    """
    if edges is not None and scale > MAX_UNIFORM_SCALE:
        fix = f"choose at most {MAX_UNIFORM_SCALE}"
        raise InputError("the scale of a uniform graph is too large", value=scale, fix=fix)
    src, dst, first = _allocate(scale, edge_factor, edges)
    with threads_for(src.size), np.errstate(over="ignore"):
        fill_uniform_step(src, dst, first, scale, np.uint64(_draw(seed, 0)))
    return _undirected(src, dst, 2**scale, f"uniform scale={scale} edge_factor={edge_factor} seed={seed}")


def grid(rows: int, cols: int, *, edges: tuple[int, int] | None = None) -> EdgeList:
    """A rows x cols grid, each vertex joined to its four neighbours; vertex (r, c) has id ``r * cols + c``.

    ``edges``: only those with a number in [first, last); those across come first, row by row.
    """
    for name, value in (("rows", rows), ("cols", cols)):
        if value < 0:
            raise InputError(f"grid {name} must not be negative", value=value, fix="give at least 0")
    name = f"grid {rows} x {cols}"
    if edges is not None:
        return _undirected(*_grid_edges(rows, cols, *edges), rows * cols, name)
    if rows * cols >= 2**31:
        raise InputError(
            f"a grid of {rows} x {cols} has more vertices than 32-bit internal ids can number", fix="make it smaller"
        )
    across, down = rows * max(cols - 1, 0), max(rows - 1, 0) * cols
    require_bytes((across + down) * _EDGE_BYTES + rows * cols * 4, f"a grid of {rows} x {cols}", "make it smaller")
    ids = np.arange(rows * cols, dtype=np.int32).reshape(rows, cols)
    src, dst = np.empty((2, across + down), np.int32)
    for ends, right, below in ((src, ids[:, :-1], ids[:-1]), (dst, ids[:, 1:], ids[1:])):
        ends[:across].reshape(right.shape)[:] = right
        ends[across:].reshape(below.shape)[:] = below
    return _undirected(src, dst, rows * cols, name)


def _grid_edges(rows: int, cols: int, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """The edges with these numbers."""
    across = rows * max(cols - 1, 0)
    number = np.arange(first, last, dtype=np.int64)
    is_across = number < across
    row, place = np.divmod(number[is_across], max(cols - 1, 1))
    src = np.concatenate((row * cols + place, number[~is_across] - across))
    dst = src + np.where(is_across, 1, cols)
    dtype = np.int32 if rows * cols < 2**31 else np.int64
    return src.astype(dtype), dst.astype(dtype)


def _allocate(scale: int, edge_factor: int, edges: tuple[int, int] | None) -> tuple[np.ndarray, np.ndarray, np.uint64]:
    """Room for both ends of the edges, and the number of the first."""
    most = MAX_SCALE if edges is None else MAX_SCALE_IN_PIECES
    if not 0 <= scale <= most:
        raise InputError(f"the scale must be 0..{most} (2**scale vertices)", value=scale, fix=f"choose at most {most}")
    if edge_factor < 0:
        raise InputError("the edge factor must not be negative", value=edge_factor, fix="Graph500 uses 16")
    first, last = (0, edge_factor << scale) if edges is None else edges
    count = last - first
    require_bytes(
        count * _EDGE_BYTES, f"an edge list of scale {scale}, edge factor {edge_factor},", "choose a smaller scale"
    )
    dtype = np.int32 if scale <= MAX_SCALE else np.int64
    src, dst = np.empty((2, count), dtype)  # one block, which the build can use again as a whole
    return src, dst, np.uint64(first)


def _undirected(src: np.ndarray, dst: np.ndarray, count: int, name: str) -> EdgeList:
    return EdgeList(src, dst, id_range=(0, count), directed=False, format="generator", path=name)


def _draw(seed: int, counter: int) -> int:
    """splitmix64 on Python integers, for the few numbers a whole graph shares."""
    z = (seed + (counter + 1) * _GOLDEN) & _U64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _U64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _U64
    return z ^ (z >> 31)
