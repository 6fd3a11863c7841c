"""The result folder: arrays in the user's ids, summary, trace, effective configuration, log, report.

Invariant: the folder appears under its name complete or not at all; until then everything is in a hidden folder beside
it, which is removed if the job fails. An older Tandem result of the same name is replaced, anything else is refused.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hybrid.errors import EnvironmentProblem

FORMAT_MARK = "tandem-result"
FORMAT_VERSION = 1
_PARTIAL = ".partial"


class ResultFolder:
    """A folder in the making; ``commit`` or ``discard`` ends it."""

    def __init__(self, output: str | None, algorithm: str) -> None:
        self.reserved = output is None
        try:
            self.final = _reserve_fresh(algorithm) if output is None else Path(output)
            _refuse_foreign(self.final)
            self.path = self.final.parent / f".{self.final.name}.{socket.gethostname()}.{os.getpid()}{_PARTIAL}"
            _sweep_partials(self.final.parent)
            self.path.mkdir(parents=True)
        except OSError as error:
            raise EnvironmentProblem(
                f"cannot make the result folder: {error.strerror}",
                path=error.filename,
                fix="choose another with --output DIR",
            ) from error

    def write_arrays(self, vertex: np.ndarray, runs: Sequence[Mapping[str, np.ndarray]]) -> None:
        """vertex[i] and NAME[..., i] belong together; several runs are rows."""
        np.save(self.path / "vertex.npy", vertex)
        for name, array in runs[0].items():
            np.save(self.path / f"{name}.npy", array if len(runs) == 1 else np.stack([run[name] for run in runs]))

    def write_text(self, name: str, text: str) -> None:
        (self.path / name).write_text(text, encoding="utf-8")

    def write_summary(self, summary: dict[str, Any]) -> None:
        marked = {"format": FORMAT_MARK, "format_version": FORMAT_VERSION, **summary}
        self.write_text("summary.json", json.dumps(marked, indent=2, default=lambda number: number.item()) + "\n")

    def commit(self) -> Path:
        """Put the finished folder under its name."""
        old = None
        if self.final.is_dir() and any(self.final.iterdir()):
            old = self.path.with_suffix(".old")
            self.final.rename(old)
        self.path.rename(self.final)  # over an empty folder too
        if old is not None:
            shutil.rmtree(old)
        return self.final

    def discard(self) -> None:
        """Leave nothing but what was there before."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self.reserved:
            with contextlib.suppress(OSError):
                self.final.rmdir()


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary of a finished result folder."""
    try:
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(
            "not a Tandem result folder", path=folder, fix="name a folder that `run` has written"
        ) from error
    if not isinstance(summary, dict) or summary.get("format") != FORMAT_MARK:
        raise EnvironmentProblem("not a Tandem result folder", path=folder, fix="name a folder that `run` has written")
    return summary


def _reserve_fresh(algorithm: str) -> Path:
    """A new name under results/, taken by making the folder: jobs that start together get different ones."""
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    Path("results").mkdir(exist_ok=True)
    for attempt in range(1000):
        candidate = Path("results") / f"{algorithm}-{stamp}{f'-{attempt}' if attempt else ''}"
        with contextlib.suppress(FileExistsError):
            candidate.mkdir()
            return candidate
    raise EnvironmentProblem("no free name under results/", path="results", fix="choose one with --output DIR")


def _refuse_foreign(folder: Path) -> None:
    """An empty folder or an older result may be replaced; anything else is somebody's work."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        read_summary(folder)
    except EnvironmentProblem:
        raise EnvironmentProblem(
            "the output exists and is not a Tandem result; nothing was touched",
            path=folder,
            fix="choose another name with --output DIR",
        ) from None


def _sweep_partials(parent: Path) -> None:
    """Remove what jobs on this host that were killed outright left unfinished."""
    for left in parent.glob(f".*.{socket.gethostname()}.*{_PARTIAL}"):
        pid = left.name.removesuffix(_PARTIAL).rpartition(".")[2]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(left, ignore_errors=True)
