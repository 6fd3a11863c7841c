"""The disk, without decisions: whole files appear at once, flags exist or do not, errors are told with their fix.

Invariant: under a name without a leading dot there is never half a file, whatever fails and whenever. Every system call
goes through a ``Disk``.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import socket
import stat
from pathlib import Path

from exchange import layout
from exchange.disk import DISK, Disk, disk_error
from exchange.errors import ExchangeError, RoundGone

_READ_STEP_BYTES = 1 << 24
_LOCK_BYTES = 4096
_OWNER_LINE = re.compile(r"^(token|pid|host) (\S+)$", re.MULTILINE)
_NOBODY_WAITS = "nothing: no job waits for it any more"
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


def make_directory(path: Path, disk: Disk = DISK) -> None:
    """Create a directory and its parents, unless it is there."""
    try:
        disk.makedirs(path)
    except FileExistsError:
        raise ExchangeError(
            "this is a file, not a directory", path=path, fix="name a directory as the exchange directory"
        ) from None
    except OSError as error:
        raise disk_error(error, path, "create the directory") from error


def make_round_dir(path: Path, disk: Disk = DISK) -> None:
    """Create a round's (or a core's) directory, which must not exist: rounds are never reused."""
    try:
        disk.mkdir(path)
    except FileExistsError:
        raise ExchangeError(
            "this directory exists already, and a round is never reused",
            path=path,
            fix="remove the leftovers of earlier jobs from the exchange directory",
        ) from None
    except OSError as error:
        raise disk_error(error, path, "create the directory") from error


def write_atomic(path: Path, data: bytes, *, durable: bool = False, disk: Disk = DISK) -> None:
    """Make ``path`` appear with the whole of ``data``, or not at all (an older file of that name stays then).

    The bytes go to a temporary name in the same directory, which is renamed: rename is atomic for every process on
    the same kernel, and over NFS the data is on the server before, since it is sent at close. ``durable`` adds fsync
    of file and directory. That only matters when the machine loses power, and then coordinator and worker are both
    gone and a new job starts with a new token: so it is off unless asked for.
    """
    temporary = path.parent / f"{layout.TEMPORARY_PREFIX}{path.name}.{secrets.token_hex(4)}.tmp"
    made = False
    try:
        fd = disk.create(temporary)
        made = True
        try:
            _write_all(fd, data, disk)
            if durable:
                disk.sync(fd)
        except BaseException:
            with contextlib.suppress(OSError):
                disk.close(fd)
            raise
        disk.close(fd)  # outside the handler: a full disk may be reported as late as here, and then nothing is renamed
        disk.replace(temporary, path)
        made = False
        if durable:
            _sync_directory(path.parent, disk)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise _gone_or_missing(path, disk, error, "write the file") from error
        raise disk_error(error, path, "write the file") from error
    finally:
        if made:
            with contextlib.suppress(OSError):
                disk.unlink(temporary)


def _write_all(fd: int, data: bytes, disk: Disk) -> None:
    view = memoryview(data)
    while view:
        view = view[disk.write(fd, view) :]


def _sync_directory(path: Path, disk: Disk) -> None:
    fd = disk.open_read(path)
    try:
        disk.sync(fd)
    finally:
        disk.close(fd)


def create_flag(path: Path, *, disk: Disk = DISK) -> bool:
    """Create an empty flag file; False when it was there already."""
    try:
        fd = disk.create(path)
    except FileExistsError:
        return False
    except FileNotFoundError as error:
        raise _gone_or_missing(path, disk, error, "create the flag") from error
    except OSError as error:
        raise disk_error(error, path, "create the flag") from error
    with contextlib.suppress(OSError):  # the flag exists and is empty: a failing close takes nothing from it
        disk.close(fd)
    return True


def exists(path: Path, *, disk: Disk = DISK) -> bool:
    """Whether there is a file of that name."""
    try:
        disk.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise disk_error(error, path, "look for the file") from error
    return True


def file_stat(path: Path, *, disk: Disk = DISK) -> os.stat_result:
    """The file's stat; ExchangeError when it is missing."""
    try:
        return disk.stat(path)
    except FileNotFoundError as error:
        raise _gone_or_missing(path, disk, error, "look at the file") from error
    except OSError as error:
        raise disk_error(error, path, "look at the file") from error


