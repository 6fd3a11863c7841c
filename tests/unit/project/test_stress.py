"""The stress runner: runs are repeatable, and a result that is not proven, or an exception, fails the stage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.stress import __main__ as stress


def test_the_shipped_stage(project_root: Path) -> None:
    command = [sys.executable, "-m", "tests.stress", "--runs", "12", "--seed", "3", "--algorithm", "wcc"]
    ended = subprocess.run(command, cwd=project_root, capture_output=True, text=True, timeout=110)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "12 passed, 0 failed" in ended.stdout


@pytest.mark.parametrize("how", ["wrong", "raises"])
def test_a_failure_is_told_with_what_repeats_it(
    how: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(rng: object, graph: object) -> str:
        if how == "raises":
            raise ZeroDivisionError("of no use")
        return "an edge can improve a value"

    monkeypatch.setattr(stress, "THREADS", (1,))
    monkeypatch.setitem(stress.RUNS, "wcc", run)
    assert stress.main(["--runs", "3", "--seed", "5", "--algorithm", "wcc"]) == 1
    told = capsys.readouterr().out
    assert ("of no use" if how == "raises" else "an edge can improve a value") in told
    assert "again: --seed 5 --only 2" in told
    assert "0 passed, 3 failed" in told


def test_a_run_is_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stress, "THREADS", (1,))
    first = [stress.run_one(11, index, None)[:2] for index in (0, 9, 9)]
    assert first[1] == first[2] != first[0]
