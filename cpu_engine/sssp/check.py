"""The proof that shortest paths are right, made from the result and the graph alone.

A result is certified when the root has distance 0, every other reached vertex has a parent over an edge that is exactly
as long as their distances differ, parents lead to the root, and no edge leads nearer than its target's distance. Then
every distance is the length of a real path and none can be shortened, whatever code computed it.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.findings import Findings
from cpu_engine.graph.graph import Graph
from cpu_engine.sssp.kernels.check import ROOTLESS, STRAY, certify_paths_step, find_rootless_step
from cpu_engine.threads import alone_if_small


class PathCertificate(Findings):
    """The claims about shortest paths."""

    claims = (
        (
            "reached vertex without a parent over an edge of the right length",
            "reached vertices without a parent over an edge of the right length",
        ),
        ("edge that leads nearer than its target's distance", "edges that lead nearer than their target's distance"),
        ("vertex that wrongly is, or is not, the root", "vertices that wrongly are, or are not, the root"),
        (
            "unreached vertex with a parent or an impossible distance",
            "unreached vertices with a parent or an impossible distance",
        ),
        ("vertex whose parents do not lead to the root", "vertices whose parents do not lead to the root"),
    )
    sound = "every distance has a witness and no edge can improve one"


@alone_if_small
def check_sssp(graph: Graph, root: int, distance: np.ndarray, parent: np.ndarray) -> PathCertificate:
    """Check a (distance, parent) pair in internal ids against the graph."""
    findings, example = PathCertificate.start(numba.get_num_threads())
    largest: float
    if distance.dtype.kind == "f":
        distance, largest = distance.astype(np.float64, copy=False), float(np.finfo(np.float64).max)
        reached, possible = np.isfinite(distance), np.isposinf(distance) | (distance >= 0)
        weight = np.empty(0, np.float64) if graph.weight is None else graph.weight.astype(np.float64, copy=False)
    else:
        distance, largest = distance.astype(np.int64, copy=False), int(np.iinfo(np.int64).max)
        reached, possible = distance >= 0, distance >= -1
        weight = np.empty(0, np.int64) if graph.weight is None else graph.weight
    certify_paths_step(
        graph.out_offsets, graph.out_targets, weight, distance, reached, parent, root, largest, findings, example
    )
    impossible = np.flatnonzero(~possible)
    findings[0, STRAY] += impossible.size
    example[0, STRAY] = max(example[0, STRAY], impossible.max(initial=-1))
    state, path = np.zeros(graph.n, np.uint8), np.empty(graph.n, np.int32)
    findings[0, ROOTLESS], example[0, ROOTLESS] = find_rootless_step(distance, reached, parent, root, state, path)
    return PathCertificate.of(findings, example)
