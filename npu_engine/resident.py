"""The cores that stay on the device: one per core file and program, the least recently used ones leave first.

Invariant: the cores kept, and what the one in use needs beside itself, take no more than the budget; only a core that
is over it alone (and so worked on in pieces) is kept all the same, and then no other one.
"""

from __future__ import annotations

from npu_engine.program import CoreProgram, IntArray, bytes_to_use
from npu_engine.programs.compaction import working_bytes
from npu_engine.programs.exact import Matrix
from npu_engine.programs.table import Device

Key = tuple[object, str]  # the file's identity, the program's name
MOST_CORES = 8  # no job returns to more, and a worker that runs for weeks must not collect the cores of all its jobs


class ResidentCores:
    """Hands out ``CoreProgram``s that share one device and one budget."""

    def __init__(
        self,
        *,
        compiled: bool,
        memory_budget: int | None = None,
        threads: int = 1,
        kind: type[CoreProgram] = CoreProgram,
    ) -> None:
        self._compiled, self._given, self._kind = compiled, memory_budget, kind
        self._budget = bytes_to_use(memory_budget)
        self._device = Device(compiled=compiled, budget=self._budget, threads=threads)
        self._cores: dict[Key, CoreProgram] = {}  # least recently used first
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._cores)

    @property
    def nbytes(self) -> int:
        """What is kept now."""
        held = [core for core in self._cores.values() if core.in_pieces] if self._compiled else self._cores.values()
        loops = self._device.loop_bytes if self._compiled else 0
        return loops + sum(core.nbytes for core in held)

    def warm_up(self, vertices: int) -> None:
        """Load and compile what the first round will need."""
        self._kind(compiled=self._compiled, device=self._device).warm_up(vertices)

    def find(self, key: Key, rows: int = 1) -> CoreProgram | None:
        """The core, with room to compute on so many rows at once; None when it is not there (any more)."""
        core = self._cores.pop(key, None)
        if core is None or not core.in_place:
            return None
        size = len(core.vertices)
        # Input and output of a batch may be larger than the core itself.
        beside = 8 * size * min(rows, core.rows_at_once)
        self._make_room(max(working_bytes(size), core.nbytes + beside), fits=not core.in_pieces)
        self._cores[key] = core
        return core

    def place(self, key: Key, edges: IntArray, weight: Matrix | None = None) -> CoreProgram:
        """Load a core; others leave before it, so that the budget holds in between as well."""
        self._cores.pop(key, None)
        if self._given is None:
            self._budget = bytes_to_use(None) + self.nbytes  # what is free, and what we could free
        core = self._kind(compiled=self._compiled, memory_budget=self._given, device=self._device)

        def make_room(vertices: int) -> None:
            self._make_room(working_bytes(vertices), fits=self._device.fits(vertices))

        core.load(edges, key[1], weight, make_room)
        self._cores[key] = core
        for other in [other for other, kept in self._cores.items() if not kept.in_place]:
            del self._cores[other]  # compiled: its loop holds another core now
        return core

    def drop(self, key: Key) -> None:
        """Forget a core, which may be half placed."""
        self._cores.pop(key, None)

    def _make_room(self, needed: int, *, fits: bool) -> None:
        """Let cores go, the least recently used first. A core in pieces uses the whole budget for its tiles."""
        while self._cores and (not fits or len(self._cores) >= MOST_CORES or self.nbytes + needed > self._budget):
            self._cores.pop(next(iter(self._cores))).leave()
            self.evicted += 1
