"""How a job gets the core's index: stored by an earlier job, or made by the worker while searches go on.

``npu.index: on`` asks the worker for it; ``auto`` does so in a job of many searches only, and always uses what is
stored. Until it is there, searches go on as without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cpu_engine.graph.graph import Graph
from hybrid.config.schema import Config
from hybrid.graphs.opening import cache_folder
from hybrid.terminal import note
from hybrid.worker.core_solver import MOST_AT_ONCE, Absent, Answer, Device
from hybrid.worker.index import CoreIndex, forget_index, index_path, load_index, store_index

MANY_SEARCHES = 64  # auto: fewer do not ask for an index, which takes the device as long as some of their rounds
_log = logging.getLogger(__name__)


class IndexSolver(Absent):
    """A core solver in this process: it answers at once from the index, for one search or for a batch.

    Its answers are proven with the result, like any solver's; if they are wrong, the index is thrown away.
    """

    usable, device, largest_batch = True, "index", MOST_AT_ONCE

    def __init__(self, index: CoreIndex, forget: Callable[[], None] = lambda: None) -> None:
        super().__init__("")
        self.index, self._forget = index, forget
        self.rounds = 0
        self._answer: Answer | None = None

    def begin(self) -> None:
        self._answer, self.busy = None, False

    def submit(self, values: np.ndarray) -> None:
        self.rounds += 1
        closed = self.index.close(np.ascontiguousarray(values, np.int32))
        received = int(np.count_nonzero(closed >= 0))
        self._answer = Answer(f"index-{self.rounds:06d}", closed, received, {"device": self.device})
        self.busy = True

    def poll(self) -> Answer | None:
        answer, self._answer, self.busy = self._answer, None, False
        return answer

    abandon = begin

    def distrust(self, reason: str) -> None:
        """The index is wrong: it is not used again, here or in later jobs."""
        self.begin()
        self.usable, self.failure = False, f"core index: {reason}"
        self._forget()


class IndexKeeper:
    """See the module. ``solver`` is asked for before every search."""

    def __init__(self, path: Path | None, core_size: int, maker: Device | None) -> None:
        self._path, self._maker = path, maker
        self._solver: IndexSolver | None = None
        self._failure = ""
        stored = None if path is None else load_index(path, core_size)
        if stored is not None:
            self._use(stored, "stored")
        elif maker is not None and not maker.request_index():
            self._do_without(maker.index_failure)

    @property
    def failure(self) -> str:
        """Why there is no index, and will be none; empty while there is one or may be."""
        return self._failure or ("" if self._solver is None else self._solver.failure)

    def solver(self) -> IndexSolver | None:
        """The solver that answers at once, if the index is there and was never wrong."""
        if self._solver is None and self._maker is not None:
            made = self._maker.poll_index()
            if made is not None:
                index = CoreIndex(np.ascontiguousarray(made.distance))
                self._use(index, f"made by {self._maker.device}")
                if self._path is not None:
                    store_index(self._path, index)
            elif self._maker.index_failure:
                self._do_without(self._maker.index_failure)
        return self._solver if self._solver is not None and self._solver.usable else None

    def _do_without(self, reason: str) -> None:
        note(f"core index: {reason}; searches go on without it")
        self._maker, self._failure = None, reason

    def _use(self, index: CoreIndex, origin: str) -> None:
        index.prepare()
        reach = "some pairs have no path" if index.diameter is None else f"diameter {index.diameter}"
        _log.info("core index of %d vertices: %s, %s", index.size, origin, reach)
        self._maker = None
        self._solver = IndexSolver(index, self._throw_away)

    def _throw_away(self) -> None:
        note("core index: its values failed the proof, so it was thrown away")
        if self._path is not None:
            forget_index(self._path)


def index_keeper(
    config: Config, graph: Graph, core_size: int, searches: float, maker: Device | None
) -> IndexKeeper | None:
    """The keeper that ``npu.index`` asks for; None where it is off, or there is no core."""
    if config.npu.index == "off" or not core_size:
        return None
    asks = config.npu.index == "on" or searches >= MANY_SEARCHES
    path = index_path(cache_folder(config.graph), graph, core_size) if config.graph.cache else None
    return IndexKeeper(path, core_size, maker if asks else None)
