"""Folders that belong to a living process: it holds a lock in each, and the kernel frees that whenever it ends.

Invariant: a folder whose lock is held is never removed by another process; the lock shows whether the owner has ended,
in any namespace. Links and the folders of other users are never touched.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from exchange.errors import ExchangeError
from exchange.filesystem.folder import Folder
from exchange.filesystem.scratch import own_leftovers

LOCK = "lock"
YOUNG_S = 60.0  # what has no lock, or no reader, may be in the making


def lock_folder(folder: Path) -> IO[bytes]:
    """Hold it until the file is closed; BlockingIOError if another process does."""
    with Folder.open(folder) as opened:
        return _lock(opened)


def empty_folder(folder: Path) -> None:
    """Remove what is in a folder but the lock, as far as that is possible."""
    with contextlib.suppress(ExchangeError), _opened(folder) as opened:
        opened.empty(keep=[LOCK])


def remove_folder(folder: Path) -> None:
    """The lock goes last: what is left of a removal that was cut short is found again."""
    with contextlib.suppress(ExchangeError), _opened(folder) as opened:
        opened.empty(keep=[LOCK])
        opened.discard()


def left_behind(place: Path, prefix: str) -> Iterator[Path]:
    """This user's folders there whose owner has ended."""
    for folder in own_leftovers(place, prefix):
        with contextlib.suppress(OSError, ExchangeError):
            if folder.has(LOCK):
                _lock(folder).close()  # BlockingIOError: its owner lives
            elif time.time() - folder.path.lstat().st_mtime < YOUNG_S:
                continue
            yield folder.path


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[Folder]:
    with Folder.open(folder.parent.resolve()) as parent, parent.folder(folder.name) as opened:
        yield opened


def _lock(folder: Folder) -> IO[bytes]:
    held = os.fdopen(folder.open_lock(LOCK)[0], "r+b")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        held.close()
        raise
    return held
