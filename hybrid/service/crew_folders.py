"""The folders of a crew: for its socket, for graphs that no cache has, and for what MPI itself keeps of it.

A killed launcher or rank cleans nothing up, so all of that is in folders of ours. Invariant: a crew's folders are
locked while its service lives; the next one to start removes those whose service was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
from pathlib import Path
from typing import IO

PREFIX = "tandem-crew-"
SHARED_MEMORY = Path("/dev/shm")  # where MPI has its own; a crew has a folder of the same name there
_LOCK = "lock"


class CrewFolders:
    """Made at the start of the service, removed at its end."""

    def __init__(self) -> None:
        sweep()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._held: IO[str] = (self.path / _LOCK).open("w")
        fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def environment(self) -> dict[str, str]:
        """Where one crew's MPI shall keep its things, in fresh folders: variables for it."""
        own = {"TMPDIR": str(_fresh(self.path / "mpi"))}
        if SHARED_MEMORY.is_dir():
            own["OMPI_MCA_btl_sm_backing_directory"] = str(_fresh(SHARED_MEMORY / self.path.name))
        return own

    def remove(self) -> None:
        remove_folders(self.path)
        self._held.close()


def remove_folders(folder: Path) -> None:
    """What a crew had; nothing that is not named like one.

    The lock goes last: what is left of a removal that was cut short is found by the next service.
    """
    if not folder.name.startswith(PREFIX):
        return
    shutil.rmtree(SHARED_MEMORY / folder.name, ignore_errors=True)
    for one in folder.glob("*"):
        if one.is_dir():
            shutil.rmtree(one, ignore_errors=True)
        elif one.name != _LOCK:
            one.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove what killed services have left."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), (folder / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_folders(folder)


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder
