"""Kernels that do nothing but move bytes.

Each thread goes over its own part of the arrays several times, so that waking the threads costs little beside it even
where the arrays fit a cache.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange


@njit(cache=True, parallel=True)
def fill_step(values: np.ndarray, lanes: int) -> None:
    """Write every value, each part by the thread that will use it, so that its pages are near.

    Invariant  none.   Races  lane t writes only its part.   Work  8 n bytes written.
    """
    for t in prange(lanes):
        for i in range(t * values.size // lanes, (t + 1) * values.size // lanes):
            values[i] = i


@njit(cache=True, parallel=True)
def sum_step(values: np.ndarray, lanes: int, rounds: int) -> int:
    """Read every value ``rounds`` times, in order.

    Invariant  none.   Races  a reduction.   Work  8 n bytes read per round.
    """
    total = 0
    for t in prange(lanes):
        part = values[t * values.size // lanes : (t + 1) * values.size // lanes]
        mine = 0
        for turn in range(rounds):
            one = 0
            for i in range(part.size):
                one += part[i]
            mine ^= one + turn
        total += mine
    return total


@njit(cache=True, parallel=True)
def copy_step(values: np.ndarray, target: np.ndarray, lanes: int, rounds: int) -> None:
    """Copy every value ``rounds`` times.

    Invariant  both have the same length.   Races  lane t writes only its part.   Work  8 n read, 8 n written per round.
    """
    for t in prange(lanes):
        begin, end = t * values.size // lanes, (t + 1) * values.size // lanes
        for turn in range(rounds):
            for i in range(begin, end):
                target[i] = values[i] + turn


@njit(cache=True, parallel=True)
def gather_step(values: np.ndarray, order: np.ndarray, lanes: int, rounds: int) -> int:
    """Read values at the places that ``order`` names; the places do not depend on each other, as in a BFS.

    Invariant  0 <= order < values.size.   Races  a reduction.   Work  order.size scattered reads per round.
    """
    total = 0
    for t in prange(lanes):
        part = order[t * order.size // lanes : (t + 1) * order.size // lanes]
        mine = 0
        for turn in range(rounds):
            one = 0
            for i in range(part.size):
                one += values[part[i]]
            mine ^= one + turn
        total += mine
    return total


@njit(cache=True)
def scatter_order_step(order: np.ndarray, span: int) -> None:
    """Fill ``order`` with places below ``span`` in no order (a multiplicative hash of their index).

    Invariant  after: 0 <= order < span.   Races  none, one thread.   Work  O(n).
    """
    for i in range(order.size):
        mixed = np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        order[i] = np.int32((mixed >> np.uint64(33)) % np.uint64(span))
