"""From an exception to what the user is told and the exit code; the same for a command and for one rank of many."""

from __future__ import annotations

from cpu_engine.comm.errors import CommError
from cpu_engine.errors import InputError
from exchange.errors import ExchangeError
from hybrid.errors import (
    EXIT_CONFIG,
    EXIT_ENVIRONMENT,
    EXIT_INPUT,
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_NOT_CERTIFIED,
    ConfigError,
    EnvironmentProblem,
    NotCertified,
)

DEFECT = "this is a defect of Tandem. Fix: report it with the lines above"


def explain_failure(error: BaseException) -> tuple[str, int]:
    """One line that ends with the fix, and the exit code. EXIT_INTERNAL: show the traceback as well."""
    match error:
        case ConfigError():
            return str(error), EXIT_CONFIG
        case EnvironmentProblem() | ExchangeError() | CommError():
            return str(error), EXIT_ENVIRONMENT
        case NotCertified():
            return str(error), EXIT_NOT_CERTIFIED
        case InputError():
            return str(error), EXIT_INPUT
        case KeyboardInterrupt():
            return "interrupted; everything was stopped", EXIT_INTERRUPTED
        case MemoryError():
            return "not enough memory. Fix: use a smaller graph or a machine with more", EXIT_ENVIRONMENT
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            return f"{place}{error.strerror}. Fix: check permissions and free space there", EXIT_ENVIRONMENT
        case _ if type(error).__module__.startswith("mpi4py"):
            reason = f"MPI failed ({error}): most likely another rank or the network is gone"
            return f"{reason}. Fix: look for the first line that names a rank", EXIT_ENVIRONMENT
        case _:
            return DEFECT, EXIT_INTERNAL
