"""One rank of ``bench ranks --algorithm NAME``: builds its part, runs, and rank 0 writes what all of them measured.

Started by benchmarks/ranks.py through mpirun with one argument: the file that says what to do. One rank alone runs the
algorithm as a job on one rank does.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.algorithms.ranks_library import PartFinding, rank_algorithm
from cpu_engine.comm.mpi import MpiTransport
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import make_layout
from cpu_engine.graph.store import open_store
from hybrid.config import load_config
from hybrid.library import algorithm_named
from hybrid.library.algorithm import Task
from hybrid.ranks_gather import Seat, barrier, gather_facts
from hybrid.ranks_open import build_part
from hybrid.sources import Source

_DIGITS = 1 << 20  # reals are compared as multiples of this fraction of their sum


def main(task: dict[str, Any]) -> None:
    """Measure every variant."""
    transport = MpiTransport()
    seat = Seat(transport.rank, transport.size, (transport.host,) * transport.size)
    graph = open_store(Path(task["store"]))
    if seat.size == 1:
        found = [alone(graph, task)]
    else:
        found = [transport.run(measure(seat, graph, variant, task)) for variant in task["variants"]]
    if seat.rank == 0:
        Path(task["result"]).write_text(json.dumps(found))


def alone(graph: Graph, task: dict[str, Any]) -> dict[str, Any]:
    """As on one rank; the first run of all, which compiles, does not count."""
    algorithm = algorithm_named(task["algorithm"])
    config = load_config(None, [f"algorithm={task['algorithm']}", "npu.mode=off"])
    seconds: list[list[float]] = [[] for _ in task["roots"]]
    digests: list[list[int]] = []
    for trial in range(-1, task["trials"]):
        for at, root in enumerate(task["roots"][:1] if trial < 0 else task["roots"]):
            source = Source(root, root) if algorithm.sourced else None
            t0 = time.perf_counter()
            found = algorithm.run(Task(graph, config, source))
            if trial >= 0:
                seconds[at].append(time.perf_counter() - t0)
            if trial == 0:
                digests.append(digest(found.arrays[algorithm.fields[0].name]))
    return {"seconds": seconds, "digests": digests, "partition_seconds": 0.0, "by_rank": []}


def measure(seat: Seat, graph: Graph, variant: dict[str, str], task: dict[str, Any]) -> Driver[dict[str, Any]]:
    """One policy and way to synchronise: the slowest rank's seconds per run and trial, and what was sent."""
    chosen = rank_algorithm(task["algorithm"])
    began = time.perf_counter()
    layout = make_layout(graph, variant["policy"], seat.size, weighted=chosen.weighted, symmetric=chosen.symmetric)
    part = yield from build_part(seat, graph, layout)
    partition_s = time.perf_counter() - began
    made = chosen.make(part, graph, variant["sync"], {})
    seconds: list[list[float]] = [[] for _ in task["roots"]]
    counted: list[dict[str, Any]] = []
    digests: list[list[int]] = []
    for trial in range(-1, task["trials"]):
        for at, root in enumerate(task["roots"][:1] if trial < 0 else task["roots"]):
            yield from barrier(patient=False)
            yield from barrier(patient=False)
            t0 = time.perf_counter()
            found: PartFinding = yield from chosen.drive(made, root, {})
            slowest = yield AllReduce(np.array([round((time.perf_counter() - t0) * 1e9)], np.int64), "max")
            if trial >= 0:
                seconds[at].append(int(slowest[0]) * 1e-9)
            if trial == 0:
                counted.append(found.statistics.as_dict())
                mine = digest(next(iter(found.arrays.values())))
                total = yield AllReduce(np.array(mine, np.int64))
                digests.append([int(one) for one in total])
    by_rank = yield from gather_facts(seat, {"searches": counted, "vertices": part.size, "arcs": part.arcs})
    return {**variant, "partition_seconds": partition_s, "seconds": seconds, "digests": digests, "by_rank": by_rank}


def digest(values: np.ndarray) -> list[int]:
    """Two numbers that add up over parts: how many values are there, and their sum."""
    there = values[np.isfinite(values) & (values >= 0)]
    scale = _DIGITS if values.dtype == np.float64 else 1
    return [int(there.size), round(float(there.sum()) * scale)]


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
