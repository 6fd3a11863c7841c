"""The folders of a pool: for its socket, for graphs that no cache has, and for what MPI itself keeps of it.

A killed launcher or rank cleans nothing up, so all of that is in two folders of ours, one of them in shared memory.
Invariant: each is locked while its service lives; the next one to start removes those whose service was killed.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from exchange.filesystem.scratch import private_folder
from hybrid.launch.locked_folders import empty_folder, left_behind, lock_folder, remove_folder
from hybrid.launch.shared_memory import BACKING_DIRECTORY, remove_leftovers

PREFIX = "tandem-crew-"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - folders below are made 0700 and locked; where MPI has its own
_MEMORY_NAME = "memory"  # a file with the name of the pool's folder in shared memory


class PoolFolders:
    """Made at the start of the service, removed at its end."""

    def __init__(self) -> None:
        sweep()
        self.path = private_folder(PREFIX)
        self._held = [lock_folder(self.path)]
        self.memory = private_folder(PREFIX, SHARED_MEMORY) if SHARED_MEMORY.is_dir() else None
        if self.memory is not None:
            self._held.append(lock_folder(self.memory))
            (self.path / _MEMORY_NAME).write_text(self.memory.name)

    def environment(self) -> dict[str, str]:
        """Where one pool's MPI shall keep its things, away from the last one's: variables for it."""
        temporary = self.path / "mpi"
        remove_folder(temporary)
        temporary.mkdir(mode=0o700)
        own = {"TMPDIR": str(temporary)}
        if self.memory is not None:
            empty_folder(self.memory)
            own[BACKING_DIRECTORY] = str(self.memory)
        return own

    def remove(self) -> None:
        remove_folders(self.path)
        for held in self._held:
            held.close()


def remove_folders(folder: Path) -> None:
    """What a pool had, by its first folder; nothing that is not named like one."""
    if folder.name.startswith(PREFIX) and not folder.is_symlink():
        with contextlib.suppress(OSError, UnicodeDecodeError):
            memory = SHARED_MEMORY / (folder / _MEMORY_NAME).read_text()
            if memory.parent == SHARED_MEMORY and memory.name.startswith(PREFIX):
                remove_folder(memory)
        remove_folder(folder)


def sweep() -> None:
    remove_leftovers()
    for place in (Path(tempfile.gettempdir()), SHARED_MEMORY):
        for folder in left_behind(place, PREFIX):
            remove_folders(folder)
