"""Events and actions of the two state machines: frozen facts, no behaviour.

An event says what happened, in the past tense; an action says what is to be done next.
"""

from __future__ import annotations

from dataclasses import dataclass

# --------------------------------------------------------------------------------------------- events


@dataclass(frozen=True)
class Submit:
    """Coordinator: values are ready to be sent. Ignored unless the state is idle."""

    now_s: float


@dataclass(frozen=True)
class OkSeen:
    """Coordinator: the round's ok.flag exists."""

    round_id: str


@dataclass(frozen=True)
class DataRead:
    """Coordinator: the answer was read and found well formed; ``header_round`` is its `# round` line, if it has one."""

    round_id: str
    header_round: str | None = None


@dataclass(frozen=True)
class DataBad:
    """Coordinator: the answer is missing, torn, malformed or impossible."""

    round_id: str
    reason: str


@dataclass(frozen=True)
class Tick:
    """Coordinator: time passed. ``now_s`` never goes back (a monotonic clock)."""

    now_s: float


@dataclass(frozen=True)
class WorkerReady:
    """Coordinator: the worker says that it has started up."""


@dataclass(frozen=True)
class WorkerLost:
    """Coordinator: the worker is gone, or cannot be reached; ``cause`` is a sentence."""

    cause: str


@dataclass(frozen=True)
class Distrust:
    """Coordinator: a delivered answer turned out to be wrong afterwards (values without a witness)."""

    reason: str


@dataclass(frozen=True)
class Withdraw:
    """Coordinator: the outstanding round is no longer needed; the exchange goes on with the next one."""

    reason: str


@dataclass(frozen=True)
class Stop:
    """Coordinator: the job needs no more rounds."""


@dataclass(frozen=True)
class WriteFailed:
    """Either side: the round (coordinator) or its answer (worker) could not be written."""

    round_id: str
    reason: str


@dataclass(frozen=True)
class RoundSeen:
    """Worker: a round is announced. ``answered``: its ok.flag is there already."""

    round_id: str
    answered: bool = False


@dataclass(frozen=True)
class RoundAbandoned:
    """Worker: the round has a stop.flag, or its directory is gone."""

    round_id: str


@dataclass(frozen=True)
class Loaded:
    """Worker: core and values are in memory."""

    round_id: str


@dataclass(frozen=True)
class LoadFailed:
    """Worker: core or values cannot be read."""

    round_id: str
    reason: str


@dataclass(frozen=True)
class Computed:
    """Worker: the iteration converged."""

    round_id: str


@dataclass(frozen=True)
class ComputeFailed:
    """Worker: the iteration cannot be done (values span too much, device error)."""

    round_id: str
    reason: str


@dataclass(frozen=True)
class DataWritten:
    """Worker: the data file is complete under its final name."""

    round_id: str


@dataclass(frozen=True)
class StopSeen:
    """Worker: the exchange directory has a stop.flag, or is gone."""


CoordinatorEvent = (
    Submit | OkSeen | DataRead | DataBad | Tick | WorkerReady | WorkerLost | Distrust | Withdraw | Stop | WriteFailed
)
WorkerEvent = (
    RoundSeen | RoundAbandoned | Loaded | LoadFailed | Computed | ComputeFailed | DataWritten | WriteFailed | StopSeen
)

# -------------------------------------------------------------------------------------------- actions


@dataclass(frozen=True)
class WriteRound:
    """Coordinator: write the core link and the values; on failure feed ``WriteFailed``."""

    round_id: str


@dataclass(frozen=True)
class ReadData:
    """Coordinator: read and check the answer, then feed ``DataRead`` or ``DataBad``."""

    round_id: str


@dataclass(frozen=True)
class Deliver:
    """Coordinator: merge the answer that was just read."""

    round_id: str


@dataclass(frozen=True)
class Reject:
    """Coordinator: throw the answer away."""

    round_id: str
    reason: str


@dataclass(frozen=True)
class AbandonRound:
    """Coordinator: put a stop.flag into the round, so that no worker bothers."""

    round_id: str
    reason: str


@dataclass(frozen=True)
class GiveUp:
    """Coordinator: go on without the worker (the CPU takes the core back). Always followed by ``WriteStop``."""

    reason: str


@dataclass(frozen=True)
class WriteStop:
    """Coordinator: create the exchange directory's stop.flag."""


@dataclass(frozen=True)
class LoadRound:
    """Worker: read core (unless resident) and values, then feed ``Loaded`` or ``LoadFailed``."""

    round_id: str


@dataclass(frozen=True)
class Compute:
    """Worker: iterate until nothing changes, then feed ``Computed`` or ``ComputeFailed``."""

    round_id: str


@dataclass(frozen=True)
class WriteData:
    """Worker: write the data file, then feed ``DataWritten`` or ``WriteFailed``."""

    round_id: str


@dataclass(frozen=True)
class CreateOk:
    """Worker: create the round's ok.flag."""

    round_id: str


@dataclass(frozen=True)
class SkipRound:
    """Worker: leave the round alone; ``reason`` is for the log."""

    round_id: str
    reason: str


@dataclass(frozen=True)
class Exit:
    """Worker: leave the service loop."""


CoordinatorAction = WriteRound | ReadData | Deliver | Reject | AbandonRound | GiveUp | WriteStop
WorkerAction = LoadRound | Compute | WriteData | CreateOk | SkipRound | Exit
