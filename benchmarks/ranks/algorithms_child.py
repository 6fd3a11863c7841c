"""One rank of ``bench ranks --algorithm NAME``: builds its part, runs, and rank 0 writes what all of them measured.

Started by benchmarks/ranks/command.py through mpirun with one argument: the file that says what to do. One rank alone
runs the algorithm as a job on one rank does.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest.proof import Proofs
from benchmarks.ranks.child import gather_whole, reason_of
from cpu_engine.comm.collectives import RankInfo, barrier, gather_facts
from cpu_engine.comm.mpi import MpiTransport
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import make_layout
from cpu_engine.graph.store.graph_store import map_store
from cpu_engine.ranks.algorithms import PartFinding, rank_algorithm
from hybrid.algorithms import algorithm_named
from hybrid.algorithms.algorithm import Algorithm, Found, Task
from hybrid.config import load_config
from hybrid.graphs.sources import Source
from hybrid.ranks.algorithms import masters_by_part
from hybrid.ranks.parts import build_part

_DIGITS = 1 << 20  # reals are compared as multiples of this fraction of their sum


def main(task: dict[str, Any]) -> None:
    """Measure every variant."""
    transport = MpiTransport()
    info = RankInfo(transport.rank, transport.size, (transport.host,) * transport.size)
    graph = map_store(Path(task["store"]))
    if info.size == 1:
        found = [alone(graph, task)]
    else:
        found = [transport.run(measure(info, graph, variant, task)) for variant in task["variants"]]
    if info.rank == 0:
        Path(task["result"]).write_text(json.dumps(found))


def alone(graph: Graph, task: dict[str, Any]) -> dict[str, Any]:
    """As on one rank; the first run of all, which compiles, does not count."""
    algorithm = algorithm_named(task["algorithm"])
    config = load_config(None, [f"algorithm={task['algorithm']}", "npu.mode=off"])
    seconds: list[list[float]] = [[] for _ in task["roots"]]
    digests: list[list[int]] = []
    proofs, wrong = Proofs(), ""
    for trial in range(-1, task["trials"]):
        for at, root in enumerate(task["roots"][:1] if trial < 0 else task["roots"]):
            asked = Task(graph, config, source_of(algorithm, root))
            t0 = time.perf_counter()
            found = algorithm.run(asked)
            if trial >= 0:
                seconds[at].append(time.perf_counter() - t0)
            wrong = wrong or reason_of(lambda: proofs.require(algorithm, asked, found))  # noqa: B023
            if trial == 0:
                digests.append(digest(found.arrays[algorithm.fields[0].name]))
    return {"seconds": seconds, "digests": digests, "partition_seconds": 0.0, "by_rank": [], "wrong": wrong}


def source_of(algorithm: Algorithm, root: int) -> Source | None:
    """The root where the algorithm wants one; its user id is in no array that is checked."""
    return Source(root, root) if algorithm.sourced else None


def measure(info: RankInfo, graph: Graph, variant: dict[str, str], task: dict[str, Any]) -> Driver[dict[str, Any]]:
    """One policy and way to synchronise: the slowest rank's seconds per run and trial, and what was sent."""
    chosen = rank_algorithm(task["algorithm"])
    began = time.perf_counter()
    layout = make_layout(graph, variant["policy"], info.size, weighted=chosen.weighted, symmetric=chosen.symmetric)
    part = yield from build_part(info, graph, layout)
    partition_s = time.perf_counter() - began
    made = chosen.make(part, graph, variant["sync"], {})
    seconds: list[list[float]] = [[] for _ in task["roots"]]
    counted: list[dict[str, Any]] = []
    digests: list[list[int]] = []
    algorithm = algorithm_named(task["algorithm"])
    config = load_config(None, [f"algorithm={task['algorithm']}", "npu.mode=off"])
    own = masters_by_part(part) if info.rank == 0 else None
    proofs, wrong = Proofs(), ""
    for trial in range(-1, task["trials"]):
        for at, root in enumerate(task["roots"][:1] if trial < 0 else task["roots"]):
            yield from barrier()  # rank 0 may still be checking the last one: wait without spinning
            yield from barrier(patient=False)
            t0 = time.perf_counter()
            found: PartFinding = yield from chosen.drive(made, root, {})
            slowest = yield AllReduce(np.array([round((time.perf_counter() - t0) * 1e9)], np.int64), "max")
            if trial >= 0:
                seconds[at].append(int(slowest[0]) * 1e-9)
            whole: dict[str, np.ndarray] = {}
            for name, values in found.arrays.items():
                gathered = yield from gather_whole(info, own, values)
                if gathered is not None:
                    whole[name] = gathered
            if info.rank == 0:
                asked, result = (
                    Task(graph, config, source_of(algorithm, root)),
                    Found(whole, found.counters, found.isolated),
                )
                wrong = wrong or reason_of(lambda: proofs.require(algorithm, asked, result, name_of(variant)))  # noqa: B023
            if trial == 0:
                counted.append(found.statistics.as_dict())
                mine = digest(next(iter(found.arrays.values())))
                total = yield AllReduce(np.array(mine, np.int64))
                digests.append([int(one) for one in total])
    by_rank = yield from gather_facts(info, {"searches": counted, "vertices": part.size, "arcs": part.arcs})
    measured = {"seconds": seconds, "digests": digests, "by_rank": by_rank, "wrong": wrong}
    return {**variant, "partition_seconds": partition_s, **measured}


def name_of(variant: dict[str, str]) -> str:
    return f"{variant['sync']} {variant['policy']}"


def digest(values: np.ndarray) -> list[int]:
    """Two numbers that add up over parts: how many values are there, and their sum."""
    there = values[np.isfinite(values) & (values >= 0)]
    scale = _DIGITS if values.dtype == np.float64 else 1
    return [int(there.size), round(float(there.sum()) * scale)]


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
