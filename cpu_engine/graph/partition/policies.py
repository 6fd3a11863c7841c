"""Which part an arc goes to: five policies, each a rule on the owners of its two ends.

Invariant: an arc's part is a function of the two ends alone, so that any reader of any slice deals it to the same
part. Every rule has the form ``source_term[u] + target_term[v]``, or ``target_term[v]`` alone where that is negative
(then it stands for ``~target_term[v]``); the kernels know nothing else of policies.

    oec   owner(u)                                   outgoing edge cut: all out-arcs of a vertex are with its master
    iec   owner(v)                                   incoming edge cut: all in-arcs of a vertex are with its master
    cvc   (row of owner(u), column of owner(v))      Cartesian vertex cut
    2d    (row of owner(v), column of owner(u))      the same on the transposed grid: expand by column, fold by row
    uvc   owner(v), but owner(u) where v has many in-arcs    hybrid cut of PowerLyra
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from cpu_engine.errors import InputError

POLICIES = ("oec", "iec", "cvc", "uvc", "2d")
HIGH_DEGREE_FACTOR = 2  # of the mean in-degree; docs/explanation/partitions.md has what other factors give


def check_policy(policy: str) -> None:
    """InputError if there is no such policy."""
    if policy not in POLICIES:
        raise InputError("no such partition policy", value=policy, fix=f"choose one of {', '.join(POLICIES)}")


def choose_grid(parts: int) -> tuple[int, int]:
    """Rows and columns of the most square grid of that many parts, no more rows than columns; 1 x P for a prime P."""
    rows = next(r for r in range(isqrt(parts), 0, -1) if parts % r == 0)
    return rows, parts // rows


def high_degree_threshold(n: int, m: int) -> int:
    """The largest in-degree at which the hybrid cut still keeps all in-arcs of a vertex together."""
    return HIGH_DEGREE_FACTOR * m // max(n, 1)


def arc_terms(
    policy: str, owner: np.ndarray, in_degree: np.ndarray, columns: int, threshold: int
) -> tuple[np.ndarray, np.ndarray]:
    """What each vertex contributes to its arcs' part as a source and as a target (see the module), int32."""
    check_policy(policy)
    mine = owner.astype(np.int32)
    nothing = np.zeros_like(mine)
    if policy == "oec":
        return mine, nothing
    if policy == "iec":
        return nothing, mine
    if policy == "cvc":
        return mine // columns * columns, mine % columns
    if policy == "2d":
        return mine % columns, mine // columns * columns
    return mine, np.where(in_degree > threshold, nothing, ~mine)
