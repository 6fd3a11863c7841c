"""What a level-synchronous BFS sends on any number of ranks, from one process: counted on the graph, not estimated.

Level by level, a part finds every vertex that it holds an in-arc of, one step after the nearest source of these; it
sends them to the owner (fold), which sends them to the holders of out-arcs (spread); in the end it asks for the parents
that another part has found. So, given the levels, the messages between parts follow from the cut alone. Pure.

Exact: how many vertices travel between each two parts in each level. Bytes follow by the form that
cpu_engine.bfs.ranks.level_synchronous gives a message, if every part lists what it finds; where it does not (it
pulled), it sends bits even where places in the list were shorter.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cpu_engine.bfs.ranks.kernels.level_bits import HEADER
from cpu_engine.comm.encoding import places_are_shorter
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition.layout import layout_terms, make_layout
from cpu_engine.graph.partition.prediction import Prediction

_CHUNK_ARCS = 1 << 21
_SHORT_LEVEL = 255  # if all are below, a question for parents names each level in one byte


@dataclass(frozen=True, eq=False)
class PhaseVolume:
    """One kind of exchange, by round and part; each neighbouring part gets a message in every round, empty or not."""

    receivers: np.ndarray  # int64[parts]
    senders: np.ndarray
    bytes_out: np.ndarray  # int64[rounds, parts]
    bytes_in: np.ndarray
    messages: int  # that are not empty
    updates: int  # vertices in them

    @property
    def bytes(self) -> int:
        return int(self.bytes_out.sum())


@dataclass(frozen=True, eq=False)
class SearchVolume:
    """All that one search sends."""

    rounds: int
    fold: PhaseVolume
    spread: PhaseVolume
    wishes: PhaseVolume  # for parents
    answers: PhaseVolume

    @property
    def updating(self) -> tuple[PhaseVolume, PhaseVolume]:
        """The phases of every level; parents are settled once at the end."""
        return self.fold, self.spread

    @property
    def asking(self) -> tuple[PhaseVolume, PhaseVolume]:
        return self.wishes, self.answers


def search_volume(graph: Graph, prediction: Prediction, level: np.ndarray) -> SearchVolume:
    """The volume of the search that gave these levels (one vertex has level 0), on the predicted parts."""
    parts = prediction.parts
    (folds, spreads, asked, finds, masters), last_round = _survey(graph, prediction, level)
    rounds = 1 + int(max(last_round, level.max(initial=0)))
    listed_finds = _per_round(finds, rounds, parts)
    lists_fold, lists_spread = prediction.written.T, prediction.read  # [receiver, sender]
    fold_bits = _as_bits(folds, lists_fold, listed_finds)
    fold = _phase(folds, _form_bytes(folds, lists_fold, fold_bits), lists_fold, rounds)
    # A part that received bits has no list of its updates.
    unlisted = np.zeros((rounds, parts), np.bool_)
    unlisted[folds.round[fold_bits], folds.receiver[fold_bits]] = True
    listed = np.maximum(listed_finds, _per_round(masters, rounds, parts))
    spread_bits = _as_bits(spreads, lists_spread, listed) | unlisted[spreads.round, spreads.sender]
    spread = _phase(spreads, _form_bytes(spreads, lists_spread, spread_bits), lists_spread, rounds)
    return SearchVolume(rounds, fold, spread, *_parents(asked, lists_fold))


# ------------------------------------------------------------------------------------------------ counting


@dataclass(frozen=True, eq=False)
class _Messages:
    """How many vertices went from one part to another in a round; each (round, sender, receiver) once."""

    round: np.ndarray
    sender: np.ndarray
    receiver: np.ndarray
    count: np.ndarray


class _Counter:
    """Counts (round, sender, receiver), kept small by counting chunk by chunk."""

    def __init__(self, parts: int) -> None:
        self._parts = parts
        self._keys: list[np.ndarray] = []
        self._counts: list[np.ndarray] = []

    def add(self, rounds: np.ndarray, sender: np.ndarray, receiver: np.ndarray) -> None:
        keys = (rounds.astype(np.int64) * self._parts + sender) * self._parts + receiver
        found, counts = np.unique(keys, return_counts=True)
        self._keys.append(found)
        self._counts.append(counts)

    def total(self) -> _Messages:
        keys = np.concatenate([np.empty(0, np.int64), *self._keys])
        found, place = np.unique(keys, return_inverse=True)
        counts = np.zeros(found.size, np.int64)
        np.add.at(counts, place, np.concatenate([np.empty(0, np.int64), *self._counts]))
        rest, receiver = np.divmod(found, self._parts)
        rounds, sender = np.divmod(rest, self._parts)
        return _Messages(rounds, sender, receiver, counts)


def _survey(graph: Graph, prediction: Prediction, level: np.ndarray) -> tuple[list[_Messages], int]:
    """Folds; spreads; the owner's questions for parents, by level in place of the round; what each part found itself,
    as messages to itself; its masters of each level, likewise - and the last round in which a part found anything."""
    parts = prediction.parts
    layout = make_layout(graph, prediction.policy, parts)
    terms = layout_terms(layout, graph)
    folds, spreads, asked, finds, masters = (_Counter(parts) for _ in range(5))
    last = 0
    for begin, end in _chunks(graph):
        vertices = np.arange(begin, end)
        owner = layout.owner_of[begin:end].astype(np.int64)
        mine = level[begin:end].astype(np.int64)
        known = mine > 0
        masters.add(mine[known] - 1, owner[known], owner[known])
        reading = _copies_that_read(graph, terms, begin, end, parts)
        place, part = np.divmod(reading, parts)
        away = (part != owner[place]) & known[place]
        spreads.add(mine[place[away]] - 1, owner[place[away]], part[away])
        copy, found_at = _copies_that_find(graph, terms, begin, end, parts, level)
        place, part = np.divmod(copy, parts)
        keep = level[vertices[place]] != 0  # every copy of the root knows it
        copy, found_at, place, part = copy[keep], found_at[keep], place[keep], part[keep]
        in_time = found_at == mine[place]
        # A master, and a mirror that is read, gets the value in time: it finds nothing later.
        held = (part == owner[place]) | np.isin(copy, reading, assume_unique=True)
        found = in_time | ~held
        last = max(last, int(found_at[found].max(initial=0)))
        finds.add(found_at[found] - 1, part[found], part[found])
        away = found & (part != owner[place])
        folds.add(found_at[away] - 1, part[away], owner[place[away]])
        place, part = place[in_time], part[in_time]
        known = np.zeros(end - begin, np.bool_)
        known[place[part == owner[place]]] = True
        first = np.flatnonzero(np.diff(place, prepend=-1))  # copies ascend by vertex, then part
        first = first[~known[place[first]]]
        asked.add(mine[place[first]], owner[place[first]], part[first])
    return [one.total() for one in (folds, spreads, asked, finds, masters)], last


def _chunks(graph: Graph) -> list[tuple[int, int]]:
    """Ranges of vertices with about so many arcs, in and out."""
    before = graph.in_offsets + graph.out_offsets
    wanted = np.arange(0, int(before[-1]) + _CHUNK_ARCS, _CHUNK_ARCS)
    cuts = np.unique(np.append(np.minimum(np.searchsorted(before, wanted), graph.n), graph.n))
    return [(int(begin), int(end)) for begin, end in pairwise(cuts)]


def _part_of(source_term: np.ndarray, target_term: np.ndarray) -> np.ndarray:
    parts: np.ndarray = np.where(target_term >= 0, source_term + target_term, ~target_term)
    return parts.astype(np.int64)


def _copies_that_read(
    graph: Graph, terms: tuple[np.ndarray, np.ndarray], begin: int, end: int, parts: int
) -> np.ndarray:
    """(vertex - begin) * parts + part of every part that holds out-arcs of a vertex; ascending."""
    offsets = graph.out_offsets[begin : end + 1]
    place = np.repeat(np.arange(end - begin), np.diff(offsets))
    part = _part_of(terms[0][begin + place], terms[1][graph.out_targets[offsets[0] : offsets[-1]]])
    found: np.ndarray = np.unique(place * parts + part)
    return found


def _copies_that_find(
    graph: Graph, terms: tuple[np.ndarray, np.ndarray], begin: int, end: int, parts: int, level: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same for parts that hold an in-arc from a reached vertex, with the level that the arc gives."""
    offsets = graph.in_offsets[begin : end + 1]
    place = np.repeat(np.arange(end - begin), np.diff(offsets))
    sources = graph.in_sources[offsets[0] : offsets[-1]]
    nearest = level[sources].astype(np.int64)
    reached = nearest >= 0
    place, sources, nearest = place[reached], sources[reached], nearest[reached]
    part = _part_of(terms[0][sources], terms[1][begin + place])
    most = int(level.max(initial=0)) + 1
    packed = np.sort((place * parts + part) * most + nearest)
    copies, nearest = np.divmod(packed, most)
    first = np.flatnonzero(np.diff(copies, prepend=-1))
    return copies[first], nearest[first] + 1


