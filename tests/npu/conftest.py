"""One process that has MindSpore loaded, for all tests that need only its arithmetic."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.npu import device_side


@pytest.fixture(scope="session")
def device_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPoolExecutor]:
    """Never a fork: MindSpore does not survive it, and this process may have run parallel kernels."""
    folder = tmp_path_factory.mktemp("mindspore")
    pool = ProcessPoolExecutor(
        1, mp_context=multiprocessing.get_context("spawn"), initializer=device_side.prepare, initargs=(str(folder),)
    )
    with pool:
        pool.submit(int).result(timeout=60)  # starts the process and the pool's threads before the first test counts
        yield pool
