"""Where a machine's worker and its rank meet if several machines share the exchange directory, and a name is taken."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cpu_engine.comm.collectives import RankInfo
from exchange.errors import DirectoryRefused
from hybrid.config import load_config
from hybrid.launch.announce import Announcer
from hybrid.ranks.workers import RankCore
from hybrid.results.trace import Trace
from hybrid.worker.solver import WorkerSolver
from tests.protocol.second_user import NO_SECOND_USER, NOBODY

SEAT = RankInfo(1, 2, ("one", "two"))


def make(tmp_path: Path, worker: str) -> RankCore:
    config = load_config(None, [f"exchange.dir={tmp_path / 'shared'}", f"npu.worker={worker}"])
    core = RankCore(SEAT, config, "bfs", Trace(), tmp_path / "worker.log", Announcer(False))
    job, failure = core.make_device()
    if failure:
        job.make().do_without(failure)
    return core


def device_of(core: RankCore) -> WorkerSolver:
    assert core._job is not None
    device = core._job.make()
    assert isinstance(device, WorkerSolver)
    return device


def link_of_another_user(name: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip(NO_SECOND_USER)
    name.symlink_to(name.parent.parent / "private")
    os.chown(name, NOBODY, NOBODY, follow_symlinks=False)


PLANTED: dict[str, Callable[[Path], None]] = {
    "file": lambda name: name.write_text("planted") and None,
    "pipe": os.mkfifo,
    "link to nothing": lambda name: name.symlink_to("absent"),
    "link to itself": lambda name: name.symlink_to(name.name),
    "link of another user": link_of_another_user,
}


@pytest.mark.parametrize("worker", ["launch", "external"])
@pytest.mark.parametrize("kind", PLANTED)
def test_a_name_that_is_taken_does_not_end_the_job(
    tmp_path: Path, kind: str, worker: str, caplog: pytest.LogCaptureFixture
) -> None:
    shared, private = tmp_path / "shared", tmp_path / "private"
    shared.mkdir()
    private.mkdir()
    (private / "file").write_text("stays")
    PLANTED[kind](shared / "two")
    npu = make(tmp_path, worker)
    try:
        solver = device_of(npu)
        assert solver.directory.stat().st_mode & 0o777 == 0o700
        assert shared not in solver.directory.parents
        (told,) = [record.getMessage() for record in caplog.records]
        assert str(shared / "two") in told
        assert told.isprintable()
        assert bool(solver.failure) == (worker == "external")
        assert solver.usable == (worker == "launch")
    finally:
        npu.close()
    assert not solver.directory.exists()
    assert os.listdir(shared) == ["two"]
    assert os.listdir(private) == ["file"]


def test_a_name_that_is_free_is_used(tmp_path: Path) -> None:
    npu = make(tmp_path, "external")
    npu.close()
    assert device_of(npu).directory == tmp_path / "shared" / "two"


def test_a_shared_directory_that_cannot_be_made_ends_the_job(tmp_path: Path) -> None:
    (tmp_path / "shared").write_text("a file")
    with pytest.raises(DirectoryRefused, match="not a directory"):
        make(tmp_path, "launch")
