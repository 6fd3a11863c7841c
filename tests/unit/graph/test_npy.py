"""Heads of .npy files without Python's parser: as NumPy reads them, from any number of threads."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.graph.store.npy import map_npy, read_npy

pytestmark = pytest.mark.jitless
ARRAYS = [
    np.arange(5),
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.array([], np.float64),
    np.zeros((3, 0), np.int32),
    np.array(7),
    np.array([True, False]),
    np.arange(3, dtype=">i4"),
    np.arange(70000, dtype=np.uint8),
]


def npy(array: np.ndarray) -> bytes:
    into = io.BytesIO()
    np.save(into, array, allow_pickle=False)
    return into.getvalue()


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_arrays_are_those_that_numpy_wrote(tmp_path: Path, array: np.ndarray) -> None:
    (tmp_path / "a.npy").write_bytes(npy(array))
    for found in (read_npy(io.BytesIO(npy(array))), map_npy(tmp_path / "a.npy")):
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def test_two_arrays_follow_each_other_in_a_stream() -> None:
    stream = io.BytesIO(npy(ARRAYS[0]) + npy(ARRAYS[1]))
    np.testing.assert_array_equal(read_npy(stream), ARRAYS[0])
    np.testing.assert_array_equal(read_npy(stream), ARRAYS[1])
    assert not stream.read()


def test_what_is_cut_off_or_not_numbers_is_refused() -> None:
    whole = npy(np.arange(3))
    for length in range(len(whole)):
        with pytest.raises(ValueError, match=r"cut off|no \.npy|understood"):
            read_npy(io.BytesIO(whole[:length]))
    pickled = io.BytesIO()
    np.save(pickled, np.array([{}], object), allow_pickle=True)
    for bad in (
        pickled.getvalue(),
        npy(np.array(["a"])),
        npy(np.zeros(2, [("x", int)])),
        b"\x93NUMPY\x09\x00" + bytes(99),
    ):
        with pytest.raises(ValueError, match=r"no \.npy|understood"):
            read_npy(io.BytesIO(bad))


def test_many_threads_read_at_once() -> None:
    content, before = npy(np.arange(9)), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: int(read_npy(io.BytesIO(content)).sum()), range(2000)))
    finally:
        sys.setswitchinterval(before)
    assert set(found) == {36}
