"""Parents that were recorded while values fell: local ones are translated, the others asked for where they are known.

A master whose value came from part q carries -2 - q in place of a parent. Part q has the same value at its mirror, and
lowered it over an arc of its own, so its record is a local one. A question is bits over the agreed list; the answer is
internal ids in the list's order.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from cpu_engine.bfs.ranks.parents import ANSWERS, WISHES, exchange_parents
from cpu_engine.graph.partition.part import Part
from cpu_engine.ranks.statistics import RankStatistics


def ask_recorded(part: Part, parent: np.ndarray, statistics: RankStatistics) -> Generator[Any, Any, np.ndarray]:
    """The masters' parents as internal ids, -1 where there is none; ``parent`` has local ids."""
    mine = parent[: part.masters]
    found = np.full(part.masters, -1, np.int32)
    found[mine >= 0] = part.internal_of[mine[mine >= 0]]
    peers = [q for q in range(part.layout.parts) if q != part.part]
    askers = tuple(q for q in peers if part.mirrors_with_in[q].size)
    wishes = {q: mine[part.masters_written_at[q]] == -2 - q for q in peers if part.masters_written_at[q].size}
    if not askers and not wishes:
        return found
    with statistics.packing():
        questions = {q: np.packbits(wish) for q, wish in wishes.items()}
    asked = yield from exchange_parents(WISHES, questions, askers, "bitset", statistics)
    with statistics.packing():
        answers = {q: _answer(part, part.mirrors_with_in[q], bits, parent) for q, bits in asked.items()}
    replies = yield from exchange_parents(ANSWERS, answers, tuple(wishes), "ids", statistics)
    with statistics.packing():
        for q, message in replies.items():
            found[part.masters_written_at[q][wishes[q]]] = message.view(np.int32)
    return found


def _answer(part: Part, mirrors: np.ndarray, bits: np.ndarray, parent: np.ndarray) -> np.ndarray:
    wanted = mirrors[np.unpackbits(bits, count=mirrors.size).view(np.bool_)]
    return np.ascontiguousarray(part.internal_of[parent[wanted]], np.int32).view(np.uint8)
