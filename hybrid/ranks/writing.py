"""Every rank writes its rows of a result into the folder that rank 0 has made, run by run.

Ranks that see the folder write there themselves; on machines that share no file system with rank 0 they send their
rows to rank 0, one rank after the other, so that it holds those of one rank at a time. Invariant: the folder is still
hidden; it gets its name once all ranks have written (hybrid/results/folder.py).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cpu_engine.comm.collectives import TAG_JOB, RankInfo, barrier, broadcast_facts, share_facts
from cpu_engine.comm.requests import Driver, Exchange
from hybrid.algorithms.algorithm import Arrays, Description
from hybrid.results.forms import write_forms
from hybrid.results.parts import FOLDER, Shape, merge_parts, part_file, write_manifest, write_rows

MERGED_VALUES = 1 << 26  # of a column: so many are one file, unless the configuration says otherwise


class RowsOnRanks:
    """One rank's side. ``folder``: rank 0's unfinished result, None elsewhere."""

    def __init__(self, info: RankInfo, folder: Path | None, bounds: np.ndarray, runs: int) -> None:
        self._info, self._folder = info, folder
        self.shape = Shape(tuple(bounds.tolist()), runs)
        self._dtypes: dict[str, np.dtype] = {}
        self._far: list[int] = []  # ranks that do not see the folder
        self._sees = True

    def begin(self) -> Driver[None]:
        """Find out who sees the folder: its name has a part that no other job could have chosen."""
        path = yield from broadcast_facts(self._info, None if self._folder is None else str(self._folder))
        self._sees = _is_there(self._info, path)
        self._folder = Path(path) if self._sees else None
        seen = yield from share_facts(self._info, self._sees)
        self._far = [rank for rank, one in enumerate(seen) if not one]

    def keep(self, run: int, arrays: Arrays) -> Driver[None]:
        """Write one run's rows of all columns."""
        info = self._info
        for name, rows in arrays.items():
            self._dtypes.setdefault(name, rows.dtype)
            rows = np.ascontiguousarray(rows, self._dtypes[name])
            if self._sees:
                assert self._folder is not None
                write_rows(self._folder, self.shape, info.rank, name, run, rows)
            for rank in self._far:
                if info.rank == rank:
                    yield Exchange(TAG_JOB, {0: rows.view(np.uint8)}, (), patient=True)
                elif info.rank == 0:
                    came = yield Exchange(TAG_JOB, {}, (rank,), patient=True)
                    assert self._folder is not None
                    theirs = came[rank].view(self._dtypes[name])
                    write_rows(self._folder, self.shape, rank, name, run, theirs)

    def finish(self, arrays: str, forms: tuple[str, ...], description: Description, labels: list[str]) -> Driver[None]:
        """Rank 0 makes one result of the parts, once all are there. ``arrays``, ``forms``: as configured."""
        yield from barrier()
        if self._info.rank != 0:
            return
        assert self._folder is not None
        folder, shape = self._folder, self.shape
        if arrays == "merged" or (arrays == "auto" and shape.vertices * shape.runs <= MERGED_VALUES):
            merge_parts(folder, shape, self._dtypes)
            whole = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in self._dtypes}
            self._write_forms(folder, whole, forms, description, labels)
            return
        write_manifest(folder, shape, self._dtypes)
        if forms:
            for part in range(shape.parts):
                rows = {name: np.load(part_file(folder, name, part), mmap_mode="r") for name in self._dtypes}
                own = folder / FOLDER / f"{part:04d}"
                own.mkdir()
                self._write_forms(own, rows, forms, description, labels)

    def _write_forms(
        self, folder: Path, columns: Arrays, forms: tuple[str, ...], description: Description, labels: list[str]
    ) -> None:
        vertex = columns["vertex"]
        runs = []
        for run, label in enumerate(labels):
            values = {name: column if column.ndim == 1 else column[run] for name, column in columns.items()}
            runs.append((label, {name: values[name] for name in values if name != "vertex"}))
        write_forms(folder, forms, description, vertex, runs)


def _is_there(info: RankInfo, path: str | None) -> bool:
    """Whether this rank sees the folder."""
    return path is not None and Path(path).is_dir()
