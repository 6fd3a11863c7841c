"""Folders in places that all users share: what another user plants is neither followed, removed nor in the way."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from exchange.errors import DirectoryRefused
from exchange.filesystem.scratch import own_leftovers, private_folder, remove_folder
from exchange.mailbox import CoordinatorMailbox
from hybrid.ranks.parts import scratch_folder
from hybrid.results.atomic_write import atomic_write
from hybrid.results.folder import ResultFolder
from hybrid.service.rank_pool.folders import PREFIX, PoolFolder, remove_left
from hybrid.worker import exchange_directory
from hybrid.worker.exchange_directory import fresh_directory, remove_directory_of_killed
from tests.protocol.second_user import NO_SECOND_USER, NOBODY, Attack, attack, private, run_as, shared

__all__ = ["attack", "private", "shared"]

PLANT = """
cd "$1"
ln -s "$2" "$3-link"; ln -s "$3-loop" "$3-loop"; ln -s nowhere "$3-dangling"; : > "$3-file"; mkfifo "$3-pipe"
for one in "$3"-*; do touch -h -d 2001-01-01 "$one"; done
"""
PLANTED = {"link", "loop", "dangling", "file", "pipe"}


@pytest.fixture
def temporary(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, and for shared memory, that everybody uses."""
    shared.chmod(0o1777)
    os.umask(0o022)
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    monkeypatch.setattr(exchange_directory, "_MEMORY", shared)
    return shared


def left(folder: Path, prefix: str) -> set[str]:
    return {path.name.removeprefix(f"{prefix}-") for path in folder.iterdir() if path.name.startswith(f"{prefix}-")}


def make_old(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    (folder / "deep" / "deeper").mkdir(parents=True)
    os.utime(folder, (1, 1))
    return folder


def test_an_exchange_directory_is_made_beside_whatever_is_planted(
    temporary: Path, private: Path, attack: Attack
) -> None:
    attack(PLANT, temporary, private, "tandem-exchange")
    ours = make_old(temporary / "tandem-exchange-killed")
    made = fresh_directory()
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert left(temporary, "tandem-exchange") == {*PLANTED, made.name.removeprefix("tandem-exchange-")}
    assert not ours.exists()
    for name in PLANTED:
        remove_directory_of_killed(temporary / f"tandem-exchange-{name}")
    remove_directory_of_killed(made)
    assert left(temporary, "tandem-exchange") == PLANTED


def test_a_pool_sweeps_nothing_through_a_link(temporary: Path, private: Path, attack: Attack) -> None:
    attack(PLANT, temporary, private, "tandem-crew")
    ours = make_old(temporary / "tandem-crew-killed")
    (private / "lock").touch()  # as in a folder of a pool that was killed
    rank_pool = PoolFolder()
    rank_pool.temporary()
    for name in PLANTED:
        remove_left(temporary / f"tandem-crew-{name}", PREFIX)
    rank_pool.remove()
    assert not ours.exists()
    assert left(temporary, "tandem-crew") == PLANTED
    (private / "lock").unlink()


def test_a_pool_makes_private_folders(temporary: Path) -> None:
    rank_pool = PoolFolder()
    assert {stat.S_IMODE(one.stat().st_mode) for one in (rank_pool.path, rank_pool.temporary())} == {0o700}
    rank_pool.remove()


def test_scratch_folders_of_ranks(temporary: Path, private: Path, attack: Attack) -> None:
    attack(PLANT, temporary, private, "tandem-graph")
    ours = make_old(temporary / "tandem-graph-killed")
    made = scratch_folder("tandem-graph-")
    assert made.is_dir()
    assert not ours.exists()
    assert left(temporary, "tandem-graph") == {*PLANTED, made.name.removeprefix("tandem-graph-")}


def test_leftovers_of_other_users_are_left(temporary: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip(NO_SECOND_USER)
    run_as(NOBODY, 'mkdir "$1/tandem-exchange-x" "$1/tandem-crew-x"; touch -d 2001-01-01 "$1"/*', temporary)
    assert list(own_leftovers(temporary, "tandem-")) == []
    fresh_directory()
    PoolFolder().remove()
    assert (temporary / "tandem-exchange-x").is_dir()
    assert (temporary / "tandem-crew-x").is_dir()


def test_no_name_of_a_result_can_be_taken_first(temporary: Path, private: Path, attack: Attack) -> None:
    attack('mkdir "$1/.out.$2.$3.partial"', temporary, socket.gethostname(), os.getpid())
    attack('ln -s "$3" "$1/.x.$2.y.999999999.partial"', temporary, socket.gethostname(), private)
    folder = ResultFolder(str(temporary / "out"), "bfs")
    folder.write_text("log.txt", "")
    folder.commit()
    assert (temporary / "out" / "log.txt").exists()


def test_an_exchange_directory_may_be_ones_own_link_and_no_one_elses(temporary: Path, attack: Attack) -> None:
    (temporary / "real").mkdir()
    (temporary / "own").symlink_to("real")
    with CoordinatorMailbox(temporary / "own"):
        assert (temporary / "real" / "owner.lock").exists()
    attack('ln -s "$1/real" "$1/planted"', temporary)
    if (temporary / "planted").lstat().st_uid != os.geteuid():
        with pytest.raises(DirectoryRefused, match=r"planted.*symbolic link.*Fix"):
            CoordinatorMailbox(temporary / "planted").open()


def test_a_whole_file_is_never_written_through_a_link(temporary: Path, private: Path, attack: Attack) -> None:
    attack(
        'ln -s "$2/secret" "$1/report.html"; ln -s "$2/secret" "$1/.report.html.$3"', temporary, private, os.getpid()
    )
    atomic_write(temporary / "report.html", "new")
    assert (temporary / "report.html").read_text() == "new"
    assert [name for name in os.listdir(temporary) if name.startswith(".")] == [f".report.html.{os.getpid()}"]
    with pytest.raises(FileNotFoundError, match="missing"):
        atomic_write(temporary / "missing" / "file", b"")


def test_a_folder_replaced_by_a_link_is_unlinked(temporary: Path, private: Path) -> None:
    made = private_folder("tandem-test-")
    made.rmdir()
    made.symlink_to(private)
    remove_folder(made)
    assert not made.is_symlink()
    remove_folder(made)
    remove_folder(temporary / "missing" / "folder")
