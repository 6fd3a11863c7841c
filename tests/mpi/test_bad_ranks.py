"""Whatever happens to a rank, the job ends, says so in one line, and leaves nothing behind."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import eventually, heavy, sweep
from tests.mpi.jobs import Jobs, error_lines, finish, foreign_mpirun, jobs_in


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with jobs_in(tmp_path) as started:
        yield started


def nothing_written(jobs: Jobs) -> bool:
    return not jobs.out.exists() and not list(jobs.out.parent.glob(".out.*"))


# ---------------------------------------------------------------------------------------- killed outright


def at_start(jobs: Jobs) -> None:
    """As soon as it is there."""


def while_building(jobs: Jobs) -> None:
    jobs.partial()


def while_searching(jobs: Jobs) -> None:
    log = jobs.partial() / "log.txt"
    eventually(lambda: log.exists() and "part 0: " in log.read_text())
    rank = jobs.rank(0)
    then = rank.cpu_times().user
    eventually(lambda: rank.cpu_times().user > then + 0.1)  # it is somewhere in thousands of searches


def while_writing(jobs: Jobs) -> None:
    partial = jobs.partial()
    eventually(lambda: list(partial.glob("result-*.txt")))


SLOW = {
    at_start: ["graph.generator.scale=8"],
    while_building: ["graph.generator.scale=20", "graph.cache=false"],
    while_searching: ["source=random:1000", "graph.generator.scale=12"],
    while_writing: ["source=random:200", "graph.generator.scale=13", "result.forms=[text]"],
}


@pytest.mark.parametrize(
    ("moment", "victim"),
    [(while_searching, 1), heavy(while_searching, 0), heavy(at_start, 1), heavy(while_building, 0),
     heavy(while_building, 1), heavy(while_writing, 0), heavy(while_writing, 1)],
)  # fmt: skip
def test_killed_rank(jobs: Jobs, moment: Callable[[Jobs], None], victim: int) -> None:
    process = jobs.start("ranks=2", *SLOW[moment])
    rank = jobs.rank(victim)
    moment(jobs)
    rank.kill()
    done = finish(process)
    assert done.returncode == 4, (done.stdout, done.stderr)
    assert len(error_lines(done.stderr)) == 1, done.stderr
    assert f"rank {victim} on " in done.stderr
    assert "SIGKILL" in done.stderr
    assert "Fix: " in done.stderr
    assert "Traceback" not in done.stderr
    assert nothing_written(jobs)


@pytest.mark.parametrize("number", sweep([signal.SIGINT, signal.SIGTERM]))
@pytest.mark.parametrize("moment", sweep([while_searching, at_start]))
def test_interrupt(jobs: Jobs, moment: Callable[[Jobs], None], number: int) -> None:
    process = jobs.start("ranks=2", *SLOW[while_searching])
    jobs.rank(1)
    moment(jobs)
    process.send_signal(number)
    done = finish(process)
    assert done.returncode == 130, done.stderr
    assert done.stderr.count("interrupted") == 1, done.stderr
    assert not jobs.processes()
    assert nothing_written(jobs)


@pytest.mark.parametrize("victim", sweep([1, 0]))
def test_one_rank_told_to_stop(jobs: Jobs, victim: int) -> None:
    process = jobs.start("ranks=2", *SLOW[while_searching])
    while_searching(jobs)
    jobs.rank(victim).terminate()
    done = finish(process)
    assert done.returncode == 4, done.stderr
    assert len(error_lines(done.stderr)) == 1, done.stderr
    assert "Fix: " in done.stderr
    assert nothing_written(jobs)


@pytest.mark.heavy
def test_launcher_killed_outright(jobs: Jobs) -> None:
    """Nobody is left to tell or to clean, but no rank goes on."""
    process = jobs.start("ranks=2", *SLOW[while_searching])
    while_searching(jobs)
    process.kill()
    process.communicate()
    eventually(lambda: not jobs.processes())
    assert not jobs.out.exists()


# ---------------------------------------------------------------------------------------- failing by itself


def failing(folder: Path, where: str, error: str, rank: int) -> dict[str, str]:
    """An environment in which one rank fails at one place."""
    folder.mkdir()
    module = where.rpartition(".")[0]
    (folder / "sitecustomize.py").write_text(
        "import os\n"
        f"if os.environ.get('OMPI_COMM_WORLD_RANK') == '{rank}':\n"
        f"    import {module}\n"
        "    def fail(*args, **keys):\n"
        f"        raise {error}\n"
        f"    {where} = fail\n"
    )
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize(
    ("where", "error", "code", "told"),
    [
        ("hybrid.ranks.parts.assemble", "MemoryError", 4, "not enough memory"),
        ("hybrid.ranks.parts.map_store", "OSError(28, 'No space left on device', 'x')", 4, "No space left"),
        ("hybrid.ranks.backend.warm_up_on_ranks", "RuntimeError('boom')", 1, "defect of Tandem"),
    ],
)
def test_exception_on_one_rank_ends_all(
    jobs: Jobs, tmp_path: Path, where: str, error: str, code: int, told: str
) -> None:
    environment = failing(tmp_path / "site", where, error, rank=1)
    done = jobs.run("ranks=3", "graph.generator.scale=7", "cluster.partition_cache=false", environment=environment)
    assert done.returncode == code, done.stderr
    lines = error_lines(done.stderr)
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("tandem: error: rank 1 on ")
    assert told in lines[0]
    assert ("boom" in done.stderr) == (code == 1), "a defect comes with its traceback"
    assert "MPI_ABORT" not in done.stderr
    assert nothing_written(jobs)


@pytest.mark.parametrize(
    ("settings", "code", "told"),
    [
        (["source=123456789"], 3, "nearest"),
        (["graph.path=no/such/file"], 3, "no/such/file"),
        (["cluster.mpirun=/no/such/mpirun"], 2, "no such program"),
        (["cluster.hostfile=/no/such/hosts"], 2, "no such file"),
    ],
)
def test_ordinary_mistakes_read_as_on_one_rank(jobs: Jobs, settings: list[str], code: int, told: str) -> None:
    done = jobs.run("ranks=2", *settings)
    assert done.returncode == code, done.stderr
    lines = error_lines(done.stderr)
    assert len(lines) == 1, done.stderr
    assert told in lines[0]
    assert "rank 0" not in lines[0]
    assert nothing_written(jobs)


@pytest.mark.heavy
def test_foreign_output_is_refused(jobs: Jobs) -> None:
    jobs.out.mkdir()
    (jobs.out / "thesis.txt").write_text("years of work")
    done = jobs.run("ranks=2")
    assert done.returncode == 4
    assert (jobs.out / "thesis.txt").read_text() == "years of work"


# ----------------------------------------------------------------------------------- starting that goes wrong


def test_fewer_slots_than_ranks(jobs: Jobs) -> None:
    done = jobs.run("ranks=3", "cluster.hosts=[localhost:1]")
    assert done.returncode == 4
    assert "3 ranks are wanted, and the machines have fewer slots" in error_lines(done.stderr)[0]
    assert "Fix: give more slots" in done.stderr
    assert "PRRTE" not in done.stderr


@pytest.mark.heavy
def test_host_that_does_not_exist(jobs: Jobs) -> None:
    done = jobs.run("ranks=2", "cluster.hosts=[no-such-host.invalid:2]")
    assert done.returncode == 4
    assert "no-such-host.invalid" in done.stdout + done.stderr
    assert len(error_lines(done.stderr)) == 1
    assert "Fix: " in done.stderr


@pytest.mark.heavy
def test_world_of_another_size(jobs: Jobs) -> None:
    program = [sys.executable, "-m", "mpi4py", "run.py", "--set", "ranks=3", "--output", str(jobs.out)]
    done = finish(jobs.start_command([*foreign_mpirun(), "-n", "2", *program]))
    assert done.returncode == 2
    assert "has started 2, the configuration wants 3" in done.stderr


@pytest.mark.parametrize("variables", sweep([("PMI_SIZE", "PMI_RANK"), ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID")]))
def test_launcher_that_does_not_belong_to_the_library(jobs: Jobs, variables: tuple[str, str]) -> None:
    """What a foreign launcher starts: processes with its variables, each alone in its own MPI."""
    size, rank = variables
    started = [jobs.start("ranks=2", environment={size: "2", rank: str(number)}) for number in range(2)]
    first, second = (finish(process) for process in started)
    assert first.returncode == 4, first.stderr
    assert "started 2 ranks, but each is rank 0 of 1" in error_lines(first.stderr)[0]
    assert "Open MPI" in first.stderr
    assert "Fix: " in first.stderr
    assert error_lines(second.stderr) == [], "once is enough"
    assert nothing_written(jobs)


@pytest.mark.heavy
def test_our_own_launcher_with_a_foreign_mpirun(jobs: Jobs, tmp_path: Path) -> None:
    """cluster.mpirun names one that just starts copies."""
    fake = tmp_path / "mpirun"
    fake.write_text(
        f"#!{sys.executable}\n"
        "import os, subprocess, sys\n"
        "if '--version' in sys.argv: sys.exit(print('HYDRA build details:'))\n"
        "program = sys.argv[sys.argv.index(sys.executable):]\n"
        "start = lambda n: subprocess.Popen(program, env={**os.environ, 'PMI_SIZE': '2', 'PMI_RANK': str(n)})\n"
        "sys.exit(max(child.wait() for child in [start(0), start(1)]))\n"
    )
    fake.chmod(0o755)
    done = jobs.run("ranks=2", f"cluster.mpirun={fake}")
    assert done.returncode == 4, done.stderr
    assert len(error_lines(done.stderr)) == 1, done.stderr
    assert "launcher and library do not belong together" in done.stderr


@pytest.mark.heavy
def test_different_configurations(jobs: Jobs) -> None:
    def program(seed: int) -> list[str]:
        words = ["npu.mode=off", "graph.generator.scale=6", f"source_seed={seed}"]
        command = [sys.executable, "-m", "mpi4py", "run.py", "--output", str(jobs.out)]
        return command + [word for setting in words for word in ("--set", setting)]

    command = [*foreign_mpirun(), "-n", "1", *program(1), ":", "-n", "2", *program(2)]
    done = finish(jobs.start_command(command))
    assert done.returncode == 2, done.stderr
    lines = error_lines(done.stderr)
    assert len(lines) == 1, done.stderr
    assert "not every rank has the same configuration: ranks 1, 2 on " in lines[0]
    assert nothing_written(jobs)
