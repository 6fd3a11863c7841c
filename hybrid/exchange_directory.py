"""Where a job's exchange directory is made, and what jobs that were killed left there."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from exchange.errors import ExchangeError
from exchange.files import lock_directory
from exchange.layout import new_token

_MEMORY = Path("/dev/shm")
_PREFIX = "tandem-exchange-"
_KEPT_PREFIX = "tandem-kept-"  # never swept
_STALE_S = 60.0  # younger ones may be about to be locked


def fresh_directory(keep: bool = False) -> Path:
    """A directory in memory where there is one: the files are small, short-lived and latency-bound."""
    base = _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    _sweep(base)
    return Path(tempfile.mkdtemp(prefix=_KEPT_PREFIX if keep else _PREFIX, dir=base))


def _sweep(base: Path) -> None:
    """Remove what jobs that were killed outright left: directories of ours that no coordinator holds any more."""
    for left in base.glob(f"{_PREFIX}*"):
        try:
            stale = left.stat().st_uid == os.getuid() and time.time() - left.stat().st_mtime > _STALE_S
        except FileNotFoundError:
            continue
        if stale:
            with contextlib.suppress(ExchangeError):  # held: its job lives
                lock = lock_directory(left, new_token())
                shutil.rmtree(left, ignore_errors=True)
                lock.release(remove=False)
