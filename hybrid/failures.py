"""From an exception to a message for the user and the exit code; the same for a command and for one rank of many."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil

from cpu_engine.comm.errors import CommError
from cpu_engine.errors import InputError, printable
from exchange.errors import ExchangeError
from exchange.escape import printable_lines
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
_CODES: dict[type, int] = {  # the nearest class of an error counts
    ConfigError: EXIT_CONFIG,
    InputError: EXIT_INPUT,
    EnvironmentProblem: EXIT_ENVIRONMENT,
    ExchangeError: EXIT_ENVIRONMENT,
    CommError: EXIT_ENVIRONMENT,
    OSError: EXIT_ENVIRONMENT,
    MemoryError: EXIT_ENVIRONMENT,
    NotCertified: EXIT_NOT_CERTIFIED,
    KeyboardInterrupt: EXIT_INTERRUPTED,
}


def explain_failure(error: BaseException) -> tuple[str, int]:
    """One line that ends with the fix, and the exit code. EXIT_INTERNAL: show the traceback as well."""
    if type(error).__module__.startswith("mpi4py"):
        reason = f"MPI failed ({error}): most likely another rank or the network is gone"
        return printable_lines(f"{reason}. Fix: look for the first line that names a rank"), EXIT_ENVIRONMENT
    code = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), EXIT_INTERNAL)
    return printable_lines(DEFECT if code == EXIT_INTERNAL else _message(error)), code


def _message(error: BaseException) -> str:
    match error:
        case KeyboardInterrupt():
            return "interrupted; everything was stopped"
        case MemoryError():
            return "not enough memory. Fix: use a smaller graph or a machine with more"
        case OSError():
            return _explain_os_error(error)
        case _:
            return str(error)


def _explain_os_error(error: OSError) -> str:
    """What failed, where, and how much room is left if that was the reason; numpy's errors have no code and no file."""
    place = f"{error.filename}: " if error.filename else ""
    reason = error.strerror or str(error) or type(error).__name__
    full = error.errno in (errno.ENOSPC, errno.EDQUOT) or "written" in reason
    fix = "check permissions and free space there"
    if full:
        folder = os.path.dirname(os.path.abspath(error.filename)) if error.filename else os.getcwd()
        with contextlib.suppress(OSError):
            reason += f" ({shutil.disk_usage(folder).free:,} bytes are free in {folder})"
        fix = "make room there, or name another folder (output, graph.cache_dir, TMPDIR)"
    return printable(f"{place}{reason}. Fix: {fix}")
