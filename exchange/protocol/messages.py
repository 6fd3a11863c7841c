"""Events and actions of the two state machines: frozen facts, no behaviour.

An event says what happened, in the past tense; an action says what is to be done next.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bare:
    """Anything that its name says in full."""


@dataclass(frozen=True)
class Timed:
    """Anything that comes with the time; ``now_s`` never goes back (a monotonic clock)."""

    now_s: float


@dataclass(frozen=True)
class Reasoned:
    """Anything that comes with a reason, a sentence."""

    reason: str


@dataclass(frozen=True)
class OfRound:
    """Anything about one round."""

    round_id: str


@dataclass(frozen=True)
class RoundProblem(OfRound):
    """... that comes with a reason, a sentence."""

    reason: str


# --------------------------------------------------------------------------------------------- events


class Submit(Timed):
    """Coordinator: values are ready to be sent. Ignored unless the state is idle."""


class OkSeen(OfRound):
    """Coordinator: the round's ok.flag exists."""


@dataclass(frozen=True)
class DataRead(OfRound):
    """Coordinator: the answer was read and found well formed; ``header_round`` is its `# round` line, if it has one."""

    header_round: str | None = None


class DataBad(RoundProblem):
    """Coordinator: the answer is missing, torn, malformed or impossible."""


class Tick(Timed):
    """Coordinator: time passed."""


class WorkerReady(Bare):
    """Coordinator: the worker says that it has started up."""


@dataclass(frozen=True)
class WorkerLost:
    """Coordinator: the worker is gone, or cannot be reached; ``cause`` is a sentence."""

    cause: str


class Distrust(Reasoned):
    """Coordinator: a delivered answer turned out to be wrong afterwards (values without a witness)."""


class Withdraw(Reasoned):
    """Coordinator: the outstanding round is no longer needed; the exchange goes on with the next one."""


class Stop(Bare):
    """Coordinator: the job needs no more rounds."""


class WriteFailed(RoundProblem):
    """Either side: the round (coordinator) or its answer (worker) could not be written."""


@dataclass(frozen=True)
class RoundSeen(OfRound):
    """Worker: a round is announced. ``answered``: its ok.flag is there already."""

    answered: bool = False


class RoundAbandoned(OfRound):
    """Worker: the round has a stop.flag, or its directory is gone."""


class Loaded(OfRound):
    """Worker: core and values are in memory."""


class LoadFailed(RoundProblem):
    """Worker: core or values cannot be read."""


class Computed(OfRound):
    """Worker: the iteration converged."""


class ComputeFailed(RoundProblem):
    """Worker: the iteration cannot be done (values span too much, device error)."""


class DataWritten(OfRound):
    """Worker: the data file is complete under its final name."""


class StopSeen(Bare):
    """Worker: the exchange directory has a stop.flag, or is gone."""


CoordinatorEvent = (
    Submit | OkSeen | DataRead | DataBad | Tick | WorkerReady | WorkerLost | Distrust | Withdraw | Stop | WriteFailed
)
WorkerEvent = (
    RoundSeen | RoundAbandoned | Loaded | LoadFailed | Computed | ComputeFailed | DataWritten | WriteFailed | StopSeen
)

# -------------------------------------------------------------------------------------------- actions


class WriteRound(OfRound):
    """Coordinator: write the core link and the values; on failure feed ``WriteFailed``."""


class ReadData(OfRound):
    """Coordinator: read and check the answer, then feed ``DataRead`` or ``DataBad``."""


class Deliver(OfRound):
    """Coordinator: merge the answer that was just read."""


class Reject(RoundProblem):
    """Coordinator: throw the answer away."""


class AbandonRound(RoundProblem):
    """Coordinator: put a stop.flag into the round, so that no worker starts on it."""


class GiveUp(Reasoned):
    """Coordinator: go on without the worker (the CPU takes the core back). Always followed by ``WriteStop``."""


class WriteStop(Bare):
    """Coordinator: create the exchange directory's stop.flag."""


class LoadRound(OfRound):
    """Worker: read core (unless resident) and values, then feed ``Loaded`` or ``LoadFailed``."""


class Compute(OfRound):
    """Worker: iterate until nothing changes, then feed ``Computed`` or ``ComputeFailed``."""


class WriteData(OfRound):
    """Worker: write the data file, then feed ``DataWritten`` or ``WriteFailed``."""


class CreateOk(OfRound):
    """Worker: create the round's ok.flag."""


class SkipRound(RoundProblem):
    """Worker: leave the round alone; ``reason`` is for the log."""


class Exit(Bare):
    """Worker: leave the service loop."""


CoordinatorAction = WriteRound | ReadData | Deliver | Reject | AbandonRound | GiveUp | WriteStop
WorkerAction = LoadRound | Compute | WriteData | CreateOk | SkipRound | Exit
