"""What a search is timed for is the search: no kernel is compiled or loaded, and no worker starts, on its clock."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from cpu_engine.bfs import asynchronous as bfs_async
from hybrid.cli.commands.run import account
from hybrid.config import load_config
from hybrid.job.driver import run_job
from hybrid.ranks.warm_up import search_in_loopback
from hybrid.worker.solver import WorkerSolver


@pytest.fixture(scope="module")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with distances that may take more than 32 bits."""
    path, rng = tmp_path_factory.mktemp("graphs") / "heavy.el", np.random.default_rng(3)
    rows = np.column_stack((rng.integers(0, 900, (6000, 2)), rng.integers(0, 1 << 25, 6000)))
    path.write_text("".join(f"{u} {v} {weight}\n" for u, v, weight in rows.tolist()))
    return path


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A deep graph that looks shallow: a hub before 60 layers, each of them wide enough for several threads."""
    path, rng, width = tmp_path_factory.mktemp("graphs") / "layers.el", np.random.default_rng(5), 600
    here = np.arange(59 * width)
    there = here // width * width + width + np.concatenate([rng.permutation(width) for _ in range(59)])
    hub = np.column_stack((np.full(100, 60 * width), np.arange(100)))
    pairs = np.concatenate((np.column_stack((here, here + width)), np.column_stack((here, there)), hub))
    path.write_text("".join(f"{u} {v}\n" for u, v in pairs.tolist()))
    return path


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("ranks", "settings"),
    [
        ("1", ["engine=level", "npu.mode=share"]),
        ("1", ["engine=async", "npu.mode=share"]),
        ("1", ["engine=async", "graph.path={layers}", "graph.directed=false", "source=36000", "npu.mode=off"]),
        ("1", ["engine=level", "graph.path={layers}", "graph.directed=false", "source=36000", "npu.mode=off"]),
        ("1", ["algorithm=sssp", "npu.mode=share"]),
        ("1", ["algorithm=sssp", "graph.path={heavy}", "sssp.delta=100"]),
        ("1", ["algorithm=pagerank", "npu.mode=share"]),
        ("1", ["algorithm=wcc", "npu.mode=share"]),
        ("2", ["engine=async", "cluster.sync=bsp", "npu.mode=share"]),
        ("2", ["engine=async", "npu.mode=off"]),
        ("2", ["engine=level", "npu.mode=off", "graph.generator.scale=14"]),
        ("3", ["algorithm=sssp"]),
        ("3", ["algorithm=sssp", "graph.path={heavy}", "sssp.delta=100", "cluster.sync=basp"]),
        ("3", ["algorithm=wcc"]),
        ("4", ["algorithm=wcc", "cluster.policy=cvc", "cluster.sync=basp"]),
        ("3", ["algorithm=kcore"]),
        ("3", ["algorithm=pagerank"]),
        ("3", ["algorithm=cdlp"]),
    ],
)
def test_no_kernel_is_loaded_on_the_clock(
    ranks: str, settings: list[str], heavy: Path, layers: Path, project_root: Path, tmp_path: Path
) -> None:
    words = ["graph.generator.scale=10", "source=random:2", "result.report=false", f"output={tmp_path / 'out'}"]
    words.append("compare.repeats=1")
    given = [setting.format(heavy=heavy, layers=layers) for setting in settings]
    command = [sys.executable, "-m", "tests.e2e.late_kernels", ranks, *words, *given]
    done = subprocess.run(command, cwd=project_root, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "late:"


LEFT_COLD = """
import importlib, sys
from numba.core.dispatcher import Dispatcher
from hybrid.job.warm_up import warm_up
warm_up(sys.argv[1], deep=False)
for name in sys.argv[2:]:
    kernels = vars(importlib.import_module(f"cpu_engine.bfs.{name}")).items()
    print(*(name for name, kernel in kernels if isinstance(kernel, Dispatcher) and not kernel.signatures))
"""


@pytest.mark.parametrize("modules", [("async", "asynchronous"), ("level", "level_synchronous", "strategies.auto")])
def test_every_kernel_of_an_engine_is_warmed_up(modules: tuple[str, ...], project_root: Path) -> None:
    """Also those that run only when a worker's answer comes at a certain moment."""
    command = [sys.executable, "-c", LEFT_COLD, *modules]
    done = subprocess.run(command, cwd=project_root, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread never shares a quantum")
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc"])
def test_every_kernel_of_the_asynchronous_engine_is_warm_on_ranks(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of them a search needs is a matter of when values arrive."""
    unused = {name for name, value in vars(bfs_async).items() if isinstance(value, Dispatcher)}

    def watched(name: str) -> Callable[..., object]:
        kernel = getattr(bfs_async, name)

        def call(*given: object) -> object:
            unused.discard(name)
            return kernel(*given)

        return call

    for name in sorted(unused):
        monkeypatch.setattr(bfs_async, name, watched(name))
    search_in_loopback("async", "basp", policy)
    assert not unused


def test_the_start_of_the_worker_has_its_own_line(tmp_path: Path) -> None:
    settings = ["graph.generator.scale=8", "source=random:1", "npu.mode=share", "compare.enabled=false"]
    finished = run_job(load_config(None, [*settings, "result.report=false", f"output={tmp_path / 'out'}"]))
    summary = finished.summary
    assert summary["npu"]["rounds_merged"] > 0
    assert "start    the worker was ready after" in account(summary, finished.folder)
    trace = (finished.folder / "trace.jsonl").read_text()
    first_step = trace.index('"step"')
    assert trace.index("a first round, which no run needs") < first_step  # before the first search, not in it
    assert '"await"' not in trace[first_step:]


@pytest.mark.parametrize("mode", ["share", "race"])
def test_a_core_without_edges_starts_no_worker(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: WorkerSolver) -> None:
        raise AssertionError("a worker was started")

    monkeypatch.setattr(WorkerSolver, "start", start)
    settings = ["graph.generator.kind=grid", "source=random:1", f"npu.mode={mode}", "core.size=1"]
    finished = run_job(load_config(None, [*settings, "result.report=false", f"output={tmp_path / 'out'}"]))
    assert finished.summary["npu"]["outcome"] == "off (the core of 1 has no edges)"
    told = account(finished.summary, finished.folder)
    for word in ("core     ", "rounds", "adopted", "waiting", "start    "):
        assert word not in told
    library = run_job(load_config(None, [*settings, "algorithm=wcc", f"output={tmp_path / 'wcc'}"]))
    assert library.summary["npu"]["outcome"] == "off (the core of 1 has no edges)"
