"""The files in shared memory by which the ranks of one machine talk: Open MPI's segments, 16 MB for each rank.

A killed rank leaves its segment behind, and its name does not tell whether the job still lives. So a job on one machine
has them in a folder of its own, which it removes at its end; if the launcher is killed, the next job removes it.
Invariant: nothing is removed that a living process uses or another user owns, and no link is followed.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hybrid.launch.command import Launch
from hybrid.launch.locked_folders import YOUNG_S, left_behind, lock_folder, remove_folder

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - folders below are made 0700 and locked
BACKING_DIRECTORY = "OMPI_MCA_btl_sm_backing_directory"  # where Open MPI puts its segments
PREFIX = "tandem-ranks-"


@contextlib.contextmanager
def segments_of(launch: Launch) -> Iterator[Launch]:
    """The launch with a folder for its segments, which is gone after the block; what killed jobs left is removed."""
    remove_leftovers()
    if not launch.here or BACKING_DIRECTORY in os.environ:
        yield launch  # other machines have no such folder
        return
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=SHARED_MEMORY))
    except OSError:  # Open MPI finds another place, or says that there is none
        yield launch
        return
    with lock_folder(folder):
        try:
            yield replace(launch, environment={**launch.environment, BACKING_DIRECTORY: str(folder)})
        finally:
            remove_folder(folder)


def remove_leftovers() -> None:
    """Folders of killed launchers, and segments outside of folders that no process has mapped."""
    for folder in left_behind(SHARED_MEMORY, PREFIX):
        remove_folder(folder)
    segments = list(_old_segments())
    if segments:
        mapped = _mapped_segments()
        for path, inode in segments:
            if inode not in mapped:
                with contextlib.suppress(OSError):
                    path.unlink()


def _old_segments() -> Iterator[tuple[Path, int]]:
    """This user's segments of jobs on this machine, as jobs on several machines have them; path and inode."""
    for path in SHARED_MEMORY.glob(f"sm_segment.{socket.gethostname()}.{os.getuid()}.*"):
        with contextlib.suppress(OSError):
            facts = path.lstat()
            own = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.getuid()
            if own and time.time() - facts.st_mtime > YOUNG_S:  # a young one may not be mapped yet
                yield path, facts.st_ino


def _mapped_segments() -> set[int]:
    """Inodes of the segments that processes use."""
    found: set[int] = set()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            maps = Path("/proc", name, "maps").read_text(errors="replace")
        except OSError:
            continue  # it has ended, or is another user's or a protected one, which no rank is
        found |= {int(line.split()[4]) for line in maps.splitlines() if "/sm_segment." in line}
    return found
