"""A core solver in this very process: core values follow from the core's index, at once, without a worker.

To a traversal it is like any other: it is asked in rounds, believed until the certificate, and given up when it was
wrong - then the index is thrown away, since it is the index that lied.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybrid.worker.core_solver import MOST_AT_ONCE, Answer, CoreSolver
from hybrid.worker.index import CoreIndex

DEVICE = "index"


class IndexSolver:
    """See the module; satisfies ``hybrid.offload.traverse.CoreSolver``, for single searches and for batches."""

    def __init__(self, index: CoreIndex, forget: Callable[[], None] = lambda: None) -> None:
        self.index, self._forget = index, forget
        self.device = DEVICE
        self.largest_batch = MOST_AT_ONCE
        self.usable, self.starting, self.failure = True, False, ""
        self.rounds = 0
        self._answer: Answer | None = None

    @property
    def busy(self) -> bool:
        return self._answer is not None

    def begin(self) -> None:
        self._answer = None

    def submit(self, values: np.ndarray) -> None:
        self.rounds += 1
        closed = self.index.close(np.ascontiguousarray(values, np.int32))
        received = int(np.count_nonzero(closed >= 0))
        self._answer = Answer(f"index-{self.rounds:06d}", closed, received, {"device": DEVICE})

    def poll(self) -> Answer | None:
        answer, self._answer = self._answer, None
        return answer

    def wait(self) -> None:
        """There is nothing to wait for."""

    def abandon(self) -> None:
        self._answer = None

    def distrust(self, reason: str) -> None:
        """The index is wrong: nobody shall use it again."""
        self.usable, self.failure, self._answer = False, f"core index: {reason}", None
        self._forget()

    def rehearse(self, run: Callable[[CoreSolver], object]) -> object:
        """It answers at once, off every model's clock."""
