"""What ends a command, and with which exit code. Every message ends with the fix."""

from __future__ import annotations

from cpu_engine.errors import ExplainedError, InputError

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
