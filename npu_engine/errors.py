"""Why a worker does not start: exit code, reason and fix. Kept apart so that it can be imported before MindSpore."""

from __future__ import annotations

EXIT_STOPPED = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NO_MINDSPORE = 3
EXIT_NO_DEVICE = 4
EXIT_NO_EXCHANGE = 5


class StartError(Exception):
    """The worker cannot start."""

    code = EXIT_FAILED

    def __init__(self, reason: str, fix: str) -> None:
        self.reason, self.fix = reason, fix
        super().__init__(f"{reason}. Fix: {fix}")


class MindSporeMissing(StartError):
    """MindSpore cannot be imported."""

    code = EXIT_NO_MINDSPORE


class DeviceError(StartError):
    """The requested device cannot be used."""

    code = EXIT_NO_DEVICE


class DeviceBroken(DeviceError):
    """The device is there, was chosen, and failed: this process can use no other one any more."""


class ExchangeMissing(StartError):
    """The exchange directory cannot be used."""

    code = EXIT_NO_EXCHANGE
