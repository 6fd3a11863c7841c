"""The MindSpore program against its numpy twin: both forms, exact, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.npu import device_side
from tests.npu.twin import as_pairs, close_row, min_plus

FORMS = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
Compute = Callable[..., tuple[np.ndarray, int]]


@pytest.fixture
def compute(device_process: ProcessPoolExecutor) -> Compute:
    def call(compiled: bool, edges: object, pairs: object) -> tuple[np.ndarray, int]:
        return device_process.submit(device_side.answer, compiled, table(edges), table(pairs)).result(60)[:2]

    return call


@pytest.fixture
def refusal(device_process: ProcessPoolExecutor) -> Callable[[object, object], str]:
    def call(edges: object, pairs: object) -> str:
        return device_process.submit(device_side.refusal, False, table(edges), table(pairs)).result(60)

    return call


def table(rows: object) -> np.ndarray:
    found = np.asarray(rows, np.int64)
    return found if found.ndim == 2 else found.reshape(-1, 2)


def path(vertices: int) -> np.ndarray:
    return np.column_stack((np.arange(vertices - 1), np.arange(1, vertices)))


@st.composite
def rounds(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A core with loops, parallel edges, perhaps weights; values for some vertices, some of them not in the core."""
    names = draw(st.lists(st.one_of(st.integers(0, 40), st.integers(0, 2**62)), min_size=1, max_size=12, unique=True))
    name = st.sampled_from(names)
    columns = [name, name, st.integers(0, 9)] if draw(st.booleans()) else [name, name]
    edges = draw(st.lists(st.tuples(*columns), max_size=40))
    base = draw(st.sampled_from([0, 1000, 2**31 - 60]))
    values = st.integers(base, base + 20)
    pairs = draw(st.lists(st.tuples(st.one_of(name, st.integers(50, 60)), values), max_size=12))
    return np.array(edges, np.int64).reshape(-1, len(columns)), table(pairs)


@FORMS
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(round_=rounds())
def test_small_rounds_equal_the_twin(compute: Compute, compiled: bool, round_: tuple[np.ndarray, np.ndarray]) -> None:
    edges, pairs = round_
    found, _ = compute(compiled, edges, pairs)
    assert np.array_equal(found, as_pairs(min_plus(edges, pairs)))


@FORMS
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(round_=rounds())
def test_small_rounds_in_smaller_pieces_equal_the_twin(
    device_process: ProcessPoolExecutor, compiled: bool, round_: tuple[np.ndarray, np.ndarray]
) -> None:
    edges, pairs = round_
    ask = device_process.submit(device_side.answer, compiled, edges, pairs, 12 * 3 * 3)
    assert np.array_equal(ask.result(60)[0], as_pairs(min_plus(edges, pairs)))


