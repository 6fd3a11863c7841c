"""What the copies of a vertex tell each other for a proof: masters' values to mirrors, mirrors' findings to masters.

Drivers, called by all ranks at the same point. Invariant: nothing here is shared with the synchronisation of the
algorithms whose results are proven (cpu_engine/comm/substrate.py): values travel whole, once, in the order of the lists
that the parts have agreed on. ``which`` names the copies: all of them, those with in-arcs, those with out-arcs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from cpu_engine.comm.requests import AllReduce, Driver, Exchange
from cpu_engine.graph.partition.part import Part

Which = Literal["all", "in", "out"]
Lists = Sequence[np.ndarray]
VALUES, FINDINGS = 9, 10  # tags


def send_to_mirrors(part: Part, which: Which, arrays: Sequence[np.ndarray]) -> Driver[None]:
    """Every mirror's entry becomes that of its master, in each of these arrays over local ids."""
    masters, mirrors = _masters(part, which), _mirrors(part, which)
    outgoing = {
        q: np.concatenate([array[mine].view(np.uint8) for array in arrays])
        for q, mine in enumerate(masters)
        if q != part.part and mine.size
    }
    came = yield Exchange(VALUES, outgoing, _peers(part, mirrors))
    for q, payload in came.items():
        begin = 0
        for array in arrays:
            end = begin + mirrors[q].size * array.itemsize
            array[mirrors[q]] = payload[begin:end].copy().view(array.dtype)
            begin = end


def gather_at_masters(part: Part, which: Which, values: np.ndarray, combine: np.ufunc) -> Driver[None]:
    """Every master's entry becomes that of all its copies together; peers are taken in the order of the ranks."""
    masters, mirrors = _masters(part, which), _mirrors(part, which)
    outgoing = {q: values[theirs].view(np.uint8) for q, theirs in enumerate(mirrors) if q != part.part and theirs.size}
    came = yield Exchange(FINDINGS, outgoing, _peers(part, masters))
    for q in sorted(came):
        values[masters[q]] = combine(values[masters[q]], came[q].copy().view(values.dtype))


def tell_mirrors(part: Part, which: Which, chosen: np.ndarray) -> Driver[np.ndarray]:
    """The mirrors here whose masters are ``chosen`` (a mask over local ids) where they live."""
    masters, mirrors = _masters(part, which), _mirrors(part, which)
    outgoing = {q: _places(chosen[mine]) for q, mine in enumerate(masters) if q != part.part and mine.size}
    came = yield Exchange(VALUES, outgoing, _peers(part, mirrors))
    told = [mirrors[q][came[q].copy().view(np.int32)] for q in sorted(came)]
    return np.concatenate(told) if told else np.empty(0, np.int32)


def tell_masters(part: Part, which: Which, amounts: np.ndarray) -> Driver[list[tuple[np.ndarray, np.ndarray]]]:
    """The masters here some of whose mirrors have an amount that is not 0 (int32 over local ids), and these amounts.

    A master is named once for each of those mirrors, but once only in each of the lists.
    """
    masters, mirrors = _masters(part, which), _mirrors(part, which)
    outgoing = {}
    for q, theirs in enumerate(mirrors):
        if q != part.part and theirs.size:
            mine = amounts[theirs]
            places = np.flatnonzero(mine).astype(np.int32)
            outgoing[q] = np.concatenate((places, mine[places])).view(np.uint8)
    came = yield Exchange(FINDINGS, outgoing, _peers(part, masters))
    told = []
    for q in sorted(came):
        places, theirs = came[q].copy().view(np.int32).reshape(2, -1)
        told.append((masters[q][places], theirs))
    return told


def by_rank(part: Part, values: Sequence[float]) -> Driver[np.ndarray]:
    """Every rank's numbers, [rank, number], at every rank: to the bit, so that all ranks come to the same sums."""
    table = np.zeros((part.layout.parts, len(values)), np.float64)
    table[part.part] = values
    shared = yield AllReduce(table.reshape(-1).view(np.int64))
    return np.array(shared, np.int64).view(np.float64).reshape(table.shape)


def share_findings(findings: np.ndarray, example: np.ndarray) -> Driver[tuple[np.ndarray, np.ndarray]]:
    """The findings of all ranks and of all their threads, added up, with one example of each kind."""
    kinds = findings.shape[-1]
    counts = yield AllReduce(findings.reshape(-1, kinds).sum(axis=0))
    counts = np.array(counts, np.int64)
    examples = yield AllReduce(example.reshape(-1, kinds).max(axis=0), "max")
    return counts, np.array(examples, np.int64)


def _masters(part: Part, which: Which) -> Lists:
    return {"all": part.mirrored, "in": part.masters_written_at, "out": part.masters_read_at}[which]


def _mirrors(part: Part, which: Which) -> Lists:
    if which == "in":
        return part.mirrors_with_in
    if which == "out":
        return part.mirrors_with_out
    return [np.arange(begin, end, dtype=np.int32) for begin, end in pairwise(part.mirror_bounds.tolist())]


def _peers(part: Part, lists: Lists) -> tuple[int, ...]:
    """Those who share such copies with this part."""
    return tuple(q for q, shared in enumerate(lists) if q != part.part and shared.size)


def _places(chosen: np.ndarray) -> np.ndarray:
    return np.flatnonzero(chosen).astype(np.int32).view(np.uint8)
