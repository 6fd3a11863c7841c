"""Devices by name: published figures of Ascend NPUs put into the model, and what ``npu.device: simulated:...`` means.

None of these figures was measured by us, as Tandem was never run on an NPU. Peak rates are taken down to what a large
matrix product usually reaches (``_OF_PEAK``, ``_OF_BANDWIDTH``), and the launch is one assumed value within the
published range, so a prediction from a profile is good for orders of magnitude, not for percents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hybrid.devices.model import DeviceModel

SIMULATED = "simulated:"
DIRECT = "direct"
ORACLE = "oracle"
THIS_MACHINE = "this-machine"

_TERA, _GIB = 1e12, 1 << 30
_OF_PEAK = 0.6  # of the published fp16 peak that a large product reaches
_OF_BANDWIDTH = 0.7  # of the published memory bandwidth
_LAUNCH_S = 20e-6  # published and reported: 10 to 80 us for one eager operation
_SYNC_S = 20e-6  # the host's look whether anything changed, once per iteration
_OPS = 4.0  # an iteration is a product, a comparison, a selection and a reduction
_LINK = 25e9  # PCIe 4.0 x16: 31.5 GB/s on paper
_ASSUMED = (
    f"assumed: {_OF_PEAK:.0%} of the peak and {_OF_BANDWIDTH:.0%} of the bandwidth reached, {_LAUNCH_S * 1e6:.0f} us "
    f"per launch (10 to 80 are reported), PCIe 4.0 x16 at {_LINK / 1e9:.0f} GB/s"
)


def _published(name: str, tflops: float, terabytes: float, gib: int, source: str) -> DeviceModel:
    return DeviceModel(
        name=name,
        kind="model",
        launch_s=_LAUNCH_S,
        flops=_OF_PEAK * tflops * _TERA,
        bytes_per_s=_OF_BANDWIDTH * terabytes * _TERA,
        memory_bytes=gib * _GIB,
        cell_bytes=2,  # fp16: what the cube unit multiplies
        ops_per_iteration=_OPS,
        sync_s=_SYNC_S,
        link_bytes_per_s=_LINK,
        source=f"{source}; {_ASSUMED}",
    )


PROFILES: dict[str, DeviceModel] = {
    model.name: model
    for model in (
        _published(
            "ascend-910", 256, 1.1, 32,
            "Huawei at Hot Chips 2019: 256 TFLOPS fp16 (later documents say 221), four HBM2 stacks, about 1.1 TB/s",
        ),
        _published(
            "910b4", 246, 0.8, 32,
            "figures listed for the 910B4: 246 TFLOPS fp16, 0.8 to 0.96 TB/s depending on the source, 32 GB",
        ),
        _published(
            "910b2", 354, 1.6, 64,
            "figures listed for the 910B2: about 354 TFLOPS fp16, about 1.6 TB/s, 64 GB",
        ),
        _published(
            "910c", 752, 3.2, 128,
            "press and analysts on the 910C: 752 (others: 780) TFLOPS fp16 and 3.2 TB/s over two dies, 128 GB; one "
            "program on one die would have half of each",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Simulation:
    """What ``simulated:NAME`` asks for: a profile, a measured device or a fixed delay, with files or without."""

    name: str
    direct: bool = False
    delay_s: float | None = None

    @property
    def label(self) -> str:
        """The configuration's own word for it."""
        return SIMULATED + self.name + (f":{DIRECT}" if self.direct else "")


def simulation_names() -> list[str]:
    """What may stand after ``simulated:``, for people."""
    return [*PROFILES, THIS_MACHINE, ORACLE, "a delay such as 500us or 2ms"]


def parse_device(device: str) -> Simulation | None:
    """None for a real device; ValueError (its text lists what there is) for a simulated one that does not exist."""
    if not device.startswith(SIMULATED):
        return None
    name, colon, rest = device[len(SIMULATED) :].partition(":")
    if colon and rest != DIRECT:
        raise ValueError(f"after the profile only `:{DIRECT}` may follow")
    if name in PROFILES or name == THIS_MACHINE:
        return Simulation(name, direct=bool(colon))
    delay = 0.0 if name == ORACLE else _delay(name)
    if delay is None:
        raise ValueError(f"there is no such profile; there are {', '.join(simulation_names())}")
    return Simulation(name, direct=bool(colon), delay_s=delay)


def fixed_delay(name: str, delay_s: float) -> DeviceModel:
    """A device whose every round takes exactly this long: the oracle, and the points of a break-even curve."""
    return DeviceModel(
        name=name, kind="model", launch_s=0.0, flops=float("inf"), bytes_per_s=float("inf"), memory_bytes=1 << 62,
        delay_s=delay_s, source="no device: every round takes this long, exchange included",
    )  # fmt: skip


def _delay(text: str) -> float | None:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s)", text)
    return None if found is None else float(found[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[found[2]]
