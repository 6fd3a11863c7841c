"""Compile, or load from numba's cache, just the kernels that a job will use, by running it on tiny graphs beforehand.

Invariant: a sample is of the same kind as the graph that it stands for - directed or not, the same type of weights, and
distances that need as many bits - as every kind has its own kernels. Together the samples make an engine use them all.
"""

from __future__ import annotations

import dataclasses
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
from cpu_engine.sssp.rows import NARROW
from hybrid.algorithms.algorithm import Algorithm, Task
from hybrid.algorithms.proof import restore
from hybrid.config.schema import Config
from hybrid.devices.profiles import fixed_delay
from hybrid.graphs.sources import Source
from hybrid.job.engines import BatchEngine, PlainEngine, SharedCore, engine_for
from hybrid.results.trace import Trace
from hybrid.terminal import note
from hybrid.worker.core_solver import Absent, Answer
from hybrid.worker.simulated import SimulatedSolver

COMPILING = "compiling the kernels: this happens on the first run only, and is kept for the next"
REHEARSED_ARCS = 1 << 28  # a search of more takes longer than loading any kernel
_SLOW_S = 1.0
_STAR_VERTICES = 40
_DENSE_VERTICES = 320  # some algorithms do with one thread below 65,536 edges
_SPARSE_VERTICES = 256
_LONGEST = 1 << 61  # paths in a sample
_WEIGHTS = 64  # different ones
_SHALLOW_DEGREE = 64  # a graph with such a hub has no thousands of levels
# On a small graph an engine would only use its kernels for small graphs; these make it use the others.
_PARALLEL = partial(AutoExpander, serial_edges=0, serial_vertices=0, pull_share=0.0)
_TEAM = partial(SmallLevelsExpander, tiny_vertices=0, tiny_edges=0)
VARIANTS: dict[str, list[Callable[[CoreSplit], Traversal]]] = {
    "async": [
        AsyncBfs,
        partial(AsyncBfs, spread=-1, pull_share=1.0),  # many distances: on one thread, then several
        partial(AsyncBfs, spread=-1, thin_edges=0, pull_share=1.0),
        partial(AsyncBfs, thin_edges=0, pull_share=1.0),
        partial(AsyncBfs, pull_share=0.0),
    ],
    "level": [LevelBfs, partial(LevelBfs, strategy=_PARALLEL), partial(LevelBfs, strategy=SmallLevelsExpander)],
}


