"""What ends a command: the classes of errors, the message for the user (it ends with the fix) and the exit code."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil

from cpu_engine.comm.errors import CommError
from cpu_engine.errors import ExplainedError, InputError, printable
from exchange.errors import ExchangeError
from exchange.escape import printable_lines

EXIT_OK = 0
EXIT_INTERNAL = 1  # a defect of Tandem itself
EXIT_CONFIG = 2  # command line or configuration
EXIT_INPUT = 3  # graph file, source vertex
EXIT_ENVIRONMENT = 4  # a directory that cannot be used, a missing package, no memory
EXIT_NOT_CERTIFIED = 5  # a result failed its certificate
EXIT_INTERRUPTED = 130  # Ctrl-C or SIGTERM

EXIT_CODES = {
    EXIT_OK: "done; every result certified",
    EXIT_INTERNAL: "a defect of Tandem itself",
    EXIT_CONFIG: "the command line or the configuration is wrong",
    EXIT_INPUT: "the graph or the source vertex cannot be used",
    EXIT_ENVIRONMENT: "the machine: a folder that cannot be used, a missing package, too little memory",
    EXIT_NOT_CERTIFIED: "a result failed its certificate",
    EXIT_INTERRUPTED: "interrupted; everything was stopped and nothing half-written is left",
}


class ConfigError(InputError):
    """A configuration that cannot be used."""


class EnvironmentProblem(ExplainedError):
    """Something outside the graph and the configuration that stops the job."""


class NotCertified(ExplainedError):
    """A result that could not be proven right: never handed out as a number."""


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
