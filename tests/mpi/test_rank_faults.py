"""Ranks and mpirun that are killed at the worst moments or stopped: an error and no result, and nothing left behind."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hybrid.launch.shared_memory import BACKING_DIRECTORY
from tests.conftest import eventually
from tests.mpi.jobs import Jobs, error_lines, finish, jobs_in
from tests.mpi.test_bad_ranks import SLOW, nothing_written, while_searching

SILENCE_S = 4  # a rank on a busy machine still gets a turn in this time


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with jobs_in(tmp_path) as started:
        yield started


@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_dies_as_the_last_thing_it_does(jobs: Jobs, tmp_path: Path, victim: int) -> None:
    """All is computed, proved and written, and MPI is finalized: still, an error exit has no result beside it."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import atexit, os, signal\n"
        f"if os.environ.get('OMPI_COMM_WORLD_RANK') == '{victim}':\n"
        "    atexit.register(os.kill, os.getpid(), signal.SIGKILL)\n"  # the first one registered is the last one called
    )
    done = jobs.run("ranks=2", environment={"PYTHONPATH": str(site)})
    assert done.returncode == 4, (done.stdout, done.stderr)
    assert f"rank {victim} on " in error_lines(done.stderr)[0]
    assert "certified" not in done.stdout
    assert nothing_written(jobs)


@pytest.mark.heavy
def test_mpirun_killed_while_its_ranks_start(jobs: Jobs) -> None:
    """They know nothing of MPI yet, so the kernel and the launcher must end them."""
    process = jobs.start("ranks=2")
    mpirun = psutil.Process(jobs.rank(1).ppid())
    mpirun.kill()
    done = finish(process)
    assert not jobs.processes(), "the launcher ends after its ranks"
    assert done.returncode == 4, done.stderr
    assert "SIGKILL" in error_lines(done.stderr)[0]
    assert nothing_written(jobs)


@pytest.mark.heavy
def test_launcher_and_mpirun_killed_while_ranks_start_and_what_the_next_job_removes(jobs: Jobs) -> None:
    process = jobs.start("ranks=2")
    rank = jobs.rank(1)
    memory = Path(rank.environ()[BACKING_DIRECTORY])
    mpirun = psutil.Process(rank.ppid())
    process.kill()
    mpirun.kill()
    process.communicate()
    eventually(lambda: not jobs.processes())
    assert memory.is_dir(), "nobody was left to remove it"
    assert jobs.run("ranks=2").returncode == 0
    assert not memory.exists()


@pytest.mark.heavy
def test_no_segment_stays_when_a_rank_is_killed(jobs: Jobs) -> None:
    process = jobs.start("ranks=2", *SLOW[while_searching])
    while_searching(jobs)
    rank = jobs.rank(1)
    memory = Path(rank.environ()[BACKING_DIRECTORY])
    assert list(memory.glob("sm_segment.*"))
    rank.kill()
    assert finish(process).returncode == 4
    assert not memory.exists()


@pytest.mark.heavy
@pytest.mark.parametrize("victim", ["rank", "mpirun"])
def test_stopped(jobs: Jobs, victim: str) -> None:
    process = jobs.start("ranks=2", f"cluster.silence_timeout_s={SILENCE_S}", *SLOW[while_searching])
    while_searching(jobs)
    rank = jobs.rank(1)
    stopped = rank if victim == "rank" else psutil.Process(rank.ppid())
    stopped.send_signal(signal.SIGSTOP)
    done = finish(process)
    assert not jobs.processes()
    assert done.returncode == 4, done.stderr
    lines = error_lines(done.stderr)
    assert len(lines) == 1, done.stderr
    assert f"(pid {stopped.pid}) has been stopped for {SILENCE_S} s (cluster.silence_timeout_s)" in lines[0]
    assert "Fix: " in lines[0]
    assert f"(pid {stopped.pid}) is stopped" in done.stderr, "it is mentioned before it ends the job"
    assert nothing_written(jobs)
