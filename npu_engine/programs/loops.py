"""Compiled loops kept by size, so that a new core of a known size compiles nothing.

Invariant: the loops kept never hold more bytes than the budget, but for the one in use.
"""

from __future__ import annotations

from typing import Any

from mindspore import Tensor, nn, ops

from npu_engine.programs.cores import CoreEdges

SMALLEST_COMPILED_SIZE = 256
# Iterations of a compiled loop between two looks at ``keep_going``: it hears neither signals nor stop.flag.
ITERATIONS_PER_CALL = 16


def power_of_two(number: int, smallest: int = SMALLEST_COMPILED_SIZE) -> int:
    """The smallest power of two, from ``smallest`` on, that holds so many."""
    return max(smallest, 1 << max(number - 1, 0).bit_length())


class CompiledLoops:
    """One loop for each kind of program and padded size."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._loops: dict[tuple[type[nn.Cell], int], Any] = {}
        self._tickets: dict[int, int] = {}
        self._placed = 0

    @property
    def nbytes(self) -> int:
        return sum(int(loop.matrix.nbytes) for loop in self._loops.values())

    def ticket(self, loop: Any) -> int | None:
        """Changes when another core is put into the loop; None once the loop is given up."""
        return self._tickets.get(id(loop))

    def give_up(self, loop: Any) -> None:
        """Forget a loop with its matrix."""
        self._loops = {key: kept for key, kept in self._loops.items() if kept is not loop}
        self._tickets.pop(id(loop), None)

    def place(self, kind: type[nn.Cell], edges: CoreEdges) -> Any:
        """A loop of that kind with this core in it."""
        matrix = edges.dense(power_of_two(edges.size))
        known = self._loops.pop((kind, len(matrix)), None)
        if known is None:
            known = kind(matrix)
        else:
            # Parameter.set_data would leave the compiled graph reading the old matrix (MindSpore 2.10 on the CPU).
            ops.assign(known.matrix, Tensor.from_numpy(matrix).astype(known.matrix.dtype))
        self._loops[kind, len(matrix)] = known  # last: the one in use is the last to go
        self._placed += 1
        self._tickets[id(known)] = self._placed
        while len(self._loops) > 1 and self.nbytes > self.budget:
            self._tickets.pop(id(self._loops.pop(next(iter(self._loops)))))
        return known
