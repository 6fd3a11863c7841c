"""What every rank of test_library runs: all algorithms, policies and ways to synchronise, on a stored graph.

Rank 0 compares what all ranks found with what one part finds in its own process.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.comm.collectives import RankInfo, gather
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.comm.mpi import MpiTransport
from cpu_engine.comm.requests import Driver
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import make_layout, partition_graph
from cpu_engine.graph.store.graph_store import open_store
from cpu_engine.ranks.algorithms import NAMES, rank_algorithm
from hybrid.ranks.parts import build_part


def alone(graph: Graph, name: str, root: int) -> dict[str, np.ndarray]:
    """By one part."""
    chosen = rank_algorithm(name)
    (part,) = partition_graph(graph, "iec", 1, weighted=chosen.weighted, symmetric=chosen.symmetric)
    (found,) = run_loopback([chosen.drive(chosen.make(part, graph, "bsp", {}), root, {})])
    return {key: values[np.argsort(part.internal_of[: part.masters])] for key, values in found.arrays.items()}


def compared(info: RankInfo, graph: Graph, name: str, policy: str, sync: str, right: dict[Any, Any]) -> Driver[int]:
    """How many runs gave what one part gives."""
    chosen = rank_algorithm(name)
    layout = make_layout(graph, policy, info.size, weighted=chosen.weighted, symmetric=chosen.symmetric)
    part = yield from build_part(info, graph, layout)
    made = chosen.make(part, graph, sync, {})
    same = 0
    for root in (0, graph.n - 1) if chosen.sourced else (0,):
        found = yield from chosen.drive(made, root, {})
        ids = yield from gather(info, part.internal_of[: part.masters].view(np.uint8))
        for key, values in found.arrays.items():
            gathered = yield from gather(info, np.ascontiguousarray(values).view(np.uint8))
            if gathered is None or ids is None or key == "parent":
                continue
            if (name, root) not in right:
                right[name, root] = alone(graph, name, root)
            whole = np.empty(graph.n, values.dtype)
            whole[np.concatenate(ids).view(np.int32)] = np.concatenate(gathered).view(values.dtype)
            assert np.allclose(whole, right[name, root][key], rtol=1e-12, atol=0), (name, policy, sync, root)
            same += 1
    return same


if __name__ == "__main__":
    transport = MpiTransport()
    whole_graph = open_store(Path(sys.argv[1]))
    place = RankInfo(transport.rank, transport.size, (transport.host,) * transport.size)
    known: dict[Any, Any] = {}
    total = sum(
        transport.run(compared(place, whole_graph, name, policy, sync, known))
        for name in NAMES
        for policy in rank_algorithm(name).policies
        for sync in rank_algorithm(name).syncs
    )
    if transport.rank == 0:
        print(f"{total} runs agree")
