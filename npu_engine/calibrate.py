"""``python -m npu_engine --calibrate``: how fast this device launches and multiplies, as JSON on stdout.

Measures through the same MindSpore calls as the programs: a resident 0/1 matrix times one vector or a batch of them,
until the result is back on the host. Invariant: nothing is extrapolated here; what was not measured is not in the list.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

from npu_engine.device import Device

SIZES = (256, 1024, 4096)
BATCHES = (1, 16, 64)
_FEWEST, _MOST = 5, 200  # repeats of one measurement
_SECONDS_EACH = 0.25


def calibrate(device: Device) -> dict[str, object]:
    """Launch latency, products by size and batch, memory; everything in seconds and bytes."""
    half = device.kind == "Ascend"  # the cube unit multiplies fp16; on the CPU that is slow
    dtype = ms.float16 if half else ms.float32
    one = Tensor(np.ones(8, np.float32)).astype(dtype)
    launch = _measure(lambda: (one + one).asnumpy())
    random = np.random.default_rng(1)
    products = []
    for k in SIZES:
        matrix = Tensor((random.random((k, k)) < 0.2).astype(np.float32)).astype(dtype)
        for batch in BATCHES:
            vectors = Tensor((random.random((k, batch)) < 0.5).astype(np.float32)).astype(dtype)
            found = _measure(partial(_multiply, matrix, vectors))
            products.append({"k": k, "batch": batch, **found})
    return {
        "device": device.label,
        "why": device.why,
        "mindspore": str(ms.__version__),
        "dtype": "float16" if half else "float32",
        "cell_bytes": 2 if half else 4,
        "memory_bytes": _memory_bytes(device),
        "launch": launch,
        "products": products,
    }


def _multiply(matrix: Tensor, vectors: Tensor) -> object:
    return ops.matmul(matrix, vectors).asnumpy()


def _measure(work: Callable[[], object]) -> dict[str, float | int]:
    """Best and median of some calls, after one that loads whatever must be loaded."""
    work()
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < _FEWEST or (len(times) < _MOST and time.perf_counter() - began < _SECONDS_EACH):
        t0 = time.perf_counter()
        work()
        times.append(time.perf_counter() - t0)
    return {"seconds": min(times), "median": statistics.median(times), "repeats": len(times)}


def _memory_bytes(device: Device) -> int:
    """What the device has in all; 0 if the system does not say."""
    if device.kind != "Ascend":
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return int(ms.hal.get_device_properties(device.id).total_memory)
    except (RuntimeError, ValueError, AttributeError):
        return 0
