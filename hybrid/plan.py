"""The split: which vertices are the dense core, and in which mode the worker takes part. Reads, decides, explains.

Internal ids fall with degree, so every rule comes down to one number: the core is [0, k).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cpu_engine.algorithms.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from hybrid.schema import Config, CoreConfig

AUTOMATIC = "automatic"
CELL_BYTES = 4  # one float32 of the core's matrix


@dataclass(frozen=True)
class Plan:
    """The decision and its reasons."""

    split: CoreSplit
    core_edges: int
    threshold: int  # smallest degree inside the core
    rule: str
    mode: str
    mode_reason: str

    @property
    def core_size(self) -> int:
        return self.split.core_size

    @property
    def density(self) -> float:
        pairs = self.core_size * (self.core_size - 1)
        return self.core_edges / pairs if pairs else 0.0


def make_plan(graph: Graph, config: Config) -> Plan:
    """Choose core and mode for this graph."""
    mode, mode_reason = choose_mode(config.npu.mode)
    if mode == "off":
        return Plan(CoreSplit(graph), 0, 0, "none (CPU only)", mode, mode_reason)
    degree = graph.degree()
    size, rule = choose_core_size(degree, config.core)
    split = CoreSplit(graph, size)
    if rule == AUTOMATIC:
        while size > 1 and count_core_edges(split) < config.core.min_density * size * (size - 1):
            size //= 2
            split = CoreSplit(graph, size)
        rule += f": within {config.core.max_bytes:,} bytes, density at least {config.core.min_density:g}"
    threshold = int(degree[size - 1]) if size else 0
    if not size:
        mode, mode_reason = "off", "the core is empty"
    return Plan(split, count_core_edges(split), threshold, rule, mode, mode_reason)


def largest_core(core: CoreConfig) -> int:
    """The largest core that the memory bound allows."""
    return math.isqrt(core.max_bytes // CELL_BYTES)


def choose_core_size(degree: np.ndarray, core: CoreConfig) -> tuple[int, str]:
    """The number of core vertices by the configured rule, and the rule in words."""
    n = degree.size
    bound = min(n, largest_core(core))
    if core.threshold is not None:
        wanted, rule = int(np.count_nonzero(degree >= core.threshold)), f"degree at least {core.threshold}"
    elif core.quantile is not None:
        wanted, rule = n - math.ceil(core.quantile * n), f"degree quantile {core.quantile:g}"
    elif core.size is not None:
        wanted, rule = core.size, f"the {core.size} vertices of highest degree"
    else:
        return bound, AUTOMATIC
    if wanted > bound:
        rule += f", cut to {bound} by core.max_bytes or the graph"
    return min(wanted, bound), rule


def count_core_edges(split: CoreSplit) -> int:
    """Edges with both ends in the core."""
    k = split.core_size
    return int(np.sum(split.outside_core.out_begin[:k] - split.all_edges.out_begin[:k]))


def ascend_devices() -> list[str]:
    """The Ascend devices that the driver shows."""
    return sorted(path.name for path in Path("/dev").glob("davinci[0-9]*"))


def choose_mode(mode: str) -> tuple[str, str]:
    """Resolve ``auto``: one BFS leaves an NPU nothing to win, so it only races where a device is idle anyway."""
    if mode != "auto":
        return mode, "as configured"
    if ascend_devices():
        return "race", "auto: an Ascend device is present; racing costs the CPU nothing"
    return "off", "auto: no Ascend device; MindSpore on the CPU would only compete with the engine"
