"""PageRank as LDBC defines it: rank flows along arcs; what is lost at dead ends is spread over all N vertices."""

import numpy as np

from cpu_engine.programs import Field, VertexProgram


def even(vertices):
    return 1 / vertices


def even_share(degree, vertices):
    return 1 / vertices / max(degree, 1)


def flow(share):
    return share


def settle(incoming, degree, lost, lone, vertices, isolated):  # lone: the rank of a vertex without arcs
    base = (0.15 + 0.85 * (lost + isolated * lone)) / vertices
    rank = base + 0.85 * incoming
    return rank, rank / max(degree, 1), base


def dead_end(rank, degree):
    return rank if degree == 0 else 0.0


PAGERANK = VertexProgram(  # run(PAGERANK, graph, vertices=N, isolated=N - n)["rank"]
    "pagerank",
    [
        Field("incoming", np.float64, reduction="add", written="target", read="vertex"),
        Field("rank", np.float64, initial=even, written="vertex", read="vertex"),
        Field("share", np.float64, initial=even_share, written="vertex", read="source"),
        Field("lone", np.float64, initial=even, written="vertex", read="vertex"),
    ],
    **{"pull": flow, "push": flow, "update": settle, "totals": {"lost": dead_end}, "rounds": 10},
)
