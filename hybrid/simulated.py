"""A device that is not there: true core values, delivered at the moment a model says that device would deliver them.

What the CPU engine does with them - waiting, merging, edges saved - is real and measured; only the device is not. The
values come from a closure over the core's rows that is computed off the clock: ``rehearse`` runs a search beforehand
and keeps what it needed; what is still missing is computed while the CPU waits anyway, and only else on the clock,
which is counted (``on_clock_s``). The device is warm: its start and the loading of the core are not in any round.

Invariant: every word is the truth, whatever the model; and whatever leaves here says ``simulated``.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from cpu_engine.algorithms.traversal import Traversal
from cpu_engine.kernels.core import skip_core_step
from cpu_engine.kernels.core_closure import close_core_step
from hybrid.calibration import device_model, load_calibration
from hybrid.device_model import DeviceModel
from hybrid.errors import ConfigError
from hybrid.profiles import DIRECT, parse_device
from hybrid.schema import Config
from hybrid.trace import Event, Trace
from hybrid.traverse import Answer, traverse_together

_SPIN_S = 200e-6  # shorter than this a sleep cannot be trusted: the moment is waited for by looking at the clock
_LONGEST_SLEEP_S = 0.05
_MOST_KEPT_BYTES = 256 << 20  # closures kept from rehearsals; beyond it the oldest go
_MOST_REHEARSALS = 4
_TOUCHED = ("wait", "merge", "take_back")  # what the CPU does because of the device


def simulated_partner(config: Config) -> SimulatedPartner | None:
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
    return SimulatedPartner(
        model, format=DIRECT if simulation.direct else config.exchange.format, label=simulation.label
    )


class SimulatedTrace(Trace):
    """A trace in which every event of the device, and of the CPU because of it, carries ``simulated: <device>``."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self._label = label

    def add(self, actor: str, kind: str, t0: float, t1: float | None = None, **facts: Any) -> Event:
        if actor == "npu" or kind in _TOUCHED:
            facts["simulated"] = self._label
        return super().add(actor, kind, t0, t1, **facts)


class SimulatedPartner:
    """See the module; satisfies ``hybrid.traverse.Partner``, and stands in for ``NpuPartner`` in a job of one rank."""

    def __init__(self, model: DeviceModel, *, format: str = "binary", label: str | None = None) -> None:
        self.model, self.format = model, format
        self.device = label or f"simulated:{model.name}"
        self.start_seconds: float | None = None  # it has no start
        self.failure = ""
        self.usable = self.ready = True
        # Running totals; what happens in rehearsals is not in them.
        self.rounds = 0
        self.modelled_s = 0.0  # of the rounds that were delivered
        self.delivered = 0
        self.computed_on_clock = 0  # closures that the engine had to wait for: no device would have made it wait
        self.on_clock_s = 0.0
        self._begin = self._end = np.empty(0, np.int64)
        self._targets = np.empty(0, np.uint32)
        self._known: dict[bytes, tuple[np.ndarray, int]] = {}
        self._sent: np.ndarray | None = None
        self._sent_at = self._due = 0.0
        self._closed: tuple[np.ndarray, int] | None = None

    # ---------------------------------------------------------------------------------------------- its life

    def start(self) -> None:
        """Nothing starts."""

    def close(self) -> None:
        self._known.clear()
        self._sent = self._closed = None

    def publish_edges(self, out_offsets: np.ndarray, out_targets: np.ndarray, core_size: int) -> None:
        """Take the edges among the first ``core_size`` vertices; what was kept for another core is forgotten."""
        self._known.clear()
        self._sent = self._closed = None
        self._begin = out_offsets[:core_size]
        self._end = skip_core_step(out_offsets[: core_size + 1], out_targets, core_size)
        self._targets = out_targets.view(f"u{out_targets.itemsize}")
        if not self.model.fits(core_size):
            needed, there = self.model.matrix_bytes(core_size) / 2**30, self.model.memory_bytes / 2**30
            self.distrust(f"a core of {core_size} vertices needs {needed:.1f} GiB, {self.device} has {there:.0f}")
        close_core_step(self._begin[:0], self._end[:0], self._targets, np.empty(0, np.int32))  # compiled, if need be

    def rehearse(self, engine: Traversal, root: int, mode: str, max_rounds: int = 1000) -> int:
        """Search beforehand, untimed, until all that a search asks for is kept; how many searches that took.

        An engine whose rounds depend on the moment may ask for something else later; that is counted then.
        """
        totals = self.rounds, self.modelled_s, self.delivered, self.computed_on_clock, self.on_clock_s
        attempts = 0
        while self.usable and attempts < _MOST_REHEARSALS:
            known = len(self._known)
            traverse_together(engine, root, mode, self, Trace(), max_rounds)
            attempts += 1
            if len(self._known) == known:
                break
        self.rounds, self.modelled_s, self.delivered, self.computed_on_clock, self.on_clock_s = totals
        return attempts

    # ------------------------------------------------------------------------------------------- the rounds

    @property
    def busy(self) -> bool:
        return self._sent is not None

    def begin(self) -> None:
        self._sent = self._closed = None

    def submit(self, values: np.ndarray) -> None:
        self._sent_at = time.perf_counter()
        self._sent = values.copy()  # the engine goes on writing into its own
        self.rounds += 1
        self._closed = self._known.get(self._sent.tobytes())
        # Until the closure is known, the earliest moment at which this round can be over: that of no iteration.
        self._due = self._sent_at + self._seconds(0 if self._closed is None else self._closed[1])

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
        assert self._closed is not None
        (values, iterations), self._sent, self._closed = self._closed, None, None
        took = self._seconds(iterations)
        self.modelled_s += took
        self.delivered += 1
        computed = iterations * self.model.iteration_s(self._begin.size)
        facts = {"device": self.device, "iterations": str(iterations), "compute_s": f"{computed:.9f}"}
        # A copy: engines keep what they are given, and these values are given again.
        return Answer(f"simulated-{self.rounds:06d}", values.copy(), int(np.count_nonzero(values >= 0)), facts)

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

    # ------------------------------------------------------------------------------------------ for the record

    def as_dict(self) -> dict[str, Any]:
        """What the summary says about the device that is not there."""
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

    def _seconds(self, iterations: int) -> float:
        return self.model.round_s(self._begin.size, 1, iterations, self.format)

    def _close(self) -> None:
        assert self._sent is not None
        values = self._sent.copy()
        iterations = int(close_core_step(self._begin, self._end, self._targets, values))
        self._closed = values, iterations
        room = max(1, _MOST_KEPT_BYTES // max(1, 2 * values.nbytes))
        while len(self._known) >= room:
            del self._known[next(iter(self._known))]
        self._known[self._sent.tobytes()] = self._closed
        self._due = self._sent_at + self._seconds(iterations)
