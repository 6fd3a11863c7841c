"""The proof of a BFS result on ranks: each part checks its own arcs and masters, and no rank reads another's graph.

Masters send their level to every mirror, and their parent to the mirrors with in-arcs, once. A part then checks each of
its arcs, and answers for each parent whether an arc of its own witnesses it; a master needs one such answer. Every arc
is in exactly one part, so the findings of all parts together are those of ``certify`` on the whole graph: the same
claims, counted the same.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.bfs.certificate import Certificate
from cpu_engine.bfs.ranks.kernels.proof import check_arcs_step, judge_masters_step
from cpu_engine.comm.requests import AllReduce, Driver, Exchange
from cpu_engine.graph.partition.part import Part

VALUES, WITNESSED = 7, 8  # tags


def certify_on_ranks(part: Part, level: np.ndarray, parent: np.ndarray, root: int) -> Driver[Certificate]:
    """Check the masters' levels and parents (internal ids) from all ranks together; the same certificate on each."""
    levels, parents = np.full(part.size, -1, np.int32), np.full(part.size, -1, np.int64)
    levels[: part.masters], parents[: part.masters] = level, parent
    yield from _send_values(part, levels, parents)
    findings, example = Certificate.start(numba.get_num_threads())
    witnessed = np.zeros(part.size, np.uint8)
    rows = (part.in_offsets, part.in_sources, part.internal_of)
    check_arcs_step(*rows, levels, parents, witnessed, findings, example)
    yield from _gather_witnesses(part, witnessed)
    judge_masters_step(part.internal_of[: part.masters], levels, parents, witnessed, root, findings, example)
    counts = yield AllReduce(findings.sum(axis=0))
    examples = yield AllReduce(example.max(axis=0), "max")
    return Certificate.of(np.asarray(counts), np.asarray(examples))


def _send_values(part: Part, levels: np.ndarray, parents: np.ndarray) -> Driver[None]:
    """Levels to all mirrors; parents to those with in-arcs, which may witness them."""
    peers = [q for q in range(part.layout.parts) if q != part.part]
    outgoing = {
        q: np.concatenate((levels[part.mirrored[q]].view(np.uint8), parents[part.masters_written_at[q]].view(np.uint8)))
        for q in peers
        if part.mirrored[q].size
    }
    groups = {q: slice(*part.mirror_bounds[q : q + 2].tolist()) for q in peers}
    expected = tuple(q for q in peers if groups[q].start < groups[q].stop)
    came = yield Exchange(VALUES, outgoing, expected)
    for q, payload in came.items():
        cut = 4 * (groups[q].stop - groups[q].start)
        levels[groups[q]] = payload[:cut].copy().view(np.int32)
        parents[part.mirrors_with_in[q]] = payload[cut:].copy().view(np.int64)


def _gather_witnesses(part: Part, witnessed: np.ndarray) -> Driver[None]:
    """A bit from each mirror with in-arcs to its master: whether an arc there is from the master's parent."""
    peers = [q for q in range(part.layout.parts) if q != part.part]
    outgoing = {q: np.packbits(witnessed[part.mirrors_with_in[q]]) for q in peers if part.mirrors_with_in[q].size}
    expected = tuple(q for q in peers if part.masters_written_at[q].size)
    came = yield Exchange(WITNESSED, outgoing, expected)
    for q, payload in came.items():
        masters = part.masters_written_at[q]
        witnessed[masters] |= np.unpackbits(payload, count=masters.size)
