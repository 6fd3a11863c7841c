"""Random edges, each a pure function of (seed, edge index): the same list for any number of threads.

Randomness is splitmix64 used as a counter-based generator (Steele, Lea, Flood 2014); nothing carries state from one
edge to the next.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, splitmix64's increment
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
ONE = np.uint64(1)
LOW_32 = np.uint64(0xFFFFFFFF)
S27, S30, S31, S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


@njit(cache=True, inline="always")
def splitmix(seed, counter):
    """The ``counter``-th 64-bit draw of the stream ``seed``; both uint64."""
    z = seed + (counter + ONE) * GOLDEN
    z = (z ^ (z >> S30)) * MIX_1
    z = (z ^ (z >> S27)) * MIX_2
    return z ^ (z >> S31)


@njit(cache=True, inline="always")
def scramble(x, mask, shift, factor, addend):
    """A bijection of [0, mask], mask = 2^s - 1: odd multipliers carry upwards, the xor-shifts downwards."""
    for r in range(factor.shape[0]):
        x = (x * factor[r] + addend[r]) & mask
        x ^= x >> shift
    return x


@njit(cache=True, parallel=True)
def fill_kronecker_step(src, dst, first, scale, seed, below_a, below_ab, below_abc, shift, factor, addend):
    """Draw Kronecker edges: ``scale`` choices of a quadrant each, 32 random bits per choice, then scrambled ids.

    Invariant  src[i], dst[i] is edge ``first + i``, which depends on the arguments and its number alone; all ids are in
               [0, 2^scale).
    Races      iteration i writes only src[i] and dst[i].
    Work       O(edges * scale).
    """
    mask = (ONE << np.uint64(scale)) - ONE
    draws = np.uint64((scale + 1) // 2)
    for i in prange(src.shape[0]):
        u = np.uint64(0)
        v = np.uint64(0)
        counter = (first + np.uint64(i)) * draws
        bits = np.uint64(0)
        for depth in range(scale):
            if depth & 1 == 0:
                bits = splitmix(seed, counter)
                counter += ONE
            else:
                bits >>= S32
            r = bits & LOW_32
            low = np.uint64(r >= below_ab)
            right = np.uint64(r >= below_abc) | (np.uint64(r >= below_a) & (low ^ ONE))
            u = (u << ONE) | low
            v = (v << ONE) | right
        src[i] = scramble(u, mask, shift, factor, addend)
        dst[i] = scramble(v, mask, shift, factor, addend)


@njit(cache=True, parallel=True)
def fill_uniform_step(src, dst, first, scale, seed):
    """Draw both ends of each edge uniformly from [0, 2^scale), scale at most 32.

    Invariant  as fill_kronecker_step.
    Races      iteration i writes only src[i] and dst[i].
    Work       O(edges).
    """
    mask = (ONE << np.uint64(scale)) - ONE
    for i in prange(src.shape[0]):
        bits = splitmix(seed, first + np.uint64(i))
        src[i] = bits & mask
        dst[i] = (bits >> S32) & mask
