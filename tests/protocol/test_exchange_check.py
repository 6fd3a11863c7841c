"""An answer is judged as a whole: true ones pass, impossible ones do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exchange.codec.check import check_answer, require_good_answer
from exchange.errors import ExchangeError
from tests.naive import close_core


def judge(pairs: list[tuple[int, int]], k: int, sent: dict[int, int]) -> list[str]:
    vertices, values = np.array(list(sent), dtype=np.int64), np.array(list(sent.values()), dtype=np.int64)
    return check_answer(np.array(pairs, dtype=np.int64).reshape(-1, 2), k, vertices, values)


@st.composite
def questions(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], dict[int, int]]:
    k = draw(st.integers(1, 10))
    vertex = st.integers(0, k - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=25))
    return k, edges, draw(st.dictionaries(vertex, st.integers(0, 30), min_size=1))


@given(questions(), st.data())
@settings(max_examples=150, deadline=None)
def test_a_true_answer_passes_also_in_part_and_half_way(question: tuple, data: st.DataObject) -> None:
    k, edges, sent = question
    pairs = list(close_core(edges, sent).items())
    assert judge(pairs, k, sent) == []
    assert judge(pairs + pairs, k, sent) == []
    part = data.draw(st.lists(st.sampled_from(pairs)))
    assert judge(part + [(v, value) for v, value in pairs if v in sent], k, sent) == []


@given(questions(), st.data())
@settings(max_examples=150, deadline=None)
def test_what_passes_never_raises_a_value_nor_undercuts_all(question: tuple, data: st.DataObject) -> None:
    k, _, sent = question
    number = st.one_of(st.integers(-2, 40), st.integers(-(2**40), 2**40))
    pairs = data.draw(st.lists(st.tuples(st.integers(-2, k + 2), number), max_size=8))
    if judge(pairs, k, sent) == []:
        for vertex, value in pairs:
            assert 0 <= vertex < k
            assert value <= sent.get(vertex, 2**31 - 1)
            assert value == sent.get(vertex) or value > min(sent.values())
        assert len(dict(pairs)) == len(set(pairs))


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([(5, 3)], "1 unknown vertex, "),
        ([(-1, 3)], "1 unknown vertex, "),
        ([(2**40, 3)], "1 unknown vertex, "),
        ([(1, -1)], "1 value outside"),
        ([(1, 2**31)], "1 value outside"),
        ([(1, 4), (1, 5)], "two different values"),
        ([(0, 3)], "1 value larger than sent"),
        ([(1, 0)], "too small"),
        ([(1, 2)], "too small"),
        ([(3, 1)], "too small"),
    ],
)
def test_each_kind_of_lie_is_named(pairs: list[tuple[int, int]], words: str) -> None:
    sent = {0: 2, 3: 4}
    rest = [pair for pair in sent.items() if pair[0] not in dict(pairs)]
    assert judge(rest, 5, dict(rest)) == []
    assert any(words in problem for problem in judge(pairs + rest, 5, sent))


def test_an_answer_cut_off_between_two_lines_is_noticed() -> None:
    assert judge([(0, 2), (3, 4)], 5, {0: 2, 3: 4}) == []
    for cut in ([], [(0, 2)], [(1, 3), (3, 4)]):
        assert any("are missing" in problem for problem in judge(cut, 5, {0: 2, 3: 4}))


def test_values_out_of_nothing() -> None:
    assert judge([(1, 1)], 5, {})
    assert judge([], 5, {}) == []


def test_zero_length_edges_may_repeat_the_smallest_value() -> None:
    pairs, none = np.array([[0, 2], [1, 2]]), (np.array([0]), np.array([2]))
    assert check_answer(pairs, 2, *none, min_step=0) == []
    assert check_answer(pairs, 2, *none) != []


def test_as_an_error() -> None:
    with pytest.raises(ExchangeError, match=r"data\.txt.*unknown.*Fix"):
        require_good_answer(np.array([[9, 1]]), 2, np.array([0]), np.array([0]), path="data.txt")
    require_good_answer(np.array([[0, 0], [1, 1]]), 2, np.array([0]), np.array([0]))
