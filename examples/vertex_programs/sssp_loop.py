"""Shortest paths written as a loop: for_each with soft priority; a task is a vertex and the distance it was given."""

import numpy as np

from cpu_engine.schedule import add_task, atomic_lower, for_each


def relax(task, tasks, offsets, targets, weight, distance, delta):
    vertex, length = task & 0xFFFFFFFF, task >> 32
    if distance[vertex] < length:  # overtaken: a nearer task of this vertex has been created
        return 0
    for e in range(offsets[vertex], offsets[vertex + 1]):
        reach = length + weight[e]
        if atomic_lower(distance, targets[e], reach):
            add_task(tasks, reach << 32 | targets[e], reach // delta)
    return offsets[vertex + 1] - offsets[vertex]


def shortest_paths(graph, root, delta, **options):
    """Distances (below 2**31) from a root, -1 where there is no path; and the loop's report, arcs being its work."""
    distance = np.full(graph.n, np.iinfo(np.int64).max)
    distance[root] = 0
    report = for_each(
        relax, root, graph.out_offsets, graph.out_targets, graph.weight, distance, np.int64(delta), **options
    )
    return np.where(distance == np.iinfo(np.int64).max, -1, distance), report


if __name__ == "__main__":
    from cpu_engine.graph.build.builder import build_graph
    from cpu_engine.graph.edges import EdgeList
    from cpu_engine.graph.generators import kronecker

    edges = kronecker(12)
    weights = np.random.default_rng(1).integers(1, 256, edges.src.size)
    graph = build_graph(EdgeList(edges.src, edges.dst, weight=weights), directed=True)
    distance, report = shortest_paths(graph, 0, delta=32)
    print(f"{np.count_nonzero(distance >= 0)} vertices reached; relaxations by thread: {report.work}")
