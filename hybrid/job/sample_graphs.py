"""Tiny graphs to run a job's kernels on before its clock starts: together they make an engine use all of them.

Invariant: a sample is of the same kind as the graph that it stands for - directed or not, the same type of weights, and
distances that need as many bits - as every kind has kernels of its own.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.sssp.rows import NARROW

_STAR_VERTICES = 40
_DENSE_VERTICES = 320  # some algorithms do with one thread below 65,536 edges
_SPARSE_VERTICES = 256
_LONGEST = 1 << 61  # paths in a sample


def samples_like(graph: Graph) -> list[Graph]:
    """A star, a clique and a sparse graph that stand for this one."""
    kind = None if graph.weight is None else graph.weight.dtype
    heaviest = 1
    if graph.weight is not None and graph.weight.size and graph.weight.dtype.kind in "iu":
        heaviest = int(graph.weight.max())
    longest = heaviest * max(graph.n - 1, 1)
    most = NARROW - 1 if heaviest < NARROW else _LONGEST
    samples = []
    for make in (sample_graph, dense_sample, sparse_sample):
        sample = make(directed=graph.directed, weight_kind=kind)
        wanted = min(longest, _LONGEST) // (sample.n - 1)
        samples.append(_with_heaviest(sample, max(1, min(wanted, most))))
    return samples


def sample_graph(*, directed: bool, weight_kind: np.dtype | None = None) -> Graph:
    """A star of 40 vertices with a tail."""
    sample = star_with_tail(_STAR_VERTICES)
    weight = None if weight_kind is None else np.ones(sample.m, weight_kind)
    return dataclasses.replace(sample, directed=directed, weight=weight, hanging_start=-1)


def dense_sample(*, directed: bool, weight_kind: np.dtype | None = None) -> Graph:
    """A clique with edges enough for the kernels of large graphs, and weights that differ."""
    n = _DENSE_VERTICES
    everybody = np.arange(n, dtype=np.int32)
    targets = np.broadcast_to(everybody, (n, n))[~np.eye(n, dtype=bool)]
    offsets = np.arange(n + 1, dtype=np.int64) * (n - 1)
    weight = None if weight_kind is None else (1 + (targets + everybody.repeat(n - 1)) % 64).astype(weight_kind)
    ids = everybody.astype(np.int64)
    return Graph(n, targets.size, directed, offsets, targets, offsets, targets, weight, ids, everybody, everybody)


def sparse_sample(*, directed: bool, weight_kind: np.dtype | None = None) -> Graph:
    """Two rings through the same vertices in random orders: no tree is large at once, and parts share ids with gaps."""
    n, rng = _SPARSE_VERTICES, np.random.default_rng(1)
    rings = [rng.permutation(n) for _ in range(2)]
    sample = _graph_of_pairs(n, np.concatenate([np.column_stack((ring, np.roll(ring, 1))) for ring in rings]))
    weight = None if weight_kind is None else np.ones(sample.m, weight_kind)
    return dataclasses.replace(sample, directed=directed, weight=weight, hanging_start=-1)


def star_with_tail(n: int) -> Graph:
    """A hub with n - 2 leaves, one of which has a leaf of its own: thin and thick levels, so push and pull both run."""
    return _graph_of_pairs(n, np.array([(0, v) for v in range(1, n - 1)] + [(1, n - 1)]))


def _graph_of_pairs(n: int, pairs: np.ndarray) -> Graph:
    """Each pair as an edge, once."""
    both = np.unique(np.concatenate((pairs, pairs[:, ::-1])), axis=0).astype(np.int32)
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(both[:, 0], minlength=n), out=offsets[1:])
    targets = np.ascontiguousarray(both[:, 1])
    ids = np.arange(n, dtype=np.int32)
    return Graph(n, targets.size, False, offsets, targets, offsets, targets, None, ids.astype(np.int64), ids, ids)


def _with_heaviest(graph: Graph, heaviest: int) -> Graph:
    """The same with whole weights stretched, so that the heaviest is about this heavy."""
    if graph.weight is None or graph.weight.dtype.kind == "f":
        return graph
    factor = max(1, heaviest // int(graph.weight.max()))
    return dataclasses.replace(graph, weight=graph.weight * graph.weight.dtype.type(factor))
