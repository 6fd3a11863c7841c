"""Every program of the table against its twin: one vector and a batch, both forms, whole cores and compacted ones."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.npu import device_side
from tests.npu.twin import TWINS, hops_between_all, min_plus

PLENTY = 1 << 30
LITTLE = 12 * 40 * 40  # tiles of 40 x 40
MODES = pytest.mark.parametrize(
    ("compiled", "budget"),
    [(False, PLENTY), (True, PLENTY), (False, LITTLE), (True, LITTLE)],
    ids=["eager", "compiled", "eager in pieces", "compiled in pieces"],
)
PROGRAMS = pytest.mark.parametrize("name", list(TWINS))


def rows_for(name: str, draw: np.random.Generator, rows: int, size: int) -> np.ndarray:
    if name == "plus-times":
        return draw.integers(0, 50, (rows, size)).astype(np.float32)
    if name == "or-and":
        return draw.random((rows, size)) < 0.1
    if name == "min-select":
        return draw.integers(-(2**40), 2**40, (rows, size))
    values = draw.integers(3, 30, (rows, size))
    values[draw.random((rows, size)) < 0.8] = -1
    return values


def test_every_program_has_a_twin(device_process: ProcessPoolExecutor) -> None:
    assert device_process.submit(device_side.table_names).result(60) == list(TWINS)


@MODES
@PROGRAMS
@pytest.mark.parametrize("both_ways", [False, True], ids=["directed", "undirected"])
def test_vectors_and_batches_equal_the_twin(
    device_process: ProcessPoolExecutor, name: str, compiled: bool, budget: int, both_ways: bool
) -> None:
    """Integers everywhere, so that even sums are exact. Parallel edges and loops are left in."""
    draw = np.random.default_rng(len(name))
    size = 130
    ends = draw.integers(0, size, (300, 2))
    weight = draw.integers(1, 9, 300)
    if both_ways:
        ends, weight = np.concatenate((ends, ends[:, ::-1])), np.concatenate((weight, weight))
    rows = rows_for(name, draw, 5, size)
    if name != "min-select":
        rows[-1] = -1 if name.startswith("min-plus") else 0  # a vector of nothing
    batch, singles = device_process.submit(
        device_side.table_answer, name, compiled, budget, size, ends, weight, rows
    ).result(60)
    expected = np.array([TWINS[name](ends, weight, row) for row in rows])
    assert np.array_equal(batch, expected)
    assert np.array_equal(singles, expected)


@MODES
def test_ranks_are_right_to_rounding(device_process: ProcessPoolExecutor, compiled: bool, budget: int) -> None:
    draw = np.random.default_rng(3)
    ends = draw.integers(0, 100, (900, 2))
    weight = draw.random(900)
    rows = draw.random((4, 100)).astype(np.float32)
    batch, _ = device_process.submit(
        device_side.table_answer, "plus-times", compiled, budget, 100, ends, weight, rows
    ).result(60)
    expected = np.array([TWINS["plus-times"](ends, weight, row) for row in rows])
    np.testing.assert_allclose(batch, expected, rtol=1e-5, atol=1e-5)


# ------------------------------------------------------------------------------------------------ compaction


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("weighted", [False, True], ids=["hops", "weighted"])
def test_a_core_over_one_mebibyte_gives_the_same_answer(
    device_process: ProcessPoolExecutor, compiled: bool, weighted: bool
) -> None:
    draw = np.random.default_rng(8)
    edges = draw.integers(0, 900, (12_000, 2))
    if weighted:
        edges = np.column_stack((edges, draw.integers(0, 20, len(edges))))
    pairs = np.column_stack((draw.choice(900, 12, replace=False), draw.integers(2, 6, 12)))
    ask = device_side.answer
    whole, _, cut = device_process.submit(ask, compiled, edges, pairs).result(60)
    assert not cut
    pieces, _, cut = device_process.submit(ask, compiled, edges, pairs, 1 << 20).result(60)
    assert cut
    assert np.array_equal(pieces, whole)
    assert dict(pieces.tolist()) == min_plus(edges, pairs)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_batch_in_pieces_gives_the_same_answer(device_process: ProcessPoolExecutor, compiled: bool) -> None:
    """More rows than the budget allows at once, too."""
    draw = np.random.default_rng(9)
    edges = draw.integers(0, 400, (1500, 2))
    rows = np.where(draw.random((50, 400)) < 0.05, draw.integers(0, 5, (50, 400)), -1).astype(np.int32)
    ask = device_side.batch_answer
    whole = device_process.submit(ask, compiled, edges, rows).result(60)
    pieces = device_process.submit(ask, compiled, edges, rows, LITTLE).result(60)
    assert np.array_equal(pieces, whole)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_tiles_hold_each_useful_edge_once_within_the_budget(
    device_process: ProcessPoolExecutor, data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, 60))
    vertex = st.integers(0, size - 1)
    edges = data.draw(st.sets(st.tuples(vertex, vertex), min_size=1, max_size=150))
    flags = st.lists(st.booleans(), min_size=size, max_size=size)
    active, wanted = data.draw(flags), data.draw(flags)
    side = data.draw(st.integers(1, 20))
    rows = data.draw(st.integers(1, side))
    budget = 12 * side * side
    found, most = device_process.submit(
        device_side.tiles,
        budget,
        data.draw(st.booleans(), label="padded"),
        data.draw(st.sampled_from([1, 2, 5]), label="threads"),
        size,
        np.array(sorted(edges)),
        np.array(active),
        np.array(wanted),
        rows,
    ).result(60)
    assert sorted(found) == sorted((u, v) for u, v in edges if active[u] and wanted[v])
    assert most <= budget


# ------------------------------------------------------------------------------------------------ the index


def ring_with_chords(size: int, step: int) -> np.ndarray:
    around = np.arange(size)
    return np.concatenate([np.column_stack((around, (around + hop) % size)) for hop in (1, step)])


@pytest.mark.parametrize(
    ("compiled", "budget"), [(False, None), (True, None), (False, LITTLE)], ids=["eager", "compiled", "in pieces"]
)
@pytest.mark.parametrize("kind", ["random", "ring", "both ways", "two hops"])
def test_the_index_equals_a_search_from_every_vertex(
    device_process: ProcessPoolExecutor, compiled: bool, budget: int | None, kind: str
) -> None:
    draw = np.random.default_rng(6)
    names = np.sort(draw.choice(2**40, 90, replace=False))
    edges = {
        "random": draw.integers(0, 90, (150, 2)),
        "ring": ring_with_chords(90, 7),
        "both ways": draw.integers(0, 90, (110, 2)),
        "two hops": np.concatenate([np.column_stack((np.zeros(89, np.int64), np.arange(1, 90)))]),
    }[kind]
    if kind in ("both ways", "two hops"):
        edges = np.concatenate((edges, edges[:, ::-1]))
    edges = names[edges]
    used = np.unique(edges[edges[:, 0] != edges[:, 1]])
    rows = np.where(draw.random((6, len(used))) < 0.2, draw.integers(5, 12, (6, len(used))), -1)
    pairs = np.column_stack((used[:9], draw.integers(5, 12, 9)))
    vertices, distance, diameter, closed, after, iterations = device_process.submit(
        device_side.index_answer, compiled, edges, rows, pairs, budget
    ).result(60)
    expected = hops_between_all(used.tolist(), edges)
    assert np.array_equal(vertices, used)
    assert distance.dtype == np.uint8
    assert np.array_equal(distance, expected)
    assert diameter == (None if expected.max() == 255 else expected.max())
    for row, given_row in zip(closed, rows, strict=True):
        start = np.column_stack((used[given_row >= 0], given_row[given_row >= 0]))
        assert dict(zip(used[row >= 0].tolist(), row[row >= 0].tolist(), strict=True)) == min_plus(edges, start)
    assert dict(after.tolist()) == min_plus(edges, pairs)
    if kind == "two hops":
        assert diameter == 2
        assert iterations == 1


def test_a_core_without_an_index_says_why(device_process: ProcessPoolExecutor) -> None:
    line = np.column_stack((np.arange(299), np.arange(1, 300)))
    ask = device_side.index_refusal
    assert "a distance of 299 edges does not fit" in device_process.submit(ask, line).result(60)
    assert not device_process.submit(ask, line[:254]).result(60)
    weighted = np.column_stack((line, np.full(len(line), 3)))
    assert "the core has weights" in device_process.submit(ask, weighted).result(60)
