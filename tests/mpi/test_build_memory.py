"""What a rank takes to build its part: measured, and close to what the estimate says before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.mpi.launching import run_ranks

SCRIPT = Path(__file__).with_name("build_memory.py")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("ranks", "weights"), [(1, "plain"), (4, "plain"), (4, "weighted")])
def test_the_peak_is_what_was_estimated(ranks, weights):
    done = run_ranks(SCRIPT, ranks, timeout_s=250, arguments=["18", weights])
    assert done.returncode == 0, done.stderr
    told = re.search(r"(\d+) of (\d+)", done.stdout)
    assert told is not None, done.stdout
    peak, estimate = map(int, told.groups())
    assert 0.9 * peak < estimate < 1.7 * peak  # the watcher may sleep through the peak itself
