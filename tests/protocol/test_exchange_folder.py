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

from exchange.errors import DirectoryRefused, ExchangeError, RoundGone
from exchange.filesystem import folder as folders
from exchange.filesystem.disk import Disk, disk_error
from exchange.filesystem.folder import Folder
from exchange.filesystem.owner_lock import lock_directory, read_owner
from tests.protocol.faulty_disk import DiskWithoutLinks, FaultyDisk

ROUND = "round-000001-0000abcd"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder.open(tmp_path) as opened:
        yield opened


def on(path: Path, disk: Disk) -> Folder:
    return Folder.open(path, disk)


def test_a_file_appears_whole_and_replaces_whole(tmp_path: Path, folder: Folder) -> None:
    for data in (b"", b"1 2\n", os.urandom(1 << 20)):
        for durable in (False, True):
            folder.write("value.txt", data, durable=durable)
            assert folder.read("value.txt", 1 << 21) == data
    assert os.listdir(tmp_path) == ["value.txt"]


def test_short_writes_are_continued(tmp_path: Path) -> None:
    class Dripping(Disk):
        def write(self, fd: int, data: memoryview) -> int:
            return os.write(fd, data[:3])

    on(tmp_path, Dripping()).write("value.txt", b"12345 67890\n")
    assert (tmp_path / "value.txt").read_bytes() == b"12345 67890\n"


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    class Interrupted(Disk):
        def write(self, fd: int, data: memoryview) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        on(tmp_path, Interrupted()).write("value.txt", b"1 2\n")
    assert os.listdir(tmp_path) == []


def test_a_full_device_is_told(tmp_path: Path) -> None:
    class OnFull(Disk):
        def create(self, name: str, at: int) -> int:
            super().close(super().create(name, at))
            return os.open("/dev/full", os.O_WRONLY)

    with pytest.raises(ExchangeError, match=r"value\.txt: cannot write the file: no space left.*Fix: free space"):
        on(tmp_path, OnFull()).write("value.txt", b"1 2\n")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.ELOOP])
def test_every_failure_has_a_fix(code: int, tmp_path: Path) -> None:
    error = disk_error(OSError(code, os.strerror(code)), tmp_path, "write the file")
    assert error.fix
    with pytest.raises(ExchangeError, match="cannot create the flag"):
        on(tmp_path, FaultyDisk(3, code=code)).create_flag("ok.flag")
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
    folder = Folder.open(small_disk)
    folder.write("value.txt", b"1 2\n")
    with pytest.raises(ExchangeError, match="no space left"):
        folder.write("value.txt", b"1" * 200_000)
    assert (small_disk / "value.txt").read_bytes() == b"1 2\n"
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for attempt in (
        lambda: folder.write("data.txt", b"1 2\n"),
        lambda: folder.create_flag("ok.flag"),
        lambda: folder.make_folder(ROUND),
        lambda: lock_directory(folder, "0000abcd"),
    ):
        with pytest.raises(ExchangeError, match=r"read-only.*Fix: choose an exchange directory"):
            attempt()
    assert os.listdir(small_disk) == ["value.txt"]
    folder.close()


def test_flags_are_created_once(tmp_path: Path, folder: Folder) -> None:
    assert folder.create_flag("ok.flag")
    assert not folder.create_flag("ok.flag")
    assert (tmp_path / "ok.flag").read_bytes() == b""


def test_only_plain_files_of_bounded_size_are_read(tmp_path: Path, folder: Folder) -> None:
    (tmp_path / "data.txt").write_bytes(b"x" * 100)
    assert len(folder.read("data.txt", 100)) == 100
    with pytest.raises(ExchangeError, match="larger than the 99 bytes"):
        folder.read("data.txt", 99)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(ExchangeError, match="not a plain file"):
            folder.read(name, 100)
        with pytest.raises(ExchangeError, match="not a plain file"):
            folder.info(name)


