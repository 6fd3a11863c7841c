"""Which rows may be merged: every row is judged, and one bad row condemns the answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exchange.codec.check import check_answer
from exchange.codec.check_rows import check_rows, require_good_rows
from exchange.errors import ExchangeError
from exchange.protocol.programs import PROGRAMS

SENT = np.array([[5, -1, 9], [-1, -1, -1], [0, 0, 0]], np.int32)
GOOD = np.array([[5, 6, 6], [-1, -1, -1], [0, 0, 0]], np.int32)


def problems(program: str, found: np.ndarray, sent: np.ndarray = SENT, **limits: object) -> str:
    return "; ".join(check_rows(PROGRAMS[program], found, sent, **limits))  # type: ignore[arg-type]


def changed(row: int, vertex: int, value: int) -> np.ndarray:
    found = GOOD.copy()
    found[row, vertex] = value
    return found


@pytest.mark.parametrize(
    ("row", "vertex", "value", "words"),
    [
        (0, 0, 6, "1 value larger than sent, such as 6 for vertex 0 in row 0"),
        (0, 0, -1, "values sent are missing: 1 of 5, such as vertex 0 in row 0"),
        (0, 1, 5, "1 value too small to be true, such as 5 for vertex 1 in row 0"),
        (0, 2, 4, "too small"),
        (1, 1, 7, "values in 1 row although none were sent"),
        (0, 1, 100, "outside 0..99"),
    ],
)
def test_one_bad_value_in_a_batch(row: int, vertex: int, value: int, words: str) -> None:
    assert problems("min-plus", GOOD, value_limit=100) == ""
    assert words in problems("min-plus", changed(row, vertex, value), value_limit=100)
    with pytest.raises(ExchangeError, match="Fix: correct the worker"):
        require_good_rows(PROGRAMS["min-plus"], changed(row, vertex, value), SENT, value_limit=100)


def test_shapes_and_types() -> None:
    assert "in answer to" in problems("min-plus", GOOD[:2])
    assert "in answer to" in problems("min-plus", GOOD.astype(np.int64))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_row_is_judged_like_a_single_vector(data: st.DataObject) -> None:
    k = 4
    row = st.lists(st.integers(-1, 6), min_size=k, max_size=k)
    sent = np.array([data.draw(row)], np.int32)
    found = np.array([data.draw(row)], np.int32)
    step = data.draw(st.integers(0, 2))
    there, given_ = np.flatnonzero(found[0] >= 0), np.flatnonzero(sent[0] >= 0)
    pairs = np.column_stack((there, found[0, there]))
    single = check_answer(pairs, k, given_, sent[0, given_], min_step=step, value_limit=6)
    assert bool(problems("min-plus", found, sent, min_step=step, value_limit=6)) == bool(single)


def test_labels_come_from_somewhere() -> None:
    sent = np.array([[7, 3, -1], [9, 9, 4]], np.int32)
    assert problems("min-select", np.array([[3, 3, 3], [4, 4, 4]], np.int32), sent) == ""
    assert "not sent, such as 5 in row 1" in problems("min-select", np.array([[3, 3, 3], [5, 9, 4]], np.int32), sent)
    assert "too small" in problems("min-select", np.array([[3, 3, 2], [4, 4, 4]], np.int32), sent)


def test_marks_come_from_somewhere() -> None:
    sent = np.array([[0, 1, 0], [0, 0, 0]], np.int32)
    assert problems("or-and", np.array([[1, 1, 0], [0, 0, 0]], np.int32), sent) == ""
    assert "1 row with marks" in problems("or-and", np.array([[1, 1, 0], [0, 1, 0]], np.int32), sent)


def test_what_leaves_arrives() -> None:
    sent = np.array([[1, 2, 4], [0.25, 0, -0.25]], np.float32)
    weight = np.array([[2.0, 1.0, 0.5], [2.0, 1.0, 0.5]])
    right = np.array([[6, 0, 0], [0.5, -0.125, 0]], np.float32)
    assert problems("plus-times", right, sent, out_weight=weight) == ""
    assert problems("plus-times", right, sent) == ""
    right[1, 2] = 0.01
    assert "1 row with a wrong sum, such as 0.385 in row 1 where 0.375" in problems(
        "plus-times", right, sent, out_weight=weight
    )
