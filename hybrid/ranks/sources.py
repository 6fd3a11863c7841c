"""Start vertices of a job on a graph that no rank has whole: each resolved by the rank that owns the user's id.

The same vertices as ``hybrid.graphs.sources`` finds on the whole graph, and the same errors.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.comm.collectives import broadcast
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.errors import InputError
from hybrid.config.schema import Config
from hybrid.graphs.sources import Source, note_fewer, nowhere_to_start
from hybrid.ranks.rendezvous import Agreed
from hybrid.ranks.shared_graph import SharedGraph


def resolve_on_ranks(shared: SharedGraph, config: Config) -> Driver[list[Source]]:
    """The job's start vertices, in order; ``Agreed`` if there is none."""
    chosen, path = config.source, config.graph.path
    try:
        if isinstance(chosen, str):
            return (yield from _draw(shared, int(chosen.partition(":")[2] or 1), config.source_seed, path))
        ids = (chosen,) if isinstance(chosen, int) else chosen
        internal = yield from shared.find(ids)
        return [Source(*pair) for pair in zip(ids, internal, strict=True)]
    except InputError as error:
        wrong = type(error)(error.reason, path=path, value=error.value, fix=error.fix)
        raise Agreed(wrong) from error


def _draw(shared: SharedGraph, count: int, seed: int, path: str | None) -> Driver[list[Source]]:
    """As on one rank; rank 0 draws, for a moment in a list of all vertices that have edges."""
    n = shared.outline.n
    if n == 0:
        raise nowhere_to_start(count, path)
    drawn = None
    if shared.info.rank == 0:
        if count > n:
            note_fewer(count, n)
        numbers = np.arange(n, dtype=np.int32 if n < 1 << 31 else np.int64)
        drawn = np.random.default_rng(seed).permutation(numbers)[:count].astype(np.int64).view(np.uint8)
    internal = (yield from broadcast(shared.info, drawn)).view(np.int64)
    local = shared.part.local_of(internal)
    mine = (local >= 0) & (local < shared.part.masters)
    names = np.full(internal.size, -1, np.int64)
    names[mine] = shared.user_ids[local[mine]]
    names = yield AllReduce(names, "max")
    return [Source(*pair) for pair in zip(names.tolist(), internal.tolist(), strict=True)]
