"""Which device computes, and why.

Invariant: ``choose_device`` returns only after one small operation has really run on the device that it names.
``mindspore.set_device`` cannot be undone in a process. So a device that was chosen and then fails to come up has an
error of its own (``DeviceBroken``): the caller has to start the process anew to use another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import mindspore as ms
import numpy as np

from npu_engine.errors import DeviceBroken, DeviceError

Requested = Literal["auto", "cpu", "ascend"]

ASCEND_FIX = (
    "check `npu-smi info`, install the Ascend driver and a CANN version that this MindSpore accepts, `source` CANN's "
    "set_env.sh in the shell that starts the worker; or run with --device cpu (or auto)"
)


@dataclass(frozen=True)
class Device:
    """The device in use. ``label`` is what the coordinator and the report show: `CPU`, `Ascend:0`."""

    kind: Literal["CPU", "Ascend"]
    id: int
    why: str

    @property
    def label(self) -> str:
        return "CPU" if self.kind == "CPU" else f"Ascend:{self.id}"


def choose_device(requested: Requested, device_id: int = 0, *, threads: int = 1) -> Device:
    """Take the requested device; ``auto`` is Ascend where one is found, else the CPU.

    In auto mode a broken Ascend device raises ``DeviceBroken`` as well; the caller then starts again with ``cpu``.
    """
    if requested == "cpu":
        return _use_cpu("asked for with --device cpu", threads)
    count, obstacle = count_ascend()
    if requested == "auto" and count == 0:
        return _use_cpu(f"no Ascend device: {obstacle}", threads)
    if count == 0:
        raise DeviceError(f"no Ascend device: {obstacle}; found: CPU", ASCEND_FIX)
    if not 0 <= device_id < count:
        raise DeviceError(
            f"no Ascend device {device_id}: found {count}, numbered 0 to {count - 1}",
            f"give --device-id a number from 0 to {count - 1}",
        )
    how = "asked for with --device ascend" if requested == "ascend" else f"{count} Ascend device(s) found"
    return _use_ascend(device_id, how)


def count_ascend() -> tuple[int, str]:
    """How many Ascend devices MindSpore sees, and when there is none, why."""
    if not ms.device_context.ascend.is_available():
        return 0, f"MindSpore {ms.__version__} did not find CANN, so it has no Ascend backend here"
    try:
        count = int(ms.device_context.ascend.device_count())
    except RuntimeError as error:
        return 0, f"MindSpore cannot count the devices ({first_sentence(error)})"
    return count, "" if count else "CANN is installed, but it reports no device"


def _use_cpu(why: str, threads: int) -> Device:
    ms.set_device("CPU")
    # The default queue between Python and the kernels spins: milliseconds per operation on a busy machine. On the
    # CPU there is nothing to overlap with, so run each operation at once.
    ms.runtime.launch_blocking()
    # The default is 25 kernel threads, which would take the cores that the CPU engine is working on.
    ms.device_context.cpu.op_tuning.threads_num(threads)
    _probe()
    return Device("CPU", 0, why)


def _use_ascend(device_id: int, why: str) -> Device:
    try:
        ms.set_device("Ascend", device_id)
        _probe()
    except Exception as error:  # MindSpore raises RuntimeError, ValueError or TypeError here, depending on the layer
        raise DeviceBroken(f"Ascend device {device_id} does not start: {first_sentence(error)}", ASCEND_FIX) from error
    return Device("Ascend", device_id, why)


def _probe() -> None:
    """Run one small operation: only this initialises the device."""
    answer = (ms.Tensor(np.array([1.0, 2.0], np.float32)) + 1).asnumpy()
    if answer.tolist() != [2.0, 3.0]:
        raise RuntimeError(f"1 + 1, 2 + 1 gave {answer.tolist()}")


def first_sentence(error: Exception) -> str:
    """MindSpore's errors go on for a page; the beginning says what is wrong."""
    lines = str(error).strip().splitlines()
    return lines[0].split(". ")[0].rstrip(".") if lines else type(error).__name__
