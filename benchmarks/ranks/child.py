"""One rank of ``bench ranks``: builds its part, searches from every root, and rank 0 writes what all of them measured.

Started by benchmarks/ranks/command.py through mpirun with one argument: the file that says what to do.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest.proof import require_search
from cpu_engine.bfs.ranks.engine import RankEngine, SearchOutcome
from cpu_engine.comm.collectives import RankInfo, barrier, gather, gather_facts
from cpu_engine.comm.mpi import MpiTransport
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import make_layout
from cpu_engine.graph.store.graph_store import map_store
from hybrid.algorithms.bfs import Bfs
from hybrid.config.schema import Config
from hybrid.errors import NotCertified
from hybrid.offload.on_ranks import CoreOnRanks
from hybrid.ranks.algorithms import algorithm_on_ranks, masters_by_part
from hybrid.ranks.parts import build_part
from hybrid.ranks.warm_up import warm_up_on_ranks
from hybrid.worker.core_solver import Absent


def main(task: dict[str, Any]) -> None:
    """Measure every variant."""
    transport = MpiTransport()
    info = RankInfo(transport.rank, transport.size, (transport.host,) * transport.size)
    graph = map_store(Path(task["store"]))
    found = [transport.run(measure(info, graph, variant, task)) for variant in task["variants"]]
    if info.rank == 0:
        Path(task["result"]).write_text(json.dumps(found))


def measure(info: RankInfo, graph: Graph, variant: dict[str, str], task: dict[str, Any]) -> Driver[dict[str, Any]]:
    """One engine on one policy: the slowest rank's seconds per root and trial, and what was sent."""
    policy, engine_name, sync = variant["policy"], variant["engine"], variant["sync"]
    config = replace(Config(), engine=engine_name)
    yield from warm_up_on_ranks(info, Bfs(), algorithm_on_ranks("bfs", config), config, graph, policy, sync)
    began = time.perf_counter()
    part = yield from build_part(info, graph, make_layout(graph, policy, info.size))
    partition_s = time.perf_counter() - began
    core_size = min(graph.n, int(variant.get("core", 0)))
    engine = RankEngine(part, engine=engine_name, sync=sync, core_size=core_size)
    absent = Absent("there is none") if info.rank == 0 else None
    side = CoreOnRanks(info, part, sync, core_size, absent) if core_size else None
    seconds: list[list[float]] = [[] for _ in task["roots"]]
    last: SearchOutcome | None = None
    counted: list[dict[str, Any]] = []
    reached: list[list[int]] = []
    own = masters_by_part(part) if info.rank == 0 else None
    wrong = ""
    for trial in range(task["trials"]):
        for at, root in enumerate(task["roots"]):
            yield from barrier()  # rank 0 may still be proving the last one: wait without spinning
            yield from barrier(patient=False)
            t0 = time.perf_counter()
            if side is not None:
                side.begin(withhold_core=False)
            last = yield from engine.search(root, side)
            mine = np.array([round((time.perf_counter() - t0) * 1e9)], np.int64)
            slowest = yield AllReduce(mine, "max")
            seconds[at].append(int(slowest[0]) * 1e-9)
            level = yield from gather_whole(info, own, last.levels)
            parent = yield from gather_whole(info, own, last.parents)
            if level is not None and parent is not None:
                wrong = wrong or reason_of(lambda: require_search(graph, level, parent, root, str(variant)))  # noqa: B023
            if trial == 0:
                counted.append(last.statistics.as_dict())
                fingerprint = [int(np.count_nonzero(last.levels >= 0)), int(np.maximum(last.levels, 0).sum())]
                total = yield AllReduce(np.array(fingerprint, np.int64))
                reached.append([int(one) for one in total])
    by_rank = yield from gather_facts(info, {"searches": counted, "vertices": part.size, "arcs": part.arcs})
    measured = {"seconds": seconds, "reached": reached, "by_rank": by_rank, "wrong": wrong}
    return {**variant, "partition_seconds": partition_s, **measured}


def gather_whole(info: RankInfo, own: list[np.ndarray] | None, values: np.ndarray) -> Driver[np.ndarray | None]:
    """The masters' values of all parts as one array by internal id, at rank 0; None elsewhere."""
    gathered = yield from gather(info, np.ascontiguousarray(values).view(np.uint8))
    if gathered is None or own is None:
        return None
    whole = np.empty(sum(ids.size for ids in own), values.dtype)
    for ids, payload in zip(own, gathered, strict=True):
        whole[ids] = payload.view(values.dtype)
    return whole


def reason_of(prove: Callable[[], None]) -> str:
    """Why a proof fails; empty if it holds. The ranks go on, and the benchmark refuses what they measured."""
    try:
        prove()
    except NotCertified as wrong:
        return str(wrong)
    return ""


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
