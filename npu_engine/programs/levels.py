"""Min-plus with unit weights: breadth-first levels by boolean products.

    value[v] <- min(value[v], value[u] + 1)   for every edge u -> v

Given values need not be a frontier. They are settled in ascending order: at level d all values up to d are final, the
vertices that hold exactly d are multiplied with the 0/1 matrix, and what they reach holds at most d + 1; the next
level is the smallest value above d, wherever it comes from. So a vertex is multiplied once, at its final value. Rows of
a batch have their own levels and go on side by side. A row is done when no value is above d + 1.
"""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from npu_engine.programs.cores import Core, reach
from npu_engine.programs.exact import UNREACHED, Interrupted, KeepGoing, Matrix, Values
from npu_engine.programs.loops import ITERATIONS_PER_CALL, power_of_two


def close_by_levels(core: Core, values: Values, keep_going: KeepGoing) -> tuple[Values, int]:
    """Close the rows of values[B, size] (``UNREACHED``: none) step by step; also the number of steps.

    Invariant  before and after a step: of each row, values up to its level are final.
    Work       one product per step; a step per distinct final value, at most.
    """
    values = values.copy()
    level = values.min(axis=1)
    steps = 0
    while True:
        going = np.flatnonzero((level < UNREACHED) & (values.max(axis=1) > level + 1))
        if not len(going):
            return values, steps
        part, at = values[going], level[going, None]
        reached = reach(core, part == at, (part > at + 1).any(axis=0), keep_going)
        part = np.where(reached, np.minimum(part, at + 1), part)
        values[going] = part
        level[going] = np.where(part > at, part, UNREACHED).min(axis=1)
        steps += 1


class LevelLoop(nn.Cell):
    """The same as one graph on the device, for one padded size.

    The matrix is float16, which a cube unit is made for. Counts may be rounded or overflow to infinity there, but
    a count above 0 never becomes 0, and that is all that is asked.
    """

    def __init__(self, matrix: Matrix) -> None:
        super().__init__()
        # As a Parameter the matrix stays on the device; as an argument it would be sent with every call.
        self.matrix = Parameter(Tensor.from_numpy(matrix.astype(np.float16)), name="matrix", requires_grad=False)
        self.multiply = ops.MatMul(transpose_b=True)

    @ms.jit
    def construct(self, value: Tensor, level: Tensor, none: Tensor, limit: Tensor) -> tuple[Tensor, ...]:
        steps = Tensor(0, ms.int32)
        going = Tensor(True)
        while ops.logical_and(going, steps < limit):
            count = self.multiply(ops.cast(ops.equal(value, level), ms.float16), self.matrix)
            value = ops.select(count > 0, ops.minimum(value, level + 1), value)
            above = ops.select(value > level, value, ops.zeros_like(value) + none)
            level = ops.min(above, 1, True)[0]
            # A row that has run out of levels is at UNREACHED, which no value exceeds.
            going = (value - level > 1).any()
            steps = steps + 1
        return value, level, steps, going


def close_on_device(loop: LevelLoop, values: Values, keep_going: KeepGoing) -> tuple[Values, int]:
    """``close_by_levels`` with a compiled loop, which hears ``keep_going`` every few steps."""
    rows, size = values.shape
    # Rows and vertices that only fill up hold 0, the smallest value: they are done from the start, and have no edges.
    value: Matrix = np.zeros((power_of_two(rows, 1), loop.matrix.shape[0]), np.float32)
    value[:rows, :size] = values
    level = value.min(axis=1, keepdims=True)
    level[:rows] = values.min(axis=1, keepdims=True)
    # A row without any value would otherwise see its filling as a level below it.
    value[:rows, size:] = level[:rows]
    steps = 0
    going = bool((value - level).max() > 1)
    while going:
        if not keep_going():
            raise Interrupted
        # Tensors, not Python numbers: those would be constants of the graph and compile it anew for every value.
        new, levels, done, more = loop(
            Tensor.from_numpy(value),
            Tensor.from_numpy(level),
            Tensor(UNREACHED, ms.float32),
            Tensor(ITERATIONS_PER_CALL, ms.int32),
        )
        value, level, going = new.asnumpy(), levels.asnumpy(), bool(more.asnumpy())
        steps += int(done.asnumpy())
    return value[:rows, :size].astype(np.int32), steps
