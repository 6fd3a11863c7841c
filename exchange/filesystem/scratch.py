"""Scratch folders in places that all users share: private from the start, known by owner, removed without links.

Invariant: a folder is made with mode 0700 under a random name, so no other user can take the name first or look inside;
what an earlier process left is touched only if it is a directory, not a link, of this user.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from exchange.errors import ExchangeError
from exchange.filesystem.folder import Folder


def private_folder(prefix: str, base: Path | None = None) -> Path:
    """A new folder of this user alone, in ``base`` or where temporary files go."""
    return Path(tempfile.mkdtemp(prefix=prefix, dir=base))


def own_leftovers(base: Path, prefix: str, older_than_s: float = 0.0) -> Iterator[Folder]:
    """The directories in ``base`` named ``prefix``... that are this user's and unchanged for so long, one by one."""
    with contextlib.suppress(ExchangeError), Folder.open(base.resolve()) as shared:
        for name in shared.names():
            if name.startswith(prefix):
                with contextlib.suppress(ExchangeError, OSError), shared.folder(name) as left:
                    old = time.time() - shared.lstat(name).st_mtime >= older_than_s
                    if old and left.uid == os.geteuid():
                        yield left


def remove_folder(path: Path) -> None:
    """Remove a file, a link or a whole directory of this user, as far as that is possible. Never raises."""
    with contextlib.suppress(ExchangeError), Folder.open(path.parent.resolve()) as parent:
        parent.remove(path.name)
