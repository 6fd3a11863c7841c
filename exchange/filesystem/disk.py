"""The system calls of the exchange, one method each, and the words for their failures.

Invariant: no other module of the exchange calls the operating system's file functions, so that a test can put a
``Disk`` in between which makes any one call fail.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import stat
from pathlib import Path

from exchange.errors import ExchangeError

_FIXES = {
    errno.ENOSPC: ("no space left on the device", "free space there, or put the exchange directory on another disk"),
    errno.EDQUOT: ("the disk quota is used up", "free space there, or put the exchange directory on another disk"),
    errno.EROFS: ("the file system is read-only", "choose an exchange directory on a writable file system"),
    errno.EACCES: ("permission denied", "give this user read and write access to the exchange directory"),
    errno.EPERM: ("operation not permitted", "give this user read and write access to the exchange directory"),
    errno.ENOENT: ("no such file or directory", "create the exchange directory, or correct its path"),
    errno.ENOTDIR: ("not a directory", "put a directory under this name, not a file or a link"),
    errno.ELOOP: ("this is a symbolic link", "put a file or directory itself under this name, not a link"),
    errno.EISDIR: ("this is a directory", "write a plain file under this name"),
    errno.EMFILE: ("too many open files", "raise the limit (ulimit -n) or close other programs"),
    errno.ENFILE: ("too many open files in the system", "raise fs.file-max or close other programs"),
    errno.EIO: ("input/output error", "check the disk, or put the exchange directory on another one"),
}


_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_CLOEXEC


class Disk:
    """One method per system call that the exchange makes.

    ``at`` is the descriptor of the directory that ``name`` is in. No link is followed, and nothing blocks: a pipe put
    under a file's name must not hang the reader.
    """

    def open_path(self, path: Path) -> int:
        """A directory by the path that the user gave. If that is a link, it must be this user's or the system's."""
        try:
            return os.open(path, _FOLDER | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode) and info.st_uid not in (os.geteuid(), 0):
            raise OSError(errno.ELOOP, "a symbolic link of another user", str(path))
        return os.open(path, _FOLDER)

    def open_folder(self, name: str, at: int) -> int:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=at)

    def create(self, name: str, at: int) -> int:
        return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, 0o666, dir_fd=at)

    def make_lock(self, name: str, at: int) -> int:
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE, 0o666, dir_fd=at)

    def open_lock(self, name: str, at: int) -> int:
        return os.open(name, os.O_RDWR | _SAFE, dir_fd=at)

    def open_read(self, name: str, at: int) -> int:
        return os.open(name, os.O_RDONLY | _SAFE, dir_fd=at)

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

    def lstat(self, name: str, at: int) -> os.stat_result:
        return os.stat(name, dir_fd=at, follow_symlinks=False)

    def rename(self, source: str, source_at: int, target: str, target_at: int) -> None:
        os.replace(source, target, src_dir_fd=source_at, dst_dir_fd=target_at)

    def link(self, source: str, source_at: int, target: str, target_at: int) -> None:
        os.link(source, target, src_dir_fd=source_at, dst_dir_fd=target_at, follow_symlinks=False)

    def mkdir(self, name: str, at: int) -> None:
        os.mkdir(name, dir_fd=at)

    def makedirs(self, path: Path) -> None:
        os.makedirs(path, exist_ok=True)

    def names(self, fd: int, most: int) -> list[str]:
        """The first ``most`` names in a directory."""
        with os.scandir(fd) as entries:
            return [entry.name for entry in itertools.islice(entries, most)]

    def unlink(self, name: str, at: int) -> None:
        os.unlink(name, dir_fd=at)

    def rmdir(self, name: str, at: int) -> None:
        os.rmdir(name, dir_fd=at)


DISK = Disk()


def disk_error(error: OSError, path: Path, doing: str) -> ExchangeError:
    """The ExchangeError for a failed system call: what was being done, why it failed, what to do."""
    known = _FIXES.get(error.errno or 0)
    reason, fix = known or (error.strerror or str(error), "check the exchange directory and its disk")
    return ExchangeError(f"cannot {doing}: {reason}", path=path, fix=fix)
