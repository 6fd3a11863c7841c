"""The system calls of the exchange, one method each, and the words for their failures.

Invariant: no other module of the exchange calls the operating system's file functions, so that a test can put a
``Disk`` in between which makes any one call fail.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from exchange.errors import ExchangeError

_FIXES = {
    errno.ENOSPC: ("no space left on the device", "free space there, or put the exchange directory on another disk"),
    errno.EDQUOT: ("the disk quota is used up", "free space there, or put the exchange directory on another disk"),
    errno.EROFS: ("the file system is read-only", "choose an exchange directory on a writable file system"),
    errno.EACCES: ("permission denied", "give this user read and write access to the exchange directory"),
    errno.EPERM: ("operation not permitted", "give this user read and write access to the exchange directory"),
    errno.ENOENT: ("no such file or directory", "create the exchange directory, or correct its path"),
    errno.ENOTDIR: ("not a directory", "name a directory, not a file, as the exchange directory"),
    errno.EMFILE: ("too many open files", "raise the limit (ulimit -n) or close other programs"),
    errno.ENFILE: ("too many open files in the system", "raise fs.file-max or close other programs"),
    errno.EIO: ("input/output error", "check the disk, or put the exchange directory on another one"),
}


class Disk:
    """One method per system call that the exchange makes."""

    def create(self, path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def open_lock(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def open_read(self, path: Path) -> int:
        # Not blocking: a pipe put under a file's name must not hang the reader.
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def lock(self, fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, fd: int, data: memoryview) -> int:
        return os.write(fd, data)

    def read(self, fd: int, size: int) -> bytes:
        return os.read(fd, size)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        os.fsync(fd)

    def close(self, fd: int) -> None:
        os.close(fd)

    def fstat(self, fd: int) -> os.stat_result:
        return os.fstat(fd)

    def stat(self, path: Path) -> os.stat_result:
        return os.stat(path)

    def lstat(self, path: Path) -> os.stat_result:
        return os.lstat(path)

    def replace(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def link(self, source: Path, target: Path) -> None:
        os.link(source, target)

    def mkdir(self, path: Path) -> None:
        os.mkdir(path)

    def makedirs(self, path: Path) -> None:
        os.makedirs(path, exist_ok=True)

    def listdir(self, path: Path) -> list[str]:
        return os.listdir(path)

    def unlink(self, path: Path) -> None:
        os.unlink(path)

    def rmdir(self, path: Path) -> None:
        os.rmdir(path)


DISK = Disk()


def disk_error(error: OSError, path: Path, doing: str) -> ExchangeError:
    """The ExchangeError for a failed system call: what was being done, why it failed, what to do."""
    known = _FIXES.get(error.errno or 0)
    reason, fix = known or (error.strerror or str(error), "check the exchange directory and its disk")
    return ExchangeError(f"cannot {doing}: {reason}", path=path, fix=fix)
