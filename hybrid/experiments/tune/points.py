"""The points of a tuning sweep: what was set, what was measured, and the journal that survives an interruption.

Invariant: a line of points.jsonl is a finished point; one that was torn or damaged is measured again, never guessed.
Points of one folder belong to one configuration, graph and machine: anything else is refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, Any

import numpy as np

from hybrid.devices.profiles import SIMULATED
from hybrid.errors import ConfigError, EnvironmentProblem
from hybrid.experiments.measured import Measured
from hybrid.results.atomic_write import atomic_write
from hybrid.terminal import note

POINTS_NAME, SWEEP_NAME = "points.jsonl", "sweep.json"
FORMAT_MARK, FORMAT_VERSION = "tandem-tune", 1
NO_DEVICE = "none"  # of the point without a core: the CPU against itself, which shows the noise


@dataclass(frozen=True, order=True)
class Setting:
    """What a point sets. In batches the engine is the bit-parallel one, whatever ``engine`` a job has otherwise."""

    engine: str
    device: str
    mode: str
    k: int
    batch: int = 1

    @property
    def simulated(self) -> bool:
        return self.device.startswith(SIMULATED)

    def describe(self) -> str:
        where = "no core" if self.k == 0 else f"{self.mode} at k = {self.k:,} with {self.device}"
        return f"{self.engine}, {where}"


def many_engine(batch: int) -> str:
    """The engine's name in a batch of this size."""
    return f"{batch} at once"


@dataclass(frozen=True)
class Point(Measured):
    """One setting, measured; times are [repeat][source] in seconds. A failure has no times."""

    setting: Setting
    threshold: int  # smallest degree inside the core
    inside: int  # edges inside the core
    part: float  # of all edges that are inside
    density: float
    ran_on: str = ""  # what the device called itself
    cpu_only: tuple[tuple[float, ...], ...] = ()
    hybrid: tuple[tuple[float, ...], ...] = ()
    rounds_sent: float = 0.0  # this and what follows: mean per search
    rounds_merged: float = 0.0
    values_adopted: float = 0.0
    values_received: float = 0.0
    edges_cpu_only: float = 0.0
    edges_hybrid: float = 0.0
    on_clock_s: float = 0.0  # a simulated device held the search up for so long
    certified: int = 0  # searches, both ways
    predicted_cpu_only_s: float | None = None  # of all sources, as the measured ones
    predicted_s: float | None = None
    failure: str = ""
    measured_at: str = ""

    @property
    def good(self) -> bool:
        return not self.failure

    @property
    def pays(self) -> bool:
        return self.setting.k > 0 and super().pays


def worst(times: Iterable[Iterable[float]]) -> float:
    """The slowest repeat over all sources."""
    return float(np.sum(np.array(list(times)), axis=1).max())


def point_from_json(data: dict[str, Any]) -> Point:
    """Back from a line; ValueError, TypeError or KeyError if it is not one of ours."""
    known = {one.name for one in fields(Point)}
    if set(data) != known:
        raise ValueError("not the fields of a point")
    times = {name: tuple(tuple(map(float, row)) for row in data[name]) for name in ("cpu_only", "hybrid")}
    point = Point(**{**data, "setting": Setting(**data["setting"]), **times})
    shape = np.array(point.cpu_only).shape
    if not point.failure and (len(shape) != 2 or 0 in shape or np.array(point.hybrid).shape != shape):
        raise ValueError("times are missing")
    return point


@dataclass
class Journal:
    """The folder of a sweep; one process at a time holds it."""

    folder: Path
    points: dict[Setting, Point] = field(default_factory=dict)
    _file: IO[str] | None = None

    def open(self, identity: dict[str, Any]) -> None:
        """Take the folder: a new one, or one whose points belong to the same ``identity``."""
        try:
            new = not self.folder.exists() or not any(self.folder.iterdir())
            if not new:
                self._require_same(identity)
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = (self.folder / POINTS_NAME).open("a+", encoding="utf-8", errors="replace")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if new:
                marked = {"format": FORMAT_MARK, "format_version": FORMAT_VERSION, **identity}
                atomic_write(self.folder / SWEEP_NAME, json.dumps(marked, indent=1) + "\n")
            self._read()
        except BlockingIOError:
            self.close()
            raise EnvironmentProblem(
                "another sweep is at work in this folder", path=self.folder, fix="wait for it, or choose another"
            ) from None
        except OSError as error:
            self.close()
            raise EnvironmentProblem(
                f"the folder cannot be used: {error.strerror}", path=self.folder, fix="choose another with --output DIR"
            ) from error

    def add(self, point: Point) -> None:
        """Append a finished point; it survives a crash."""
        assert self._file is not None
        self._file.write(json.dumps(asdict(point)) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.points[point.setting] = point

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _require_same(self, identity: dict[str, Any]) -> None:
        path = self.folder / SWEEP_NAME
        try:
            there = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            there = None
        if not isinstance(there, dict) or there.get("format") != FORMAT_MARK:
            raise EnvironmentProblem(
                "the output exists and is not a tuning sweep; nothing was touched",
                path=self.folder,
                fix="choose another name with --output DIR",
            )
        before, now = _flat(there), _flat(json.loads(json.dumps(identity)))
        for name in sorted({*before, *now} - {"format", "format_version"}):
            if before.get(name) != now.get(name):
                key = name.removeprefix("config.")
                raise ConfigError(
                    f"the points in this folder were measured with {key}: {before.get(name)}, not {now.get(name)}",
                    path=path,
                    value=now.get(name),
                    fix="go on with what was set then, or start a new sweep with another --output DIR",
                )

    def _read(self) -> None:
        assert self._file is not None
        self._file.seek(0)
        lines = self._file.read().splitlines(keepends=True)
        kept = []
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
                if line.endswith("\n"):
                    point = point_from_json(json.loads(line))
                    self.points[point.setting] = point
                    kept.append(line)
        if len(kept) < len(lines):
            note(f"{len(lines) - len(kept)} line(s) of {POINTS_NAME} were torn or damaged: measured again")
            self._file.seek(0)
            self._file.truncate()
            self._file.write("".join(kept))
            self._file.flush()


def _flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in data.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found
