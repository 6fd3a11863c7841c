"""Who can be reached within k hops: every vertex collects the labels, as bits, of those up to k arcs before it."""

import numpy as np

from cpu_engine.programs import Field, VertexProgram


def pass_on(labels):
    return labels


def reach_with_labels(marks, hops):
    """``marks``: by internal id, bit i set where a vertex has label i, uint64."""
    labels = Field("labels", np.uint64, initial=marks, reduction="or", written="target", read="source")
    return VertexProgram("reach", [labels], push=pass_on, pull=pass_on, rounds=hops)


if __name__ == "__main__":
    from cpu_engine.graph.build.builder import build_graph
    from cpu_engine.graph.generators import kronecker
    from cpu_engine.programs import run

    graph = build_graph(kronecker(12), directed=False)
    marks = np.zeros(graph.n, np.uint64)
    marks[-5:] = 1 << np.arange(5, dtype=np.uint64)  # five labels, at the vertices of least degree
    for hops in range(5):
        labels = run(reach_with_labels(marks, hops), graph)["labels"]
        print(f"{hops} hops: {np.count_nonzero(labels)} vertices see a label, {np.count_nonzero(labels == 31)} see all")
