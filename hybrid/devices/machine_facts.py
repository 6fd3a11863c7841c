"""What the machine is, and how busy others kept it while we measured. Linux knows most of it; what is unknown is left
out, never guessed."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.terminal import plural

BUSY = 0.5  # others' load per core from which figures deserve a warning
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cpu_count() -> int:
    """Cores that this process may use."""
    with suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_name() -> str:
    """The processor's name."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cache_sizes() -> dict[int, int]:
    """Bytes of the data or unified cache of each level, as one core sees it."""
    found: dict[int, int] = {}
    for entry in sorted(_CACHES.glob("index*")):
        with suppress(OSError, ValueError, KeyError):
            if (entry / "type").read_text().strip() == "Instruction":
                continue
            size = (entry / "size").read_text().strip()
            found[int((entry / "level").read_text())] = int(size[:-1]) * _SIZES[size[-1]]
    return found


@dataclass(frozen=True)
class MachineState:
    """The load average, and the time that the hypervisor took from us, at one moment."""

    load: float | None
    stolen: int | None  # clock ticks
    total: int | None

    @classmethod
    def now(cls) -> MachineState:
        load = stolen = total = None
        with suppress(OSError, AttributeError):
            load = os.getloadavg()[0]
        with suppress(OSError, ValueError, IndexError):
            ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
            stolen, total = ticks[7], sum(ticks)
        return cls(load, stolen, total)

    @property
    def busy(self) -> bool:
        """Whether others kept the machine at work, if this moment is the start of our own."""
        return self.load is not None and self.load >= BUSY * cpu_count()

    def warning(self) -> str:
        """That times measured from now on are to be read with care; empty on a quiet machine."""
        if not self.busy:
            return ""
        return (
            f"BUSY with other work (load {self.load:.1f} before, {plural(cpu_count(), 'core')}): "
            "trust ratios of runs in turns, not single times; measure again when it is quiet"
        )

    def stolen_share(self, after: MachineState) -> float | None:
        """Share of all CPU time between the two moments that went to other virtual machines."""
        if None in (self.stolen, self.total, after.stolen, after.total) or after.total == self.total:
            return None
        return (after.stolen - self.stolen) / (after.total - self.total)  # type: ignore[operator]

    def describe(self, after: MachineState) -> str:
        """One line: processor, and whether the figures are to be trusted."""
        words = [f"{cpu_name()}, {plural(cpu_count(), 'core')}"]
        if self.load is not None:
            words.append(f"load {self.load:.1f} before")
        stolen = self.stolen_share(after)
        if stolen is not None and stolen > 0.005:
            words.append(f"{stolen:.0%} of the CPU time went to other virtual machines")
        if self.busy:
            words.append("BUSY with other work: trust best and ratios, not means; measure again when it is quiet")
        return "; ".join(words)

    def as_dict(self, after: MachineState) -> dict[str, Any]:
        return {
            "processor": cpu_name(),
            "cores": cpu_count(),
            "caches": cache_sizes(),
            "load_before": self.load,
            "warning": self.warning(),
            "load_after": after.load,
            "stolen_share": self.stolen_share(after),
        }