@contextmanager
def say_if_slow(text: str = COMPILING) -> Iterator[None]:
    """Print ``text`` if the block takes over a second."""
    timer = threading.Timer(_SLOW_S, note, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def set_threads(wanted: int) -> None:
    """Let parallel kernels use so many threads, or as many as there are."""
    numba.set_num_threads(min(wanted, int(getattr(numba.config, "NUMBA_NUM_THREADS", 1))))


# ------------------------------------------------------------------------------------------ any algorithm


def warm_up_job(algorithm: Algorithm, config: Config, like: Graph) -> None:
    """The kernels of a run and its check on a graph like this one."""
    if algorithm.name == "bfs":
        warm_up(config.engine, config.bfs.strategy, deep=looks_deep(like))
        return
    engine = PlainEngine(algorithm)
    with say_if_slow():
        for task in sample_tasks(algorithm, config, like):
            ((found, _),) = engine.prove([task], engine.alone([task], Trace()), Trace())
            algorithm.facts(task, restore(algorithm, task, found))


def warm_up_hybrid(algorithm: Algorithm, config: Config, like: Graph, batch: int = 1) -> None:
    """The kernels of a run beside a core solver, which here answers with what it is sent; or those of batches."""
    if batch > 1:
        warm_up_batches()
    elif algorithm.name != "bfs":
        for task in sample_tasks(algorithm, config, like):
            engine = engine_for(algorithm, task, CoreSplit(task.graph, 2), mode="share")
            for answers in (0, 1, 1000):
                engine.together([task], _Echo(answers), "share", Trace())


def warm_up_batches() -> None:
    """The kernels of searches from many sources at once."""
    # Here, not at the top: one search has no use for the engine of many.
    from cpu_engine.bfs.many.engine import warm_up_many

    with say_if_slow("compiling the kernels for batches: this happens once, and is kept for the next run"):
        warm_up_many()
        graph = star_with_tail()
        split, solver = CoreSplit(graph, 2), SimulatedSolver(fixed_delay("oracle", 0.0))
        SharedCore("bfs", split).publish(solver)
        engine = BatchEngine(split)
        for roots in (np.arange(graph.n), np.array([graph.n - 1])):
            unit = [Task(graph, Config(), Source(root, root)) for root in roots.tolist()]
            for mode in ("share", "race"):
                done = engine.together(unit, solver, mode, Trace())
            engine.prove(unit, done, Trace())


class _Echo(Absent):
    """A solver that answers with what it is sent, and is lost after ``answers`` rounds."""

    usable = True

    def __init__(self, answers: int) -> None:
        super().__init__("it is only for warming up")
        self._left, self._sent = answers, np.empty(0)

    def submit(self, values: np.ndarray) -> None:
        self.usable = self.busy = self._left > 0
        self._left, self._sent = self._left - 1, values.copy()

    def poll(self) -> Answer | None:
        answered, self.busy = self.busy, False
        return Answer("", self._sent, self._sent.size) if answered else None


# ------------------------------------------------------------------------------------------ searches


def looks_deep(graph: Graph) -> bool:
    """Whether levels may be thin and many, so that a team of threads will leap over them."""
    return graph.n > 0 and int(graph.out_offsets[1]) < _SHALLOW_DEGREE  # vertex 0 has the highest degree


def warm_up(engine_name: str, strategy: str = "auto", *, deep: bool = True) -> None:
    """``exercise_engine``, and say so if it takes long."""
    with say_if_slow():
        exercise_engine(engine_name, strategy, deep=deep)


def exercise_engine(engine_name: str, strategy: str = "auto", *, deep: bool = True) -> None:
    """Run the engine, the core split and the certificate on a small graph; ``deep``: also the kernels of leaps."""
    split = CoreSplit(star_with_tail(), 2)
    variants = VARIANTS[engine_name] if strategy == "auto" else [partial(LevelBfs, strategy=strategy)]
    for make in [*variants, *([partial(LevelBfs, strategy=_TEAM)] if deep and strategy == "auto" else [])]:
        engine = make(split)
        exercise_steps(engine, split.graph.n - 1)
        engine.finish()
    warm_up_certificate(deep=deep)
    if engine_name == LevelBfs.name:
        collect_level_step(np.zeros(1, np.int32), 0, np.empty(1, np.int32))  # no small graph has use for it


def warm_up_certificate(*, deep: bool) -> None:
    """The kernels that prove a search and hand it over; ``deep``: also for levels that need wide words."""
    graph = star_with_tail()
    level, parent = np.zeros((2, graph.n), np.int32)
    certify(graph, level, parent, 0)
    for depth in (0, 2**30) if deep else (0,):
        level.fill(depth)
        graph.to_user_search(level, parent)


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


# ------------------------------------------------------------------------------------------ the samples


def sample_tasks(algorithm: Algorithm, config: Config, like: Graph) -> list[Task]:
    """The algorithm on a star, a clique and a sparse graph that stand for this one."""
    chosen, source = algorithm.for_warm_up(config), Source(0, 0) if algorithm.sourced else None
    weight, kind, heaviest = like.weight, None, 1
    if weight is not None:
        kind = weight.dtype
        heaviest = int(weight.max(initial=1)) if kind.kind in "iu" else 1
    longest = min(heaviest * max(like.n - 1, 1), _LONGEST)
    most = NARROW - 1 if heaviest < NARROW else _LONGEST
    return [
        Task(_of_kind(sample, like.directed, kind, min(longest // (sample.n - 1), most)), chosen, source)
        for sample in (star_with_tail(), _clique(), _two_rings())
    ]


def sample_graph(*, directed: bool, weight_kind: np.dtype | None = None) -> Graph:
    """A star of 40 vertices with a tail."""
    return _of_kind(star_with_tail(), directed, weight_kind)


def star_with_tail() -> Graph:
    """A hub with n - 2 leaves, one of which has a leaf of its own: thin and thick levels, so push and pull both run."""
    n = _STAR_VERTICES
    return _graph_of_pairs(n, np.array([(0, v) for v in range(1, n - 1)] + [(1, n - 1)]))


def _clique() -> Graph:
    """All pairs: enough edges for the kernels of large graphs."""
    return _graph_of_pairs(_DENSE_VERTICES, np.argwhere(~np.eye(_DENSE_VERTICES, dtype=bool)))


def _two_rings() -> Graph:
    """Two cycles through the same vertices in random orders: trees grow slowly, and parts share ids with gaps."""
    rng = np.random.default_rng(1)
    rings = [rng.permutation(_SPARSE_VERTICES) for _ in range(2)]
    pairs = np.concatenate([np.column_stack((ring, np.roll(ring, 1))) for ring in rings])
    return _graph_of_pairs(_SPARSE_VERTICES, pairs)


def _graph_of_pairs(n: int, pairs: np.ndarray) -> Graph:
    """Each pair as an edge, once."""
    both = np.unique(np.concatenate((pairs, pairs[:, ::-1])), axis=0).astype(np.int32)
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(both[:, 0], minlength=n), out=offsets[1:])
    targets = np.ascontiguousarray(both[:, 1])
    ids = np.arange(n, dtype=np.int32)
    return Graph(n, targets.size, False, offsets, targets, offsets, targets, None, ids.astype(np.int64), ids, ids)


def _of_kind(graph: Graph, directed: bool, weight_kind: np.dtype | None, heaviest: int = 1) -> Graph:
    """The same graph with different weights; whole ones are scaled, so that the largest is about ``heaviest``."""
    weight = None
    if weight_kind is not None:
        source = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))
        weight = (1 + (source + graph.out_targets) % _WEIGHTS).astype(weight_kind)
        if weight_kind.kind in "iu":
            weight *= weight_kind.type(max(1, heaviest // int(weight.max())))
    return dataclasses.replace(graph, directed=directed, weight=weight, hanging_start=-1)
