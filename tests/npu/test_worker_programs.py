"""Batches, programs and the index through the real thing: coordinator, files, a worker process with MindSpore."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from exchange.codec.index import CoreIndexArrays
from hybrid.config import load_config
from hybrid.results.trace import Trace
from hybrid.worker.core_solver import Answer
from hybrid.worker.solver import WorkerSolver
from tests.npu import device_side
from tests.npu.twin import any_marked, close_row, count_hops, hops_between_all, smallest_label, weighted_sum

PATIENCE_S = 60.0
K, N = 60, 80
DRAW = np.random.default_rng(12)


def graph() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSR of more vertices than the core, with loops; and the edges inside the core."""
    pairs = np.unique(DRAW.integers(0, N, (500, 2)), axis=0)
    offsets = np.searchsorted(pairs[:, 0], np.arange(N + 1))
    return offsets, pairs[:, 1].astype(np.int32), pairs


OFFSETS, TARGETS, PAIRS = graph()
INSIDE = (PAIRS < K).all(axis=1)
ENDS = PAIRS[INSIDE]
ONES = np.ones(len(ENDS), np.int64)


@pytest.fixture(scope="module", params=["binary", "text"])
def solver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerSolver]:
    """One worker for all tests of a format: each leaves its core behind, and the next one asks for another."""
    overrides = ["npu.device=cpu", f"exchange.format={request.param}", "npu.round_timeout_s=60"]
    made = WorkerSolver(load_config(None, overrides), tmp_path_factory.mktemp("worker") / "worker.log", Trace())
    try:
        made.start()
        yield made
    finally:
        made.close()


def ask(solver: WorkerSolver, values: np.ndarray) -> Answer:
    deadline = time.monotonic() + PATIENCE_S
    solver.submit(values)
    while (answer := solver.poll()) is None:
        assert solver.usable, solver.failure
        assert time.monotonic() < deadline
        solver.wait()
    assert answer.values.shape == values.shape
    assert answer.values.dtype == values.dtype
    return answer


def some_values(rows: int | None, values: int = 7) -> np.ndarray:
    shape = (K,) if rows is None else (rows, K)
    drawn = DRAW.integers(3, 3 + values, shape)
    return np.where(DRAW.random(shape) < 0.1, drawn, -1).astype(np.int32)


@pytest.mark.parametrize("rows", [None, 1, 5])
@pytest.mark.parametrize("weighted", [False, True], ids=["hops", "weighted"])
def test_min_plus(solver: WorkerSolver, rows: int | None, weighted: bool) -> None:
    weight = DRAW.integers(1, 9, len(PAIRS)) if weighted else None
    solver.publish_edges(OFFSETS, TARGETS, K, weight=weight)
    for _ in range(2):
        values = some_values(rows)
        if rows == 5:
            values[3] = -1  # a row that has nothing, and stays so
        found = np.atleast_2d(ask(solver, values).values)
        for given, row in zip(np.atleast_2d(values), found, strict=True):
            twin = count_hops(ENDS, ONES, given) if weight is None else close_row(ENDS, weight[INSIDE], given)
            assert np.array_equal(row, twin)


@pytest.mark.parametrize("rows", [None, 3])
def test_min_select(solver: WorkerSolver, rows: int | None) -> None:
    solver.publish_edges(OFFSETS, TARGETS, K, program="min-select")
    labels = DRAW.integers(0, 2**31 - 1, (K,) if rows is None else (rows, K)).astype(np.int32)
    labels[..., 5] = -1
    found = np.atleast_2d(ask(solver, labels).values)
    for given, row in zip(np.atleast_2d(labels), found, strict=True):
        twin = smallest_label(ENDS, ONES, np.where(given < 0, 2**31, given.astype(np.int64)))
        assert np.array_equal(row, np.where(twin == 2**31, -1, twin))


@pytest.mark.parametrize("rows", [None, 4])
@pytest.mark.parametrize("weighted", [False, True], ids=["ones", "weighted"])
def test_plus_times(solver: WorkerSolver, rows: int | None, weighted: bool) -> None:
    weight = DRAW.random(len(PAIRS)) if weighted else None
    solver.publish_edges(OFFSETS, TARGETS, K, program="plus-times", weight=weight)
    shape = (K,) if rows is None else (rows, K)
    values = (DRAW.random(shape) * 1e-3).astype(np.float32)
    found = np.atleast_2d(ask(solver, values).values)
    factors = ONES if weight is None else weight[INSIDE]
    expected = [weighted_sum(ENDS, factors, row) for row in np.atleast_2d(values)]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("rows", [None, 4])
def test_or_and(solver: WorkerSolver, rows: int | None) -> None:
    solver.publish_edges(OFFSETS, TARGETS, K, program="or-and")
    marks = (DRAW.random((K,) if rows is None else (rows, K)) < 0.05).astype(np.int32)
    found = np.atleast_2d(ask(solver, marks).values)
    expected = [any_marked(ENDS, ONES, row > 0) for row in np.atleast_2d(marks)]
    assert np.array_equal(found, np.array(expected))


def await_index(solver: WorkerSolver) -> CoreIndexArrays | None:
    deadline = time.monotonic() + PATIENCE_S
    while (index := solver.poll_index()) is None and not solver.index_failure:
        assert solver.usable, solver.failure
        assert time.monotonic() < deadline
        solver.wait()
    return index


def test_the_index_and_rounds_beside_it(solver: WorkerSolver) -> None:
    solver.publish_edges(OFFSETS, TARGETS, K)
    assert solver.poll_index() is None
    assert solver.request_index()
    values = some_values(None)
    assert np.array_equal(ask(solver, values).values, count_hops(ENDS, ONES, values))
    index = await_index(solver)
    assert index is not None, solver.index_failure
    expected = hops_between_all(list(range(K)), ENDS)
    assert np.array_equal(index.distance, expected)
    assert index.farthest == expected[expected < 255].max()
    assert index.diameter == (None if expected.max() == 255 else expected.max())
    assert index.facts["device"] == "CPU"
    assert solver.poll_index() is index
    values = some_values(4)
    answer = ask(solver, values).values
    assert np.array_equal(answer, [count_hops(ENDS, ONES, row) for row in values])
    solver.publish_edges(OFFSETS, TARGETS, 3)
    assert solver.poll_index() is None, "another core has another index"


def test_a_core_without_an_index_says_why_and_rounds_go_on(solver: WorkerSolver) -> None:
    size = 300
    line = np.arange(1, size, dtype=np.int32)
    solver.publish_edges(np.append(np.arange(size), size - 1), line, size)
    assert solver.request_index()
    assert await_index(solver) is None
    assert "a distance of" in solver.index_failure
    solver.publish_edges(OFFSETS, TARGETS, K, program="or-and")
    assert not solver.request_index()
    assert "an index counts edges" in solver.index_failure
    solver.publish_edges(OFFSETS, TARGETS, K)
    values = some_values(None)
    assert np.array_equal(ask(solver, values).values, count_hops(ENDS, ONES, values))


@pytest.mark.heavy
def test_an_abandoned_index_is_left(device_process: ProcessPoolExecutor, tmp_path: Path) -> None:
    steps, finished, reason = device_process.submit(device_side.abandoned_index, str(tmp_path)).result(PATIENCE_S)
    assert steps == [True, False, False, True, False, False]
    assert finished == ["0002"]
    assert reason == "its job no longer waits for it"
