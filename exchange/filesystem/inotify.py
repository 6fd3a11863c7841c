"""File-system events of one directory and of those directly inside of it; of watchdog, only its binding of inotify.

Its observer walks whole trees: one that another user nested a thousand deep would end it. Invariant: two levels and a
bounded number of directories are watched, no link is followed; after ``stop`` neither thread nor descriptor is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import struct
import threading
from collections.abc import Callable

from watchdog.observers import inotify_c
from watchdog.observers.inotify_c import InotifyConstants

MOST_WATCHED = 1024  # directories; changes in others are found by looking
_EVENT = struct.Struct("iIII")  # linux/inotify.h: watch, mask, cookie, length of the name
_BLOCK = 1 << 16
# Closing only: every file is closed once written, flags too. Opening and reading are left out because our own looking
# would wake us; renaming, because a file that is renamed into place was closed a moment before.
_WRITTEN = InotifyConstants.IN_CLOSE_WRITE | InotifyConstants.IN_ONLYDIR
_MADE = InotifyConstants.IN_CREATE | InotifyConstants.IN_ISDIR
_REFUSALS = {errno.ENOSPC: "inotify watch limit reached", errno.EMFILE: "inotify instance limit reached"}


class DirectoryEvents:
    """Calls ``changed(name)``, in a thread of its own, for each file that is closed and each directory that is made."""

    def __init__(self, directory: str, changed: Callable[[str], None]) -> None:
        self._directory, self._changed = os.fsencode(directory), changed
        self._inner: set[int] = set()
        self._fd = _require(inotify_c.inotify_init())
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._run, name="exchange-watch", daemon=True)
        try:
            mask = _WRITTEN | InotifyConstants.IN_CREATE
            self._top = _require(inotify_c.inotify_add_watch(self._fd, self._directory, mask))
            for name in os.listdir(self._directory):
                self._watch(name)
            self._thread.start()
        except BaseException:
            self._close()
            raise

    def stop(self) -> None:
        os.write(self._stop_write, b"!")
        self._thread.join()
        self._close()

    def _close(self) -> None:
        for fd in (self._fd, self._stop_read, self._stop_write):
            os.close(fd)

    def _run(self) -> None:
        while True:
            ready = select.select([self._fd, self._stop_read], [], [])[0]
            if self._stop_read in ready:
                return
            events, at = os.read(self._fd, _BLOCK), 0
            while at + _EVENT.size <= len(events):
                watch, mask, _, length = _EVENT.unpack_from(events, at)
                at += _EVENT.size + length
                name = events[at - length : at].rstrip(b"\0")
                if mask & InotifyConstants.IN_IGNORED:
                    self._inner.discard(watch)  # the directory was removed
                    continue
                if watch == self._top and mask & _MADE == _MADE:
                    self._watch(name)
                elif mask & InotifyConstants.IN_CREATE:
                    continue  # a file that is yet to be written
                self._changed(os.fsdecode(name))

    def _watch(self, name: bytes) -> None:
        """Watch a directory in the directory, unless it is hidden or gone, or there are too many."""
        if name.startswith(b".") or len(self._inner) >= MOST_WATCHED:
            return
        path, mask = os.path.join(self._directory, name), _WRITTEN | InotifyConstants.IN_DONT_FOLLOW
        with contextlib.suppress(OSError):
            self._inner.add(_require(inotify_c.inotify_add_watch(self._fd, path, mask)))


def _require(found: int) -> int:
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, _REFUSALS.get(code, os.strerror(code)))
    return found