def read_bytes(path: Path, max_bytes: int, *, disk: Disk = DISK) -> bytes:
    """The whole file; refuses anything but a plain file, and files larger than ``max_bytes``."""
    try:
        fd = disk.open_read(path)
    except FileNotFoundError as error:
        raise _gone_or_missing(path, disk, error, "read the file") from error
    except OSError as error:
        raise disk_error(error, path, "read the file") from error
    try:
        info = disk.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise ExchangeError("this is not a plain file", path=path, fix="write a plain file under this name")
        if info.st_size > max_bytes:
            raise _too_large(path, info.st_size, max_bytes)
        parts: list[bytes] = []
        left = max_bytes + 1  # one more than allowed: the file may grow while it is read
        while left > 0:
            part = disk.read(fd, min(left, _READ_STEP_BYTES))
            if not part:
                break
            parts.append(part)
            left -= len(part)
        if left <= 0:
            raise _too_large(path, max_bytes + 1, max_bytes)
        return parts[0] if len(parts) == 1 else b"".join(parts)
    except OSError as error:
        raise disk_error(error, path, "read the file") from error
    finally:
        with contextlib.suppress(OSError):
            disk.close(fd)


def _too_large(path: Path, size: int, max_bytes: int) -> ExchangeError:
    return ExchangeError(
        f"the file is larger than the {max_bytes} bytes that are allowed here",
        path=path,
        value=size,
        fix="check who wrote it; if it is right, raise the size limit of the exchange",
    )


def _gone_or_missing(path: Path, disk: Disk, error: OSError, doing: str) -> ExchangeError:
    """A file that is not there: either only the file is missing, or the round's directory went away."""
    in_round = layout.parse_round_id(path.parent.name) is not None
    with contextlib.suppress(OSError):
        disk.stat(path.parent)
        if in_round:
            return ExchangeError(
                f"cannot {doing}: there is no such file",
                path=path,
                fix="write it, under a temporary name and renamed, before the file or flag that announces it",
            )
        return disk_error(error, path, doing)
    if in_round:
        return RoundGone(f"cannot {doing}: the round is gone", path=path, fix=_NOBODY_WAITS)
    return disk_error(error, path, doing)


def list_names(path: Path, *, disk: Disk = DISK) -> list[str]:
    """The names in a directory."""
    try:
        return disk.listdir(path)
    except FileNotFoundError as error:
        if layout.parse_round_id(path.name) is not None:
            raise RoundGone("the round is gone", path=path, fix=_NOBODY_WAITS) from None
        raise disk_error(error, path, "list the directory") from error
    except OSError as error:
        raise disk_error(error, path, "list the directory") from error


def list_rounds(path: Path, *, disk: Disk = DISK) -> list[str]:
    """The round ids in an exchange directory, lowest number first."""
    found = [(parts, name) for name in list_names(path, disk=disk) if (parts := layout.parse_round_id(name))]
    return [name for _, name in sorted(found)]


def link_or_copy(source: Path, target: Path, *, max_bytes: int, durable: bool = False, disk: Disk = DISK) -> bool:
    """Give ``source`` a second name; True for a hard link, False for a copy (file systems without links)."""
    try:
        disk.link(source, target)
        return True
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise disk_error(error, target, "link the file") from error
    write_atomic(target, read_bytes(source, max_bytes, disk=disk), durable=durable, disk=disk)
    return False


def remove_file(path: Path, *, disk: Disk = DISK) -> None:
    """Remove a file, if it is there."""
    try:
        disk.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise disk_error(error, path, "remove the file") from error


