"""Does an edge list that claims to hold each edge in both directions really do so?

Invariant: a symmetric list always passes; another one fails unless two 64-bit sums collide.
"""

from __future__ import annotations

import numpy as np

CHUNK = 1 << 20
# Odd 64-bit multipliers with well-mixed bits (golden ratio; the finaliser of splitmix64).
_GOLDEN, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(31)


def is_symmetric(src: np.ndarray, dst: np.ndarray) -> bool:
    """Compare order-free sums of hash(u, v) and hash(v, u): O(m), no sort, a chunk of extra memory."""
    forward, backward = direction_sums(src, dst)
    return bool(forward == backward)


def direction_sums(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    """The sums of hash(u, v) and of hash(v, u), uint64; those of several lists are added up, wrapping."""
    sums = np.zeros(2, np.uint64)
    for start in range(0, len(src), CHUNK):
        u = src[start : start + CHUNK].astype(np.uint64)
        v = dst[start : start + CHUNK].astype(np.uint64)
        sums += np.array([_hash(u, v).sum(dtype=np.uint64), _hash(v, u).sum(dtype=np.uint64)])
    return sums


def edge_without_reverse(src: np.ndarray, dst: np.ndarray) -> int:
    """The first index whose reverse is missing (by sorting: only for the error message)."""
    order, reverse_order = np.lexsort((dst, src)), np.lexsort((src, dst))
    bad = (src[order] != dst[reverse_order]) | (dst[order] != src[reverse_order])
    at = int(np.argmax(bad))
    # The smaller one of the two differing pairs is the one that the other side lacks.
    here = (int(src[order[at]]), int(dst[order[at]]))
    there = (int(dst[reverse_order[at]]), int(src[reverse_order[at]]))
    return int(order[at] if here <= there else reverse_order[at])


def _hash(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    mixed = u * _GOLDEN
    mixed ^= mixed >> _SHIFT
    mixed += v
    mixed *= _MIX
    mixed ^= mixed >> _SHIFT
    return mixed * _GOLDEN
