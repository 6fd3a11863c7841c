"""What killed jobs left in shared memory goes at the next start, and nothing else does."""

from __future__ import annotations

import mmap
import os
import socket
from pathlib import Path

import pytest

from hybrid.launch import shared_memory as mpi_memory
from hybrid.launch.command import Launch
from hybrid.launch.locked_folders import lock_folder
from hybrid.launch.shared_memory import BACKING_DIRECTORY, PREFIX, remove_leftovers, segments_of

LOCAL = Launch(("mpirun",), {"A": "b"}, (), here=True)


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shm"
    folder.mkdir()
    monkeypatch.setattr(mpi_memory, "SHARED_MEMORY", folder)
    monkeypatch.delenv(BACKING_DIRECTORY, raising=False)
    return folder


def segment(memory: Path, tail: str, *, host: str | None = None, old: bool = True) -> Path:
    path = memory / f"sm_segment.{host or socket.gethostname()}.{os.getuid()}.{tail}"
    path.write_bytes(bytes(4096))
    if old:
        os.utime(path, (1, 1))
    return path


def test_segments_that_no_process_has_mapped(memory: Path, tmp_path: Path) -> None:
    dead, used = segment(memory, "1a.0"), segment(memory, "1b.0")
    young, elsewhere = segment(memory, "1c.0", old=False), segment(memory, "1d.0", host="of-another-machine")
    precious = tmp_path / "precious"
    precious.write_text("x")
    link = memory / f"sm_segment.{socket.gethostname()}.{os.getuid()}.1e.0"
    link.symlink_to(precious)
    os.utime(link, (1, 1), follow_symlinks=False)
    other = memory / "thesis"
    other.write_text("x")
    kept = [used, young, elsewhere, link, other]
    if os.geteuid() == 0:
        foreign = segment(memory, "1f.0")
        os.chown(foreign, 12345, 12345)
        kept.append(foreign)
    with used.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        remove_leftovers()
        assert sorted(memory.iterdir()) == sorted(kept)
        assert precious.exists()
    remove_leftovers()
    assert not used.exists(), "now it is nobody's"
    assert not dead.exists()


def test_folders_of_killed_launchers(memory: Path, tmp_path: Path) -> None:
    dead, alive, young, elsewhere = (memory / f"{PREFIX}{name}" for name in "abcd")
    real = tmp_path / "real"
    for folder in (dead, alive, young, real):
        folder.mkdir()
        (folder / "sm_segment.x").write_text("x")
    for folder in (dead, real):
        (folder / "lock").touch()
    elsewhere.symlink_to(real)
    with lock_folder(alive):
        remove_leftovers()
        assert sorted(memory.iterdir()) == sorted([alive, young, elsewhere])
    assert (real / "sm_segment.x").exists()


def test_a_job_has_a_folder_of_its_own_while_it_runs(memory: Path) -> None:
    with segments_of(LOCAL) as launch:
        folder = Path(launch.environment[BACKING_DIRECTORY])
        assert launch.environment["A"] == "b"
        assert folder.parent == memory
        (folder / "sm_segment.x").write_text("x")
        with segments_of(LOCAL) as another:  # of another job, which removes nothing of the first
            assert another.environment[BACKING_DIRECTORY] != str(folder)
        assert (folder / "sm_segment.x").exists()
    assert list(memory.iterdir()) == []


def test_where_it_is_not_ours_to_choose(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = Launch(("mpirun",), {}, ())
    with segments_of(elsewhere) as launch:
        assert launch is elsewhere, "other machines have no such folder"
    monkeypatch.setenv(BACKING_DIRECTORY, "/somewhere")
    with segments_of(LOCAL) as launch:
        assert launch is LOCAL
    assert list(memory.iterdir()) == []
