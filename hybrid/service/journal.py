"""What survives a restart: accepted jobs, their results, the graphs they are about, and uploaded files.

Invariant: a document is complete or not there (written beside, flushed, renamed); a job is on disk before it is
accepted. One service at a time has a journal: it holds a lock on it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np

from hybrid.errors import EnvironmentProblem
from hybrid.npy_head import map_npy
from hybrid.trace import Event, plain_number

_log = logging.getLogger(__name__)


class Journal:
    """A folder of jobs, graphs and uploads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._jobs, self._graphs, self.uploads = folder / "jobs", folder / "graphs", folder / "uploads"
        self._held: IO[str] | None = None

    def open(self) -> None:
        """Take the folder; EnvironmentProblem if it cannot be used or another service has it."""
        try:
            for part in (self._jobs, self._graphs, self.uploads):
                part.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._held = (self.folder / "lock").open("w")
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EnvironmentProblem(
                "another service uses this journal", path=self.folder, fix="stop it, or set service.journal_dir"
            ) from None
        except OSError as error:
            raise EnvironmentProblem(
                f"the journal cannot be used: {error.strerror}", path=self.folder, fix="set service.journal_dir"
            ) from error
        for part in self.uploads.glob("*.part"):
            part.unlink()

    def close(self) -> None:
        if self._held is not None:
            self._held.close()

    # ------------------------------------------------------------------------------------------ jobs

    def job_folder(self, job_id: str) -> Path:
        return self._jobs / job_id

    def write_job(self, job_id: str, document: dict[str, Any]) -> None:
        folder = self.job_folder(job_id)
        folder.mkdir(exist_ok=True)
        write_document(folder / "job.json", document)

    def write_result(self, job_id: str, arrays: dict[str, np.ndarray], trace: Iterable[Event]) -> None:
        """Arrays and trace; the job's own document, written afterwards, makes them count."""
        folder = self.job_folder(job_id)
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array, allow_pickle=False)
        lines = "".join(json.dumps(event, default=plain_number) + "\n" for event in trace)
        (folder / "trace.jsonl").write_text(lines, encoding="utf-8")

    def read_array(self, job_id: str, name: str) -> np.ndarray:
        """An array of a result, mapped, not read."""
        return map_npy(self.job_folder(job_id) / f"{name}.npy")

    def read_trace(self, job_id: str) -> list[Event]:
        path = self.job_folder(job_id) / "trace.jsonl"
        if not path.is_file():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def forget_job(self, job_id: str) -> None:
        shutil.rmtree(self.job_folder(job_id), ignore_errors=True)

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, oldest first; a folder without a readable document was never accepted, and is removed."""
        found = []
        for folder in self._jobs.iterdir():
            document = read_document(folder / "job.json")
            if document is None:
                _log.warning("journal: removing %s, which has no job", folder.name)
                shutil.rmtree(folder, ignore_errors=True)
            else:
                found.append(document)
        return sorted(found, key=lambda document: float(document["created"]))

    # ---------------------------------------------------------------------------------------- graphs

    def write_graph(self, name: str, document: dict[str, Any]) -> None:
        write_document(self._graphs / f"{name}.json", document)

    def forget_graph(self, name: str) -> None:
        for path in (self._graphs / f"{name}.json", self.uploads / name):
            with contextlib.suppress(OSError):
                path.unlink()

    def graphs(self) -> list[dict[str, Any]]:
        """All graphs, oldest first."""
        found = [document for path in self._graphs.glob("*.json") if (document := read_document(path)) is not None]
        return sorted(found, key=lambda document: float(document["created"]))


def write_document(path: Path, document: dict[str, Any]) -> None:
    """Write JSON so that a reader, and a machine that loses power, sees the old one or the new one."""
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(document, file, default=plain_number)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def read_document(path: Path) -> dict[str, Any] | None:
    """None if there is none, or it is not one."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
