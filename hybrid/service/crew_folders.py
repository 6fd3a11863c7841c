"""The folders of a crew: for its socket, for graphs that no cache has, and for what MPI itself keeps of it.

A killed launcher or rank cleans nothing up, so all of that is in two folders of ours, one of them in shared memory.
Invariant: each is locked while its service lives; the next one to start removes those whose service was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
import time
from pathlib import Path
from typing import IO

PREFIX = "tandem-crew-"
SHARED_MEMORY = Path("/dev/shm")  # where MPI has its own; a crew has a folder of the same name there
_LOCK = "lock"
_YOUNG_S = 60.0  # a folder without a lock may be one that is being made


class CrewFolders:
    """Made at the start of the service, removed at its end."""

    def __init__(self) -> None:
        sweep()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._memory = SHARED_MEMORY / self.path.name if SHARED_MEMORY.is_dir() else None
        self._held = [_lock(self.path)]
        if self._memory is not None:
            self._memory.mkdir(mode=0o700)
            self._held.append(_lock(self._memory))

    def environment(self) -> dict[str, str]:
        """Where one crew's MPI shall keep its things, away from the last one's: variables for it."""
        temporary = self.path / "mpi"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(mode=0o700)
        own = {"TMPDIR": str(temporary)}
        if self._memory is not None:
            _empty(self._memory)
            own["OMPI_MCA_btl_sm_backing_directory"] = str(self._memory)
        return own

    def remove(self) -> None:
        remove_folders(self.path)
        for held in self._held:
            held.close()


def remove_folders(folder: Path) -> None:
    """What a crew had; nothing that is not named like one.

    The lock goes last: what is left of a removal that was cut short is found by the next service.
    """
    if folder.name.startswith(PREFIX):
        for one in (SHARED_MEMORY / folder.name, folder):
            _empty(one)
            shutil.rmtree(one, ignore_errors=True)


def sweep() -> None:
    """Remove what killed services have left."""
    for place in (Path(tempfile.gettempdir()), SHARED_MEMORY):
        for folder in place.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                if (folder / _LOCK).exists():
                    _lock(folder).close()  # BlockingIOError: somebody lives there
                elif time.time() - folder.stat().st_mtime < _YOUNG_S:
                    continue
                remove_folders(folder)


def _lock(folder: Path) -> IO[str]:
    held = (folder / _LOCK).open("a")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        held.close()
        raise
    return held


def _empty(folder: Path) -> None:
    """Remove what is in a folder but the lock."""
    for one in folder.glob("*"):
        if one.is_dir():
            shutil.rmtree(one, ignore_errors=True)
        elif one.name != _LOCK:
            with contextlib.suppress(OSError):
                one.unlink()