def test_a_sparse_giant_is_refused_unread(tmp_path: Path, folder: Folder) -> None:
    with open(tmp_path / "data.txt", "wb") as giant:
        giant.truncate(1 << 40)
    with pytest.raises(ExchangeError, match="larger"):
        folder.read("data.txt", 1 << 30)


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path) -> None:
    class Growing(Disk):
        def read(self, fd: int, size: int) -> bytes:
            return b"1 2\n" * (min(size, 4096) // 4) or b"1"

    (tmp_path / "data.txt").write_bytes(b"")
    with pytest.raises(ExchangeError, match="larger"):
        on(tmp_path, Growing()).read("data.txt", 10_001)


def test_a_missing_file_and_a_missing_round_are_different_errors(tmp_path: Path, folder: Folder) -> None:
    with pytest.raises(RoundGone):
        folder.folder(ROUND)
    for remove in (os.rmdir, lambda path: os.rename(path, tmp_path / ".hidden")):
        with folder.make_folder(ROUND) as gone:
            with pytest.raises(ExchangeError, match="no such file") as caught:
                gone.read("data.txt", 10)
            assert not isinstance(caught.value, RoundGone)
            assert gone.is_there()
            remove(gone.path)
            assert not gone.is_there()
            for attempt in (lambda: gone.read("data.txt", 10), lambda: gone.info("data.txt")):
                with pytest.raises(RoundGone):
                    attempt()
            if remove is os.rmdir:
                for attempt in (lambda: gone.create_flag("ok.flag"), lambda: gone.write("data.txt", b"")):
                    with pytest.raises(RoundGone):
                        attempt()
    with pytest.raises(ExchangeError, match="create the exchange directory"):
        Folder.open(tmp_path / "missing")


def test_rounds_are_listed_in_order_and_nothing_else(tmp_path: Path, folder: Folder) -> None:
    for name in ("round-000010-0000abcd", "round-000002-0000abcd", "core-0000abcd-0001", "round-x", ".round-000003"):
        (tmp_path / name).mkdir()
    assert folder.rounds() == ["round-000002-0000abcd", "round-000010-0000abcd"]


def test_a_listing_is_bounded(tmp_path: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOST_NAMES", 3)
    for number in range(3):
        (tmp_path / str(number)).touch()
    assert len(folder.names()) == 3
    (tmp_path / "more").touch()
    with pytest.raises(ExchangeError, match=r"more than 3 files.*Fix"):
        folder.names()


def test_directories(tmp_path: Path, folder: Folder) -> None:
    for _ in range(2):
        Folder.make(tmp_path / "a" / "b").close()
    folder.make_folder(ROUND).close()
    with pytest.raises(ExchangeError, match="never reused"):
        folder.make_folder(ROUND)
    (tmp_path / "file").write_text("")
    with pytest.raises(DirectoryRefused, match="file, not a directory"):
        Folder.make(tmp_path / "file")
    with pytest.raises(DirectoryRefused, match="not a directory"):
        Folder.make(tmp_path / "file" / "below")


def test_link_or_copy(tmp_path: Path, folder: Folder) -> None:
    (tmp_path / "mind_graph.txt").write_bytes(b"0 1\n")
    with folder.make_folder("linked") as linked:
        assert linked.link_or_copy(folder, "mind_graph.txt", most=100)
        assert linked.info("mind_graph.txt").st_ino == folder.info("mind_graph.txt").st_ino
        with pytest.raises(ExchangeError, match="cannot link"):
            linked.link_or_copy(folder, "mind_graph.txt", most=100)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mind_graph.txt").write_bytes(b"0 2\n")
    with on(tmp_path / "other", DiskWithoutLinks()) as source, folder.make_folder("copied") as plain:
        plain.disk = source.disk
        assert not plain.link_or_copy(source, "mind_graph.txt", most=100)
    assert (tmp_path / "copied" / "mind_graph.txt").read_bytes() == b"0 2\n"


def test_remove_takes_everything_and_follows_no_link(tmp_path: Path, folder: Folder) -> None:
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep" / "file").write_text("")
    tree = tmp_path / ROUND
    (tree / "deep" / "deeper").mkdir(parents=True)
    (tree / "deep" / "file").write_text("")
    (tree / "link").symlink_to(tmp_path / "keep")
    (tree / "deep" / "link").symlink_to(tmp_path / "keep")
    for _ in range(2):
        folder.retire(ROUND)
        folder.remove(ROUND)
    assert os.listdir(tmp_path) == ["keep"]
    assert os.listdir(tmp_path / "keep") == ["file"]


def test_remove_copes_with_a_file_that_arrives_meanwhile(tmp_path: Path) -> None:
    tree = tmp_path / ROUND
    (tree / "inner").mkdir(parents=True)

    class Busy(Disk):
        late = True

        def rmdir(self, name: str, at: int) -> None:
            if self.late:
                self.late = False
                with open(f"/proc/self/fd/{at}/{name}/data.txt", "w") as late:
                    late.write("1 2\n")
            super().rmdir(name, at)

    with on(tmp_path, Busy()) as busy:
        busy.remove(ROUND)
    assert os.listdir(tmp_path) == []


def test_one_owner_per_directory(tmp_path: Path, folder: Folder) -> None:
    first = lock_directory(folder, "0000abcd")
    assert read_owner(folder) == {"token": "0000abcd", "pid": str(os.getpid()), "host": socket.gethostname()}
    with pytest.raises(DirectoryRefused, match=f"pid {os.getpid()} on .*Fix: wait for that job") as caught:
        lock_directory(folder, "1111abcd")
    assert caught.value.path == tmp_path
    first.release(remove=False)
    first.release(remove=True)  # the second release does nothing: the file may be another job's by now
    second = lock_directory(folder, "1111abcd")
    assert read_owner(folder)["token"] == "1111abcd"
    second.release(remove=True)
    assert os.listdir(tmp_path) == []
    assert read_owner(folder) == {}


def test_the_lock_of_a_killed_job_is_free(tmp_path: Path, folder: Folder, project_root: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from exchange.filesystem.folder import Folder\n"
        "from exchange.filesystem.owner_lock import lock_directory\n"
        "lock = lock_directory(Folder.open(Path(sys.argv[1])), '2222abcd'); print('held', flush=True); sys.stdin.read()"
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
        with pytest.raises(DirectoryRefused, match=f"pid {holder.pid} on {socket.gethostname()}"):
            lock_directory(folder, "3333abcd")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    lock = lock_directory(folder, "3333abcd")
    assert read_owner(folder)["token"] == "3333abcd"
    lock.release(remove=True)


def test_a_lock_file_removed_under_our_hands_is_made_again(tmp_path: Path, folder: Folder) -> None:
    class Removing(Disk):
        times = 0

        def lock(self, fd: int) -> None:
            super().lock(fd)
            self.times += 1
            if self.times == 1:
                (tmp_path / "owner.lock").unlink()

    disk = Removing()
    with on(tmp_path, disk) as watched:
        lock = lock_directory(watched, "0000abcd")
        assert disk.times == 2
        with pytest.raises(DirectoryRefused, match="in use"):
            lock_directory(folder, "1111abcd")
        lock.release(remove=True)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"token\n", b"x" * 10_000])
def test_an_unreadable_owner_is_nobody(tmp_path: Path, folder: Folder, content: bytes) -> None:
    (tmp_path / "owner.lock").write_bytes(content)
    assert read_owner(folder) == {}
