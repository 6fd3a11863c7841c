"""From an exception to what the user is told and the exit code; the same for a command and for one rank of many."""

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


def explain_failure(error: BaseException) -> tuple[str, int]:
    """One line that ends with the fix, and the exit code. EXIT_INTERNAL: show the traceback as well."""
    told, code = _explain(error)
    return printable_lines(told), code


def _explain(error: BaseException) -> tuple[str, int]:
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
            return _explain_os_error(error), EXIT_ENVIRONMENT
        case _ if type(error).__module__.startswith("mpi4py"):
            reason = f"MPI failed ({error}): most likely another rank or the network is gone"
            return f"{reason}. Fix: look for the first line that names a rank", EXIT_ENVIRONMENT
        case _:
            return DEFECT, EXIT_INTERNAL


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
