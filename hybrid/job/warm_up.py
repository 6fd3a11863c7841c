"""Compile (or load from numba's cache) just the kernels that a job will use, before its clock of traversals starts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numba
import numpy as np

from cpu_engine.bfs.asynchronous import AsyncBfs
from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.strategies.auto import AutoExpander
from cpu_engine.bfs.strategies.kernels.pull import collect_level_step
from cpu_engine.bfs.strategies.small_levels import SmallLevelsExpander
from cpu_engine.bfs.traversal import CoreSplit, Traversal
from cpu_engine.graph.graph import Graph
from hybrid.job.sample_graphs import star_with_tail
from hybrid.terminal import note

# On a small graph an engine would only use its kernels for small graphs; these make it use the others.
_PARALLEL = partial(AutoExpander, serial_edges=0, serial_vertices=0, pull_share=0.0)
_TINY = SmallLevelsExpander
_TEAM = partial(SmallLevelsExpander, tiny_vertices=0, tiny_edges=0)
VARIANTS: dict[str, list[Callable[[CoreSplit], Traversal]]] = {
    "async": [
        AsyncBfs,
        partial(AsyncBfs, spread=-1, pull_share=1.0),  # many distances: on one thread, then several
        partial(AsyncBfs, spread=-1, thin_edges=0, pull_share=1.0),
        partial(AsyncBfs, thin_edges=0, pull_share=1.0),
        partial(AsyncBfs, pull_share=0.0),
    ],
    "level": [LevelBfs, partial(LevelBfs, strategy=_PARALLEL), partial(LevelBfs, strategy=_TINY)],
}
_SHALLOW_DEGREE = 64  # a graph with such a hub has no thousands of levels
REHEARSED_ARCS = 1 << 28  # a search of more takes longer than loading any kernel
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
    """``exercise_engine``, and say so if it takes long."""
    with say_if_slow("compiling the kernels: this happens on the first run only, and is kept for the next"):
        exercise_engine(engine_name, strategy, deep=deep)


def exercise_engine(engine_name: str, strategy: str = "auto", *, deep: bool = True) -> None:
    """Run the engine, the core split and the certificate on a graph of 40 vertices; ``deep``: what leaps use, too."""
    graph = star_with_tail(40)
    split = CoreSplit(graph, 2)
    variants = VARIANTS[engine_name] if strategy == "auto" else [partial(LevelBfs, strategy=strategy)]
    for make in [*variants, *([partial(LevelBfs, strategy=_TEAM)] if deep and strategy == "auto" else [])]:
        exercise(make(split), graph.n - 1)
    warm_up_certificate(deep=deep)
    if engine_name == LevelBfs.name:
        collect_level_step(np.zeros(1, np.int32), 0, np.empty(1, np.int32))  # no small graph has use for it


def warm_up_certificate(*, deep: bool) -> None:
    """What proves and hands over a search by any engine; ``deep``: also one whose levels take wide words."""
    graph = star_with_tail(40)
    level, parent = np.zeros((2, graph.n), np.int32)
    certify(graph, level, parent, 0)
    for depth in (0, 2**30) if deep else (0,):
        level.fill(depth)
        graph.to_user_search(level, parent)


def exercise(engine: Traversal, root: int) -> tuple[np.ndarray, np.ndarray]:
    """Every way to search; the result of the last."""
    exercise_steps(engine, root)
    return engine.finish()


def exercise_steps(engine: Traversal, root: int) -> None:
    """Search without a worker, with one that is lost after the first step, and with one that is lost in the end."""
    engine.start(root, withhold_core=False)
    _run_on(engine)
    closed = engine.core_values()
    engine.start(root, withhold_core=True)
    engine.step()
    engine.take_core_back()
    _run_on(engine)
    engine.start(root, withhold_core=True)
    while engine.can_step():
        engine.step()
        mine = engine.core_values()
        engine.adopt(closed if (mine == closed).any() else mine)  # a worker answers once it has something to begin with
        engine.settle()
    engine.take_core_back()
    _run_on(engine)


def _run_on(engine: Traversal) -> None:
    engine.settle()
    while engine.can_step():
        engine.step()
        engine.settle()


def set_threads(wanted: int) -> None:
    """Let parallel kernels use so many threads, or as many as there are."""
    numba.set_num_threads(min(wanted, int(getattr(numba.config, "NUMBA_NUM_THREADS", 1))))
