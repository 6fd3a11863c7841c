"""Random graphs of many kinds, sizes and weights: one per draw, fully determined by the generator given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph

LARGEST = 60_000  # vertices
MOST_EDGES = 1_000_000
DEEP = 4000
KINDS = ("uniform", "power-law", "chain", "stars")
WEIGHTS = ("none", "0..99", "1..255", "mostly 0", "real", "up to 2^40")


@dataclass(frozen=True)
class Drawn:
    """A graph, and the words that tell how it was drawn."""

    graph: Graph
    text: str
    deep: bool  # thousands of levels: what looks at all vertices in each of them takes minutes


def draw_graph(rng: np.random.Generator) -> Drawn:
    """A graph of 2 to LARGEST vertices, sizes spread evenly over their logarithms."""
    n = int(np.exp(rng.uniform(np.log(2), np.log(LARGEST + 1))))
    m = int(min(n * np.exp(rng.uniform(np.log(0.5), np.log(32))), MOST_EDGES)) + 1
    kind, weights = str(rng.choice(KINDS)), str(rng.choice(WEIGHTS))
    directed, rule = bool(rng.integers(2)), str(rng.choice(["drop", "keep"]))
    src, dst = _ends(rng, kind, n, m)
    edges = EdgeList(src, dst, _weights(rng, weights, src.size))
    graph = build_graph(edges, directed=directed, self_loops=rule, duplicates=rule)  # type: ignore[arg-type]
    text = f"{kind}, n={n}, m={src.size}, weights {weights}, {'directed' if directed else 'undirected'}, {rule}"
    return Drawn(graph, text, deep=kind == "chain" and n > DEEP)


def _ends(rng: np.random.Generator, kind: str, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    if kind == "uniform":
        return rng.integers(0, n, m), rng.integers(0, n, m)
    if kind == "power-law":
        skew = rng.uniform(1.5, 4)  # the larger, the more edges end at few vertices
        return (n * rng.random(m) ** skew).astype(np.int64), (n * rng.random(m) ** skew).astype(np.int64)
    if kind == "stars":  # a few sources of many edges
        hubs = rng.integers(0, n, max(1, n // 1000))
        return rng.choice(hubs, m), rng.integers(0, n, m)
    order = rng.permutation(n)  # a chain with a few shortcuts
    extra = int(n * rng.choice([0, 0.01, 0.2]))
    src = np.concatenate([order[:-1], rng.integers(0, n, extra + 1)])
    return src, np.concatenate([order[1:], rng.integers(0, n, extra + 1)])


def _weights(rng: np.random.Generator, kind: str, m: int) -> np.ndarray | None:
    if kind == "none":
        return None
    if kind == "real":
        return rng.random(m) * float(rng.choice([1e-6, 1, 1e9]))
    if kind == "mostly 0":
        return np.where(rng.random(m) < 0.9, 0, rng.integers(0, 100, m))
    low, high = {"0..99": (0, 100), "1..255": (1, 256), "up to 2^40": (0, 2**40)}[kind]
    return rng.integers(low, high, m)
