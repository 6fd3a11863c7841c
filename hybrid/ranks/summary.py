"""The ``ranks`` section of summary.json: who held what, who did what, what went over the wire. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cpu_engine.comm.collectives import RankInfo
from cpu_engine.graph.partition.part import Part
from hybrid.results.schema import RunOnRanks

Statistics = dict[str, Any]
_LARGEST = ("rounds",)  # the same on every rank, or the longest counts: not a sum over ranks


def describe_part(part: Part, threads: int) -> dict[str, Any]:
    """One rank's share of the graph."""
    return {"arcs": part.arcs, "masters": part.masters, "mirrors": part.mirrors, "threads": threads}


def add_statistics(first: Statistics, second: Statistics) -> Statistics:
    """Number by number, group by group."""
    total = dict(first)
    for name, value in second.items():
        if isinstance(value, dict):
            total[name] = add_statistics(total.get(name, {}), value)
        else:
            total[name] = total.get(name, 0) + value
    return total


def over_ranks(by_rank: Sequence[Statistics]) -> Statistics:
    """Sums over the ranks; of ``rounds`` the largest."""
    total: Statistics = {}
    for one in by_rank:
        total = add_statistics(total, one)
    for name in _LARGEST:
        if name in total:
            total[name] = max(one.get(name, 0) for one in by_rank)
    return total


def imbalance(values: Sequence[float]) -> float:
    """The largest against the mean; 1 = even."""
    mean = float(np.mean(values)) if len(values) else 0.0
    return float(np.max(values)) / mean if mean > 0 else 1.0


def against_pairs(statistics: Statistics) -> float | None:
    """Bytes sent against what (id, value) pairs of every update would have taken; None if nothing was sent."""
    pairs = statistics.get("pair_bytes", 0)
    return statistics.get("bytes", 0) / pairs if pairs else None


def describe_search(by_rank: Sequence[Statistics]) -> RunOnRanks:
    """What one search adds to its run in the summary."""
    total = over_ranks(by_rank)
    return {
        "rounds": total.get("rounds", 0),
        "bytes": total.get("bytes", 0),
        "messages": total.get("messages", 0),
        "bytes_against_pairs": against_pairs(total),
        "load_imbalance": imbalance([one.get("compute_s", 0.0) for one in by_rank]),
    }


def describe_ranks(
    info: RankInfo,
    part: Part,
    sync: str,
    from_cache: bool,
    shares: Sequence[dict[str, Any]],
    by_rank: Sequence[Statistics],
) -> dict[str, Any]:
    """All of it; ``shares`` and ``by_rank`` (sums over the sources) are in the order of the ranks."""
    totals = over_ranks(by_rank)
    vertices = sum(share["masters"] + share["mirrors"] for share in shares)
    return {
        "ranks": info.size,
        "hosts": {host: [rank for rank in range(info.size) if info.hosts[rank] == host] for host in info.hosts},
        "policy": part.layout.policy,
        "grid": list(part.layout.grid),
        "sync": sync,
        "from_cache": from_cache,
        "replication": vertices / part.n if part.n else 1.0,
        "arc_imbalance": imbalance([share["arcs"] for share in shares]),
        "load_imbalance": imbalance([one.get("compute_s", 0.0) for one in by_rank]),
        "bytes_against_pairs": against_pairs(totals),
        "totals": totals,
        "per_rank": [
            {"rank": rank, "host": info.hosts[rank], **share, **one}
            for rank, (share, one) in enumerate(zip(shares, by_rank, strict=True))
        ],
    }
