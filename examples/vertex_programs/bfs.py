"""Levels from a root: each vertex offers its neighbours one more than its own."""

import numpy as np

from cpu_engine.programs import Field, VertexProgram


def hop(level):
    return level + np.uint32(1)


BFS = VertexProgram(
    "bfs",
    [Field("level", np.uint32, initial=0, reduction="min", written="target", read="source")],
    push=hop,
    pull=hop,
    monotone=True,
)

if __name__ == "__main__":
    from cpu_engine.graph.build.builder import build_graph
    from cpu_engine.graph.generators import kronecker
    from cpu_engine.programs import run

    graph = build_graph(kronecker(12), directed=False)
    result = run(BFS, graph, start=0)
    level = result["level"]
    reached = level != BFS.offered.neutral
    print(f"{reached.sum()} vertices in {level[reached].max()} levels, {result.edges} arcs looked at")
    print("directions:", ", ".join(step.direction for step in result.steps))
