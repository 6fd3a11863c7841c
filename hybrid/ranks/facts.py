"""The few telling numbers of a result, and how its values are spread, from every rank's rows; none has them all.

Invariant: the numbers that ``Description.facts`` and ``describe_spread`` make of the whole arrays; sums of reals may
differ in their last digits. Drivers, called by all ranks at the same point; the same answer everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cpu_engine.comm.collectives import RankInfo, all_to_all, share_facts
from cpu_engine.comm.requests import Driver
from hybrid.algorithms.algorithm import Arrays, Description
from hybrid.algorithms.distribution import BINS, TOP, bin_edges, bins_of_edges, bins_of_values, largest_of
from hybrid.algorithms.field import Field, Label, UserLabel
from hybrid.ranks.shared_graph import SharedGraph


def facts_on_ranks(description: Description, shared: SharedGraph, rows: Arrays) -> Driver[dict[str, Any]]:
    """Of the column proper, by its kind."""
    main, info = description.fields[0], shared.info
    values = rows[main.name]
    if isinstance(main, Label | UserLabel):
        _, sizes = yield from _groups(info, values)
        told = yield from share_facts(info, [int(sizes.size), int(sizes.max(initial=0))])
        largest = max(one[1] for one in told)
        noun = {"wcc": "components", "cdlp": "communities"}[description.name]
        share = largest / max(1, shared.outline.vertices)
        return {noun: sum(one[0] for one in told), "largest": largest, "largest_share": share}
    if description.name == "pagerank":
        at = int(np.argmax(values)) if values.size else -1
        mine = [float(values.sum()), *([values[at].item(), int(shared.row_ids[at])] if values.size else [-1.0, -1])]
        told = yield from share_facts(info, mine)
        total, best = sum(one[0] for one in told), max(told, key=lambda one: (one[1], -one[2]))
        if best[2] < 0:
            return {"sum": total, "largest": 0, "largest_vertex": None}
        return {"sum": total, "largest": best[1], "largest_vertex": best[2]}
    inside = values[main.reached(values)]
    deepest = inside.max().item() if inside.size else None
    told = yield from share_facts(info, [int(inside.size), deepest])
    deepest = max(one[1] for one in told if one[1] is not None)
    reached = sum(one[0] for one in told)
    if description.name == "kcore":
        counts = yield from share_facts(info, int(np.count_nonzero(values == deepest)))
        return {"largest": deepest, "vertices_in_it": sum(counts)}
    return {"reached": reached, {"bfs": "max_level", "sssp": "farthest"}[description.name]: deepest}


def spread_on_ranks(field: Field, shared: SharedGraph, values: np.ndarray) -> Driver[dict[str, Any]]:
    """The picture of a column, as ``describe_spread`` draws it."""
    info = shared.info
    if isinstance(field, Label | UserLabel):
        names, sizes = yield from _groups(info, values)
        bins = yield from _bins(info, sizes)
        top = yield from _largest(info, names, sizes)
        return {"what": "groups", "of": field.name, "bins": bins, "top": top}
    inside = field.reached(values)
    bins = yield from _bins(info, values[inside])
    top = yield from _largest(info, shared.row_ids[inside], values[inside])
    left_out = yield from share_facts(info, int(values.size - np.count_nonzero(inside)))
    return {"what": "values", "of": field.name, "bins": bins, "top": top, "unreached": sum(left_out)}


def _groups(info: RankInfo, label: np.ndarray) -> Driver[tuple[np.ndarray, np.ndarray]]:
    """Names and sizes of the groups that this rank counts for all: those whose name leaves its number by division."""
    names, sizes = np.unique(label, return_counts=True)
    pairs, owner = np.stack((names, sizes)).astype(np.int64), names % info.size
    sent = [np.ascontiguousarray(pairs[:, owner == rank]).reshape(-1).view(np.uint8) for rank in range(info.size)]
    came = yield from all_to_all(info, sent)
    told = np.concatenate([one.view(np.int64).reshape(2, -1) for one in came], axis=1)
    names, place = np.unique(told[0], return_inverse=True)
    total = np.zeros(names.size, np.int64)
    np.add.at(total, place, told[1])
    return names, total


def _bins(info: RankInfo, values: np.ndarray) -> Driver[list[list[Any]]]:
    """Bins as ``make_bins`` makes them, every rank counting its own values."""
    different = np.unique(values[: 1 << 16])
    if different.size <= BINS:
        different = np.unique(values)
    few = different[: BINS + 1].tolist()
    zeros = int(np.count_nonzero(values == 0))
    rest = values[values != 0]
    ends = [one.item() for one in (values.min(), values.max())] if values.size else None
    low = rest.min().item() if rest.size else None
    told = yield from share_facts(info, [few, zeros, ends, low])
    known = sorted({value for one in told for value in one[0]})
    filled = [one[2] for one in told if one[2] is not None]
    if not filled:
        return []
    if len(known) <= BINS:
        bins = bins_of_values(values, np.array(known, values.dtype))
    else:
        lowest, highest = min(one[0] for one in filled), max(one[1] for one in filled)
        apart = [[0, 0, zeros]] if lowest == 0 and sum(one[1] for one in told) else []
        lowest = min(one[3] for one in told if one[3] is not None) if apart else lowest
        edges = bin_edges(lowest, highest, whole=values.dtype.kind in "iu")
        bins = apart + bins_of_edges(rest if apart else values, edges)
    counts = yield from share_facts(info, [one[2] for one in bins])
    return [[low, high, sum(one[i] for one in counts)] for i, (low, high, _) in enumerate(bins)]


def _largest(info: RankInfo, names: np.ndarray, values: np.ndarray) -> Driver[list[list[Any]]]:
    told = yield from share_facts(info, largest_of(names, values))
    every = [pair for one in told for pair in one]
    return sorted(every, key=lambda pair: (-pair[1], pair[0]))[:TOP]
