"""``bench machine``: how fast this machine moves bytes - read, copied, gathered at random - from each part of memory.

A BFS is limited by such movements; docs/explanation/performance.md relates its bytes to these figures.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np

from benchmarks.contest.workload import set_threads
from benchmarks.machine.bandwidth import copy_step, fill_step, gather_step, scatter_order_step, sum_step
from benchmarks.output import Report, memory_text
from benchmarks.plot import Bar, draw_bars
from cpu_engine.graph.memory import require_bytes
from hybrid.charts.units import plural
from hybrid.devices.machine_facts import cache_sizes, cpu_count
from hybrid.terminal import progress, rate, table

_MIB = 1 << 20
_LEAST_SECONDS = 0.02  # a measurement repeats its loop until it takes about this long
_MOST_GATHERED = 1 << 22
_GATHERED = 4  # bytes of one gathered value: a level, or a vertex id
KINDS = ("read", "copy", "gather")


def execute(options: argparse.Namespace) -> Report:
    counts = sorted(set(options.threads or (1, cpu_count())))
    set_threads(counts[-1])
    sizes = array_sizes(cache_sizes(), options.largest)
    require_bytes(2 * sizes[-1][1] + sizes[-1][1], "measuring memory", "name a smaller --largest")
    rows = []
    with progress("measuring", "size") as bar:
        for done, (place, size) in enumerate(sizes):
            bar(done, len(sizes))
            rows += _measure(place, size, counts, options.repeats)
    report = Report("machine", {"bandwidth": rows})
    headings = ["where", "array", "threads", "read", "copy", "gather", "values/s", "ns per value and thread"]
    report.lines += [table(headings, [_cells(row) for row in rows]), ""]
    report.lines += [
        "bytes per second; copy counts bytes read and written, gather the 4 bytes it wanted at each random place"
    ]
    for kind in KINDS:
        bars = [
            Bar(f"{row['where']}, {plural(row['threads'], 'thread')}", row[f"{kind}_bytes_per_second"] / 1e9,
                f"{row[f'{kind}_bytes_per_second'] / 1e9:.3g} GB/s")
            for row in rows
        ]  # fmt: skip
        report.charts.append(draw_bars(kind, "GB/s", bars, unit=" GB/s"))
    return report


def array_sizes(caches: dict[int, int], largest_mib: int | None) -> list[tuple[str, int]]:
    """(where, bytes): half of each cache from the second level on, and an array that no cache holds."""
    sizes = [(f"L{level}", max(_MIB // 4, size // 2)) for level, size in sorted(caches.items()) if level >= 2]
    last = max([size for _, size in sizes], default=16 * _MIB)
    beyond = largest_mib * _MIB if largest_mib else max(8 * last, 256 * _MIB)
    return [(where, size) for where, size in sizes if size < beyond] + [("memory", beyond)]


def _measure(place: str, size: int, counts: list[int], repeats: int) -> list[dict[str, Any]]:
    """All kinds at all thread counts. A cache that each core has is measured with an array of its size per thread."""
    rows = []
    for threads in counts:
        numba.set_num_threads(threads)
        own = threads if place == "L2" else 1
        values = np.empty(own * size // 8, np.int64)
        target = np.empty_like(values)
        small = values.view(np.int32)
        order = np.empty(min(small.size // 4, _MOST_GATHERED), np.int32)
        fill_step(values, threads)
        fill_step(target, threads)
        scatter_order_step(order, small.size)
        moved: dict[str, tuple[Callable[[int], object], int]] = {
            "read": (partial(sum_step, values, threads), values.nbytes),
            # half of the size each: both arrays together fill it
            "copy": (
                partial(copy_step, values[: values.size // 2], target[: values.size // 2], threads),
                values.nbytes,
            ),
            "gather": (partial(gather_step, small, order, threads), order.size * _GATHERED),
        }
        row: dict[str, Any] = {"where": place, "bytes": size, "threads": threads}
        for kind, (work, count) in moved.items():
            row[f"{kind}_bytes_per_second"] = count / _best_seconds(work, repeats)
        rows.append(row)
    return rows


def _best_seconds(work: Callable[[int], object], repeats: int) -> float:
    """Seconds of one round: the fastest of several measurements, each of enough rounds for the clock."""
    work(1)
    rounds = 1
    while (fastest := min(_seconds(work, rounds) for _ in range(3))) < _LEAST_SECONDS:
        rounds *= 4
    return min([fastest, *(_seconds(work, rounds) for _ in range(repeats))]) / rounds


def _seconds(work: Callable[[int], object], rounds: int) -> float:
    began = time.perf_counter()
    work(rounds)
    return time.perf_counter() - began


def _cells(row: dict[str, Any]) -> list[str]:
    speeds = [row[f"{kind}_bytes_per_second"] for kind in KINDS]
    values = speeds[2] / _GATHERED
    return [
        row["where"],
        memory_text(row["bytes"]),
        str(row["threads"]),
        *(f"{rate(speed)}B" for speed in speeds),
        rate(values),
        f"{1e9 * row['threads'] / values:.2f}",
    ]
