"""What is known of vertices that a rank has no copy of: asked of the rank whose range their key is in.

Rank r answers for the keys [cuts[r], cuts[r + 1]), so that no rank needs a table over all of them. Drivers, called by
all ranks at the same point. Invariant: a rank asks for each key once, however often it needs it.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.comm.collectives import RankInfo, all_to_all
from cpu_engine.comm.requests import Driver


class Directory:
    """See the module; ``even_cuts`` gives every rank as many keys."""

    def __init__(self, info: RankInfo, cuts: np.ndarray) -> None:
        self.info, self.cuts = info, cuts
        self.first = int(cuts[info.rank])
        self.count = int(cuts[info.rank + 1]) - self.first

    def publish(self, keys: np.ndarray, values: np.ndarray) -> Driver[np.ndarray]:
        """The values of the keys in this rank's range, int64; -1 where no rank has one. Every key has one publisher."""
        table = np.full(self.count, -1, np.int64)
        for theirs, told in (yield from self._send(keys, values)):
            table[theirs] = told
        return table

    def lowest(self, keys: np.ndarray, values: np.ndarray) -> Driver[np.ndarray]:
        """The smallest value that any rank has for each of the keys in this rank's range; -1 where there is none."""
        table = np.full(self.count, np.iinfo(np.int64).max, np.int64)
        for theirs, told in (yield from self._send(keys, values)):
            np.minimum.at(table, theirs, told)
        table[table == np.iinfo(np.int64).max] = -1
        return table

    def ask(self, table: np.ndarray, keys: np.ndarray) -> Driver[np.ndarray]:
        """The values of these keys, each from the rank whose range it is in; ``table``: this rank's."""
        wanted, place = np.unique(keys.astype(np.int64), return_inverse=True)
        cuts = np.searchsorted(wanted, self.cuts)
        asked = yield from all_to_all(
            self.info, [wanted[cuts[q] : cuts[q + 1]].view(np.uint8) for q in range(self.info.size)]
        )
        answers = [table[one.view(np.int64) - self.first].view(np.uint8) for one in asked]
        came = yield from all_to_all(self.info, answers)
        found: np.ndarray = np.concatenate([one.view(np.int64) for one in came])
        return found[place]

    def _send(self, keys: np.ndarray, values: np.ndarray) -> Driver[list[tuple[np.ndarray, np.ndarray]]]:
        """The pairs that belong into this rank's range, from each rank: places in it, values."""
        order = np.argsort(keys, kind="stable")
        pairs = np.stack((keys[order], values[order])).astype(np.int64)
        cuts = np.searchsorted(pairs[0], self.cuts)
        sent = [np.ascontiguousarray(pairs[:, cuts[q] : cuts[q + 1]]).reshape(-1) for q in range(self.info.size)]
        came = yield from all_to_all(self.info, [one.view(np.uint8) for one in sent])
        found = []
        for one in came:
            theirs, told = one.view(np.int64).reshape(2, -1)
            found.append((theirs - self.first, told))
        return found


def even_cuts(keys: int, ranks: int) -> np.ndarray:
    """Where the ranges begin, the end of the last one included."""
    return np.array([keys * rank // ranks for rank in range(ranks + 1)], np.int64)
