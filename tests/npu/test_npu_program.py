"""The MindSpore program against its numpy twin: both forms, exact, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.npu import device_side
from tests.npu.twin import as_pairs, min_plus

FORMS = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
Compute = Callable[..., tuple[np.ndarray, int]]


@pytest.fixture
def compute(device_process: ProcessPoolExecutor) -> Compute:
    def call(compiled: bool, edges: object, pairs: object) -> tuple[np.ndarray, int]:
        return device_process.submit(device_side.answer, compiled, table(edges), table(pairs)).result(60)

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
    [([[0, 0]], 1), ([[vertex, 4] for vertex in range(9)], 0), ([[1, 0]], 1), ([[1, 0], [0, 1]], 1)],
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
        (path(32_770), [[0, 0]], "a core of 32770 vertices is over the largest"),
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
