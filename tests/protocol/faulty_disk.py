"""A disk whose k-th operation fails, and one that cannot make hard links."""

from __future__ import annotations

import errno
import os
from typing import Any

from exchange.filesystem.disk import Disk

OPERATIONS = tuple(name for name in vars(Disk) if not name.startswith("_"))


class FaultyDisk(Disk):
    """Counts operations; the one with number ``fail_at`` raises, and with ``broken`` all later ones too."""

    def __init__(self, fail_at: int | None = None, *, broken: bool = False, code: int = errno.ENOSPC) -> None:
        self.count = 0
        self.failed: list[str] = []
        self._fail_at, self._broken, self._code = fail_at, broken, code

    def _is_due(self) -> bool:
        self.count += 1
        if self._fail_at is None:
            return False
        return self.count >= self._fail_at if self._broken else self.count == self._fail_at


def _failing(name: str) -> Any:
    real = getattr(Disk, name)

    def method(self: FaultyDisk, *arguments: Any) -> Any:
        if self._is_due():
            self.failed.append(name)
            if name == "close":  # the kernel frees a descriptor even when close reports an error
                real(self, *arguments)
            if name == "write":  # a full disk takes a part first
                fd, data = arguments
                os.write(fd, data[: len(data) // 2])
            raise OSError(self._code, os.strerror(self._code))
        if name == "sync":
            return None  # counted, and spared: no test pulls the plug
        return real(self, *arguments)

    return method


for _name in OPERATIONS:
    setattr(FaultyDisk, _name, _failing(_name))


class DiskWithoutLinks(Disk):
    def link(self, source: str, source_at: int, target: str, target_at: int) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))
