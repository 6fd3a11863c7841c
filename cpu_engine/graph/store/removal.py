"""Removal of directory trees by their descriptors: no link is followed, and no depth is too large.

``shutil.rmtree`` follows no link either (``rmtree.avoids_symlink_attacks``), but it recurses: a tree of 1,500 levels
ends in a RecursionError, which ``ignore_errors`` lets through. ``exchange.filesystem.folder`` removes by the
same rules what other users may write to; it is a layer that this package does not see.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def remove_tree(path: Path) -> None:
    """Remove a directory, not a link to one, with all that is in it, as far as that is possible. Never raises."""
    with contextlib.suppress(OSError):
        top = os.open(path, _DIRECTORY)
        try:
            while _remove_level(top):
                pass
        finally:
            os.close(top)
        os.rmdir(path)


def _remove_level(top: int) -> bool:
    """Remove files, and directories after moving those inside of them up to ``top``; whether anything went."""
    went = False
    for name in os.listdir(top):
        with contextlib.suppress(OSError):  # not ours to remove: it stays, and so do the directories around it
            if not _unlink(name, top):
                went |= _lift(name, top)
                os.rmdir(name, dir_fd=top)
            went = True
    return went


def _lift(name: str, top: int) -> bool:
    """Remove the files of a directory in ``top`` and move its directories up; whether anything went."""
    went, inner = False, os.open(name, _DIRECTORY, dir_fd=top)
    try:
        for one in os.listdir(inner):
            with contextlib.suppress(OSError):
                if not _unlink(one, inner):
                    os.rename(one, f".{secrets.token_hex(8)}.removed", src_dir_fd=inner, dst_dir_fd=top)
                went = True
    finally:
        os.close(inner)
    return went


def _unlink(name: str, at: int) -> bool:
    """Remove a file or a link; False for a directory, which stays."""
    try:
        os.unlink(name, dir_fd=at)
    except IsADirectoryError:
        return False
    return True
