"""What a process holds in memory, as the kernel counts it. Linux only; elsewhere there are no figures.

Invariant: a peak counts from the last ``forget_peak``; where the kernel does not let us forget, there is no peak.
"""

from __future__ import annotations

from pathlib import Path

_FORGET = Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"  # proc(5): reset the peak resident set size


def resident_bytes() -> int | None:
    """Memory in use now."""
    return _field("VmRSS")


def peak_bytes(process: int | str = "self") -> int | None:
    """The most that was in use: by us since ``forget_peak``, or by another process since it began."""
    return _field("VmHWM", process)


def forget_peak() -> bool:
    """Start a new peak; whether that was possible."""
    try:
        _FORGET.write_text(_FORGET_PEAK)
    except OSError:
        return False
    return True


class PeakMeter:
    """The memory that a block of code added at its height, None where it cannot be measured."""

    added: int | None = None

    def __enter__(self) -> PeakMeter:
        self._before = resident_bytes() if forget_peak() else None
        return self

    def __exit__(self, *details: object) -> None:
        peak = peak_bytes()
        self.added = None if self._before is None or peak is None else max(0, peak - self._before)


def _field(name: str, process: int | str = "self") -> int | None:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None
