"""Min-plus with weights, and min-select: relax until nothing changes, add then reduce.

    value[v] <- min(value[v], value[u] + weight)   for every edge u -> v

Min-select is the same with weight 0: every vertex takes the smallest label that reaches it. There is no matrix product
over (min, plus), so a batch is one vector after another against the same resident matrix.
"""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from npu_engine.programs.cores import Core, widened
from npu_engine.programs.exact import UNREACHED, Interrupted, KeepGoing, Matrix, Values
from npu_engine.programs.loops import ITERATIONS_PER_CALL


def relax_to_the_end(core: Core, values: Values, lightest: int, keep_going: KeepGoing) -> tuple[Values, int]:
    """Close values[size] (``UNREACHED``: none); also the number of iterations.

    Invariant  an improvement can come only from a vertex that changed in the iteration before (active), and costs at
               least ``lightest`` more than the smallest of those: values up to that are final.
    Work       one pass over the tiles per iteration; none that could only confirm.
    """
    value = values.astype(np.float32)
    active = value < UNREACHED
    iterations = 0
    while active.any():
        wanted = value > value[active].min() + lightest
        if not wanted.any():
            break
        new = value.copy()
        for tile in core.tiles(active, wanted):
            if not keep_going():
                raise Interrupted
            # bias_add + min is several times faster on the CPU than a broadcast `+` with amin.
            given = widened(value[None, tile.sources], tile.matrix.shape[1])[0]
            found = ops.min(ops.bias_add(tile.matrix, Tensor.from_numpy(given)), 1)[0].asnumpy()[: tile.target_count]
            new[tile.targets] = np.minimum(new[tile.targets], found)
        active = new < value
        value = new
        iterations += 1
    return value.astype(np.int32), iterations


class RelaxationLoop(nn.Cell):
    """The same as one graph on the device, for one padded size. The matrix has 0 on its diagonal."""

    def __init__(self, matrix: Matrix) -> None:
        super().__init__()
        self.matrix = Parameter(Tensor.from_numpy(matrix), name="matrix", requires_grad=False)

    @ms.jit
    def construct(self, value: Tensor, settled: Tensor, step: Tensor, limit: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        iterations = Tensor(0, ms.int32)
        going = Tensor(True)
        while ops.logical_and(going, iterations < limit):
            new = ops.min(ops.bias_add(self.matrix, value), 1)[0]
            settled = settled + step
            going = ops.logical_and((new < value).any(), ops.max(new, 0)[0] > settled)
            iterations = iterations + 1
            value = new
        return value, iterations, going


def relax_on_device(loop: RelaxationLoop, values: Values, lightest: int, keep_going: KeepGoing) -> tuple[Values, int]:
    """``relax_to_the_end`` with a compiled loop.

    After t iterations all paths of up to t edges are accounted for, and one of t + 1 edges costs at least
    (t + 1) * lightest above the smallest value, which is 0 here. So values up to that are settled.
    """
    value: Matrix = np.zeros(loop.matrix.shape[0], np.float32)
    value[: len(values)] = values
    iterations = 0
    going = bool(value.max() > lightest)
    while going:
        if not keep_going():
            raise Interrupted
        new, done, more = loop(
            Tensor.from_numpy(value),
            Tensor((iterations + 1) * lightest, ms.float32),
            Tensor(lightest, ms.float32),
            Tensor(ITERATIONS_PER_CALL, ms.int32),
        )
        value, going = new.asnumpy(), bool(more.asnumpy())
        iterations += int(done.asnumpy())
    return value[: len(values)].astype(np.int32), iterations
