"""The same kernels as plain Python: what is marked ``jitless`` holds without the compiler, too.

Constants of kernels, which compiled code keeps, are drawn here along with those of drivers (tests/thresholds.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.timeout(320)
# The engines of test_engines.py hold, too, but an example of them may take minutes without the compiler: run
# NUMBA_DISABLE_JIT=1 python -m pytest tests/property/test_engines.py by hand.
@pytest.mark.parametrize("which", [("-m", "jitless", "tests/unit", "tests/property")])
def test_tests_hold_without_the_compiler(which: tuple[str, ...], project_root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}", *which]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=project_root, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
