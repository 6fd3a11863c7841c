"""Where a job's exchange directory is made; directories left by jobs that were killed are removed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from exchange.errors import ExchangeError
from exchange.filesystem.folder import Folder
from exchange.filesystem.owner_lock import lock_directory
from exchange.filesystem.scratch import own_leftovers, private_folder
from exchange.protocol.layout import new_token

_MEMORY = Path("/dev/shm")  # noqa: S108 - folders below are private_folder()s
_PREFIX = "tandem-exchange-"
_KEPT_PREFIX = "tandem-kept-"  # never swept
_STALE_S = 60.0  # younger ones may be about to be locked


def fresh_directory(keep: bool = False) -> Path:
    """A directory in memory where there is one: the files are small, short-lived and latency-bound."""
    base = _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    for left in own_leftovers(base, _PREFIX, _STALE_S):
        _remove_unless_held(left)
    return private_folder(_KEPT_PREFIX if keep else _PREFIX, base)


def remove_directory_of_killed(path: Path) -> None:
    """Remove a directory that ``fresh_directory`` made for a process that is gone."""
    if path.name.startswith(_PREFIX):
        for left in own_leftovers(path.parent, path.name):  # random names: none is the beginning of another
            _remove_unless_held(left)


def _remove_unless_held(left: Folder) -> None:
    with contextlib.suppress(ExchangeError):  # held: its job lives
        lock = lock_directory(left, new_token())
        try:
            left.discard()
        finally:
            lock.release(remove=False)