# --------------------------------------------------------------------------------------------------- bytes


def _per_round(messages: _Messages, rounds: int, parts: int) -> np.ndarray:
    counts = np.zeros((rounds, parts), np.int64)
    counts[messages.round, messages.sender] = messages.count
    return counts


def _as_bits(messages: _Messages, lists: np.ndarray, listed: np.ndarray) -> np.ndarray:
    """Which messages are bitsets: those of a part that found many vertices of the agreed list."""
    found, length = listed[messages.round, messages.sender], lists[messages.receiver, messages.sender]
    bits: np.ndarray = np.logical_not(places_are_shorter(found, length))
    return bits


def _form_bytes(messages: _Messages, lists: np.ndarray, bits: np.ndarray) -> np.ndarray:
    words = (lists[messages.receiver, messages.sender].astype(np.int64) + 63) // 64
    size: np.ndarray = HEADER + np.where(bits, 8 * words, 4 * messages.count)
    return size


def _phase(messages: _Messages, size: np.ndarray, lists: np.ndarray, rounds: int) -> PhaseVolume:
    parts = lists.shape[0]
    out, into = (np.zeros((rounds, parts), np.int64) for _ in range(2))
    np.add.at(out, (messages.round, messages.sender), size)
    np.add.at(into, (messages.round, messages.receiver), size)
    receivers, senders = np.count_nonzero(lists, axis=0), np.count_nonzero(lists, axis=1)
    return PhaseVolume(receivers, senders, out, into, int(messages.count.size), int(messages.count.sum()))


def _parents(asked: _Messages, lists_fold: np.ndarray) -> tuple[PhaseVolume, PhaseVolume]:
    """A question is a bit per entry of the list and the levels of those asked for; an answer is 4 bytes for each.

    A question travels to every part on the list, even an empty one, and in the direction opposite to a fold.
    """
    owner, holder = np.nonzero(lists_fold)
    counts, deepest = (np.zeros(lists_fold.shape, np.int64) for _ in range(2))
    np.add.at(counts, (asked.sender, asked.receiver), asked.count)
    np.maximum.at(deepest, (asked.sender, asked.receiver), asked.round)
    counted = counts[owner, holder]
    every_part = _Messages(np.zeros(owner.size, np.int64), owner, holder, counted)
    bits = (lists_fold[owner, holder].astype(np.int64) + 7) // 8
    level_bytes = np.where(deepest[owner, holder] < _SHORT_LEVEL, 1, 4)
    wishes = _phase(every_part, bits + level_bytes * counted, lists_fold.T, 1)
    back = _Messages(every_part.round, holder, owner, counted)
    return wishes, _phase(back, 4 * counted, lists_fold, 1)
