"""A finished job's result in the forms that clients ask for: a page as JSON, .npy, LDBC text, Arrow, Parquet."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hybrid.algorithms import description_of
from hybrid.results.forms import write_forms
from hybrid.service.http.problems import Problem
from hybrid.service.queue.jobs import DONE, Job
from hybrid.service.queue.journal import Journal

_CHUNK = 1 << 20
_BYTES_PER_VALUE = 40  # the value, its text or its place in a table, and a copy of that


class Result:
    """One run of a job's result; Problem if there is none."""

    def __init__(self, journal: Journal, job: Job, run: int = 0) -> None:
        if job.state != DONE:
            raise Problem(409, f"the job is {job.state}: it has no result", "wait until its state is done")
        self._journal, self._job, self._run = journal, job, run
        self._description = description_of(job.algorithm)
        self._names = [one.name for one in self._description.fields]
        self._vertex = self._read("vertex")
        if self._vertex.ndim != 1 or self._vertex.dtype.kind not in "iu":
            raise _damaged("vertex")

    def _read(self, name: str) -> np.ndarray:
        try:
            return self._journal.read_array(self._job.id, name)
        except (OSError, ValueError):
            raise _damaged(name) from None

    def column(self, name: str) -> np.ndarray:
        """One array; Problem if there is no such."""
        if name == "vertex":
            return self._vertex
        if name not in self._names:
            known = ", ".join(("vertex", *self._names))
            raise Problem(404, f"the result has no array {name!r}", f"it has {known}")
        array = self._read(name)
        if array.ndim not in (1, 2) or array.shape[-1] != self._vertex.size:
            raise _damaged(name)
        rows = np.atleast_2d(array)
        if not 0 <= self._run < len(rows):
            raise Problem(404, f"there is no run {self._run}", f"runs are 0..{len(rows) - 1}")
        found: np.ndarray = rows[self._run]
        return found

    def page(self, offset: int, limit: int) -> dict[str, Any]:
        """Rows offset..offset + limit."""
        job, vertex, rows = self._job, self._vertex, slice(offset, offset + limit)
        columns = {name: self.column(name) for name in self._names}
        return {
            "job": job.id, "run": self._run, "runs": max(1, len((job.summary or {}).get("sources", []))),
            "total": int(vertex.size), "offset": offset, "vertex": vertex[rows].tolist(),
            "columns": {name: _plain(array[rows]) for name, array in columns.items()},
        }  # fmt: skip

    def npy(self, name: str) -> Iterator[bytes]:
        """An array as a .npy file, in pieces."""
        array = self.column(name)
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(array))

        def pieces() -> Iterator[bytes]:
            yield head.getvalue()
            step = max(1, _CHUNK // array.itemsize)
            for first in range(0, array.size, step):
                yield np.ascontiguousarray(array[first : first + step]).tobytes()

        return pieces()

    @property
    def bytes_of_form(self) -> int:
        """About how much memory it takes as LDBC text or a table, which are made and sent as a whole."""
        return self._vertex.size * (1 + len(self._names)) * _BYTES_PER_VALUE

    def ldbc(self) -> bytes:
        """``vertex value`` per line, as LDBC Graphalytics wants it."""
        main = self._names[0]
        arrays = {main: np.asarray(self.column(main))}
        with tempfile.TemporaryDirectory(prefix="tandem-ldbc-") as scratch:
            write_forms(Path(scratch), ("ldbc",), self._description, self._vertex, [("", arrays)])
            return (Path(scratch) / "ldbc.txt").read_bytes()

    def table(self, form: str) -> bytes:
        """Vertices and all arrays as an Arrow stream or a Parquet file; Problem where pyarrow is missing."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise Problem(406, f"{form} needs pyarrow, which is not installed here", "ask for .npy, or JSON") from None
        table = pyarrow.table({name: np.asarray(self.column(name)) for name in ("vertex", *self._names)})
        sink = io.BytesIO()
        if form == "parquet":
            pyarrow.parquet.write_table(table, sink)
        else:
            with pyarrow.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
        return sink.getvalue()


def _damaged(name: str) -> Problem:
    return Problem(500, f"the stored array {name!r} of this result is damaged or gone", "submit the job again")


def _plain(values: np.ndarray) -> list[Any]:
    """JSON has no infinity: a distance that is not there is null."""
    if values.dtype.kind != "f":
        return list(values.tolist())
    return [value if np.isfinite(value) else None for value in values.tolist()]
