"""Small random graphs, as property tests draw them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph

Pairs = list[tuple[int, int]]

pairs_of_edges = st.integers(2, 24).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=80)
)


def built(pairs: Pairs, directed: bool, **rules: str) -> Graph:
    src, dst = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    return build_graph(EdgeList(src, dst), directed=directed, **rules)


class Drawn(NamedTuple):
    """A graph, and what it was built from."""

    graph: Graph
    pairs: Pairs
    directed: bool


@st.composite
def graphs(draw: st.DrawFn) -> Drawn:
    """Graphs in which some vertex has an edge."""
    pairs, directed = draw(pairs_of_edges), draw(st.booleans())
    graph = built(pairs, directed)
    assume(graph.n > 0)
    return Drawn(graph, pairs, directed)
