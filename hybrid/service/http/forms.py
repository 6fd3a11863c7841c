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


def require_done(job: Job) -> None:
    if job.state != DONE:
        raise Problem(409, f"the job is {job.state}: it has no result", "wait until its state is done")


def column_of(journal: Journal, job: Job, name: str, run: int) -> np.ndarray:
    """One array of one run; Problem if there is no such."""
    known = ["vertex", *(one.name for one in description_of(job.algorithm).fields)]
    if name not in known:
        raise Problem(404, f"the result has no array {name!r}", f"it has {', '.join(known)}")
    vertex = _vertices(journal, job)
    if name == "vertex":
        return vertex
    array = _read(journal, job, name)
    if array.ndim not in (1, 2) or array.shape[-1] != vertex.size:
        raise _damaged(name)
    rows = 1 if array.ndim == 1 else array.shape[0]
    if not 0 <= run < rows:
        raise Problem(404, f"there is no run {run}", f"runs are 0..{rows - 1}")
    found: np.ndarray = array if array.ndim == 1 else array[run]
    return found


def _vertices(journal: Journal, job: Job) -> np.ndarray:
    vertex = _read(journal, job, "vertex")
    if vertex.ndim != 1 or vertex.dtype.kind not in "iu":
        raise _damaged("vertex")
    return vertex


def _read(journal: Journal, job: Job, name: str) -> np.ndarray:
    try:
        return journal.read_array(job.id, name)
    except (OSError, ValueError):
        raise _damaged(name) from None


def _damaged(name: str) -> Problem:
    return Problem(500, f"the stored array {name!r} of this result is damaged or gone", "submit the job again")


def page(journal: Journal, job: Job, run: int, offset: int, limit: int) -> dict[str, Any]:
    """Rows offset..offset + limit of a run."""
    require_done(job)
    description = description_of(job.algorithm)
    columns = {one.name: column_of(journal, job, one.name, run) for one in description.fields}
    vertex = _vertices(journal, job)
    rows = slice(offset, offset + limit)
    return {
        "job": job.id, "run": run, "runs": max(1, len((job.summary or {}).get("sources", []))),
        "total": int(vertex.size), "offset": offset, "vertex": vertex[rows].tolist(),
        "columns": {name: _plain(array[rows]) for name, array in columns.items()},
    }  # fmt: skip


def _plain(values: np.ndarray) -> list[Any]:
    """JSON has no infinity: a distance that is not there is null."""
    if values.dtype.kind != "f":
        return list(values.tolist())
    return [value if np.isfinite(value) else None for value in values.tolist()]


def as_npy(journal: Journal, job: Job, name: str, run: int) -> Iterator[bytes]:
    """An array as a .npy file, in pieces."""
    require_done(job)
    array = column_of(journal, job, name, run)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(array))

    def pieces() -> Iterator[bytes]:
        yield head.getvalue()
        step = max(1, _CHUNK // array.itemsize)
        for first in range(0, array.size, step):
            yield np.ascontiguousarray(array[first : first + step]).tobytes()

    return pieces()


def bytes_of_form(journal: Journal, job: Job) -> int:
    """About how much memory one run takes as LDBC text or a table, which are made and sent as a whole."""
    require_done(job)
    columns = 1 + len(description_of(job.algorithm).fields)
    return int(_vertices(journal, job).size) * columns * _BYTES_PER_VALUE


def as_ldbc(journal: Journal, job: Job, run: int) -> bytes:
    """``vertex value`` per line, as LDBC Graphalytics wants it."""
    require_done(job)
    description = description_of(job.algorithm)
    main = description.fields[0]
    arrays = {main.name: np.asarray(column_of(journal, job, main.name, run))}
    with tempfile.TemporaryDirectory(prefix="tandem-ldbc-") as scratch:
        write_forms(Path(scratch), ("ldbc",), description, _vertices(journal, job), [("", arrays)])
        return (Path(scratch) / "ldbc.txt").read_bytes()


def as_table(journal: Journal, job: Job, run: int, form: str) -> bytes:
    """Vertices and all arrays as an Arrow stream or a Parquet file; Problem where pyarrow is missing."""
    require_done(job)
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise Problem(406, f"{form} needs pyarrow, which is not installed here", "ask for .npy, or JSON") from None
    names = ["vertex", *(one.name for one in description_of(job.algorithm).fields)]
    table = pyarrow.table({name: np.asarray(column_of(journal, job, name, run)) for name in names})
    sink = io.BytesIO()
    if form == "parquet":
        pyarrow.parquet.write_table(table, sink)
    else:
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()
