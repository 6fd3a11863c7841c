"""Whole jobs on small graphs, in this process; the worker is real, scripted by the test, or absent."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.config import load_config
from hybrid.job.driver import run_job
from hybrid.results.record import Finished
from tests import naive

Behaviour = Callable[[Path], None]


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Finished]:
    """Run a job on a small Kronecker graph; keyword ``settings`` are overrides like ``npu.mode=race``."""

    def run(*settings: str) -> Finished:
        small = ["graph.generator.scale=8", "graph.generator.edge_factor=8", "source=random:2", "compare.enabled=false"]
        quick = ["core.size=64", "npu.round_timeout_s=20", f"output={tmp_path / 'out'}"]
        return run_job(load_config(None, [*small, *quick, *settings]))

    return run


def assert_exact(finished: Finished, edges: list[tuple[int, int]], directed: bool) -> None:
    """Every source's levels equal the naive reference, in the user's ids, and the parents are a BFS tree."""
    vertex = np.load(finished.folder / "vertex.npy").tolist()
    levels = np.atleast_2d(np.load(finished.folder / "level.npy"))
    parents = np.atleast_2d(np.load(finished.folder / "parent.npy"))
    assert finished.summary["certified"] is True
    for source, level, parent in zip(finished.summary["sources"], levels, parents, strict=True):
        expected = naive.bfs_levels(edges, directed, source)
        reached = {v: int(value) for v, value in zip(vertex, level, strict=True) if value >= 0}
        assert reached == expected
        chosen = {v: int(p) for v, p in zip(vertex, parent, strict=True) if p >= 0}
        assert naive.is_bfs_tree(edges, directed, source, reached, chosen)


def kronecker_pairs() -> list[tuple[int, int]]:
    """The edges of the graph that ``job`` runs on."""
    from cpu_engine.graph.generators import kronecker

    edges = kronecker(8, 8, 1)
    return [(int(u), int(v)) for u, v in zip(edges.src, edges.dst, strict=True) if u != v]


class ScriptedWorker(threading.Thread):
    """A worker of the test's own: shows ``behaviour`` once to every round that is announced.

    The rehearsal, a job's first round, which begins at vertex 0 alone, gets an honest answer unless told otherwise.
    """

    def __init__(self, directory: Path, behaviour: Behaviour, rehearses: bool = True) -> None:
        super().__init__()
        self.directory, self.behaviour, self.rehearses = directory, behaviour, rehearses
        self._rehearsed: set[str] = set()
        self.done = threading.Event()
        self.served: list[str] = []

    def run(self) -> None:
        while not self.done.wait(0.001):
            for round_dir in sorted(self.directory.glob("round-*")):
                announced = (round_dir / "value.txt").exists() and not (round_dir / "stop.flag").exists()
                if not announced or round_dir.name in {*self.served, *self._rehearsed}:
                    continue
                try:
                    if self.rehearses and is_rehearsal(round_dir):
                        self._rehearsed.add(round_dir.name)
                        answer(round_dir, lines_of(honest_values(round_dir)))
                    else:
                        self.served.append(round_dir.name)
                        self.behaviour(round_dir)
                except FileNotFoundError:
                    continue  # the job ended and took its round away


@pytest.fixture
def with_worker(
    tmp_path: Path, job: Callable[..., Finished]
) -> Iterator[Callable[..., tuple[Finished, ScriptedWorker]]]:
    """Run ``job`` in share mode against a scripted external worker."""
    workers: list[ScriptedWorker] = []

    def run(behaviour: Behaviour, *settings: str, rehearses: bool = True) -> tuple[Finished, ScriptedWorker]:
        directory = tmp_path / "exchange"
        directory.mkdir(exist_ok=True)
        worker = ScriptedWorker(directory, behaviour, rehearses)
        workers.append(worker)
        worker.start()
        external = ["npu.worker=external", f"exchange.dir={directory}", "npu.start_timeout_s=20"]
        return job(*external, *settings), worker

    yield run
    for worker in workers:
        worker.done.set()
        worker.join()


def read_pairs(path: Path) -> dict[int, int]:
    """A `vertex value` file as a dict."""
    rows = (line.split() for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return {int(vertex): int(value) for vertex, value in rows}


def is_rehearsal(round_dir: Path) -> bool:
    """Whether no search needs this round."""
    return round_dir.name.startswith("round-000001-") and read_pairs(round_dir / "value.txt") == {0: 0}


def honest_values(round_dir: Path) -> dict[int, int]:
    """What an honest worker would answer."""
    lines = (round_dir / "mind_graph.txt").read_text().splitlines()
    edges = [tuple(map(int, line.split())) for line in lines if line and not line.startswith("#")]
    pairs: Any = edges
    return naive.close_core(pairs, read_pairs(round_dir / "value.txt"))


def answer(round_dir: Path, text: str) -> None:
    """Write an answer as the protocol wants it: renamed into place, then the flag."""
    temporary = round_dir / ".data.tmp"
    temporary.write_text(text)
    temporary.rename(round_dir / "data.txt")
    (round_dir / "ok.flag").touch()


def lines_of(values: dict[int, int]) -> str:
    return "".join(f"{vertex} {value}\n" for vertex, value in sorted(values.items()))


@pytest.fixture(scope="module")
def exchange_directory(tmp_path_factory: pytest.TempPathFactory, project_root: Path) -> Iterator[Path]:
    """A real worker, started by hand as a user would, that serves all jobs of this module."""
    folder = tmp_path_factory.mktemp("exchange")
    log = (folder.parent / "worker.log").open("w")
    command = [sys.executable, "run.py", "worker", "--exchange", str(folder), "--device", "cpu"]
    worker = subprocess.Popen(command, cwd=project_root, stdout=log, stderr=log)
    yield folder
    (folder / "stop.flag").touch()
    try:
        assert worker.wait(100) == 0
    finally:
        worker.kill()
        worker.wait()
        log.close()
