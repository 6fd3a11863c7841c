"""Single products: plus-times (a step of PageRank), and boolean or-and (a step of reachability)."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from npu_engine.programs.cores import Core, product
from npu_engine.programs.exact import Flags, Interrupted, KeepGoing, Matrix
from npu_engine.programs.loops import power_of_two


def multiply(core: Core, vectors: Matrix, keep_going: KeepGoing = lambda: True) -> Matrix:
    """out[b, v] = sum over edges u -> v of vectors[b, u] * weight.

    In float32; exact while all sums are integers up to 2**24, otherwise right to rounding.
    """
    found: Matrix = np.zeros(vectors.shape, np.float32)
    everything = np.ones(core.size, bool)
    for tile in core.tiles((vectors != 0).any(axis=0), everything, len(vectors)):
        if not keep_going():
            raise Interrupted
        found[:, tile.targets] += product(tile, vectors[:, tile.sources])
    return found


class ProductStep(nn.Cell):
    """Plus-times as a graph on the device, for one padded size; float32, since ranks need its digits."""

    def __init__(self, matrix: Matrix) -> None:
        super().__init__()
        self.matrix = Parameter(Tensor.from_numpy(matrix), name="matrix", requires_grad=False)
        self.multiply = ops.MatMul(transpose_b=True)

    @ms.jit
    def construct(self, vectors: Tensor) -> Tensor:
        return self.multiply(vectors, self.matrix)


class ReachStep(nn.Cell):
    """Or-and as a graph on the device: float16, where a count above 0 stays above 0."""

    def __init__(self, matrix: Matrix) -> None:
        super().__init__()
        self.matrix = Parameter(Tensor.from_numpy(matrix.astype(np.float16)), name="matrix", requires_grad=False)
        self.multiply = ops.MatMul(transpose_b=True)

    @ms.jit
    def construct(self, vectors: Tensor) -> Tensor:
        return ops.cast(self.multiply(ops.cast(vectors, ms.float16), self.matrix) > 0, ms.float32)


def step_on_device(step: ProductStep | ReachStep, vectors: Matrix | Flags) -> Matrix:
    """One product on the device, padded."""
    rows, size = vectors.shape
    padded: Matrix = np.zeros((power_of_two(rows, 1), step.matrix.shape[0]), np.float32)
    padded[:rows, :size] = vectors
    found: Matrix = step(Tensor.from_numpy(padded)).asnumpy()[:rows, :size]
    return found
