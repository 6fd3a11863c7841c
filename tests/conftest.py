"""Shared fixtures: the project's folders, and a guard that fails a test which leaves processes or threads behind."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
import psutil
import pytest
from tqdm import tqdm

# OpenMP reads it when the first kernel runs, here and in every process of a test: threads that wait do not spin, for
# tests run side by side and each has as many threads as there are processors.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
tqdm.monitor_interval = 0  # its thread, one for all bars, would outlive the test that draws the first one

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"
NO_REAL_GRAPHS = "the real graphs are missing: the folder ../shared/data, beside the project's"


@pytest.fixture(scope="session")
def project_root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip(NO_REAL_GRAPHS)
    return SHARED_DATA


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Built graphs of the tests go into a folder of their own."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("TANDEM_CACHE")
    os.environ["TANDEM_CACHE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["TANDEM_CACHE"]
    else:
        os.environ["TANDEM_CACHE"] = before


@pytest.fixture(autouse=True)
def no_work_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' graphs are small; what they are to find in parallel kernels needs several threads all the same."""
    monkeypatch.setattr("cpu_engine.threads.SMALL_WORK", 0)


@pytest.fixture(autouse=True)
def as_many_threads_as_before() -> Iterator[None]:
    """A job sets the number of threads for its process; the next test does not inherit it."""
    before = numba.get_num_threads()
    yield
    numba.set_num_threads(before)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No child process and no extra thread, daemons included, may outlive a test."""
    threads = set(threading.enumerate())
    me = psutil.Process()
    children = {child.pid for child in me.children(recursive=True)}
    yield

    def left() -> list[object]:
        strays = [thread for thread in threading.enumerate() if thread not in threads]
        family = me.children(recursive=True)
        return [*strays, *(child for child in family if child.pid not in children and is_alive(child))]

    try:
        eventually(lambda: not left(), timeout_s=30)
    except TimeoutError:
        stayed = left()
        for one in stayed:
            if isinstance(one, psutil.Process):
                one.kill()
        pytest.fail(f"left behind: {stayed}")


def heavy(*case: object) -> Any:
    """A case to parametrize with that waits for the second stage."""
    return pytest.param(*case, marks=pytest.mark.heavy)


def sweep(values: Iterable[object]) -> list[object]:
    """Values to parametrize with: the first of them in the first stage, the others in the second."""
    first, *others = values
    return [first, *map(heavy, others)]


def eventually(condition: Callable[[], T], timeout_s: float = 100) -> T:
    """The first true value of ``condition``, looked at every few milliseconds; TimeoutError if none comes."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing within {timeout_s:g} s")
        time.sleep(0.005)
    return found


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
