"""A directory that others may write to, held by its descriptor: whole files appear at once, links are never followed.

Invariant: under a name without a leading dot there is never half a file, whatever fails and whenever. Everything is
relative to the descriptor, so a user who renames directories or puts links in their place cannot lead a reader, a
writer or a removal elsewhere. What is read is a plain file with one name, of bounded size. Every system call goes
through a ``Disk``.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

from exchange.errors import DirectoryRefused, ExchangeError, RoundGone
from exchange.filesystem.disk import DISK, Disk, disk_error
from exchange.protocol import layout

MOST_NAMES = 100_000  # in a directory that is read
MOST_REMOVED = 100_000  # files and directories of one removal
_READ_STEP_BYTES = 1 << 24
_BATCH = 4096
_LOCK_ATTEMPTS = 100
_NO_ROUND_WAITS = "nothing: no job waits for it any more"
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_GONE = (errno.ENOENT, errno.ESTALE)
_LINK = (errno.ENOTDIR, errno.ELOOP)  # what opening a link as a directory gives


class Folder:
    """An open directory. ``close`` it, or use it in a ``with`` block."""

    def __init__(self, path: Path, fd: int, disk: Disk, parent: Folder | None = None) -> None:
        self.path, self.disk = path, disk
        self._fd, self._parent = fd, parent
        try:
            info = disk.fstat(fd)
        except BaseException:
            self.close()
            raise
        self.identity, self.uid = (info.st_dev, info.st_ino), info.st_uid

    @classmethod
    def open(cls, path: Path, disk: Disk = DISK) -> Folder:
        """The directory at a path that the user named."""
        try:
            return cls(path, disk.open_path(path), disk)
        except OSError as error:
            raise disk_error(error, path, "open the directory") from error

    @classmethod
    def make(cls, path: Path, disk: Disk = DISK) -> Folder:
        """``open``, after making the directory and its parents where they are missing."""
        try:
            disk.makedirs(path)
        except FileExistsError:
            raise DirectoryRefused(
                "this is a file, not a directory", path=path, fix="name a directory as the exchange directory"
            ) from None
        except OSError as error:
            raise _refusal(disk_error(error, path, "create the directory")) from error
        try:
            return cls.open(path, disk)
        except ExchangeError as error:
            raise _refusal(error) from error

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptor back. Never raises, and may be called again."""
        fd, self._fd = getattr(self, "_fd", -1), -1
        if fd >= 0:
            with contextlib.suppress(OSError):
                self.disk.close(fd)

    # ------------------------------------------------------------------------------------ directories

    def folder(self, name: str) -> Folder:
        """A directory in this one; ``RoundGone`` when it is a round that is not there."""
        try:
            return Folder(self.path / name, self.disk.open_folder(name, self._fd), self.disk, self)
        except OSError as error:
            if error.errno in _GONE and layout.parse_round_id(name) is not None:
                raise RoundGone("the round is gone", path=self.path / name, fix=_NO_ROUND_WAITS) from None
            raise self._error(error, name, "open the directory") from error

    def make_folder(self, name: str) -> Folder:
        """Make a directory, which must not exist: rounds are never reused."""
        try:
            self.disk.mkdir(name, self._fd)
        except FileExistsError:
            raise ExchangeError(
                "this directory exists already, and a round is never reused",
                path=self.path / name,
                fix="remove the leftovers of earlier jobs from the exchange directory",
            ) from None
        except OSError as error:
            raise self._error(error, name, "create the directory") from error
        return self.folder(name)

    def is_there(self) -> bool:
        """Whether this directory still has its name."""
        try:
            info = self.disk.stat(self.path) if self._parent is None else self._parent.lstat(self.path.name)
        except OSError as error:
            if error.errno in (*_GONE, *_LINK):
                return False
            raise disk_error(error, self.path, "look for the directory") from error
        return (info.st_dev, info.st_ino) == self.identity

    def names(self) -> list[str]:
        """The names in this directory."""
        try:
            found = self.disk.names(self._fd, MOST_NAMES + 1)
        except OSError as error:
            raise self._error(error, "", "list the directory") from error
        if len(found) > MOST_NAMES:
            raise ExchangeError(
                f"more than {MOST_NAMES} files", path=self.path, fix="remove what does not belong there"
            )
        return found

    def rounds(self) -> list[str]:
        """The round ids in an exchange directory, lowest number first."""
        found = [(parts, name) for name in self.names() if (parts := layout.parse_round_id(name))]
        return [name for _, name in sorted(found)]

    # ------------------------------------------------------------------------------------------ files

    def write(self, name: str, data: bytes, *, durable: bool = False) -> None:
        """Make a file appear with the whole of ``data``, or not at all (an older file of that name stays then).

        The bytes go to a temporary name in the same directory, which is renamed: rename is atomic for every process on
        the same kernel, and over NFS the data is on the server before, since it is sent at close. ``durable`` adds
        fsync of file and directory. That only matters when the machine loses power, and then coordinator and worker
        are both gone and a new job starts with a new token: so it is off unless asked for.
        """
        temporary = f"{layout.TEMPORARY_PREFIX}{name}.{secrets.token_hex(4)}.tmp"
        made = False
        try:
            fd = self.disk.create(temporary, self._fd)
            made = True
            try:
                write_all(fd, data, self.disk)
                if durable:
                    self.disk.sync(fd)
            except BaseException:
                with contextlib.suppress(OSError):
                    self.disk.close(fd)
                raise
            self.disk.close(fd)  # outside the handler: a full disk may be reported as late as here; nothing is renamed
            self.disk.rename(temporary, self._fd, name, self._fd)
            made = False
            if durable:
                self.disk.sync(self._fd)
        except OSError as error:
            raise self._error(error, name, "write the file") from error
        finally:
            if made:
                with contextlib.suppress(OSError):
                    self.disk.unlink(temporary, self._fd)

    def create_flag(self, name: str) -> bool:
        """Create an empty flag file; False when there was something of that name already."""
        try:
            fd = self.disk.create(name, self._fd)
        except FileExistsError:
            return False
        except OSError as error:
            raise self._error(error, name, "create the flag") from error
        with contextlib.suppress(OSError):  # the flag exists and is empty: a failing close takes nothing from it
            self.disk.close(fd)
        return True

    def has(self, name: str) -> bool:
        """Whether there is anything of that name."""
        try:
            self.lstat(name)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._error(error, name, "look for the file") from error
        return True

    def flag(self, name: str) -> os.stat_result | None:
        """The stat of a flag file; None when it is not there."""
        return self.info(name) if self.has(name) else None

    def info(self, name: str) -> os.stat_result:
        """The stat of a plain file; ExchangeError when it is missing or something else."""
        try:
            info = self.lstat(name)
        except OSError as error:
            raise self._error(error, name, "look at the file") from error
        self._require_plain(name, info)
        return info

    def lstat(self, name: str) -> os.stat_result:
        return self.disk.lstat(name, self._fd)

    def read(self, name: str, most: int, *, owner: int | None = None, linked: bool = False) -> bytes:
        """The whole of a plain file of at most ``most`` bytes that belongs to ``owner`` (None: to any user).

        Unless ``linked``, the file has no second name: a hard link could be to any file of the same file system.
        """
        try:
            fd = self.disk.open_read(name, self._fd)
        except OSError as error:
            raise self._error(error, name, "read the file") from error
        try:
            info = self.disk.fstat(fd)
            self._require_plain(name, info)
            if info.st_nlink > 1 and not linked:  # 0: replaced since it was opened
                raise ExchangeError(
                    "this file has a second name", path=self.path / name, fix="write a file, not a link to one"
                )
            if owner is not None and info.st_uid != owner:
                raise ExchangeError(
                    f"this file belongs to user {info.st_uid} and should belong to user {owner}",
                    path=self.path / name,
                    fix="let one user write all files of a round's side",
                )
            if info.st_size > most:
                raise self._too_large(name, info.st_size, most)
            parts: list[bytes] = []
            left = most + 1  # one more than allowed: the file may grow while it is read
            while left > 0:
                part = self.disk.read(fd, min(left, _READ_STEP_BYTES))
                if not part:
                    break
                parts.append(part)
                left -= len(part)
            if left <= 0:
                raise self._too_large(name, most + 1, most)
            return parts[0] if len(parts) == 1 else b"".join(parts)
        except OSError as error:
            raise self._error(error, name, "read the file") from error
        finally:
            with contextlib.suppress(OSError):
                self.disk.close(fd)

    def open_lock(self, name: str) -> tuple[int, bool]:
        """A descriptor of a plain file that can be locked and written, and whether it was made just now; OSError."""
        for _ in range(_LOCK_ATTEMPTS):
            with contextlib.suppress(FileExistsError):
                return self.disk.make_lock(name, self._fd), True
            with contextlib.suppress(FileNotFoundError):  # removed by its holder since
                fd = self.disk.open_lock(name, self._fd)
                try:
                    self._require_plain(name, self.disk.fstat(fd))
                except BaseException:
                    self.disk.close(fd)
                    raise
                return fd, False
        raise OSError(errno.EAGAIN, "comes and goes")

    def link_or_copy(self, source: Folder, name: str, *, most: int, durable: bool = False) -> bool:
        """Give a file of ``source`` the same name here; True for a hard link, False for a copy (without links)."""
        try:
            self.disk.link(name, source._fd, name, self._fd)
            return True
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise self._error(error, name, "link the file") from error
        self.write(name, source.read(name, most), durable=durable)
        return False

    # --------------------------------------------------------------------------------------- removal

    def unlink(self, name: str) -> bool:
        """Remove a file or a link, if it is there; False when it is a directory, which stays."""
        try:
            self.disk.unlink(name, self._fd)
        except FileNotFoundError:
            return True
        except IsADirectoryError:
            return False
        except OSError as error:
            raise self._error(error, name, "remove the file") from error
        return True

    def retire(self, name: str) -> None:
        """``remove``; it disappears at once, whatever fails afterwards.

        It is first renamed to a hidden name: a round taken apart file by file would, for a moment, look like another.
        """
        if not name.startswith(layout.TEMPORARY_PREFIX):
            hidden = layout.removed_name(name, secrets.token_hex(4))
            try:
                self.disk.rename(name, self._fd, hidden, self._fd)
            except FileNotFoundError:
                return
            except OSError as error:
                raise self._error(error, name, "remove the directory") from error
            name = hidden
        self.remove(name)

    def remove(self, name: str) -> None:
        """Remove a file, a link (not what it leads to), or a directory with all that is in it."""
        if self.unlink(name):
            return
        with self.folder(name) as inner:
            inner.empty()
        try:
            self.disk.rmdir(name, self._fd)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._error(error, name, "remove the directory") from error

    def discard(self) -> None:
        """Remove this directory, which was opened in another one, with all that is in it."""
        assert self._parent is not None, "a directory that was opened by its path has no parent here"
        self.empty()
        if self.is_there():
            self._parent.remove(self.path.name)

    def empty(self, keep: Iterable[str] = ()) -> None:
        """Remove all that is in this directory but the names ``keep``.

        Directories inside of others are moved up here first, so two descriptors are enough for any depth. A worker that
        is still busy in there may add files meanwhile: they go as well, up to a bound.
        """
        kept, count = set(keep), 0
        try:
            while names := [name for name in self.disk.names(self._fd, _BATCH) if name not in kept]:
                for name in names:
                    if not self.unlink(name):
                        with self.folder(name) as inner:
                            count += inner._lift(self)
                        with contextlib.suppress(FileNotFoundError):
                            self._remove_emptied(name)
                count += len(names)
                if count > MOST_REMOVED:
                    raise ExchangeError(
                        f"more than {MOST_REMOVED} files to remove", path=self.path, fix="remove this directory by hand"
                    )
        except OSError as error:
            raise self._error(error, "", "remove the directory") from error

    def _lift(self, target: Folder) -> int:
        """Remove the files in here and move the directories to ``target``; how many were looked at."""
        count = 0
        while count <= MOST_REMOVED and (names := self.disk.names(self._fd, _BATCH)):
            for name in names:
                if not self.unlink(name):
                    with contextlib.suppress(FileNotFoundError):
                        self.disk.rename(name, self._fd, f".{secrets.token_hex(8)}.removed", target._fd)
            count += len(names)
        return count

    def _remove_emptied(self, name: str) -> None:
        try:
            self.disk.rmdir(name, self._fd)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # filled again: the next look finds it
                raise

    # ----------------------------------------------------------------------------------------- errors

    def _require_plain(self, name: str, info: os.stat_result) -> None:
        if not stat.S_ISREG(info.st_mode):
            raise ExchangeError(
                "this is not a plain file", path=self.path / name, fix="write a plain file under this name"
            )

    def _too_large(self, name: str, size: int, most: int) -> ExchangeError:
        return ExchangeError(
            f"the file is larger than the {most} bytes that are allowed here",
            path=self.path / name,
            value=size,
            fix="check who wrote it; if it is right, raise the size limit of the exchange",
        )

    def _error(self, error: OSError, name: str, doing: str) -> ExchangeError:
        """A failed call in this directory. What is not there: only the file, or the whole round?"""
        path = self.path / name
        if error.errno not in _GONE or layout.parse_round_id(self.path.name) is None:
            return disk_error(error, path, doing)
        with contextlib.suppress(ExchangeError):
            if not self.is_there():
                return RoundGone(f"cannot {doing}: the round is gone", path=path, fix=_NO_ROUND_WAITS)
        return ExchangeError(
            f"cannot {doing}: there is no such file",
            path=path,
            fix="write it, under a temporary name and renamed, before the file or flag that announces it",
        )


def write_all(fd: int, data: bytes, disk: Disk) -> None:
    """Write everything, however little a call takes."""
    view = memoryview(data)
    while view:
        view = view[disk.write(fd, view) :]


def _refusal(error: ExchangeError) -> DirectoryRefused:
    return DirectoryRefused(error.reason, path=error.path, value=error.value, fix=error.fix)
