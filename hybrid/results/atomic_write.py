"""Files that appear complete or not at all, in folders that others may write to as well."""

from __future__ import annotations

from pathlib import Path

from exchange.errors import ExchangeError
from exchange.filesystem.folder import Folder


def atomic_write(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    """A reader sees the old file or the new one; OSError if it cannot be written.

    The draft has a random name that no other user can take first: a link put there would be written through.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        with Folder.open(path.parent.resolve()) as folder:
            folder.write(path.name, data, durable=durable)
    except ExchangeError as error:
        cause = error.__cause__
        assert isinstance(cause, OSError)
        raise OSError(cause.errno, cause.strerror, str(path)) from cause
