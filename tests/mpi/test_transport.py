"""The transport over real MPI: every size, in pieces too, run after run; and errors that end all ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import sweep
from tests.mpi.launching import run_ranks

SCRIPT = Path(__file__).with_name("ranks_transport.py")


def content(out: str) -> set[str]:
    """Lines of different ranks may be joined on the way."""
    return {f"rank {part.strip()}" for part in out.split("rank ") if part.strip()}


@pytest.mark.parametrize("chunk_bytes", [1 << 30, 1_000])
@pytest.mark.parametrize("ranks", sweep([3, 1, 2, 4]))
def test_everything_arrives(ranks: int, chunk_bytes: int) -> None:
    done = run_ranks(SCRIPT, ranks, arguments=["everything", str(chunk_bytes)])
    assert done.returncode == 0, done.stdout + done.stderr
    assert content(done.stdout) == {f"rank {rank} of {ranks} is content" for rank in range(ranks)}


@pytest.mark.parametrize("ranks", sweep([4, 2]))
def test_runs_do_not_mix(ranks: int) -> None:
    """Rank 0 hears nothing and runs ahead."""
    done = run_ranks(SCRIPT, ranks, arguments=["runs"])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "ranks", "said"),
    [
        ("wrong tags", 2, "expects tag"),
        ("too late", 2, "after its run was over. Fix: end a run only when nothing is under way"),
        ("failing", 3, "RuntimeError: the last rank fails"),
    ],
)
def test_one_failure_ends_all(name: str, ranks: int, said: str) -> None:
    done = run_ranks(SCRIPT, ranks, arguments=[name])
    assert done.returncode != 0
    assert said in done.stderr
    assert "is content" not in done.stdout


def test_a_hanging_job_is_ended(tmp_path: Path) -> None:
    """The helper itself: its time limit holds, and the fixture of all tests sees that nobody stays."""
    script = tmp_path / "hang.py"
    script.write_text("import sys, time\nprint('here', flush=True)\ntime.sleep(100)\n")
    with pytest.raises(TimeoutError, match=r"2 ranks took more than 3 s\n(here\n)+"):
        run_ranks(script, 2, timeout_s=3)
