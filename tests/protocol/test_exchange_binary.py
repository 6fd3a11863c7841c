"""The binary twin: same meaning as the text, and no trust in the bytes."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exchange.codec import binary, text
from exchange.errors import ExchangeError


def saved(array: np.ndarray, *, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=allow_pickle)
    return stream.getvalue()


def refused(data: bytes) -> ExchangeError:
    with pytest.raises(ExchangeError) as caught:
        binary.parse_pairs(data, "data.npy")
    assert caught.value.fix
    return caught.value


@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1)), max_size=20))
@settings(max_examples=50, deadline=None)
def test_pairs_come_back(pairs: list[tuple[int, int]]) -> None:
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    assert binary.parse_pairs(binary.encode_pairs(array), "data.npy").tolist() == array.tolist()


def test_edges_are_those_of_the_text() -> None:
    offsets = np.array([0, 3, 5, 5, 7, 9])
    targets = np.array([1, 2, 4, 0, 3, 0, 1, 2, 3], dtype=np.int32)
    for k in range(1, 6):
        by_text = text.parse_edges(text.encode_edges(offsets, targets, k), "mind_graph.txt")[0]
        by_bytes = binary.parse_edges(binary.encode_edges(offsets, targets, k), "mind_graph.npy")
        assert by_bytes.tolist() == by_text.tolist()
        assert by_bytes.dtype == np.int64


def test_every_truncation_and_extension_is_refused() -> None:
    whole = binary.encode_pairs(np.array([[1, 2], [3, 4]]))
    for length in range(len(whole)):
        refused(whole[:length])
    assert "torn" in refused(whole + b"\0").reason


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.array([[1.0, 2.0]]), "int32 or int64"),
        (np.array([[1.0, np.nan]]), "int32 or int64"),
        (np.array([[1, 2]], dtype=np.uint64), "int32 or int64"),
        (np.array([[1, 2]], dtype=">i8"), "int32 or int64"),
        (np.array([1, 2]), "shape"),
        (np.array([[1, 2, 3]]), "shape"),
        (np.asfortranarray([[1, 2], [3, 4]]), "shape"),
        (np.array([[1, -2]]), "negative"),
        (np.array([[-1, 2]]), "negative"),
        (np.array([[1, 2**31]]), "too large"),
    ],
)
def test_other_arrays_are_refused(array: np.ndarray, reason: str) -> None:
    assert reason in refused(saved(array)).reason


def test_objects_are_never_unpickled() -> None:
    refused(saved(np.array([[{}, 1]], dtype=object), allow_pickle=True))
    refused(pickle.dumps([[1, 2]]))


def test_a_header_that_announces_terabytes_allocates_nothing() -> None:
    stream = io.BytesIO()
    header = {"descr": "<i8", "fortran_order": False, "shape": (2**40, 2)}
    np.lib.format.write_array_header_1_0(stream, header)
    assert "torn" in refused(stream.getvalue() + b"\0" * 64).reason


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_garbage_is_refused(data: bytes) -> None:
    refused(data)
    refused(b"\x93NUMPY\x01\x00" + data)


def test_weighted_edges() -> None:
    rows = binary.parse_edges(saved(np.array([[1, 2, 7]], dtype=np.int32)), "mind_graph.npy")
    assert rows.tolist() == [[1, 2, 7]]
