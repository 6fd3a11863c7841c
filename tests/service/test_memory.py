"""The heap of a process that lives long."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hybrid.service.memory import Tidier


def test_pages_are_given_back_now_and_then() -> None:
    now = 100.0
    tidier = Tidier(lambda: now)
    if tidier._trim is None:
        pytest.skip("this C library has no malloc_trim")
    assert not tidier.tidy()
    now = 111.0
    assert tidier.tidy()
    assert not tidier.tidy()


_PROGRAM = """
import ctypes, threading
from pathlib import Path
from hybrid.service.memory import keep_few_arenas
if not keep_few_arenas():
    raise SystemExit(7)
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
together = threading.Barrier(12)
def hold():
    mine = [libc.malloc(1000) for _ in range(100)]
    together.wait()
    for one in mine:
        libc.free(one)
threads = [threading.Thread(target=hold) for _ in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc.malloc_stats()
"""


def test_threads_share_arenas() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)
    if done.returncode == 7:
        pytest.skip("this C library has no mallopt")
    assert done.returncode == 0, done.stderr
    assert 1 <= done.stderr.count("Arena ") <= 2
