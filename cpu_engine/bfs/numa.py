"""The machine's memory nodes, what remote memory costs on it, and whether a copy per node pays.

Owns nothing but measurements: the rule is a pure function of numbers, so that any machine can be tried on any other.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cpu_engine.bfs.strategies.kernels.pull_numa import read_at_random_step

NODES = Path("/sys/devices/system/node")
READS = 1 << 16  # about a millisecond
ASSUMED_DISTANCE = 2.0  # remote over local, where the firmware does not say: the usual two-socket machine


@dataclass(frozen=True)
class MemoryCost:
    """Nanoseconds: a random read here, what it costs more on another node, and a byte copied."""

    local_read_ns: float
    remote_extra_ns: float
    copy_byte_ns: float


def count_nodes(folder: Path = NODES) -> int:
    """The memory nodes that have processors; 1 where the system does not say."""
    return max(1, sum(1 for one in folder.glob("node[0-9]*/cpulist") if one.read_text().strip()))


def remote_distance(folder: Path = NODES) -> float:
    """How much farther the farthest node is than the own one, by the firmware's table."""
    rows = [[int(word) for word in one.read_text().split()] for one in folder.glob("node[0-9]*/distance")]
    farthest = max((max(row) / min(row) for row in rows if row), default=1.0)
    return farthest if farthest > 1 else ASSUMED_DISTANCE


def measure_memory(words: np.ndarray, distance: float | None = None) -> MemoryCost:
    """Time random reads and a copy of a bitmap like ``words``; best of three, so that a disturbance does not count."""
    read_at_random_step(words, 1)
    spare = np.empty_like(words)
    read_s = min(_seconds(lambda: read_at_random_step(words, READS)) for _ in range(3))
    copy_s = min(_seconds(lambda: np.copyto(spare, words)) for _ in range(3))
    local_ns = read_s * 1e9 / READS
    farther = remote_distance() if distance is None else distance
    return MemoryCost(local_ns, local_ns * (farther - 1), copy_s * 1e9 / max(1, words.nbytes))


def copy_pays(looks: float, bitmap_bytes: int, nodes: int, cost: MemoryCost) -> bool:
    """Whether the remote random reads saved are worth the bytes copied.

    Of ``looks`` reads, all but one node's share would be remote; a copy per node makes all of them local.
    """
    saved_ns = looks * (1 - 1 / nodes) * cost.remote_extra_ns
    return saved_ns > nodes * bitmap_bytes * cost.copy_byte_ns


def _seconds(work) -> float:
    t0 = time.perf_counter()
    work()
    return time.perf_counter() - t0
