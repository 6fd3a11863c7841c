"""The core program: min-plus iteration on a dense matrix, add then reduce, with MindSpore.

    value[v] <- min over u of (value[u] + W[v, u])

until nothing can change, where W is the weight (1 without weights) of an edge u -> v, and 0 on the diagonal. The matrix
stays on the device from round to round.

Two forms of the same operations. Compiled, for an NPU: the loop itself runs on the device, so that no iteration waits
for the host, and sizes are padded to powers of two, so that a new core of a known size compiles nothing. Eager, for the
CPU: operation by operation from Python, at the core's own size. There it is faster: the queue that feeds a compiled
graph spins and competes with the CPU engine for the cores.

Invariant: every number that leaves here is exact. All of them are integers below 2**24 in float32: values are taken
relative to the smallest one, and what could leave that range is refused beforehand (``ProgramError``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import Parameter, Tensor, nn, ops

IntArray = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.float32]

SMALLEST_COMPILED_SIZE = 256
LARGEST_SIZE = 32_768  # 4 GiB of float32
# "No value" and "no edge". The largest float32 up to which all integers are exact; x + UNREACHED is never below it.
UNREACHED = 2.0**24
# Values may differ by this much, and a path may add this much: the sum is still below UNREACHED.
EXACT_SPAN = 2**23
# Iterations of the compiled loop between two looks at ``keep_going``: it hears neither signals nor stop.flag.
ITERATIONS_PER_CALL = 16


class ProgramError(Exception):
    """Input that this program cannot compute exactly; the text says why."""


class Interrupted(Exception):
    """``keep_going`` said no before the iteration had converged."""


@dataclass(frozen=True)
class Answer:
    """Every vertex that has a value now, ascending, and how many iterations it took."""

    pairs: IntArray  # int64[r, 2]: vertex, value
    iterations: int


class _CompiledLoop(nn.Cell):
    """The loop as one graph, for one padded size."""

    def __init__(self, matrix: Matrix) -> None:
        super().__init__()
        # As a Parameter the matrix stays on the device; as an argument it would be sent with every call.
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


class _Compiled:
    """A core on the device, iterated there up to ``ITERATIONS_PER_CALL`` times per call."""

    def __init__(self) -> None:
        self._loops: dict[int, _CompiledLoop] = {}
        self._loop: _CompiledLoop | None = None

    @staticmethod
    def padded(vertices: int) -> int:
        """The smallest power of two, from 256 on, that holds so many vertices."""
        return max(SMALLEST_COMPILED_SIZE, 1 << max(vertices - 1, 0).bit_length())

    def place(self, matrix: Matrix) -> None:
        size = len(matrix)
        if size in self._loops:
            # Parameter.set_data would leave the compiled graph reading the old matrix (MindSpore 2.10 on the CPU).
            ops.assign(self._loops[size].matrix, Tensor.from_numpy(matrix))
        else:
            self._loops[size] = _CompiledLoop(matrix)
        self._loop = self._loops[size]

    def iterate(self, value: Matrix, settled: int, step: int) -> tuple[Matrix, int, bool]:
        assert self._loop is not None
        # Tensors, not Python numbers: those would be constants of the graph and compile it anew for every value.
        new, iterations, going = self._loop(
            Tensor.from_numpy(value),
            Tensor(settled, ms.float32),
            Tensor(step, ms.float32),
            Tensor(ITERATIONS_PER_CALL, ms.int32),
        )
        return new.asnumpy(), int(iterations.asnumpy()), bool(going.asnumpy())


class _Eager:
    """A core on the device, iterated once per call."""

    def __init__(self) -> None:
        self._matrix: Tensor | None = None

    @staticmethod
    def padded(vertices: int) -> int:
        return max(vertices, 1)

    def place(self, matrix: Matrix) -> None:
        self._matrix = Tensor.from_numpy(matrix)

    def iterate(self, value: Matrix, settled: int, step: int) -> tuple[Matrix, int, bool]:
        # bias_add + min is several times faster on the CPU than a broadcast `+` with amin.
        new: Matrix = ops.min(ops.bias_add(self._matrix, Tensor.from_numpy(value)), 1)[0].asnumpy()
        return new, 1, bool(new.max() > settled + step) and not np.array_equal(new, value)


class CoreProgram:
    """Holds one core on the device and iterates on it from any given values."""

    def __init__(self, *, compiled: bool) -> None:
        self._form: _Compiled | _Eager = _Compiled() if compiled else _Eager()
        self._ids = np.empty(0, np.int64)
        self._lightest = 1
        self.edges = 0

    @property
    def vertices(self) -> IntArray:
        """The ids of the core's vertices that have an edge to another one, ascending."""
        return self._ids

    def warm_up(self, vertices: int = 1) -> None:
        """Load (and compile, for cores of that many vertices) what the first round will need."""
        size = self._size_for(vertices)
        self._form.place(_empty_matrix(size))
        self._form.iterate(np.zeros(size, np.float32), 1, 1)

    def load(self, edges: IntArray) -> None:
        """Make ``edges`` (int64[e, 2]: src dst, or [e, 3] with a weight) the resident core; any ids >= 0 will do."""
        self._ids, self.edges = np.empty(0, np.int64), 0
        if edges.ndim != 2 or edges.shape[1] not in (2, 3):
            raise ProgramError(f"edges have 2 or 3 columns, these have the shape {edges.shape}")
        loop = edges[:, 0] == edges[:, 1]
        proper = edges[~loop] if loop.any() else edges  # a loop never improves a value
        if len(proper):
            ids, ends = _number(proper[:, :2])
            weight = proper[:, 2] if proper.shape[1] == 3 else np.ones(1, np.int64)
            self._lightest = _lightest(weight, len(ids))
            self._form.place(_matrix(self._size_for(len(ids)), ends, weight))
            self._ids = ids
        self.edges = len(edges)

    def run(self, pairs: IntArray, keep_going: Callable[[], bool] = lambda: True) -> Answer:
        """Iterate from the given values (int64[r, 2]: vertex value) to the fixed point.

        A vertex without an edge in the core keeps its value; of several values for one vertex the smallest counts.
        """
        place, inside = self._find(pairs[:, 0])
        if not inside.any():
            return Answer(_smallest_per_vertex(pairs), 0)
        base = int(pairs[inside, 1].min())
        span = int(pairs[inside, 1].max()) - base
        if span > EXACT_SPAN:
            raise ProgramError(f"values span {span}, more than the {EXACT_SPAN} that float32 holds exactly")
        value = np.full(self._size_for(len(self._ids)), UNREACHED, np.float32)
        value[len(self._ids) :] = 0  # padding counts as settled; no edge leads out of it
        np.minimum.at(value, place[inside], (pairs[inside, 1] - base).astype(np.float32))
        value, iterations = self._converge(value, keep_going)
        reached = np.flatnonzero(value[: len(self._ids)] < UNREACHED)
        found = np.column_stack((self._ids[reached], value[reached].astype(np.int64) + base))
        if not inside.all():
            found = np.concatenate((found, _smallest_per_vertex(pairs[~inside])))
            found = found[np.argsort(found[:, 0], kind="stable")]
        return Answer(found, iterations)

    def _converge(self, value: Matrix, keep_going: Callable[[], bool]) -> tuple[Matrix, int]:
        """Iterate until nothing changes or nothing can.

        After t iterations all paths of up to t edges are accounted for, and one of t + 1 edges costs at least
        (t + 1) * lightest above the smallest value, which is 0 here. So values up to that are settled; when all are,
        the iteration that would only confirm it is saved.
        """
        iterations = 0
        going = bool(value.max() > self._lightest)
        while going:
            if not keep_going():
                raise Interrupted
            value, done, going = self._form.iterate(value, (iterations + 1) * self._lightest, self._lightest)
            iterations += done
        return value, iterations

    def _size_for(self, vertices: int) -> int:
        if vertices > LARGEST_SIZE:
            raise ProgramError(f"a core of {vertices} vertices is over the largest, {LARGEST_SIZE}")
        return self._form.padded(vertices)

    def _find(self, vertices: IntArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Row of each vertex, and which of them have one."""
        if not len(self._ids):
            return np.zeros(len(vertices), np.int64), np.zeros(len(vertices), bool)
        place = np.minimum(np.searchsorted(self._ids, vertices), len(self._ids) - 1)
        return place, self._ids[place] == vertices


def _number(ends: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct ids, ascending, and ``ends`` renumbered by them."""
    if not ends.size:
        return np.empty(0, np.int64), np.empty((0, 2), np.int64)
    if int(ends.min()) < 0:
        raise ProgramError(f"vertex id {int(ends.min())} is negative")
    largest = int(ends.max())
    if largest > 4 * ends.size + 65_536:
        ids, place = np.unique(ends, return_inverse=True)
        return ids, place.reshape(ends.shape)
    # Dense ids, the usual case: a table is much cheaper than sorting millions of ends.
    used = np.zeros(largest + 1, bool)
    used[ends] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[ends]


def _lightest(weight: IntArray, vertices: int) -> int:
    """The smallest weight, after a check that no path can leave the exact range."""
    lightest, heaviest = int(weight.min()), int(weight.max())
    if lightest < 0:
        raise ProgramError(f"weight {lightest} is negative")
    if heaviest * (vertices - 1) > EXACT_SPAN:
        raise ProgramError(
            f"a path over {vertices} vertices with weights up to {heaviest} may be longer than the {EXACT_SPAN} that "
            "float32 holds exactly: choose a smaller core or smaller weights"
        )
    return lightest


def _empty_matrix(size: int) -> Matrix:
    _require_memory(size)
    matrix = np.full((size, size), UNREACHED, np.float32)
    np.fill_diagonal(matrix, 0)
    return matrix


def _matrix(size: int, ends: IntArray, weight: IntArray) -> Matrix:
    """W[dst, src]; of parallel edges the lightest counts."""
    matrix = _empty_matrix(size)
    if len(weight) == len(ends) and weight.min() != weight.max():
        np.minimum.at(matrix, (ends[:, 1], ends[:, 0]), weight.astype(np.float32))
    else:
        matrix[ends[:, 1], ends[:, 0]] = weight[0]
    return matrix


def _require_memory(size: int) -> None:
    """Refuse a matrix that would push this machine into swapping or the worker into the OOM killer."""
    needed = 3 * 4 * size * size  # built on the host, resident, and the sums of one iteration
    available = _available_bytes()
    if available is not None and needed > available:
        raise ProgramError(
            f"a matrix of {size} x {size} needs {needed >> 20} MiB to be worked on, {available >> 20} MiB are free: "
            "choose a smaller core"
        )


def _available_bytes() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as facts:
            for line in facts:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None


def _smallest_per_vertex(pairs: IntArray) -> IntArray:
    """One line per vertex, ascending, with its smallest value."""
    ordered: IntArray = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:, 0] != ordered[:-1, 0]
    smallest: IntArray = ordered[first]
    return smallest
