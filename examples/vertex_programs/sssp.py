"""Shortest paths from a root, near vertices first: a soft priority keeps far ones waiting until they are settled."""

import numpy as np

from cpu_engine.programs import Field, VertexProgram


def along(distance, weight):
    return distance + weight


def bucket(distance, delta):
    return distance // delta


SSSP = VertexProgram(
    "sssp",
    [Field("distance", np.int64, initial=0, reduction="min", written="target", read="source")],
    push=along,
    priority=bucket,
)

if __name__ == "__main__":
    from cpu_engine.graph.build.builder import build_graph
    from cpu_engine.graph.edges import EdgeList
    from cpu_engine.graph.generators import kronecker
    from cpu_engine.programs import run

    edges = kronecker(12)
    weights = np.random.default_rng(1).integers(1, 256, edges.src.size)
    graph = build_graph(EdgeList(edges.src, edges.dst, weight=weights), directed=True)
    distance = run(SSSP, graph, start=0, delta=64)["distance"]
    reached = distance != SSSP.offered.neutral
    print(f"{reached.sum()} vertices, the farthest at {distance[reached].max()}")
