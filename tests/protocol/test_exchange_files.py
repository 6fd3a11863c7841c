"""The disk functions on a real disk: whole files, refusals with a fix, one owner per directory."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from exchange import files
from exchange.disk import Disk, disk_error
from exchange.errors import ExchangeError, RoundGone
from tests.protocol.faulty_disk import DiskWithoutLinks, FaultyDisk

ROUND = "round-000001-0000abcd"


def test_a_file_appears_whole_and_replaces_whole(tmp_path: Path) -> None:
    path = tmp_path / "value.txt"
    for data in (b"", b"1 2\n", os.urandom(1 << 20)):
        for durable in (False, True):
            files.write_atomic(path, data, durable=durable)
            assert files.read_bytes(path, 1 << 21) == data
    assert os.listdir(tmp_path) == ["value.txt"]


def test_short_writes_are_continued(tmp_path: Path) -> None:
    class Dripping(Disk):
        def write(self, fd: int, data: memoryview) -> int:
            return os.write(fd, data[:3])

    files.write_atomic(tmp_path / "value.txt", b"12345 67890\n", disk=Dripping())
    assert (tmp_path / "value.txt").read_bytes() == b"12345 67890\n"


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    class Interrupted(Disk):
        def write(self, fd: int, data: memoryview) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_atomic(tmp_path / "value.txt", b"1 2\n", disk=Interrupted())
    assert os.listdir(tmp_path) == []


def test_a_full_device_is_told(tmp_path: Path) -> None:
    class OnFull(Disk):
        def create(self, path: Path) -> int:
            super().close(super().create(path))
            return os.open("/dev/full", os.O_WRONLY)

    with pytest.raises(ExchangeError, match=r"value\.txt: cannot write the file: no space left.*Fix: free space"):
        files.write_atomic(tmp_path / "value.txt", b"1 2\n", disk=OnFull())
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.ELOOP])
def test_every_failure_has_a_fix(code: int, tmp_path: Path) -> None:
    error = disk_error(OSError(code, os.strerror(code)), tmp_path, "write the file")
    assert error.fix
    with pytest.raises(ExchangeError, match="cannot create the flag"):
        files.create_flag(tmp_path / "ok.flag", disk=FaultyDisk(1, code=code))
    assert os.listdir(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 64 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True)
    if made.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_really_full_and_a_really_read_only_disk(small_disk: Path) -> None:
    files.write_atomic(small_disk / "value.txt", b"1 2\n")
    with pytest.raises(ExchangeError, match="no space left"):
        files.write_atomic(small_disk / "value.txt", b"1" * 200_000)
    assert (small_disk / "value.txt").read_bytes() == b"1 2\n"
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for attempt in (
        lambda: files.write_atomic(small_disk / "data.txt", b"1 2\n"),
        lambda: files.create_flag(small_disk / "ok.flag"),
        lambda: files.make_round_dir(small_disk / ROUND),
        lambda: files.lock_directory(small_disk, "0000abcd"),
    ):
        with pytest.raises(ExchangeError, match=r"read-only.*Fix: choose an exchange directory"):
            attempt()
    assert os.listdir(small_disk) == ["value.txt"]


def test_flags_are_created_once(tmp_path: Path) -> None:
    assert files.create_flag(tmp_path / "ok.flag")
    assert not files.create_flag(tmp_path / "ok.flag")
    assert (tmp_path / "ok.flag").read_bytes() == b""


def test_only_plain_files_of_bounded_size_are_read(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_bytes(b"x" * 100)
    assert len(files.read_bytes(tmp_path / "data.txt", 100)) == 100
    with pytest.raises(ExchangeError, match="larger than the 99 bytes"):
        files.read_bytes(tmp_path / "data.txt", 99)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero", "."):
        with pytest.raises(ExchangeError, match="not a plain file"):
            files.read_bytes(tmp_path / name, 100)


def test_a_sparse_giant_is_refused_unread(tmp_path: Path) -> None:
    with open(tmp_path / "data.txt", "wb") as giant:
        giant.truncate(1 << 40)
    with pytest.raises(ExchangeError, match="larger"):
        files.read_bytes(tmp_path / "data.txt", 1 << 30)


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path) -> None:
    class Growing(Disk):
        def read(self, fd: int, size: int) -> bytes:
            return b"1 2\n" * (min(size, 4096) // 4) or b"1"

    (tmp_path / "data.txt").write_bytes(b"")
    with pytest.raises(ExchangeError, match="larger"):
        files.read_bytes(tmp_path / "data.txt", 10_001, disk=Growing())


def test_a_missing_file_and_a_missing_round_are_different_errors(tmp_path: Path) -> None:
    for attempt in (
        lambda: files.read_bytes(tmp_path / ROUND / "data.txt", 10),
        lambda: files.file_stat(tmp_path / ROUND / "data.txt"),
        lambda: files.create_flag(tmp_path / ROUND / "ok.flag"),
        lambda: files.write_atomic(tmp_path / ROUND / "data.txt", b""),
        lambda: files.list_names(tmp_path / ROUND),
    ):
        with pytest.raises(RoundGone):
            attempt()
    (tmp_path / ROUND).mkdir()
    with pytest.raises(ExchangeError, match="no such file") as caught:
        files.read_bytes(tmp_path / ROUND / "data.txt", 10)
    assert not isinstance(caught.value, RoundGone)
    with pytest.raises(ExchangeError, match="create the exchange directory"):
        files.list_rounds(tmp_path / "missing")


def test_rounds_are_listed_in_order_and_nothing_else(tmp_path: Path) -> None:
    for name in ("round-000010-0000abcd", "round-000002-0000abcd", "core-0000abcd-0001", "round-x", ".round-000003"):
        (tmp_path / name).mkdir()
    assert files.list_rounds(tmp_path) == ["round-000002-0000abcd", "round-000010-0000abcd"]


def test_directories(tmp_path: Path) -> None:
    files.make_directory(tmp_path / "a" / "b")
    files.make_directory(tmp_path / "a" / "b")
    files.make_round_dir(tmp_path / ROUND)
    with pytest.raises(ExchangeError, match="never reused"):
        files.make_round_dir(tmp_path / ROUND)
    (tmp_path / "file").write_text("")
    with pytest.raises(ExchangeError, match="file, not a directory"):
        files.make_directory(tmp_path / "file")
    with pytest.raises(ExchangeError, match="not a directory"):
        files.make_directory(tmp_path / "file" / "below")


def test_link_or_copy(tmp_path: Path) -> None:
    source = tmp_path / "mind_graph.txt"
    source.write_bytes(b"0 1\n")
    assert files.link_or_copy(source, tmp_path / "linked", max_bytes=100)
    assert (tmp_path / "linked").stat().st_ino == source.stat().st_ino
    assert not files.link_or_copy(source, tmp_path / "copied", max_bytes=100, disk=DiskWithoutLinks())
    assert (tmp_path / "copied").read_bytes() == b"0 1\n"
    with pytest.raises(ExchangeError, match="cannot link"):
        files.link_or_copy(source, tmp_path / "linked", max_bytes=100)


def test_remove_tree_takes_everything_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep" / "file").write_text("")
    tree = tmp_path / ROUND
    (tree / "deep" / "deeper").mkdir(parents=True)
    (tree / "deep" / "file").write_text("")
    (tree / "link").symlink_to(tmp_path / "keep")
    files.remove_tree(tree)
    files.remove_tree(tree)
    assert os.listdir(tmp_path) == ["keep"]
    assert os.listdir(tmp_path / "keep") == ["file"]


def test_remove_tree_copes_with_a_file_that_arrives_meanwhile(tmp_path: Path) -> None:
    tree = tmp_path / ROUND
    tree.mkdir()

    class Busy(Disk):
        late = True

        def rmdir(self, path: Path) -> None:
            if self.late:
                self.late = False
                (path / "data.txt").write_text("1 2\n")
            super().rmdir(path)

    files.remove_tree(tree, disk=Busy())
    assert os.listdir(tmp_path) == []


def test_one_owner_per_directory(tmp_path: Path) -> None:
    first = files.lock_directory(tmp_path, "0000abcd")
    assert files.read_owner(tmp_path) == {"token": "0000abcd", "pid": str(os.getpid()), "host": socket.gethostname()}
    with pytest.raises(ExchangeError, match=f"pid {os.getpid()} on .*Fix: wait for that job") as caught:
        files.lock_directory(tmp_path, "1111abcd")
    assert caught.value.path == tmp_path
    first.release(remove=False)
    first.release(remove=True)  # the second release does nothing: the file may be another job's by now
    second = files.lock_directory(tmp_path, "1111abcd")
    assert files.read_owner(tmp_path)["token"] == "1111abcd"
    second.release(remove=True)
    assert os.listdir(tmp_path) == []
    assert files.read_owner(tmp_path) == {}


def test_the_lock_of_a_killed_job_is_free(tmp_path: Path, project_root: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from exchange import files\n"
        "lock = files.lock_directory(Path(sys.argv[1]), '2222abcd'); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=project_root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ExchangeError, match=f"pid {holder.pid} on {socket.gethostname()}"):
            files.lock_directory(tmp_path, "3333abcd")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    lock = files.lock_directory(tmp_path, "3333abcd")
    assert files.read_owner(tmp_path)["token"] == "3333abcd"
    lock.release(remove=True)


def test_a_lock_file_removed_under_our_hands_is_made_again(tmp_path: Path) -> None:
    class Removing(Disk):
        times = 0

        def lock(self, fd: int) -> None:
            super().lock(fd)
            self.times += 1
            if self.times == 1:
                (tmp_path / "owner.lock").unlink()

    disk = Removing()
    lock = files.lock_directory(tmp_path, "0000abcd", disk=disk)
    assert disk.times == 2
    with pytest.raises(ExchangeError, match="in use"):
        files.lock_directory(tmp_path, "1111abcd")
    lock.release(remove=True)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"token\n", b"x" * 10_000])
def test_an_unreadable_owner_is_nobody(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "owner.lock").write_bytes(content)
    assert files.read_owner(tmp_path) == {}
