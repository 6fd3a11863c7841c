"""Every fuzzer, for a moment; ``python -m tests.fuzz NAME --cases 100000`` runs it for longer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.__main__ import FUZZERS

CASES = {"exchange": 600, "config": 300, "http": 600}


@pytest.mark.heavy
@pytest.mark.parametrize("name", FUZZERS)
def test_some_cases(name: str, project_root: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz", name, "--seed", "1", "--cases", str(CASES.get(name, 1000))]
    done = subprocess.run(command, cwd=project_root, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "none failed" in done.stdout
