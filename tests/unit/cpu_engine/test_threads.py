"""Small work is one thread's: no launch on a small graph wakes another. Threads that wait spin for a bounded time."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numba
import numpy as np
import pytest

from cpu_engine import threads
from cpu_engine.intrinsics import SPINS
from cpu_engine.threads import alone_if_small, threads_for

OPENMP = numba.config.THREADING_LAYER in ("default", "omp", "threadsafe")
CLEAN = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}

# The first launch of a process, even by one thread, lets the layer of threads make what it needs; then all is counted.
SMALL_GRAPHS = """
    import os, sys
    import numba
    from cpu_engine import threads
    from cpu_engine.bfs.asynchronous import AsyncBfs
    from cpu_engine.bfs.level_synchronous import LevelBfs
    from cpu_engine.bfs.certificate import certify
    from cpu_engine.bfs.traversal import CoreSplit
    from cpu_engine.graph.build.builder import build_graph
    from cpu_engine.graph.generators import grid, kronecker
    from hybrid.config import load_config
    from hybrid.algorithms import algorithm_named
    from hybrid.algorithms.algorithm import Task
    from hybrid.graphs.sources import Source
    from hybrid.offload.traverse import traverse_alone

    def count():
        return len(os.listdir("/proc/self/task"))

    def search(graph, engine):
        found = traverse_alone(engine, 0)
        assert certify(graph, found.level, found.parent, 0).holds
        graph.to_user_search(found.level, found.parent)
        graph.to_user_levels(found.level)
        graph.to_user_parents(found.parent)

    woken = []
    with threads.threads_for(0):
        build_graph(grid(3, 3))
    before = count()
    for kind, make in (("kronecker", lambda: kronecker(9, 16)), ("grid", lambda: grid(30, 40))):
        graph = build_graph(make())
        woken.append((kind, "build", count() - before))
        split = CoreSplit(graph)
        for engine in (LevelBfs(split), AsyncBfs(split), *(LevelBfs(split, name) for name in sys.argv[1].split())):
            search(graph, engine)
            woken.append((kind, engine.name, count() - before))
        for name in sys.argv[2:]:
            ids = graph.user_id_of[:2].tolist()
            algorithm, config = algorithm_named(name), load_config(None, [f"algorithm={name}"])
            if name in ("closeness", "betweenness"):
                config = load_config(None, [f"algorithm={name}", f"centrality.sources={ids}"])
            task = Task(graph, config, Source(ids[0], 0))
            found = algorithm.run(task)
            assert algorithm.check(task, found).holds
            algorithm.to_user(task, found)
            woken.append((kind, name, count() - before))
    assert not any(more for _, _, more in woken), woken
    assert numba.get_num_threads() == 2
    threads.SMALL_WORK = 0
    search(graph, AsyncBfs(split))
    assert count() > before  # it would have been noticed
"""


@pytest.mark.skipif(not OPENMP or not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
@pytest.mark.parametrize(
    ("strategies", "algorithms"),
    [
        ("pull small-levels", ()),
        ("", ("sssp", "wcc", "scc")),
        ("", ("pagerank", "cdlp", "louvain", "kcore")),
        ("", ("triangles", "lcc", "closeness", "betweenness")),
    ],
)
def test_small_graphs_wake_no_thread(strategies: str, algorithms: tuple[str, ...], project_root: Path) -> None:
    environment = CLEAN | {"NUMBA_NUM_THREADS": "2", "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", textwrap.dedent(SMALL_GRAPHS), strategies, *algorithms]
    done = subprocess.run(command, cwd=project_root, env=environment, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not OPENMP or sys.platform != "linux", reason="GNU OpenMP tells what it read")
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, f"GOMP_SPINCOUNT = '{SPINS}'"),
        ({"GOMP_SPINCOUNT": "77"}, "GOMP_SPINCOUNT = '77'"),
        ({"OMP_WAIT_POLICY": "active"}, "OMP_WAIT_POLICY = 'ACTIVE'"),
    ],
)
def test_waiting_threads_spin_for_a_bounded_time(given: dict[str, str], told: str, project_root: Path) -> None:
    """... unless the user says otherwise; and what this process sets, those that it starts do not inherit."""
    code = "import os, numba, cpu_engine.intrinsics; numba.get_num_threads(); "
    code += "print(sorted(os.environ.keys() & {'GOMP_SPINCOUNT', 'OMP_WAIT_POLICY'}))"
    environment = CLEAN | given | {"OMP_DISPLAY_ENV": "VERBOSE"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project_root, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert told in done.stderr
    assert done.stdout.strip() == str(sorted(given))


class Sized:
    def __init__(self, n: int, m: int) -> None:
        self.n, self.m = n, m


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="there is one thread")
def test_threads_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "SMALL_WORK", 100)
    seen = []

    @alone_if_small
    def look(graph: Sized, value: int) -> int:
        seen.append(numba.get_num_threads())
        if value:
            raise ValueError(value)
        return value

    before = numba.get_num_threads()
    try:
        numba.set_num_threads(2)
        assert look(Sized(10, 89), 0) == 0
        with pytest.raises(ValueError, match="7"):
            look(Sized(10, 89), 7)
        look(Sized(10, 90), value=0)
        with threads_for(5), threads_for(1000):
            look(Sized(1, 1), 0)
            look(Sized(1000, 1), 0)  # whoever is inside of small work stays alone
        assert seen == [1, 1, 2, 1, 1]
        assert numba.get_num_threads() == 2
        numba.set_num_threads(1)
        look(Sized(1, 1), 0)
        assert numba.get_num_threads() == 1
    finally:
        numba.set_num_threads(before)
    assert np.array_equal(seen, [1, 1, 2, 1, 1, 1])
