"""A BFS result in a few bytes, so that every run of every contestant can be compared with the reference."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from benchmarks.contest.rounds import Finding

_BYTES = 16


def level_finding(level: np.ndarray) -> Finding:
    """Reached vertices, deepest level and a digest of all levels (int32, -1 = not reached)."""
    level = np.ascontiguousarray(level, np.int32)
    digest = hashlib.blake2b(level.data, digest_size=_BYTES).hexdigest()
    return Finding(int(np.count_nonzero(level >= 0)), int(level.max(initial=-1)), digest)


def edges_digest(src: np.ndarray, dst: np.ndarray) -> str:
    """A digest of a set of arcs, whatever their order: each arc's hash, added up."""
    mixed = (src.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(0xC2B2AE3D27D4EB4F)
    mixed = (mixed ^ (mixed >> np.uint64(31))) + dst.astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(32)
    return f"{src.size}:{int(mixed.sum(dtype=np.uint64)):016x}"


def joined_finding(findings: Iterable[Finding]) -> Finding:
    """One finding for a batch of runs: all reached vertices, the deepest level, a digest of the digests."""
    known = list(findings)
    digest = hashlib.blake2b("".join(one.digest or "" for one in known).encode(), digest_size=_BYTES).hexdigest()
    depth = max((one.depth for one in known if one.depth is not None), default=-1)
    return Finding(sum(one.reached for one in known), depth, digest)
