"""Whose an exchange directory is: owner.lock, locked by the one coordinator as long as its job lasts."""

from __future__ import annotations

import contextlib
import os
import re
import socket

from exchange.errors import DirectoryRefused, ExchangeError
from exchange.escape import printable
from exchange.filesystem.disk import disk_error
from exchange.filesystem.folder import Folder, write_all
from exchange.protocol import layout

_LOCK_BYTES = 4096
_MOST_SHOWN = 64
_OWNER_LINE = re.compile(r"^(token|pid|host) (\S+)$", re.MULTILINE)


class DirectoryLock:
    """The exchange directory belongs to one coordinator as long as this lock is held (flock on owner.lock)."""

    def __init__(self, folder: Folder, fd: int) -> None:
        self._folder, self._fd = folder, fd
        self.uid = -1  # this user, as the file system knows it

    def release(self, *, remove: bool) -> None:
        """Let the directory go; with ``remove`` the lock file goes too. Never raises: the kernel frees it anyhow."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        if remove:
            # Removed while still locked: a process that opened the old file meanwhile notices that its name is gone.
            with contextlib.suppress(ExchangeError):
                self._folder.unlink(layout.OWNER_LOCK)
        with contextlib.suppress(OSError):
            self._folder.disk.close(fd)


def lock_directory(folder: Folder, token: str) -> DirectoryLock:
    """Take the directory for the job ``token``; ``DirectoryRefused`` naming the holder when it is taken."""
    path, disk = folder.path / layout.OWNER_LOCK, folder.disk
    while True:
        try:
            fd, made = folder.open_lock(layout.OWNER_LOCK)
        except OSError as error:
            raise disk_error(error, path, "lock the exchange directory") from error
        lock = DirectoryLock(folder, fd)
        try:
            info = disk.fstat(fd)
            if not made and (info.st_uid != os.geteuid() or info.st_nlink > 1):
                raise ExchangeError(
                    "this lock was not written by this user's jobs", path=path, value=info.st_uid, fix="remove it"
                )
            disk.lock(fd)
            if not _is_named(folder, info):  # the holder removed the file between our open and our lock
                lock.release(remove=False)
                continue
            text = f"token {token}\npid {os.getpid()}\nhost {socket.gethostname()}\n".encode()
            # In place, since the lock sits on this very file: first over the old text, then cut. A reader in between
            # sees the new lines first, and the first line of a kind counts.
            write_all(fd, text, disk)
            disk.truncate(fd, len(text))
            lock.uid = info.st_uid
            return lock
        except BlockingIOError:
            lock.release(remove=False)
            owner = read_owner(folder)
            who = f"pid {owner['pid']} on {owner['host']}" if "pid" in owner and "host" in owner else "another process"
            raise DirectoryRefused(
                f"the exchange directory is in use by another job ({who})",
                path=folder.path,
                fix="wait for that job to end or stop it, or give this job another exchange directory",
            ) from None
        except OSError as error:
            lock.release(remove=False)
            raise disk_error(error, path, "lock the exchange directory") from error
        except ExchangeError:
            lock.release(remove=False)
            raise


def _is_named(folder: Folder, info: os.stat_result) -> bool:
    try:
        named = folder.lstat(layout.OWNER_LOCK)
    except FileNotFoundError:
        return False
    return (named.st_dev, named.st_ino) == (info.st_dev, info.st_ino)


def read_owner(folder: Folder) -> dict[str, str]:
    """The job that holds (or last held) the directory: token, pid and host, as far as owner.lock says."""
    try:
        data = folder.read(layout.OWNER_LOCK, _LOCK_BYTES)
    except ExchangeError:
        return {}
    owner: dict[str, str] = {}
    for key, value in _OWNER_LINE.findall(data.decode("utf-8", "replace")):
        owner.setdefault(key, printable(value, _MOST_SHOWN))
    return owner
