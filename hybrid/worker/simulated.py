"""A device that is not there: true core values, delivered at the moment a model says that device would deliver them.

What the CPU engine does with them - waiting, merging, edges saved - is real and measured; only the device is not. The
values come from a closure over the core's rows that is computed off the clock: ``rehearse`` runs a search beforehand
and keeps what it needed; what is still missing is computed while the CPU waits anyway, and only else on the clock,
which is counted (``on_clock_s``). The device is warm: its start and the loading of the core are not in any round.

Invariant: every word is the truth, whatever the model; and whatever leaves here says ``simulated``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exchange.protocol.programs import MIN_PLUS
from hybrid.config.schema import Config
from hybrid.devices.model import DeviceModel
from hybrid.devices.profiles import DIRECT, parse_device
from hybrid.errors import ConfigError
from hybrid.planning.calibration import device_model, load_calibration
from hybrid.results.trace import Event, Trace
from hybrid.worker.core_programs import Program, core_program
from hybrid.worker.core_solver import MOST_AT_ONCE, Answer, CoreSolver, first_round
from hybrid.worker.index import CoreIndex, compute_index

_SPIN_S = 200e-6  # shorter than this a sleep cannot be trusted: the moment is waited for by looking at the clock
_LONGEST_SLEEP_S = 0.05
_MOST_KEPT_BYTES = 256 << 20  # closures kept from rehearsals; beyond it the oldest go
_MOST_REHEARSALS = 4
_TOUCHED = ("wait", "merge", "take_back")  # what the CPU does because of the device


def simulated_solver(config: Config) -> SimulatedSolver | None:
    """The device that ``npu.device: simulated:...`` names; None where it names a real one."""
    simulation = parse_device(config.npu.device)
    if simulation is None:
        return None
    if config.npu.worker == "external":
        raise ConfigError(
            "npu.worker: a simulated device has no worker that could be started by hand",
            value=config.npu.worker,
            fix="set npu.worker: launch, or a real npu.device",
        )
    model = device_model(simulation, load_calibration())
    return SimulatedSolver(
        model, format=DIRECT if simulation.direct else config.exchange.format, label=simulation.label
    )


class SimulatedTrace(Trace):
    """A trace in which every event of the device, and of the CPU because of it, carries ``simulated: <device>``.

    ``label`` None: the device, if there is one, is real.
    """

    def __init__(self, label: str | None) -> None:
        super().__init__()
        self.label = label

    def add(self, actor: str, kind: str, t0: float, t1: float | None = None, **facts: Any) -> Event:
        if self.label is not None and (actor == "npu" or kind in _TOUCHED):
            facts["simulated"] = self.label
        return super().add(actor, kind, t0, t1, **facts)


@dataclass(frozen=True)
class _Closure:
    """A round as it was asked before, and its answer."""

    sent: np.ndarray
    values: np.ndarray
    iterations: int
    received: int


class SimulatedSolver:
    """See the module; satisfies ``hybrid.worker.core_solver.Device`` in the place of a worker."""

    cold, starting, usable = False, False, True
    directory: Path | None = None
    largest_batch = MOST_AT_ONCE
    label = "simulated: "

    def __init__(self, model: DeviceModel, *, format: str = "binary", label: str | None = None) -> None:
        self.model, self.format = model, format
        self.device = label or f"simulated:{model.name}"
        self.start_seconds: float | None = None  # it has no start
        self.failure = ""
        # Running totals; what happens in rehearsals is not in them.
        self.rounds = 0
        self.modelled_s = 0.0  # of the rounds that were delivered
        self.delivered = 0
        self.computed_on_clock = 0  # closures that the engine had to wait for: no device would have made it wait
        self.on_clock_s = 0.0
        self.computed = 0  # closures, rehearsals included
        self._begin = np.empty(0, np.int64)
        self._targets = np.empty(0, np.uint32)
        self._program: Program = core_program(np.zeros(1, np.int64), np.empty(0, np.int32), 0)
        self._known: dict[tuple[Any, ...], list[_Closure]] = {}
        self._kept = 0  # closures
        self._sent: np.ndarray | None = None
        self._sent_at = self._due = 0.0
        self._closed: _Closure | None = None
        self._offsets = np.zeros(1, np.int64)
        self._index: CoreIndex | None = None
        self._index_due: float | None = None
        self.index_failure = ""

    # ---------------------------------------------------------------------------------------------- its life

    def start(self) -> None:
        """Nothing starts."""

    def warm_up(self, mode: str, batch: int = 1) -> None:
        """It is warm."""

    def close(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._known.clear()
        self._kept = 0
        self._sent = self._closed = None
        self._index = self._index_due = None

    def publish_edges(
        self,
        out_offsets: np.ndarray,
        out_targets: np.ndarray,
        core_size: int,
        *,
        program: str = MIN_PLUS,
        weight: np.ndarray | None = None,
    ) -> None:
        """Take the edges among the first ``core_size`` vertices; what was kept for another core is forgotten."""
        self._forget()
        self._program = core_program(out_offsets, out_targets, core_size, program, weight)
        self._offsets = out_offsets[: core_size + 1]
        self._begin = out_offsets[:core_size]
        self._targets = out_targets.view(f"u{out_targets.itemsize}")
        if not self.model.fits(core_size):
            needed, there = self.model.matrix_bytes(core_size) / 2**30, self.model.memory_bytes / 2**30
            self.distrust(f"a core of {core_size} vertices needs {needed:.1f} GiB, {self.device} has {there:.0f}")

    def first_values(self, batch: int = 1) -> np.ndarray:
        return first_round(self._begin.size, batch, self.largest_batch)

    def rehearse(self, run: Callable[[CoreSolver], object]) -> int:
        """Let ``run`` ask this device beforehand, untimed, until nothing new is asked; how many runs that took.

        An engine whose rounds depend on the moment may ask for something else later; that is counted then.
        """
        attempts = 0
        with self.uncounted():
            while self.usable and attempts < _MOST_REHEARSALS:
                asked = self.computed
                run(self)
                attempts += 1
                if self.computed == asked:
                    break
        return attempts

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        totals = self.rounds, self.modelled_s, self.delivered, self.computed_on_clock, self.on_clock_s
        try:
            yield
        finally:
            self.rounds, self.modelled_s, self.delivered, self.computed_on_clock, self.on_clock_s = totals

    # ------------------------------------------------------------------------------------------- the rounds

    @property
    def busy(self) -> bool:
        return self._sent is not None

    def begin(self) -> None:
        self._sent = self._closed = None

    def submit(self, values: np.ndarray) -> None:
        """One search's values [k], or a batch's [B, k]."""
        self._sent_at = time.perf_counter()
        self._sent = values.copy()  # the engine goes on writing into its own
        self.rounds += 1
        asked_before = self._known.get(_fingerprint(values), ())
        self._closed = next((one for one in asked_before if np.array_equal(one.sent, values)), None)
        # Until the closure is known, the earliest moment at which this round can be over: that of no iteration.
        self._due = self._sent_at + self._seconds(values, 0 if self._closed is None else self._closed.iterations)

    def poll(self) -> Answer | None:
        if self._sent is None or time.perf_counter() < self._due:
            return None
        if self._closed is None:
            t0 = time.perf_counter()
            self._close()
            self.computed_on_clock += 1
            self.on_clock_s += time.perf_counter() - t0
            if time.perf_counter() < self._due:
                return None
        closed = self._closed
        assert closed is not None
        self._sent = self._closed = None
        self.modelled_s += self._seconds(closed.sent, closed.iterations)
        self.delivered += 1
        computed = closed.iterations * self.model.iteration_s(self._begin.size, _batch(closed.sent))
        facts = {"device": self.device, "iterations": str(closed.iterations), "compute_s": f"{computed:.9f}"}
        # A copy: engines keep what they are given, and these values are given again.
        return Answer(f"simulated-{self.rounds:06d}", closed.values.copy(), closed.received, facts)

    def wait(self) -> None:
        """Until the answer is due; an unknown closure is computed here, since the CPU has nothing to do anyway."""
        if self._sent is not None and self._closed is None:
            self._close()
        left = self._due - time.perf_counter()
        if left > _SPIN_S:
            time.sleep(min(left - _SPIN_S, _LONGEST_SLEEP_S))
            return
        while time.perf_counter() < self._due:
            pass

    def abandon(self) -> None:
        self._sent = self._closed = None

    def distrust(self, reason: str) -> None:
        self.usable, self.failure = False, reason if reason.startswith("simulated") else f"simulated device: {reason}"
        self._sent = self._closed = None

    def do_without(self, reason: str) -> None:
        self.distrust(reason)

    # ------------------------------------------------------------------------------------------ for the record

    def describe(self) -> dict[str, Any]:
        model = self.model
        return {
            "device": self.device,
            "figures": model.kind,
            "source": model.source,
            "exchange": self.format if model.delay_s is None else "in the delay",
            "exchange_measured": model.exchange.measured,
            "rounds_delivered": self.delivered,
            "mean_round_s": self.modelled_s / self.delivered if self.delivered else None,
            "computed_on_clock": self.computed_on_clock,
            "on_clock_s": self.on_clock_s,
        }

    # --------------------------------------------------------------------------------------------- the index

    def request_index(self) -> bool:
        if not self.usable:
            self.index_failure = self.failure
            return False
        if self._index is None:
            self._index = compute_index(self._offsets, self._targets, self._begin.size)  # off the clock, by the CPU
        if self._index is None:
            self.index_failure = "a distance does not fit into an index"
            return False
        if self._index_due is None:
            diameter = int(self._index.distance[self._index.distance < 255].max(initial=0))
            self._index_due = time.perf_counter() + self.model.index_s(self._begin.size, diameter)
        return True

    def poll_index(self) -> CoreIndex | None:
        """The index, once the model says that it would be there."""
        due = self._index_due
        return self._index if due is not None and time.perf_counter() >= due else None

    # ------------------------------------------------------------------------------------------------- inside

    def _seconds(self, values: np.ndarray, iterations: int) -> float:
        return self.model.round_s(self._begin.size, _batch(values), iterations, self.format)

    def _close(self) -> None:
        assert self._sent is not None
        values, iterations = self._program(self._sent)
        self._closed = _Closure(self._sent, values, iterations, int(np.count_nonzero(values >= 0)))
        self.computed += 1
        room = max(1, _MOST_KEPT_BYTES // max(1, 2 * values.nbytes))
        while self._kept >= room:
            self._kept -= len(self._known.pop(next(iter(self._known))))
        self._known.setdefault(_fingerprint(self._sent), []).append(self._closed)
        self._kept += 1
        self._due = self._sent_at + self._seconds(values, iterations)


def _batch(values: np.ndarray) -> int:
    return 1 if values.ndim == 1 else int(values.shape[0])


def _fingerprint(values: np.ndarray) -> tuple[Any, ...]:
    """Tells most rounds apart; a hash of a megabyte would take longer than some of the devices."""
    return (*values.shape, int(values.sum(dtype=np.int64)), values.ravel()[:64].tobytes())
