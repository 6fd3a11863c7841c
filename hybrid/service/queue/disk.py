"""What the service keeps on disk, and the bound of it: results, uploads, and the graphs that it built into the cache.

Invariant: where there is more than ``service.disk_bytes``, the oldest goes first: results of jobs that are over, and
built graphs that are not in memory. Uploads stay, since their graphs are in use. Cached graphs that another program
built are not counted and not removed; the journal knows which are the service's.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from cpu_engine.graph.store.array_folder import retire
from hybrid.service.catalogue import Catalogue
from hybrid.service.http.problems import Problem
from hybrid.service.queue.jobs import OVER, JobBook
from hybrid.service.queue.journal import Journal

_log = logging.getLogger(__name__)


class Disk:
    """Counts and makes room. Called by the computing thread and the loop."""

    def __init__(self, limit: int, cache: Path, journal: Journal, catalogue: Catalogue, book: JobBook) -> None:
        self.limit, self._graphs = limit, cache / "graphs"
        self._journal, self._catalogue, self._book = journal, catalogue, book
        self._sizes: dict[Path, int] = {}  # of folders that do not change any more
        self._lock = threading.RLock()

    def used(self) -> int:
        uploads = sum(_size(path) for path in self._journal.uploads.iterdir())
        return uploads + sum(size for _, size, _ in self._removable()) + sum(map(self._size_of, self._in_use()))

    def make_room(self, needed: int = 0, *, required: bool = True) -> None:
        """Remove the oldest until ``needed`` bytes more are within the limit; Problem 507 if that is not enough."""
        with self._lock:
            over = self.used() + needed - self.limit
            for _, size, remove in sorted(self._removable(), key=lambda one: one[0]):
                if over <= 0:
                    break
                remove()
                over -= size
        if required and over > 0:
            fix = "unload graphs, or raise service.disk_bytes"
            raise Problem(507, f"{over} bytes are missing of the {self.limit} on disk that clients may take", fix)

    def note_store(self, store: Path, built: bool) -> None:
        """A graph was opened from the cache; if this service built it, now or before, it was used now."""
        if store.parent == self._graphs and (built or store.name in dict(self._journal.stores())):
            self._journal.note_store(store.name)
        self.make_room(required=False)

    def drop_store(self, store: Path | None) -> None:
        """Remove a cached graph that this service built and has no use for any more."""
        ours = store is not None and store.parent == self._graphs and store.name in dict(self._journal.stores())
        if store is not None and ours and store not in self._in_use():
            self._remove_store(store)

    def gauges(self) -> dict[str, tuple[str, float]]:
        return {
            "disk_bytes": ("results, uploads and built graphs", self.used()),
            "disk_limit_bytes": ("service.disk_bytes", self.limit),
        }

    def _in_use(self) -> set[Path]:
        ours = dict(self._journal.stores())
        stores = {entry.store for entry in self._catalogue.all() if entry.store is not None}
        return {store for store in stores if store.parent == self._graphs and store.name in ours}

    def _removable(self) -> list[tuple[float, int, Callable[[], Any]]]:
        """(time, bytes, how to remove it) of everything that may go."""
        found: list[tuple[float, int, Callable[[], Any]]] = []
        for job in self._book.all():
            if job.state in OVER:
                size = self._size_of(self._journal.job_folder(job.id))
                found.append((job.finished or job.created, size, partial(self._forget, job)))
        in_use = self._in_use()
        for name, when in self._journal.stores():
            store = self._graphs / name
            if store not in in_use:
                found.append((when, self._size_of(store), partial(self._remove_store, store)))
        return found

    def _forget(self, job: Any) -> None:
        _log.info("job %s is forgotten: service.disk_bytes", job.id)
        self._sizes.pop(self._journal.job_folder(job.id), None)
        self._book.forget(job)

    def _remove_store(self, store: Path) -> None:
        retire(store)
        self._sizes.pop(store, None)
        self._journal.forget_store(store.name)

    def _size_of(self, folder: Path) -> int:
        size = self._sizes.get(folder) or _size(folder)
        if size:  # else it is not there, or not yet
            self._sizes[folder] = size
        return size


def _size(path: Path) -> int:
    """Bytes of a file, or of the files in a folder; 0 for what is not there."""
    try:
        files = list(path.iterdir()) if path.is_dir() else [path]
        return sum(file.lstat().st_size for file in files)
    except OSError:
        return 0