def remove_tree(path: Path, *, disk: Disk = DISK) -> None:
    """Remove a directory and what is in it; it disappears at once, whatever fails afterwards.

    It is first renamed to a hidden name: a round taken apart file by file would, for a moment, look like another one.
    """
    hidden = path.parent / layout.removed_name(path.name, secrets.token_hex(4))
    try:
        disk.replace(path, hidden)
    except FileNotFoundError:
        return
    except OSError as error:
        raise disk_error(error, path, "remove the directory") from error
    for attempt in range(3):
        try:
            _remove_tree(hidden, disk)
            return
        except OSError as error:
            # A worker that works inside the directory may still add a file: then it is not empty yet.
            if attempt == 2 or error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise disk_error(error, hidden, "remove the directory") from error


def _remove_tree(path: Path, disk: Disk) -> None:
    for name in disk.listdir(path):
        child = path / name
        if stat.S_ISDIR(disk.lstat(child).st_mode):
            _remove_tree(child, disk)
        else:
            disk.unlink(child)
    disk.rmdir(path)


class DirectoryLock:
    """The exchange directory belongs to one coordinator as long as this lock is held (flock on owner.lock)."""

    def __init__(self, path: Path, fd: int, disk: Disk) -> None:
        self._path, self._fd, self._disk = path, fd, disk

    def release(self, *, remove: bool) -> None:
        """Let the directory go; with ``remove`` the lock file goes too. Never raises: the kernel frees it anyhow."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        if remove:
            # Removed while still locked: whoever opened the old file meanwhile notices that its name is gone.
            with contextlib.suppress(OSError):
                self._disk.unlink(self._path)
        with contextlib.suppress(OSError):
            self._disk.close(fd)


def lock_directory(directory: Path, token: str, *, disk: Disk = DISK) -> DirectoryLock:
    """Take the exchange directory for the job ``token``; ExchangeError naming the holder when it is taken."""
    path = directory / layout.OWNER_LOCK
    while True:
        try:
            fd = disk.open_lock(path)
        except OSError as error:
            raise disk_error(error, path, "lock the exchange directory") from error
        lock = DirectoryLock(path, fd, disk)
        try:
            disk.lock(fd)
            if not _is_same_file(path, fd, disk):  # the holder removed the file between our open and our lock
                lock.release(remove=False)
                continue
            text = f"token {token}\npid {os.getpid()}\nhost {socket.gethostname()}\n".encode()
            # In place, since the lock sits on this very file: first over the old text, then cut. A reader in between
            # sees the new lines first, and the first line of a kind counts.
            _write_all(fd, text, disk)
            disk.truncate(fd, len(text))
            return lock
        except BlockingIOError:
            lock.release(remove=False)
            owner = read_owner(directory, disk=disk)
            who = f"pid {owner['pid']} on {owner['host']}" if "pid" in owner and "host" in owner else "another process"
            raise ExchangeError(
                f"the exchange directory is in use by another job ({who})",
                path=directory,
                fix="wait for that job to end or stop it, or give this job another exchange directory",
            ) from None
        except OSError as error:
            lock.release(remove=False)
            raise disk_error(error, path, "lock the exchange directory") from error


def _is_same_file(path: Path, fd: int, disk: Disk) -> bool:
    try:
        by_name = disk.stat(path)
    except FileNotFoundError:
        return False
    by_fd = disk.fstat(fd)
    return (by_name.st_dev, by_name.st_ino) == (by_fd.st_dev, by_fd.st_ino)


def read_owner(directory: Path, *, disk: Disk = DISK) -> dict[str, str]:
    """Who holds (or last held) the directory: token, pid and host, as far as owner.lock tells."""
    try:
        data = read_bytes(directory / layout.OWNER_LOCK, _LOCK_BYTES, disk=disk)
    except ExchangeError:
        return {}
    owner: dict[str, str] = {}
    for key, value in _OWNER_LINE.findall(data.decode("utf-8", "replace")):
        owner.setdefault(key, value)
    return owner
