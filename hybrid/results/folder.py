"""The result folder: arrays in the user's ids, summary, trace, effective configuration, log, report.

Invariant: the folder appears under its name complete or not at all; until then everything is in a hidden folder beside
it, which is removed if the job fails. An older Tandem result of the same name is replaced, anything else is refused.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import secrets
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.graph.store.npy import open_regular
from exchange.errors import ExchangeError
from exchange.filesystem.scratch import own_leftovers, remove_folder
from hybrid.devices.machine_facts import MachineState
from hybrid.errors import EnvironmentProblem

FORMAT_MARK = "tandem-result"
FORMAT_VERSION = 1
LARGEST_SUMMARY = 1 << 28  # bytes; a run takes about a thousand
_PARTIAL = ".partial"


class ResultFolder:
    """A folder in the making; ``commit`` or ``discard`` ends it.

    ``keeper_pid``: the process that does so, if it is another one; while that one lives, the folder is not swept.
    """

    def __init__(self, output: str | None, algorithm: str, keeper_pid: int | None = None) -> None:
        self.machine = MachineState.now()  # before the job's own work
        self.reserved = output is None
        try:
            self.final = _reserve_fresh(algorithm) if output is None else Path(output)
            _refuse_foreign(self.final)
            # The salt: a name that no other user can take first.
            owner = f"{socket.gethostname()}.{secrets.token_hex(4)}.{keeper_pid or os.getpid()}"
            self.path = self.final.parent / f".{self.final.name}.{owner}{_PARTIAL}"
            sweep_partials(self.final.parent)
            self.path.mkdir(parents=True)
        except OSError as error:
            raise EnvironmentProblem(
                f"cannot make the result folder: {error.strerror}",
                path=error.filename,
                fix="choose another with --output DIR",
            ) from error

    def write_arrays(self, vertex: np.ndarray, runs: Sequence[Mapping[str, np.ndarray]]) -> None:
        """vertex[i] and NAME[..., i] belong together; several runs are rows."""
        self._save("vertex", vertex)
        for name, array in runs[0].items():
            self._save(name, array if len(runs) == 1 else np.stack([run[name] for run in runs]))

    def _save(self, name: str, array: np.ndarray) -> None:
        file = self.path / f"{name}.npy"
        try:
            np.save(file, array)
        except OSError as error:  # numpy's own has no code and no name
            room = f"{array.nbytes:,} bytes are needed, {shutil.disk_usage(self.path).free:,} are free"
            raise EnvironmentProblem(
                f"cannot write the result: {error.strerror or error}; {room}",
                path=file,
                fix="make room there, or choose another folder with --output DIR",
            ) from error

    def write_text(self, name: str, text: str) -> None:
        (self.path / name).write_text(text, encoding="utf-8")

    def write_summary(self, account: Mapping[str, Any]) -> dict[str, Any]:
        """The account, marked as ours; what was written."""
        summary = {"format": FORMAT_MARK, "format_version": FORMAT_VERSION, **account}
        self.write_text("summary.json", json.dumps(summary, indent=2, default=lambda number: number.item()) + "\n")
        return summary

    def commit(self) -> Path:
        """Put the finished folder under its name."""
        put_in_place(self.path, self.final)
        return self.final

    def discard(self) -> None:
        """Leave nothing but what was there before."""
        remove_folder(self.path)
        if self.reserved:
            with contextlib.suppress(OSError):
                self.final.rmdir()


def put_in_place(path: Path, final: Path) -> None:
    """Give a finished folder its name; an older result of that name goes."""
    old = None
    if final.is_dir() and any(final.iterdir()):
        old = path.with_suffix(".old")
        final.rename(old)
    path.rename(final)  # over an empty folder too
    if old is not None:
        remove_folder(old)


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary of a finished result folder."""
    try:
        with open_regular(folder / "summary.json") as stream:
            text = stream.read(LARGEST_SUMMARY + 1)
        if len(text) > LARGEST_SUMMARY:
            raise ValueError("too large")
        summary: dict[str, Any] = json.loads(text)
        if not isinstance(summary, dict) or summary.get("format") != FORMAT_MARK:
            raise ValueError("another format")
        return summary
    except (OSError, ValueError, RecursionError) as error:
        fix = "name a folder that `run` has written"
        raise EnvironmentProblem("not a Tandem result folder", path=folder, fix=fix) from error


def _reserve_fresh(algorithm: str) -> Path:
    """A new name under results/, taken by making the folder: jobs that start together get different ones."""
    Path("results").mkdir(exist_ok=True)
    for candidate in fresh_names(algorithm):
        with contextlib.suppress(FileExistsError):
            candidate.mkdir()
            return candidate
    raise AssertionError("the names end with an error")


def fresh_names(what: str) -> Iterator[Path]:
    """Names under results/ that are free; EnvironmentProblem if there are no more."""
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    for attempt in range(1000):
        candidate = Path("results") / f"{what}-{stamp}{f'-{attempt}' if attempt else ''}"
        if not candidate.exists():
            yield candidate
    raise EnvironmentProblem("no free name under results/", path="results", fix="choose one with --output DIR")


def _refuse_foreign(folder: Path) -> None:
    """An empty folder or an older result may be replaced; anything else is a user's work."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        read_summary(folder)
    except EnvironmentProblem:
        reason = "the output exists and is not a Tandem result; nothing was touched"
        raise EnvironmentProblem(reason, path=folder, fix="choose another name with --output DIR") from None


def sweep_partials(parent: Path, keeper_pid: int | None = None) -> None:
    """Remove what jobs on this host that were killed outright left unfinished, and what ``keeper_pid`` was to keep."""
    for left in own_leftovers(parent, "."):
        name, is_partial, _ = left.path.name.rpartition(_PARTIAL)
        pid = name.rpartition(".")[2]
        ours = is_partial and f".{socket.gethostname()}." in name and pid.isdecimal()
        if ours and (int(pid) == keeper_pid or not Path(f"/proc/{pid}").exists()):
            with contextlib.suppress(ExchangeError):
                left.discard()
