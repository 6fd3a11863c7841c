"""Weakly connected components: labels spread along arcs both ways, and the smallest stays."""

import numpy as np

from cpu_engine.programs import Field, VertexProgram


def own_id(vertex):
    return vertex


def same(label):
    return label


COMPONENTS = VertexProgram(
    "components",
    [Field("label", np.uint32, initial=own_id, reduction="min", written="any", read="any")],
    push=same,
    pull=same,
    monotone=True,
)

if __name__ == "__main__":
    from cpu_engine.graph.build.builder import build_graph
    from cpu_engine.graph.generators import kronecker
    from cpu_engine.programs import run

    graph = build_graph(kronecker(12, 2), directed=False)
    label = run(COMPONENTS, graph)["label"]
    print(f"{np.unique(label).size} components, the largest of {np.bincount(label).max()} vertices")
