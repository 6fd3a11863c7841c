"""What survives a restart: accepted jobs, their results, the graphs they are about, and uploaded files.

Invariant: a document is complete or not there (written beside, flushed, renamed); a job is on disk before it is
accepted. One service at a time has a journal: it holds a lock on it. Flushing takes as long as the disk likes, so
documents are written by the computing thread, by the threads that read files, or by ``Service.record``: never by the
event loop.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import secrets
from pathlib import Path
from typing import IO, Any

import numpy as np
from pydantic import ValidationError

from cpu_engine.graph.store.npy import map_npy, open_regular
from cpu_engine.graph.store.removal import remove_tree
from hybrid.errors import EnvironmentProblem
from hybrid.registry import ALGORITHMS
from hybrid.results.atomic_write import atomic_write
from hybrid.results.trace import Event, Trace, plain_number
from hybrid.service.http.models import JobAnswer

_log = logging.getLogger(__name__)
_START = "start-"
_LONGEST = 1 << 28  # bytes of a document that are read; a summary of 64 runs has some ten thousand
_GRAPH: dict[str, Any] = {"id": str, "origin": dict, "created": (int, float)}


class Journal:
    """A folder of jobs, graphs and uploads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._jobs, self._graphs, self.uploads = folder / "jobs", folder / "graphs", folder / "uploads"
        self._stores = folder / "stores"
        self._held: IO[str] | None = None

    def open(self) -> None:
        """Take the folder; EnvironmentProblem if it cannot be used or another service has it."""
        try:
            for part in (self._jobs, self._graphs, self.uploads, self._stores):
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
        known = {document.get("id") for document in self.graphs()}
        for part in self.uploads.glob("*.part"):  # of an upload that was under way, unless a graph has that name
            if part.name not in known:
                with contextlib.suppress(IsADirectoryError):
                    part.unlink()

    def close(self) -> None:
        if self._held is not None:
            self._held.close()

    def job_folder(self, job_id: str) -> Path:
        return self._jobs / job_id

    def write_job(self, job_id: str, document: dict[str, Any]) -> None:
        folder = self.job_folder(job_id)
        folder.mkdir(exist_ok=True)
        write_document(folder / "job.json", document)

    def begin_job(self, job_id: str) -> None:
        """Note that a job is started; the note stays if the process ends before the job does.

        An empty file for each start: it is made at once, on a full disk as well.
        """
        with contextlib.suppress(OSError):  # the job is run all the same
            (self.job_folder(job_id) / f"{_START}{self.deaths(job_id)}").touch()

    def end_job(self, job_id: str) -> None:
        """A job that was started has ended in order, or is taken back."""
        with contextlib.suppress(OSError):
            for note in self.job_folder(job_id).glob(f"{_START}*"):
                note.unlink()

    def deaths(self, job_id: str) -> int:
        """How often in a row this job was started without an end; read before it is started again."""
        return sum(1 for _ in self.job_folder(job_id).glob(f"{_START}*"))

    def write_result(self, job_id: str, arrays: dict[str, np.ndarray], trace: Trace) -> None:
        """Arrays and trace; the job's own document, written afterwards, makes them count."""
        folder = self.job_folder(job_id)
        try:
            for name, array in arrays.items():
                np.save(folder / f"{name}.npy", array, allow_pickle=False)
            (folder / "trace.jsonl").write_text(trace.to_jsonl(), encoding="utf-8")
        except OSError:
            for name in arrays:  # half a result would only fill the disk
                (folder / f"{name}.npy").unlink(missing_ok=True)
            raise

    def read_array(self, job_id: str, name: str) -> np.ndarray:
        """An array of a result, mapped, not read."""
        return map_npy(self.job_folder(job_id) / f"{name}.npy")

    def read_trace(self, job_id: str) -> list[Event]:
        path = self.job_folder(job_id) / "trace.jsonl"
        if not path.is_file():
            return []
        try:
            events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except (ValueError, RecursionError):
            events = [None]
        return events if all(isinstance(event, dict) for event in events) else []  # damaged: no picture, no more

    def forget_job(self, job_id: str) -> None:
        remove_tree(self.job_folder(job_id))

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, oldest first; a folder without a readable document was never accepted, and is removed."""
        found = []
        for folder in self._jobs.iterdir():
            document = read_document(folder / "job.json")
            if document is None or not _is_job(document) or document["id"] != folder.name:
                _log.warning("journal: removing %s, which has no job", folder.name)
                remove_tree(folder)
            else:
                found.append(document)
        return sorted(found, key=lambda document: float(document["created"]))

    def write_graph(self, name: str, document: dict[str, Any]) -> None:
        self.end_loading(name)
        write_document(self._graphs / f"{name}.json", document)

    def forget_graph(self, name: str) -> None:
        files = (self.upload_file(name), self.uploads / name)
        for path in (self._graphs / f"{name}.json", self._loading(name), *files):
            with contextlib.suppress(OSError):
                path.unlink()

    def new_draft(self) -> Path:
        """A name for an upload that is under way."""
        return self.uploads / f"~{secrets.token_hex(8)}.part"

    def upload_file(self, name: str) -> Path:
        """Where an uploaded graph is kept: under a name that no other id, draft or part of an LDBC graph can have."""
        before = self.uploads / name  # the name in older journals
        return before if before.is_file() else self.uploads / f"{name}~"

    def _loading(self, name: str) -> Path:
        return self._graphs / f"{name}~loading"

    def begin_loading(self, name: str) -> None:
        """Note that a graph is being opened; if the process dies of it, the note is still there at the next start."""
        with contextlib.suppress(OSError):  # the graph is opened all the same
            self._loading(name).touch()

    def end_loading(self, name: str) -> None:
        self._loading(name).unlink(missing_ok=True)

    def died_loading(self, name: str) -> bool:
        """Whether a process ended while it opened this graph."""
        return self._loading(name).exists()

    def note_store(self, key: str) -> None:
        """Remember that the service built a graph into the cache, and when it was used last."""
        (self._stores / key).touch()

    def forget_store(self, key: str) -> None:
        (self._stores / key).unlink(missing_ok=True)

    def stores(self) -> list[tuple[str, float]]:
        """Graphs that the service built into the cache, and when each was used last."""
        found = []
        for path in self._stores.iterdir():
            with contextlib.suppress(OSError):  # forgotten just now
                found.append((path.name, path.stat().st_mtime))
        return found

    def graphs(self) -> list[dict[str, Any]]:
        """All graphs, oldest first; what is no graph's document is left where it is."""
        documents = [read_document(path) for path in self._graphs.glob("*.json")]
        found = [document for document in documents if document is not None and _is_graph(document)]
        return sorted(found, key=lambda document: float(document["created"]))


def write_document(path: Path, document: dict[str, Any]) -> None:
    """Write JSON so that a reader, and a machine that loses power, sees the old one or the new one."""
    atomic_write(path, json.dumps(document, default=plain_number), durable=True)


def read_document(path: Path) -> dict[str, Any] | None:
    """None if there is none, or it is not one."""
    try:
        with open_regular(path) as stream:
            found = json.loads(stream.read(_LONGEST + 1))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _is_job(document: dict[str, Any]) -> bool:
    """Whether a document is a job as clients may see it: it may be damaged, or of another program."""
    try:
        JobAnswer.model_validate(document, strict=True)
    except ValidationError:
        return False
    return document["algorithm"] in ALGORITHMS and _can_be_told(document)


def _is_graph(document: dict[str, Any]) -> bool:
    return all(isinstance(document.get(name), kind) for name, kind in _GRAPH.items()) and _can_be_told(document)


def _can_be_told(document: dict[str, Any]) -> bool:
    """Whether it is JSON in UTF-8 once more, which NaN and lone surrogates are not, and can be sorted by its time."""
    try:
        json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
        float(document["created"])
    except (ValueError, OverflowError):
        return False
    return True