@FORMS
@pytest.mark.parametrize("vertices", [1, 2, 255, 256, 257, 600])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_cores_equal_the_twin(compute: Compute, compiled: bool, vertices: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    names = draw.choice(2**40, vertices, replace=False)
    edges = names[draw.integers(0, vertices, (2 * vertices, 2))]  # sparse: several levels, and some out of reach
    pairs = np.column_stack((draw.choice(names, vertices // 3 + 1), draw.integers(5, 9, vertices // 3 + 1)))
    found, _ = compute(compiled, edges, pairs)
    assert np.array_equal(found, as_pairs(min_plus(edges, pairs)))


@FORMS
def test_given_values_need_not_be_a_frontier(compute: Compute, compiled: bool) -> None:
    """On a path and across it: late starts, starts that are overtaken, gaps between levels."""
    draw = np.random.default_rng(4)
    edges = np.concatenate((path(300), draw.integers(0, 300, (60, 2))))
    for spread in (1, 40, 10_000):
        pairs = np.column_stack((draw.integers(0, 300, 80), draw.integers(0, spread, 80)))
        found, _ = compute(compiled, edges, pairs)
        assert np.array_equal(found, as_pairs(min_plus(edges, pairs)))


@FORMS
def test_a_real_core_equals_the_twin(compute: Compute, compiled: bool, shared_data: Path) -> None:
    votes = np.loadtxt(shared_data / "wiki-Vote" / "wiki-Vote.txt", np.int64)
    degree = np.bincount(votes.ravel())
    core = np.sort(np.argsort(-degree, kind="stable")[:700])
    edges = votes[np.isin(votes, core).all(axis=1)]
    draw = np.random.default_rng(7)
    for count in (1, 30):
        pairs = np.column_stack((draw.choice(core, count, replace=False), draw.integers(1, 4, count)))
        found, _ = compute(compiled, edges, pairs)
        assert np.array_equal(found, as_pairs(min_plus(edges, pairs)))


def test_one_edge_that_goes_one_way_is_noticed(compute: Compute) -> None:
    """A core that is symmetric but for it, and large enough to be looked at in blocks."""
    even = np.arange(0, 600, 2)
    pairs_of_two = np.concatenate((np.column_stack((even, even + 1)), np.column_stack((even + 1, even))))
    for one_way in ([599, 0], [0, 599]):
        edges = np.concatenate((pairs_of_two, [one_way]))
        for start in (0, 599):
            found, _ = compute(False, edges, [[start, 0]])
            assert np.array_equal(found, as_pairs(min_plus(edges, table([[start, 0]]))))


@FORMS
def test_a_new_core_of_the_same_size_replaces_the_old_one(compute: Compute, compiled: bool) -> None:
    ring = np.column_stack((np.arange(300), (np.arange(300) + 1) % 300))
    star = np.column_stack((np.zeros(299, np.int64), np.arange(1, 300)))
    for edges in (ring, star, ring[:, ::-1]):
        found, _ = compute(compiled, edges, [[0, 0]])
        assert np.array_equal(found, as_pairs(min_plus(edges, table([[0, 0]]))))


@FORMS
def test_a_path_longer_than_one_call_converges(compute: Compute, compiled: bool) -> None:
    found, iterations = compute(compiled, path(100), [[0, 7]])
    assert found.tolist() == [[vertex, vertex + 7] for vertex in range(100)]
    assert iterations == 99  # one per edge, and none that only confirms


@FORMS
@pytest.mark.parametrize(
    ("edges", "pairs", "expected"),
    [
        ([], [], []),
        ([], [[7, 3], [2**40, 1]], [[7, 3], [2**40, 1]]),
        ([[7, 7]], [[7, 3]], [[7, 3]]),
        ([[7, 2**40]], [], []),
        ([[7, 2**40]], [[7, 3]], [[7, 3], [2**40, 4]]),
        ([[7, 2**40]], [[2**40, 3]], [[2**40, 3]]),
        ([[7, 8]], [[7, 3], [7, 2], [9, 5], [9, 4]], [[7, 2], [8, 3], [9, 4]]),
        ([[7, 8]], [[1, 2**23 + 5], [7, 2**31 - 2]], [[1, 2**23 + 5], [7, 2**31 - 2], [8, 2**31 - 1]]),
    ],
    ids=["nothing", "no edges", "a loop", "no values", "one edge", "against it", "repeated", "far apart but unrelated"],
)
def test_corner_cases(compute: Compute, compiled: bool, edges: object, pairs: object, expected: object) -> None:
    assert compute(compiled, edges, pairs)[0].tolist() == expected


@FORMS
@pytest.mark.parametrize(
    ("pairs", "iterations"),
    [([[0, 0]], 1), ([[vertex, 4] for vertex in range(9)], 0), ([[1, 0]], 1), ([[1, 0], [0, 1]], 2)],
    ids=["from the centre", "all equal", "from a leaf", "centre and a leaf"],
)
def test_no_iteration_only_confirms(compute: Compute, compiled: bool, pairs: object, iterations: int) -> None:
    star = [[0, leaf] for leaf in range(1, 9)]
    assert compute(compiled, star, pairs)[1] == iterations


def test_weights_are_exact_up_to_the_limit(compute: Compute) -> None:
    heavy = np.column_stack((path(9), np.full(8, 2**20)))
    assert compute(False, heavy, [[0, 0]])[0][-1].tolist() == [8, 2**23]


@pytest.mark.parametrize(
    ("edges", "pairs", "why"),
    [
        ([[0, 1]], [[0, 0], [1, 2**23 + 1]], "values span 8388609"),
        (np.column_stack((path(10), np.full(9, 2**20))), [[0, 0]], "weights up to 1048576"),
        (np.array([[0, 1, -1]]), [[0, 0]], "weight -1 is negative"),
        ([[0, -5]], [[0, 0]], "vertex id -5 is negative"),
        (np.zeros((2, 4)), [[0, 0]], "2 or 3 columns"),
        (path(2**20 + 1), [[0, 0]], "a core of 1048577 vertices is over the largest"),
    ],
    ids=["span", "heavy", "negative weight", "negative id", "columns", "size"],
)
def test_what_cannot_be_exact_is_refused(refusal: Callable[..., str], edges: object, pairs: object, why: str) -> None:
    assert why in refusal(edges, pairs)


def test_a_refused_core_leaves_the_program_usable(refusal: Callable[..., str], compute: Compute) -> None:
    assert refusal([[0, -5]], [[0, 0]])
    assert compute(False, [[0, 5]], [[0, 0]])[0].tolist() == [[0, 0], [5, 1]]


@FORMS
def test_an_iteration_can_be_interrupted(device_process: ProcessPoolExecutor, compiled: bool) -> None:
    asked = device_process.submit(device_side.interruption, compiled, path(200), table([[0, 0]]), 3).result(60)
    assert asked == 3


@pytest.mark.parametrize("weight", [1, 2], ids=["hops", "weighted"])
def test_a_level_in_pieces_can_be_interrupted(device_process: ProcessPoolExecutor, weight: int) -> None:
    """One iteration reaches all vertices from the first half of them: tiles of up to 8 sources, so at least 4."""
    everyone = np.array([[u, v, weight] for u in range(60) for v in range(60)])
    start = table([[vertex, 0] for vertex in range(30)])
    asked = device_process.submit(device_side.interruption, False, everyone, start, 3, 12 * 8 * 8).result(60)
    assert asked == 3


# ------------------------------------------------------------------------------------------------ batches


def random_rows(draw: np.random.Generator, rows: int, k: int) -> np.ndarray:
    """Rows of values from different ranges, many vertices without one; one row has none at all."""
    values = draw.integers(0, 6, (rows, k)) + draw.choice([0, 3, 1000, 2**31 - 400], (rows, 1))
    values[draw.random((rows, k)) < 0.9] = -1
    values[rows // 2] = -1
    return values.astype(np.int32)


@FORMS
@pytest.mark.parametrize("k", [2, 150, 300])
def test_a_batch_equals_its_rows(device_process: ProcessPoolExecutor, compiled: bool, k: int) -> None:
    draw = np.random.default_rng(k)
    edges = draw.integers(0, k - k // 10, (2 * k, 2))  # the last vertices have no edge
    edges[0] = (0, 1)
    rows = random_rows(draw, 11, k)
    found = device_process.submit(device_side.batch_answer, compiled, edges, rows).result(60)
    assert found.dtype == np.int32
    unit = np.ones(len(edges), np.int64)
    for row, start in zip(found, rows, strict=True):
        assert np.array_equal(row, close_row(edges, unit, start))


@FORMS
def test_a_batch_can_be_interrupted(device_process: ProcessPoolExecutor, compiled: bool) -> None:
    rows = np.full((3, 200), -1, np.int32)
    rows[:, 0] = 0
    asked = device_process.submit(device_side.batch_interruption, compiled, path(200), rows, 3).result(60)
    assert asked == 3


@FORMS
def test_a_batch_of_nothing(device_process: ProcessPoolExecutor, compiled: bool) -> None:
    def call(edges: list[list[int]], rows: np.ndarray) -> np.ndarray:
        return device_process.submit(device_side.batch_answer, compiled, table(edges), rows).result(60)

    assert call([[0, 1]], np.empty((0, 2), np.int32)).shape == (0, 2)
    assert call([], np.array([[3, -1]], np.int32)).tolist() == [[3, -1]]


def test_a_batch_that_cannot_be_exact_is_refused(device_process: ProcessPoolExecutor) -> None:
    def call(rows: list[list[int]]) -> str:
        return device_process.submit(device_side.batch_refusal, table([[0, 2]]), np.array(rows, np.int32)).result(60)

    assert "unknown vertex 2: the values are of the vertices 0 to 1" in call([[0, 0]])
    assert "values span 8388609" in call([[0, 0, 0], [0, 0, 2**23 + 1]])
    assert "2147483648 does not fit into int32" in call([[0, 0, 0], [2**31 - 1, -1, -1]])
    assert not call([[0, 0, 0], [2**23 + 1, 0, 2**23 + 1]])
