"""What every rank of test_engines runs: all policies and engines on a stored graph, each search proved by rank 0."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np

from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.many.check import check_levels
from cpu_engine.bfs.ranks.engine import RankEngine
from cpu_engine.bfs.ranks.many import ManyBfsOnRanks
from cpu_engine.comm.collectives import RankInfo, gather
from cpu_engine.comm.mpi import MpiTransport
from cpu_engine.comm.requests import Driver
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import POLICIES, make_layout
from cpu_engine.graph.store.graph_store import open_store
from cpu_engine.ranks.split import PartSplit
from hybrid.ranks.parts import build_part

ENGINES = (("async", "basp"), ("async", "bsp"), ("level", "bsp"))


def searched(info: RankInfo, graph: Graph, policy: str, engine: str, sync: str) -> Driver[int]:
    """How many searches were proved."""
    part = yield from build_part(info, graph, make_layout(graph, policy, info.size))
    searcher = RankEngine(part, engine=engine, sync=sync)
    last_owned = np.flatnonzero(part.layout.owner_of == part.layout.owner_of.max())
    proved = 0
    for root in (0, int(last_owned[-1])):
        outcome = yield from searcher.search(root)
        mine = np.stack([part.internal_of[: part.masters], outcome.levels, outcome.parents]).astype(np.int32)
        gathered = yield from gather(info, mine.reshape(-1).view(np.uint8))
        if gathered is not None:
            ids, levels, parents = np.concatenate([one.view(np.int32).reshape(3, -1) for one in gathered], axis=1)
            order = np.argsort(ids)
            assert np.array_equal(ids[order], np.arange(graph.n)), (policy, engine, sync)
            level, parent = np.ascontiguousarray(levels[order]), np.ascontiguousarray(parents[order])
            assert certify(graph, level, parent, root).holds, (policy, engine, sync, root)
            proved += 1
    return proved


def searched_together(info: RankInfo, graph: Graph, policy: str) -> Driver[int]:
    """How many searches were proved of 70, which are two passes."""
    part = yield from build_part(info, graph, make_layout(graph, policy, info.size))
    roots = np.arange(70) * 5 % graph.n
    outcome = yield from ManyBfsOnRanks(PartSplit(part)).search(roots)
    mine = np.concatenate([part.internal_of[np.newaxis, : part.masters], outcome.levels]).astype(np.int32)
    gathered = yield from gather(info, mine.reshape(-1).view(np.uint8))
    if gathered is None:
        return 0
    table = np.concatenate([one.view(np.int32).reshape(roots.size + 1, -1) for one in gathered], axis=1)
    levels = np.ascontiguousarray(table[1:, np.argsort(table[0])])
    assert check_levels(graph, roots, levels).holds, policy
    return roots.size


if __name__ == "__main__":
    transport = MpiTransport()
    whole = open_store(Path(sys.argv[1]))
    place = RankInfo(transport.rank, transport.size, (transport.host,) * transport.size)
    total = sum(
        transport.run(searched(place, whole, policy, *engine))
        for policy, engine in itertools.product(POLICIES, ENGINES)
    )
    together = sum(transport.run(searched_together(place, whole, policy)) for policy in POLICIES)
    if transport.rank == 0:
        print(f"{total} searches proved, {together} together")
