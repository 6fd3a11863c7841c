"""What every rank of test_vertex_programs runs: the example programs on a stored graph, compared with one process."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from cpu_engine.comm.collectives import RankInfo, gather
from cpu_engine.comm.mpi import MpiTransport
from cpu_engine.comm.requests import Driver
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import POLICIES, partition_graph
from cpu_engine.graph.store.graph_store import open_store
from cpu_engine.programs import ProgramOnRanks, VertexProgram, run
from tests.property.test_vertex_programs import BFS, COMPONENTS, PAGERANK, SSSP


def compared(info: RankInfo, graph: Graph, policy: str, program: VertexProgram, sync: str, **options) -> Driver[int]:
    """1 at rank 0 if all parts together have what one process has."""
    start = options.pop("start", None)
    part = partition_graph(graph, policy, info.size, weighted=True)[info.rank]
    name = program.offered.name if program.update is None else "rank"
    result = yield from ProgramOnRanks(program, part, sync=sync, **options).run(start)
    payload = np.ascontiguousarray(result.values[name]).view(np.uint8)
    ids = yield from gather(info, np.ascontiguousarray(part.internal_of[: part.masters], np.int32).view(np.uint8))
    values = yield from gather(info, payload)
    if ids is None or values is None:
        return 0
    dtype = program.by_name[name].dtype
    whole = np.empty(graph.n, dtype)
    for where, what in zip(ids, values, strict=True):
        whole[where.view(np.int32)] = what.view(dtype)
    np.testing.assert_allclose(whole, run(program, graph, start=start, **options)[name], rtol=1e-12)
    return 1


if __name__ == "__main__":
    transport = MpiTransport()
    stored = open_store(Path(sys.argv[1]))
    place = RankInfo(transport.rank, transport.size, (transport.host,) * transport.size)
    count = int(stored.user_ids.size)
    agreed = 0
    for cut in POLICIES:
        for way in ("bsp", "basp"):
            agreed += transport.run(compared(place, stored, cut, BFS, way, start=5))
            agreed += transport.run(compared(place, stored, cut, SSSP, way, start=5, delta=16))
            agreed += transport.run(compared(place, stored, cut, COMPONENTS, way))
        ranks = {"vertices": count, "isolated": count - stored.n}
        agreed += transport.run(compared(place, stored, cut, PAGERANK, "bsp", **ranks))
    if transport.rank == 0:
        print(f"{agreed} programs agree")
