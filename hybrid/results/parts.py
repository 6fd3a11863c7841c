"""A result in parts: each rank's rows of every column in a file of its own, and what makes one result of them.

    parts.json              how many vertices and runs, where each part begins, the columns' types
    parts/level-0003.npy    the rows of rank 3: [row], or [run, row] of several runs

Parts follow one another in the user's numbering, so that all of them together are the arrays of a job on one rank.
Invariant: a reader trusts nothing that the files do not bear out; names are made here, never read.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.graph.store.npy import map_npy, open_regular
from hybrid.errors import EnvironmentProblem
from hybrid.results.folder import read_summary

MANIFEST, FOLDER = "parts.json", "parts"
FORMAT_MARK, FORMAT_VERSION = "tandem-result-parts", 1
_LARGEST_MANIFEST = 1 << 24  # bytes
_COPIED = 1 << 24  # bytes at once
_AGAIN = "run the job again"


@dataclass(frozen=True)
class Shape:
    """What all columns have in common."""

    bounds: tuple[int, ...]  # part p is the rows [bounds[p], bounds[p + 1])
    runs: int

    @property
    def parts(self) -> int:
        return len(self.bounds) - 1

    @property
    def vertices(self) -> int:
        return self.bounds[-1]

    def rows(self, part: int) -> int:
        return self.bounds[part + 1] - self.bounds[part]

    def of(self, name: str, rows: int) -> tuple[int, ...]:
        """The shape of so many rows of a column; the vertices themselves are the same in every run."""
        return (rows,) if self.runs == 1 or name == "vertex" else (self.runs, rows)


def part_file(folder: Path, name: str, part: int) -> Path:
    return folder / FOLDER / f"{name}-{part:04d}.npy"


# --------------------------------------------------------------------------------------------- writing


def write_rows(folder: Path, shape: Shape, part: int, name: str, run: int, rows: np.ndarray) -> None:
    """Put one run's rows of a part into their place in its file."""
    file = part_file(folder, name, part)
    try:
        file.parent.mkdir(exist_ok=True)
        with file.open("r+b" if file.exists() else "w+b") as stream:
            _write_header(stream, rows.dtype, shape.of(name, shape.rows(part)))
            stream.seek(run * rows.nbytes, os.SEEK_CUR)
            stream.write(np.ascontiguousarray(rows).view(np.uint8).data)
    except OSError as error:
        raise _no_room(file, rows.nbytes, error) from error


def write_manifest(folder: Path, shape: Shape, dtypes: Mapping[str, np.dtype[Any]]) -> None:
    """Once all parts are there."""
    told = {
        "format": FORMAT_MARK,
        "format_version": FORMAT_VERSION,
        "vertices": shape.vertices,
        "runs": shape.runs,
        "bounds": list(shape.bounds),
        "columns": {name: dtype.str for name, dtype in dtypes.items()},
    }
    (folder / MANIFEST).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def merge_parts(folder: Path, shape: Shape, dtypes: Mapping[str, np.dtype[Any]]) -> None:
    """One file for each column in the place of its parts: the files of a job on one rank, to the byte."""
    for name, dtype in dtypes.items():
        file = folder / f"{name}.npy"
        try:
            with file.open("wb") as stream:
                _write_header(stream, dtype, shape.of(name, shape.vertices))
                for run in range(1 if name == "vertex" else shape.runs):
                    for part in range(shape.parts):
                        _copy_rows(part_file(folder, name, part), dtype, shape.rows(part), run, stream)
        except OSError as error:
            raise _no_room(file, shape.vertices * shape.runs * dtype.itemsize, error) from error
    shutil.rmtree(folder / FOLDER)


def _write_header(stream: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    described = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, described)


def _copy_rows(file: Path, dtype: np.dtype[Any], rows: int, run: int, out: Any) -> None:
    left = rows * dtype.itemsize
    with file.open("rb") as stream:
        np.lib.format.read_magic(stream)
        np.lib.format.read_array_header_1_0(stream)
        stream.seek(run * left, os.SEEK_CUR)
        while left:
            piece = stream.read(min(left, _COPIED))
            if not piece:
                raise OSError(f"{file.name} ends early")
            out.write(piece)
            left -= len(piece)


