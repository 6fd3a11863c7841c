"""Two workers on one machine, a directory each, serve two jobs at the same time (docs/how-to/worker.md)."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hybrid.config import load_config
from hybrid.results.trace import Trace
from hybrid.worker.solver import WorkerSolver
from tests.npu.twin import count_hops

PATIENCE_S = 60.0
AROUND = np.arange(50)


@pytest.fixture
def places(tmp_path: Path, project_root: Path) -> Iterator[list[Path]]:
    """Directories with a worker each, started by hand as the page says."""
    found = [tmp_path / name for name in ("first", "second")]
    command = [sys.executable, "run.py", "worker", "--device", "cpu"]
    with contextlib.ExitStack() as stack:
        for number, place in enumerate(found):
            log = stack.enter_context((tmp_path / f"{place.name}.log").open("wb"))
            flags = ["--device-id", str(number), "--exchange", str(place)]
            worker = subprocess.Popen([*command, *flags], cwd=project_root, stdout=log, stderr=log)
            stack.callback(worker.wait)
            stack.callback(worker.kill)
        yield found


@pytest.mark.heavy
def test_two_workers_serve_two_jobs_at_once(places: list[Path], tmp_path: Path) -> None:
    solvers: list[WorkerSolver] = []
    try:
        for step, place in enumerate(places, start=1):
            options = [
                f"exchange.dir={place}",
                "npu.worker=external",
                f"exchange.format={['text', 'binary'][step - 1]}",
            ]
            solvers.append(WorkerSolver(load_config(None, options), tmp_path / "none.log", Trace()))
            solvers[-1].start()
            solvers[-1].publish_edges(np.arange(51), ((AROUND + step) % 50).astype(np.int32), 50)
        for turn in range(3):
            values = np.full(50, -1, np.int32)
            values[turn] = 0
            for one in solvers:
                one.submit(values)  # both are at work before any answer is taken
            for step, one in enumerate(solvers, start=1):
                edges = np.column_stack((AROUND, (AROUND + step) % 50))
                assert np.array_equal(answer_of(one), count_hops(edges, np.ones(50, np.int64), values))
        assert [one.device for one in solvers] == ["CPU", "CPU"]
    finally:
        for one in solvers:
            one.close()


def answer_of(solver: WorkerSolver) -> np.ndarray:
    deadline = time.monotonic() + PATIENCE_S
    while (answer := solver.poll()) is None:
        assert solver.usable, solver.failure
        assert time.monotonic() < deadline
        solver.wait()
    return answer.values
