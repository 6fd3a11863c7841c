"""Rows of text with one value per vector of a batch, `vertex v1 v2 ... vB`, of integers or of float32.

Invariant: what ``parse_rows`` returns is exactly what the lines say: integers are -1 (none) or up to 2**31 - 1; float32
values come back bit by bit as they were written, since 9 digits tell every float32 apart. The definition is line by
line; files as Tandem writes them are parsed whole, and whatever is not like that goes to the definition.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exchange.codec.text import VALUE_LIMIT, Header, IntArray, encode_header, read_facts, shown, take_fact
from exchange.counted import plural
from exchange.errors import ExchangeError
from exchange.protocol.programs import Rows

Table = npt.NDArray[Any]  # int64 or float64

_INTEGER = re.compile(rb"-1|[0-9]{1,18}", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)
_VERTEX = re.compile(rb"[0-9]{1,18}", re.ASCII)
_FLOAT = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_TOO_LARGE = 2.0**128 - 2.0**103  # from here on, the nearest float32 is infinity
_SPACE, _NEWLINE, _MINUS, _ONE = b" \n-1"
_STEP_BYTES = 1 << 22
_FIX = {
    kind: f"write a vertex and one value per vector of the batch on each line, separated by one space: {values}"
    for kind, values in (("int32", "non-negative integers, -1 for none"), ("float32", "finite numbers"))
}
_ALLOWED = {
    kind: np.isin(np.arange(256), np.frombuffer(letters, np.uint8))
    for kind, letters in (("int32", b"0123456789- \n"), ("float32", b"0123456789+-.eE \n"))
}


def encode_rows(vertices: IntArray, columns: Rows, header: Mapping[str, str | int | float] | None = None) -> bytes:
    """Lines of a vertex and its values, columns[r, B], below the header."""
    number = b" %d" if np.issubdtype(columns.dtype, np.integer) else b" %.9g"
    line = b"%d" + number * columns.shape[1] + b"\n"
    # A table of Python objects, so that one format call writes everything: vertices stay integers beside floats.
    table = np.empty((len(vertices), 1 + columns.shape[1]), object)
    table[:, 0], table[:, 1:] = vertices, columns
    return encode_header(header or {}) + (line * len(vertices)) % tuple(table.ravel().tolist())


def parse_rows(data: bytes, path: str | Path, kind: str) -> tuple[IntArray, Rows, Header]:
    """Vertices int64[r], their values [r, B] of ``kind`` (int32 or float32), and the facts.

    B is that of the first line; a `# batch B` line, if there, must agree.
    """
    table, header = _parse(data, path, kind, vertices=1)
    vertices, columns = table[:, 0].astype(np.int64), table[:, 1:].astype(kind)
    batch = header.get("batch")
    if batch is not None and not len(vertices) and _COUNT.fullmatch(batch):
        columns = columns.reshape(0, int(batch))
    if batch is not None and batch != str(columns.shape[1]):
        raise ExchangeError(
            f"{plural(columns.shape[1], 'value')} per line where `# batch` announces others",
            path=path,
            value=batch,
            fix="write as many values after each vertex as the batch has vectors, -1 for none",
        )
    return vertices, columns, header


def parse_weighted_edges(data: bytes, path: str | Path) -> tuple[IntArray, npt.NDArray[np.float32], Header]:
    """Lines `src dst weight` with float32 weights: ends int64[e, 2], weights, and the facts."""
    table, header = _parse(data, path, "float32", vertices=2)
    if len(table) and table.shape[1] != 3:
        raise ExchangeError(
            f"{plural(table.shape[1], 'column')} where 3 belong", path=path, fix="write `src dst weight` lines"
        )
    ends = table[:, :2].astype(np.int64).reshape(-1, 2)
    return ends, table[:, 2:].astype(np.float32).ravel(), header


def _parse(data: bytes, path: str | Path, kind: str, vertices: int) -> tuple[Table, Header]:
    """Lines that begin with so many vertices, block by block."""
    start, line, header = read_facts(data, path)
    blocks: list[Table] = []
    width: int | None = None
    while start < len(data):
        end = data.rfind(b"\n", start, start + _STEP_BYTES) + 1 or data.index(b"\n", start) + 1
        body = data[start:end]
        found = _parse_canonical(body, kind, vertices, width)
        if found is None:
            found = _parse_by_line(body, path, kind, vertices, width, header, line)
        if len(found):
            blocks.append(found)
            width = found.shape[1]
        line += body.count(b"\n")
        start = end
    dtype = np.int64 if kind == "int32" else np.float64
    return (np.concatenate(blocks) if blocks else np.empty((0, vertices + 1), dtype)), header


def _parse_canonical(body: bytes, kind: str, vertices: int, width: int | None) -> Table | None:
    """All lines at once, if they have the same number of words, single spaces, and nothing but numbers; else None."""
    letters = np.frombuffer(body, np.uint8)
    if not _ALLOWED[kind][letters].all():
        return None
    end = np.flatnonzero((letters == _SPACE) | (letters == _NEWLINE))
    lines = np.flatnonzero(letters[end] == _NEWLINE)
    found = int(lines[0]) + 1
    if found <= vertices or found != (width or found):
        return None
    if not np.array_equal(lines, np.arange(found - 1, len(end), found)):
        return None
    # No empty word, and as many numbers as words: so every word is one number, the whole of it.
    length = np.diff(end, prepend=-1) - 1
    if int(length.min()) < 1 or int(length.max()) > (18 if kind == "int32" else 40):
        return None
    if kind == "int32" and not _only_none_is_negative(letters):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            numbers = np.fromstring(body, np.int64 if kind == "int32" else np.float64, sep=" ")
        except (DeprecationWarning, ValueError):  # something in there is no number
            return None
    if numbers.size != len(end):
        return None
    table: Table = numbers.reshape(-1, found)
    return table if _in_range(table, kind, vertices) else None


def _only_none_is_negative(letters: npt.NDArray[np.uint8]) -> bool:
    at = np.flatnonzero(letters == _MINUS)
    if not len(at):
        return True
    if at[0] == 0 or at[-1] + 2 >= len(letters):
        return False
    after = letters[at + 2]
    return bool(
        (letters[at - 1] == _SPACE).all()
        and (letters[at + 1] == _ONE).all()
        and ((after == _SPACE) | (after == _NEWLINE)).all()
    )


def _in_range(table: Table, kind: str, vertices: int) -> bool:
    """Whether all numbers are what they may be (a table of floats holds vertices up to 2**53 exactly)."""
    names, values = table[:, :vertices], table[:, vertices:]
    if kind == "int32":
        return int(values.max()) < VALUE_LIMIT and int(names.min()) >= 0
    whole = (names >= 0) & (names < 2**53) & (names == np.floor(names))
    return bool(whole.all() and (np.abs(values) < _TOO_LARGE).all())


def _parse_by_line(
    body: bytes, path: str | Path, kind: str, vertices: int, width: int | None, header: Header, above: int
) -> Table:
    """The definition of the format."""
    rows: list[list[float]] = []
    for number, line in enumerate(body.split(b"\n")[:-1], start=above + 1):
        words = line.split()
        if not words or words[0].startswith(b"#"):
            take_fact(line, header, path, number)
            continue
        width = width or max(len(words), vertices + 1)
        problem = _line_problem(words, kind, vertices, width)
        if problem:
            reason, word = problem
            raise ExchangeError(reason, path=path, line=number, value=shown(word or line), fix=_FIX[kind])
        rows.append([int(word) if kind == "int32" else float(word) for word in words])
    dtype = np.int64 if kind == "int32" else np.float64
    table: Table = np.array(rows, dtype).reshape(-1, width or vertices + 1)
    return table


def _line_problem(words: list[bytes], kind: str, vertices: int, width: int) -> tuple[str, bytes] | None:
    if len(words) != width:
        return f"{plural(len(words), 'column')} where {width} belong", b""
    for word in words[:vertices]:
        if not _VERTEX.fullmatch(word) or (kind == "float32" and int(word) >= 2**53):
            return "not a vertex", word
    for word in words[vertices:]:
        if kind == "int32":
            if not _INTEGER.fullmatch(word):
                return "neither a non-negative integer nor -1", word
            if int(word) >= VALUE_LIMIT:
                return f"too large: the limit here is {VALUE_LIMIT - 1}", word
        elif not _FLOAT.fullmatch(word):
            return "not a finite number", word
        elif abs(float(word)) >= _TOO_LARGE:
            return "too large for float32", word
    return None
