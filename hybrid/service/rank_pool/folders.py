"""The folder of a pool: for its socket, for graphs that no cache has, and for what MPI itself keeps of it.

A killed launcher or rank cleans nothing up, so all of that is in a folder of ours; MPI's segments in shared memory are
in another (hybrid/launch/shared_memory.py). Invariant: it is locked while its service lives; the next one to start
removes those whose service was killed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from exchange.filesystem.scratch import private_folder
from hybrid.launch.locked_folders import left_behind, lock_folder, remove_folder

PREFIX = "tandem-crew-"


class PoolFolder:
    """Made at the start of the service, removed at its end."""

    def __init__(self) -> None:
        for folder in left_behind(Path(tempfile.gettempdir()), PREFIX):
            remove_folder(folder)
        self.path = private_folder(PREFIX)
        self._held = lock_folder(self.path)

    def temporary(self) -> Path:
        """Where one pool's MPI shall keep its things, away from the last one's."""
        folder = self.path / "mpi"
        remove_folder(folder)
        folder.mkdir(mode=0o700)
        return folder

    def remove(self) -> None:
        remove_folder(self.path)
        self._held.close()


def remove_left(folder: Path, prefix: str) -> None:
    """The folder of a service that was killed; nothing that is not named like one."""
    if folder.name.startswith(prefix) and not folder.is_symlink():
        remove_folder(folder)
