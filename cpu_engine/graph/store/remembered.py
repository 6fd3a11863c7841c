"""Facts about files that hold as long as the files stay what they are: a digest, or that a content was checked.

A fact is kept with the identity of every file that it is about: device, inode, size, times of change. Invariant: a fact
is only recalled for files of the same identity, and only kept when their last change is so long ago that a further one
would show. A memory that cannot be written costs the next run the work again, and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cpu_engine.graph.store.array_folder import temporary_beside
from cpu_engine.graph.store.npy import open_regular

RACY_WINDOW_NS = 2_000_000_000  # file systems with coarse clocks can hide a change this soon after another
SOUND = "sound"  # the fact about a folder of arrays whose content was checked
_LONGEST = 1 << 16

Identity = list[list[int]]


def identity_of(files: Sequence[Path]) -> Identity:
    """What changes when the content of one of them does; OSError if one cannot be looked at."""
    found = []
    for file in files:
        status = os.stat(file)
        times = [status.st_mtime_ns, status.st_ctime_ns]
        found.append([status.st_dev, status.st_ino, status.st_size, *times])
    return found


class Memory:
    """A folder of facts, one file per subject."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def recall(self, subject: Path, identity: Identity) -> str | None:
        """The fact kept for a subject whose files have this identity, None if there is none."""
        try:
            with open_regular(self._file(subject)) as stream:
                kept = json.loads(stream.read(_LONGEST))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(kept, dict) or kept.get("identity") != identity:
            return None
        fact = kept.get("fact")
        return fact if isinstance(fact, str) else None

    def keep(self, subject: Path, identity: Identity, fact: str, *, own: bool = False) -> None:
        """Keep a fact that was found while the files had this identity, before and after.

        ``own``: this process has just written the files, under names that others do not write to.
        """
        newest = max((one[-2] for one in identity), default=0)
        if not own and time.time_ns() - newest <= RACY_WINDOW_NS:
            return
        file = self._file(subject)
        content: dict[str, Any] = {"path": os.path.realpath(subject), "identity": identity, "fact": fact}
        temporary = temporary_beside(file)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(content))
            os.replace(temporary, file)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()

    def _file(self, subject: Path) -> Path:
        name = hashlib.blake2b(os.fsencode(os.path.realpath(subject)), digest_size=16).hexdigest()
        return self._folder / f"{name}.json"
