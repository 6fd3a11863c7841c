"""Cores stay on the device within the budget, leave by age, and come back with the right answers."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from tests.npu import device_side
from tests.npu.twin import count_hops, smallest_label

FORMS = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])


def rings(count: int, size: int) -> list[np.ndarray]:
    around = np.arange(size)
    return [np.column_stack((around, (around + step) % size)) for step in range(1, count + 1)]


@FORMS
def test_a_small_budget_is_held(device_process: ProcessPoolExecutor, compiled: bool) -> None:
    """Eager cores of 100 vertices take 40 kB each; compiled ones are padded, and share the loop of their size."""
    cores = rings(6, 100)
    budget = 12 * 256 * 256 if compiled else 12 * 100 * 100 + 2 * 40_000
    rows = np.full((2, 100), -1, np.int32)
    rows[0, 3], rows[1, 7] = 0, 4
    asked = [0, 1, 2, 0, 3, 4, 5, 0, 5]
    answers, sizes, kept, placed = device_process.submit(
        device_side.resident_answers, compiled, budget, cores, asked, rows
    ).result(60)
    for number, answer in zip(asked, answers, strict=True):
        ones = np.ones(100, np.int64)
        assert np.array_equal(answer, [count_hops(cores[number], ones, row) for row in rows])
    assert max(sizes) <= budget
    if compiled:
        assert max(kept) == 1  # one loop per size, and so one core
    else:
        assert max(kept) == 3  # what the budget allows beside the products of one
        assert placed == 7  # core 0 was asked for again soon enough once, and 5 at the end


@FORMS
def test_one_core_for_each_program(device_process: ProcessPoolExecutor, compiled: bool) -> None:
    edges = rings(1, 60)[0]
    rows = np.random.default_rng(1).integers(0, 99, (1, 60)).astype(np.int32)
    found = device_process.submit(device_side.two_programs, compiled, edges, rows).result(60)
    assert np.array_equal(found["min-plus"][0], count_hops(edges, np.ones(60, np.int64), rows[0]))
    assert np.array_equal(found["min-select"][0], smallest_label(edges, np.ones(60, np.int64), rows[0]))


def test_a_core_in_pieces_is_alone(device_process: ProcessPoolExecutor) -> None:
    """Its tiles take the whole budget, so nothing stays beside it; and it leaves before the next one comes."""
    cores = [*rings(2, 20), rings(1, 300)[0]]
    rows = np.full((1, 300), -1, np.int32)
    rows[0, 0] = 0
    answers, _, kept, _ = device_process.submit(
        device_side.resident_answers, False, 12 * 100 * 100, cores, [0, 1, 2, 0], rows
    ).result(60)
    assert np.array_equal(answers[2][0], count_hops(cores[2], np.ones(300, np.int64), rows[0]))
    assert kept == [1, 2, 1, 2]
