"""GAP's reference programs, if they are built on this machine: their input, their command line, what they print.

Invariant: only what the program itself reports on its clock counts as its time. It prints seconds with five digits
behind the point, so times below about a millisecond are coarse.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.contest.process import thread_settings
from benchmarks.contest.rounds import ContestantFailed, Finding, Root, Turn
from benchmarks.machine.memory import peak_bytes
from benchmarks.peers.adapter import Rows
from hybrid.errors import EnvironmentProblem

_WATCH_INTERVAL_S = 0.005
_TIME = re.compile(r"^(Generate|Read|Build|Trial|Average|Relabel) Time:\s+([0-9.]+)$", re.MULTILINE)
_TREE = re.compile(
    r"^(?:BFS Tree has (\d+) nodes and \d+ edges|SSSP Tree reaches (\d+) nodes|There are (\d+) components"
    r"|(\d+) triangles)$",
    re.MULTILINE,
)
_CHECK = re.compile(r"^Verification:\s+(\w+)$", re.MULTILINE)
_SIZE = re.compile(r"^Graph has (\d+) nodes and (\d+) (undirected|directed) edges", re.MULTILINE)


@dataclass(frozen=True)
class GapReport:
    """What one run of a GAP program said. Times in seconds; absent lines are None or empty."""

    trials: tuple[float, ...]
    read: float | None
    build: float | None
    generate: float | None
    reached: int | None
    verified: tuple[bool, ...]
    vertices: int | None
    edges: int | None  # undirected ones counted once


@dataclass(frozen=True)
class GapRun:
    """A finished program: what it said, and the most memory it held."""

    report: GapReport
    peak_bytes: int | None


def parse_report(text: str) -> GapReport:
    """Read the output of a GAP program; lines of no interest to us are passed over."""
    times: dict[str, list[float]] = {}
    for name, value in _TIME.findall(text):
        times.setdefault(name, []).append(float(value))
    tree, size = _TREE.search(text), _SIZE.search(text)
    return GapReport(
        trials=tuple(times.get("Trial", [])),
        read=times.get("Read", [None])[0],
        build=times.get("Build", [None])[0],
        generate=times.get("Generate", [None])[0],
        reached=int(next(filter(None, tree.groups()))) if tree else None,
        verified=tuple(word == "PASS" for word in _CHECK.findall(text)),
        vertices=int(size[1]) if size else None,
        edges=int(size[2]) if size else None,
    )


def find_program(folder: str, name: str = "bfs") -> Path:
    """The built program in the folder that the user named."""
    program = Path(folder).expanduser() / name
    if not os.access(program, os.X_OK) or not program.is_file():
        raise EnvironmentProblem(
            f"there is no program '{name}' to run", path=folder, fix="build GAP (`make`) and name its folder with --gap"
        )
    return program


def write_sg(rows: Rows, path: Path, *, weighted: bool = False) -> None:
    """Write finished rows as GAP's serialised graph. Nothing is sorted: the rows already are as the format wants them.

    docs/reference/formats.md describes the layout; the general writer of cpu_engine starts from an unsorted edge list.
    """
    with path.open("wb") as file:
        file.write(struct.pack("<?qq", rows.directed, rows.out_targets.size, rows.n))
        sides = [
            (rows.out_offsets, rows.out_targets, rows.weights),
            (rows.in_offsets, rows.in_sources, rows.in_weights),
        ]
        for offsets, targets, weights in sides if rows.directed else sides[:1]:
            np.ascontiguousarray(offsets, "<i8").tofile(file)
            if weighted:
                targets = np.stack((targets, weights()), axis=1)
            np.ascontiguousarray(targets, "<i4").tofile(file)


def run_gap(program: Path, arguments: list[str], threads: int, time_limit_s: float, *, watch: bool = False) -> GapRun:
    """Run the program to its end; ContestantFailed if it fails or takes too long. ``watch``: follow its memory."""
    process = subprocess.Popen(
        [str(program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=thread_settings(threads)
    )
    late = threading.Timer(time_limit_s, process.kill)
    watcher = _PeakWatcher(process.pid) if watch else None
    late.start()
    try:
        output, _ = process.communicate()
    finally:
        too_late = not late.is_alive()
        late.cancel()
        late.join()
        peak = watcher.stop() if watcher else None
        if process.poll() is None:
            process.kill()
            process.communicate()
    text = output.decode(errors="replace")
    if process.returncode:
        if too_late:
            raise ContestantFailed(f"it took over {time_limit_s:g} s (--time-limit)")
        last = text.strip().splitlines()[-1:] or ["it said nothing"]
        raise ContestantFailed(f"it ended with code {process.returncode}: {last[0][:200]}")
    return GapRun(parse_report(text), peak)


class _PeakWatcher:
    """Looks at another process's peak now and then. The kernel's account at its end would include our own memory."""

    def __init__(self, pid: int) -> None:
        self._pid, self._peak, self._over = pid, 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(_WATCH_INTERVAL_S):
            self._peak = peak_bytes(self._pid) or self._peak

    def stop(self) -> int | None:
        self._over.set()
        self._thread.join()
        return self._peak or None


class GapContestant:
    """A GAP program on a .sg file: one process per turn, which loads the graph off the clock and runs the trials on it.

    ``own`` are arguments of its own. Of a program that does not print the vertices reached (not ``reports``),
    the verifier is believed.
    """

    def __init__(
        self,
        name: str,
        program: Path,
        graph: Path,
        ids: str,
        threads: int,
        expected: dict[Root, Finding],
        limit_s: float,
        *,
        own: tuple[str, ...] = (),
        rooted: bool = True,
        reports: bool = True,
    ) -> None:
        self.name, self.ids, self.ours = name, ids, False
        self._own, self._rooted, self._reports = own, rooted, reports
        self._program, self._graph, self._threads = program, graph, threads
        self._expected, self._limit_s = expected, limit_s
        self._verified: set[Root] = set()
        self.load_seconds: float | None = None
        self.peak_bytes: int | None = None

    def turn(self, root: Root, trials: int) -> Turn:
        number = root.internal if self.ids == "internal" else root.position
        start = ["-r", str(number)] if self._rooted else []
        arguments = ["-f", str(self._graph), *start, "-n", str(trials), *self._own, "-a"]
        if root not in self._verified:
            arguments.append("-v")  # its own verifier, once per root
        first = not self._verified
        run = run_gap(self._program, arguments, self._threads, self._limit_s, watch=first)
        report = run.report
        if first:
            self.load_seconds, self.peak_bytes = report.read, run.peak_bytes
        self._verified.add(root)
        if not all(report.verified):
            raise ContestantFailed(f"its own verification fails for root {root.user_id}")
        if (self._reports and report.reached is None) or len(report.trials) != trials:
            raise ContestantFailed(f"its output is not what GAP's {self._program.name} prints")
        reached = report.reached if self._reports else None
        return Turn(report.trials, self._expected[root] if reached is None else Finding(reached))

    def expected(self, root: Root) -> Finding:
        return self._expected[root]
