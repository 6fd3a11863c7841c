"""The same kernels as plain Python: what is marked ``jitless`` holds without the compiler, too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_marked_tests_hold_without_the_compiler(project_root: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "jitless",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tmp_path / 'base'}",
    ]
    command += ["tests/unit", "tests/property"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=project_root, env=environment, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
