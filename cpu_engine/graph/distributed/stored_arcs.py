"""The arcs of kept parts as pieces of a share, in the user's ids.

Invariant: each arc of a part comes once over the ranks that read it, and in the part's order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cpu_engine.graph.distributed import shares
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.partition.part import Part

_NO_IDS = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class StoredPart:
    """A part and what was kept beside it; all of it mapped."""

    part: Part
    position_of: np.ndarray
    user_ids: np.ndarray
    isolated: np.ndarray


def pieces_of(parts: Sequence[StoredPart], turns: Sequence[tuple[int, int]]) -> Iterator[EdgeList]:
    """Of each part this rank's arcs - the t-th of so many equal shares - and ids without arcs."""
    for stored, (turn, readers) in zip(parts, turns, strict=True):
        part = stored.part
        total = stored.isolated.size
        alone = stored.isolated[total * turn // readers : total * (turn + 1) // readers]
        no_weight = None if part.out_weight is None else part.out_weight[:0]
        yield EdgeList(_NO_IDS, _NO_IDS, no_weight, np.array(alone))
        first, last = (part.arcs * at // readers for at in (turn, turn + 1))
        for begin in range(first, last, shares.PIECE_EDGES):
            end = min(begin + shares.PIECE_EDGES, last)
            top = int(np.searchsorted(part.out_offsets, begin, side="right")) - 1
            bottom = int(np.searchsorted(part.out_offsets, end - 1, side="right")) - 1
            borders = np.concatenate(([begin], part.out_offsets[top + 1 : bottom + 1], [end]))
            rows = np.repeat(stored.user_ids[top : bottom + 1], np.diff(borders))
            weight = None if part.out_weight is None else np.array(part.out_weight[begin:end])
            yield EdgeList(rows, stored.user_ids[part.out_targets[begin:end]], weight)
