"""Labels of label propagation computed again on ranks, without the code that made them; no rank reads another's graph.

As ``check_labels`` on one rank: all rounds again for every vertex, here by sorting every row. A label is the user's id
itself, and masters send theirs to all mirrors in every round. All neighbours of a master are at its own part (policies
iec and oec), so each round is that of the whole graph, and a wrong label is found here exactly when it is found there.
"""

from __future__ import annotations

import numba
import numpy as np

from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.communities.check_labels import LabelsCheck
from cpu_engine.communities.kernels.check_on_ranks import repeat_round_by_sorting_step
from cpu_engine.graph.partition.part import Part
from cpu_engine.ranks.copies import send_to_mirrors


def check_labels_on_ranks(
    part: Part, label: np.ndarray, user_ids: np.ndarray, *, iterations: int = 10
) -> Driver[LabelsCheck]:
    """Check the masters' labels, given as user ids, after so many rounds; ``user_ids``: of the masters."""
    masters = part.masters
    by_target = part.layout.policy == "iec"
    offsets = part.in_offsets if by_target else part.out_offsets
    neighbours = part.in_sources if by_target else part.out_targets
    right = np.zeros(part.size, np.int64)
    right[:masters] = user_ids
    fresh, changed = np.empty(masters, np.int64), np.zeros(numba.get_num_threads(), np.int64)
    for _ in range(iterations if part.n else 0):
        yield from send_to_mirrors(part, "all", (right,))
        repeat_round_by_sorting_step(offsets, neighbours, right, fresh, changed, np.zeros(1, np.int64))
        right[:masters] = fresh
        moved = yield AllReduce(np.array([changed.sum()], np.int64))
        if not moved[0]:
            break
    wrong = np.flatnonzero(right[:masters] != label)
    total = yield AllReduce(np.array([wrong.size], np.int64))
    count = int(total[0])
    one = yield AllReduce(np.array([part.internal_of[wrong[0]] if wrong.size else -1], np.int64), "max")
    return LabelsCheck(count, int(one[0]), iterations)
