"""What solves the dense core for an algorithm: a worker process, a simulated device, the core's index.

All differences between the kinds are in the protocol, so that no caller has to ask which kind it has.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

MOST_AT_ONCE = 1024  # vectors in a round, where the solver has no bound of its own


@dataclass(frozen=True)
class Answer:
    """A round's result: core values in the shape that was sent, and the worker's own facts."""

    round_id: str
    values: np.ndarray
    received: int
    facts: dict[str, str] = field(default_factory=dict)


def first_round(k: int, batch: int, most: int, empty: int = -1, dtype: Any = np.int32) -> np.ndarray:
    """Values of a round that no run needs, as large as later ones, so that the device compiles before the first run."""
    shape = (k,) if batch == 1 else (max(1, min(batch, most)), k)
    values: np.ndarray = np.full(shape, empty, dtype)
    values[..., :1] = empty + 1  # one value, so that the device has something to multiply
    return values


class CoreSolver(Protocol):
    """Answers rounds. It raises no error for what a worker does: it becomes unusable, and ``failure`` says why."""

    failure: str

    @property
    def usable(self) -> bool:
        """Whether rounds can still be sent."""

    @property
    def starting(self) -> bool:
        """Whether it is known to be still loading; a caller that does not wait for answers then sends nothing."""

    @property
    def busy(self) -> bool:
        """Whether a round is outstanding."""

    @property
    def largest_batch(self) -> int:
        """The most vectors that one round may carry."""

    def begin(self) -> None:
        """A new run starts."""

    def submit(self, values: np.ndarray) -> None:
        """Hand over the core's values, [k] or [B, k]; one round at a time."""

    def poll(self) -> Answer | None:
        """The answer, if it is there."""

    def wait(self) -> None:
        """Sleep until something may have changed: an answer, a death, a time-out."""

    def abandon(self) -> None:
        """The outstanding round is no longer needed."""

    def distrust(self, reason: str) -> None:
        """An answer was provably false: no more rounds."""

    def rehearse(self, run: Callable[[CoreSolver], object]) -> object:
        """Before a timed run: a simulated device runs this to prepare its answers; other solvers do nothing."""


class Absent:
    """No solver: what a run is given where there is none for it; ``failure`` says why."""

    usable = starting = busy = False
    largest_batch = 1

    def __init__(self, reason: str) -> None:
        self.failure = reason

    def begin(self) -> None: ...

    def submit(self, values: np.ndarray) -> None: ...

    def poll(self) -> Answer | None:
        return None

    def wait(self) -> None: ...

    def abandon(self) -> None: ...

    def distrust(self, reason: str) -> None: ...

    def rehearse(self, run: Callable[[CoreSolver], object]) -> object: ...


class Device(CoreSolver, Protocol):
    """A solver with a life of its own, which is given a core: a worker, or a simulated device in its place."""

    device: str
    start_seconds: float | None
    label: str  # put before all messages about it: "simulated: " where no real device stands behind it
    cold: bool  # whether it has to start, load and compile before it can be asked
    index_failure: str
    on_clock_s: float  # how long a simulated device made the engine wait where a real one would not have

    @property
    def directory(self) -> Path | None:
        """The exchange directory, if there is one."""

    def start(self) -> None:
        """Begin to load; the caller goes on."""

    def publish_edges(
        self, out_offsets: np.ndarray, out_targets: np.ndarray, core_size: int, *, program: str = ...,
        weight: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Give it the edges among the first ``core_size`` vertices, and the program that rounds ask for."""

    def first_values(self, batch: int = 1) -> np.ndarray:
        """A round that no run needs, as large as those to come."""

    def warm_up(self, mode: str, batch: int = 1) -> None:
        """Let it answer a round that no run needs; mode race does not wait for its start."""

    def request_index(self) -> bool:
        """Ask once for the hops between all core vertices; False if that is impossible: ``index_failure`` says why."""

    def poll_index(self) -> Any:
        """The index, once it is there."""

    def uncounted(self) -> AbstractContextManager[None]:
        """Rounds inside are in no total of a simulated device: they are rehearsals."""

    def do_without(self, reason: str) -> None:
        """There can be no device here, for this reason: no rounds."""

    def describe(self) -> dict[str, Any] | None:
        """What the summary says of a simulated device; None of a real one."""

    def close(self) -> None:
        """Stop it and clean up; may be called at any point after the constructor."""
