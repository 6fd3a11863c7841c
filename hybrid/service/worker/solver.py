"""The solver of many jobs: what ``WorkerSolver`` lacks for a worker that outlives each of them."""

from __future__ import annotations

from hybrid.worker.solver import WorkerSolver


class ResidentSolver(WorkerSolver):
    """One process, lent to one search after another."""

    def start(self) -> None:
        """A service may have no idle moment: a worker that starts with what is left would never be ready."""
        super().start()
        if self._supervisor is not None:
            self._supervisor.let_work()

    @property
    def rounds_written(self) -> int:
        return self._protocol.rounds_written

    @property
    def pid(self) -> int | None:
        return None if self._supervisor is None else self._supervisor.pid

    def settle(self) -> None:
        """Whatever a search that was cut short left behind: no round is outstanding after this, no answer waits."""
        self.abandon()
        self._answer = None

    def tidy(self) -> None:
        """Remove the files of rounds that nobody waited for and of earlier cores: who stays must not fill the disk."""
        if self._opened and not self.busy and not self._config.exchange.keep:
            self._suppress(self._mailbox.tidy)