def _no_room(file: Path, needed: int, error: OSError) -> EnvironmentProblem:
    room = ""
    if file.parent.is_dir():
        room = f"; {needed:,} bytes are needed, {shutil.disk_usage(file.parent).free:,} are free"
    return EnvironmentProblem(
        f"cannot write the result: {error.strerror or error}{room}",
        path=file,
        fix="make room there, or choose another folder with --output DIR",
    )


# --------------------------------------------------------------------------------------------- reading


class ResultArrays:
    """A result folder as arrays, whether its columns are one file each or in parts.

    Arrays are mapped, not read, as long as they are one file or one part. ``result["level"]`` is the whole column.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.summary: dict[str, Any] = read_summary(self.folder)
        self._manifest = _read_manifest(self.folder)
        self.parts = 1 if self._manifest is None else len(self._manifest["bounds"]) - 1
        self.columns: tuple[str, ...] = (
            tuple(self._manifest["columns"])
            if self._manifest is not None
            else tuple(
                sorted((file.stem for file in self.folder.glob("*.npy")), key=lambda name: (name != "vertex", name))
            )
        )

    @property
    def vertex(self) -> np.ndarray:
        """The user's ids, ascending."""
        return self["vertex"]

    def __getitem__(self, name: str) -> np.ndarray:
        """The whole column: of the vertices, or [run, vertex] of several runs."""
        if self._manifest is None:
            return self.part(0)[name]
        return np.concatenate([self._column(name, part) for part in range(self.parts)], axis=-1)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def part(self, part: int) -> dict[str, np.ndarray]:
        """All columns of one part; of a result that is not in parts, part 0 is all of it."""
        if not 0 <= part < self.parts:
            raise IndexError(f"there are {self.parts} parts, from 0 on, and no part {part}")
        if self._manifest is None:
            return {name: _map(self.folder / f"{name}.npy") for name in self.columns}
        return {name: self._column(name, part) for name in self.columns}

    def _column(self, name: str, part: int) -> np.ndarray:
        assert self._manifest is not None
        if name not in self.columns:
            raise KeyError(name)
        shape = Shape(tuple(self._manifest["bounds"]), self._manifest["runs"])
        file = part_file(self.folder, name, part)
        found, wanted = _map(file), shape.of(name, shape.rows(part))
        if found.shape != wanted or found.dtype.str != self._manifest["columns"][name]:
            raise EnvironmentProblem(
                f"part {part} holds {found.dtype} {found.shape}, not what {MANIFEST} says", path=file, fix=_AGAIN
            )
        return found


def open_result(folder: str | Path) -> ResultArrays:
    """The arrays of a result folder that a job has written: all of them, or one part."""
    return ResultArrays(folder)


def _map(file: Path) -> np.ndarray:
    try:
        return np.asarray(map_npy(file, "c"))
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"cannot read the array: {error}", path=file, fix=_AGAIN) from error


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    """What parts.json says, None where there is none."""
    file = folder / MANIFEST
    if not file.exists():
        return None
    try:
        with open_regular(file) as stream:
            text = stream.read(_LARGEST_MANIFEST + 1)
        if len(text) > _LARGEST_MANIFEST:
            raise ValueError("too large")
        told = json.loads(text)
        bounds, columns = told["bounds"], told["columns"]
        whole = [told["vertices"], told["runs"], *bounds]
        if told["format"] != FORMAT_MARK or not all(type(one) is int and one >= 0 for one in whole):
            raise ValueError("not a list of parts")
        if bounds[:1] != [0] or bounds[-1] != told["vertices"] or sorted(bounds) != bounds or len(bounds) < 2:
            raise ValueError("the parts do not follow one another")
        if not all(name.isidentifier() and np.dtype(kind).kind in "iuf" for name, kind in columns.items()):
            raise ValueError("no such columns")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise EnvironmentProblem(f"cannot read the list of parts: {error}", path=file, fix=_AGAIN) from error
    return dict(told)
