"""Compile (or load from numba's cache) just the kernels that a job will use, before its clock of traversals starts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from cpu_engine.algorithms.bfs_async import AsyncBfs
from cpu_engine.algorithms.bfs_level import LevelBfs
from cpu_engine.algorithms.certificate import certify
from cpu_engine.algorithms.expand_auto import AutoExpander
from cpu_engine.algorithms.expand_small import SmallLevelsExpander
from cpu_engine.algorithms.traversal import CoreSplit, Traversal
from cpu_engine.graph.graph import Graph
from hybrid.terminal import note

# On a small graph an engine would only use its kernels for small graphs; these make it use the others.
_PARALLEL = partial(AutoExpander, serial_edges=0, serial_vertices=0, pull_share=0.0)
_TINY = SmallLevelsExpander
_TEAM = partial(SmallLevelsExpander, tiny_vertices=0, tiny_edges=0)
_VARIANTS: dict[str, list[Callable[[CoreSplit], Traversal]]] = {
    "async": [
        AsyncBfs,
        partial(AsyncBfs, spread=-1),  # on several threads it is rare, and compiled when it happens
        partial(AsyncBfs, thin_edges=0, pull_share=1.0),
        partial(AsyncBfs, pull_share=0.0),
    ],
    "level": [LevelBfs, partial(LevelBfs, strategy=_PARALLEL), partial(LevelBfs, strategy=_TINY)],
}
_SHALLOW_DEGREE = 64  # a graph with such a hub has no thousands of levels
_SLOW_S = 1.0


def make_engine(name: str, split: CoreSplit, strategy: str = "auto") -> Traversal:
    """The configured engine on this graph; the strategy is the level engine's."""
    return AsyncBfs(split) if name == AsyncBfs.name else LevelBfs(split, strategy)


@contextmanager
def say_if_slow(text: str) -> Iterator[None]:
    """Tell what is going on if the block takes over a second."""
    timer = threading.Timer(_SLOW_S, note, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def looks_deep(graph: Graph) -> bool:
    """Whether levels may be thin and many, so that a team of threads will leap over them."""
    return graph.n > 0 and int(graph.out_offsets[1]) < _SHALLOW_DEGREE  # vertex 0 has the highest degree


def warm_up(engine_name: str, strategy: str = "auto", *, deep: bool = True) -> None:
    """Run the engine, the core split and the certificate on a graph of 40 vertices; ``deep``: what leaps use, too."""
    with say_if_slow("compiling the kernels: this happens on the first run only, and is kept for the next"):
        graph = star_with_tail(40)
        split = CoreSplit(graph, 2)
        variants = _VARIANTS[engine_name] if strategy == "auto" else [partial(LevelBfs, strategy=strategy)]
        for make in [*variants, *([partial(LevelBfs, strategy=_TEAM)] if deep and strategy == "auto" else [])]:
            _exercise(make(split), graph)


def _exercise(engine: Traversal, graph: Graph) -> None:
    root = graph.n - 1
    engine.start(root, withhold_core=False)
    while engine.can_step():
        engine.step()
        engine.settle()
    engine.start(root, withhold_core=True)
    while engine.can_step():
        engine.step()
        engine.adopt(engine.core_values())
        engine.settle()
    engine.take_core_back()
    while engine.can_step():
        engine.step()
        engine.settle()
    level, parent = engine.finish()
    certify(graph, level, parent, root)
    graph.to_user_levels(level)
    graph.to_user_parents(parent)


def star_with_tail(n: int) -> Graph:
    """A hub with n - 2 leaves, one of which has a leaf of its own: thin and thick levels, so push and pull both run."""
    pairs = [(0, v) for v in range(1, n - 1)] + [(1, n - 1)]
    both = np.array(pairs + [(v, u) for u, v in pairs], np.int32)
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(both[:, 0], minlength=n), out=offsets[1:])
    targets = np.ascontiguousarray(both[:, 1])
    ids = np.arange(n, dtype=np.int32)
    return Graph(n, targets.size, False, offsets, targets, offsets, targets, None, ids.astype(np.int64), ids, ids)
