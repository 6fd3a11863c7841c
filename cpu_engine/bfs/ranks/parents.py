"""Parents on a partitioned graph: known or found at the end, by the part that holds the arc.

A master whose value came from another part carries that part's number (-2 - q) in place of a parent, and asks there;
one without a record (its value came from the core solver, say) asks every part that holds in-arcs of it. A question is
bits over the agreed list and the levels of those asked for; the answer is internal ids in the list's order.
Invariant: levels of masters, and of mirrors with out-arcs, are final; afterwards every reached master but the root has
a parent one step nearer, over a real arc.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import numpy as np

from cpu_engine.bfs.kernels.witness import answer_parents_step, find_parents_step, translate_parents_step
from cpu_engine.comm.requests import Exchange
from cpu_engine.graph.partition.part import Part
from cpu_engine.ranks.statistics import PARENTS, RankStatistics

WISHES, ANSWERS = 5, 6  # tags
_SHORT = 255  # if all levels are below, they travel as one byte each


def settle_parents(
    part: Part, level: np.ndarray, parent: np.ndarray, statistics: RankStatistics
) -> Generator[Any, Any, np.ndarray]:
    """Mend what was overtaken, ask for what others know; the masters' parents as internal ids."""
    with statistics.packing():
        find_parents_step(part.in_offsets, part.in_sources, level, parent[: part.masters])
    found: np.ndarray = yield from ask_parents(part, level, parent, statistics)
    return found


def ask_parents(
    part: Part, level: np.ndarray, parent: np.ndarray, statistics: RankStatistics
) -> Generator[Any, Any, np.ndarray]:
    """The masters' parents as internal ids: local ones translated, the others asked for."""
    found = np.empty(part.masters, np.int32)
    with statistics.packing():
        translate_parents_step(parent, part.internal_of, found)
    peers = [q for q in range(part.layout.parts) if q != part.part]
    askers = tuple(q for q in peers if part.mirrors_with_in[q].size)
    asked_of = {q: part.masters_written_at[q] for q in peers if part.masters_written_at[q].size}
    wishes = {q: _wished(masters, q, level, parent) for q, masters in asked_of.items()}
    if not askers and not wishes:
        return found
    with statistics.packing():
        questions = {q: _question(part, q, wish, level) for q, wish in wishes.items()}
    asked = yield from exchange_parents(WISHES, questions, askers, "bitset", statistics)
    with statistics.packing():
        answers = {q: _answer(part, part.mirrors_with_in[q], question, level, parent) for q, question in asked.items()}
    replies = yield from exchange_parents(ANSWERS, answers, tuple(wishes), "ids", statistics)
    with statistics.packing():
        for q, message in replies.items():
            masters = part.masters_written_at[q][wishes[q]]
            found[masters] = np.maximum(found[masters], message.view(np.int32))
    return found


def exchange_parents(
    tag: int, outgoing: dict[int, np.ndarray], expect: tuple[int, ...], form: str, statistics: RankStatistics
) -> Generator[Any, Any, dict[int, np.ndarray]]:
    """One side of asking for parents: an exchange that counts as traffic of parents."""
    for message in outgoing.values():
        statistics.sent(PARENTS, form, message.size)
    t0 = time.perf_counter()
    arrived: dict[int, np.ndarray] = yield Exchange(tag, outgoing, expect)
    statistics.waited(t0, PARENTS)
    return arrived


def _wished(masters: np.ndarray, q: int, level: np.ndarray, parent: np.ndarray) -> np.ndarray:
    mine = parent[masters]
    wished: np.ndarray = (mine == -2 - q) | ((mine == -1) & (level[masters] > 0))
    return wished


def _question(part: Part, q: int, wish: np.ndarray, level: np.ndarray) -> np.ndarray:
    levels = level[part.masters_written_at[q][wish]]
    short = levels.astype(np.uint8) if levels.size == 0 or levels.max() < _SHORT else levels.view(np.uint8)
    return np.concatenate((np.packbits(wish), short))


def _answer(part: Part, mirrors: np.ndarray, question: np.ndarray, level: np.ndarray, parent: np.ndarray) -> np.ndarray:
    bits = (mirrors.size + 7) // 8
    wanted = mirrors[np.unpackbits(question[:bits], count=mirrors.size).view(np.bool_)]
    sent = question[bits:].copy()
    levels = sent.astype(np.int32) if sent.size == wanted.size else sent.view(np.int32)
    found = np.empty(wanted.size, np.int32)
    answer_parents_step(wanted, levels, part.in_offsets, part.in_sources, level, parent, part.internal_of, found)
    return found.view(np.uint8)
