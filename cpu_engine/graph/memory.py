"""Memory asked for before it is taken: a job that cannot fit ends with an explanation, not with the OOM killer."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path

from cpu_engine.errors import InputError

_MEMINFO = Path("/proc/meminfo")


def available_bytes() -> int | None:
    """What the system says can be allocated without swapping; None where it does not say."""
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None


def require_bytes(needed: int, purpose: str, fix: str) -> None:
    """Raise InputError when ``needed`` exceeds what is available now."""
    available = available_bytes()
    if available is not None and needed > available:
        raise InputError(
            f"{purpose} needs about {_gib(needed)} of memory, but only {_gib(available)} is available", fix=fix
        )


def return_freed() -> None:
    """Give memory that is free back to the system: the C library keeps what was freed in pieces of some megabytes."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 // 10 else f"{count / 2**20:.1f} MiB"
