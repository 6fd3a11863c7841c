"""Arrays to lines of text and back: `vertex value` and `src dst`, strictly.

Invariant: what ``parse_pairs`` returns is exactly what the lines say; a line that is not as agreed raises an
ExchangeError with file, line, value, reason and fix. Files written by Tandem have one space, no blank lines and their
comments on top; they are parsed by whole-array arithmetic, block by block. A block that is not like that goes line by
line, which is the definition of the format and finds the line to blame.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exchange.counted import plural
from exchange.errors import ExchangeError
from exchange.escape import printable

IntArray = npt.NDArray[np.int64]
Header = dict[str, str]

VALUE_LIMIT = 2**31
VERTEX_LIMIT = 2**63
MAX_HEADER_FACTS = 64
MAX_FACT_SHOWN = 500

_FIX_LINE = {
    2: "write two non-negative integers per line, separated by one space",
    3: "write three non-negative integers per line, separated by one space",
}
_FIX_TORN = "write to a temporary name, end the last line with a newline, then rename"
# 256 KiB of text at a time stays in the cache with all its temporaries.
_STEP_BYTES = 1 << 18
# 18 digits always fit in int64; longer numbers are left to the line-by-line reader.
_MAX_FAST_DIGITS = 18
_FACT = re.compile(rb"[ \t]*#[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]+(\S(?:.*\S)?)[ \t\r]*", re.ASCII)
_GAP = re.compile(rb"[ \t]+")
_INTEGER = re.compile(rb"[0-9]+", re.ASCII)
_NEGATIVE = re.compile(rb"-[0-9.]+", re.ASCII)
_FLOAT = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.ASCII | re.IGNORECASE)


# ------------------------------------------------------------------------------------------- writing


def encode_header(header: Mapping[str, str | int | float]) -> bytes:
    """`# key value` lines."""
    return "".join(f"# {key} {value}\n" for key, value in header.items()).encode()


def encode_pairs(pairs: npt.NDArray[np.integer], header: Mapping[str, str | int | float] | None = None) -> bytes:
    """Rows of a [r, 2] integer array as lines `a b`, below the header."""
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"pairs must be an integer array of shape [r, 2], not {pairs.dtype} {pairs.shape}")
    numbers = tuple(pairs.ravel().tolist())
    return encode_header(header or {}) + (b"%d %d\n" * len(pairs)) % numbers


def encode_edges(
    offsets: npt.NDArray[np.integer],
    targets: npt.NDArray[np.integer],
    k: int,
    header: Mapping[str, str | int | float] | None = None,
    weight: npt.NDArray[Any] | None = None,
) -> bytes:
    """The edges among the vertices [0, k) of a CSR graph as lines `src dst`, row by row, below the header.

    ``weight``, aligned with ``targets``, adds a third column: integers, or float32 with the 9 digits that tell each
    one apart.
    """
    if weight is not None:
        return encode_header(header or {}) + _encode_weighted(offsets, targets, k, weight)
    names = [b"%d" % vertex for vertex in range(k)]
    name_of = names.__getitem__
    parts = [encode_header(header or {})]
    for vertex, name in enumerate(names):
        row = targets[offsets[vertex] : offsets[vertex + 1]]
        row = row[row < k]
        if len(row):
            # One join per row with ready-made strings: the source is part of the separator.
            parts.append(name + b" " + (b"\n" + name + b" ").join(map(name_of, row.tolist())) + b"\n")
    return b"".join(parts)


def _encode_weighted(
    offsets: npt.NDArray[np.integer], targets: npt.NDArray[np.integer], k: int, weight: npt.NDArray[Any]
) -> bytes:
    line = b"%d %d %d\n" if np.issubdtype(weight.dtype, np.integer) else b"%d %d %.9g\n"
    parts = []
    for vertex in range(k):
        row = slice(int(offsets[vertex]), int(offsets[vertex + 1]))
        inside = targets[row] < k
        ends, weights = targets[row][inside].tolist(), weight[row][inside].tolist()
        numbers = [number for pair in zip(ends, weights, strict=True) for number in (vertex, *pair)]
        parts.append((line * len(ends)) % tuple(numbers))
    return b"".join(parts)


# ------------------------------------------------------------------------------------------- reading


def parse_pairs(data: bytes, path: str | Path, *, columns: int = 2) -> tuple[IntArray, Header]:
    """Lines `vertex value` as int64[r, columns], and the facts of the `# key value` lines.

    Column 0 is below 2**63, the others below 2**31.
    """
    return _parse(data, path, (VERTEX_LIMIT, *(VALUE_LIMIT,) * (columns - 1)))


def parse_edges(data: bytes, path: str | Path) -> tuple[IntArray, Header]:
    """Lines `src dst` (int64[e, 2]) or `src dst weight` (int64[e, 3]); the first line says which."""
    columns = 2
    for line in _lines(data):
        if not _is_comment_or_blank(line):
            columns = 3 if len(line.split()) == 3 else 2
            break
    return _parse(data, path, (VERTEX_LIMIT, VERTEX_LIMIT, VALUE_LIMIT)[:columns])


def parse_header(data: bytes, path: str | Path) -> Header:
    """The facts of a file that has `# key value` and blank lines only."""
    rows, header = _parse(data, path, (VERTEX_LIMIT, VALUE_LIMIT))
    if len(rows):
        raise ExchangeError("only `# key value` lines belong here", path=path, fix="remove the other lines")
    return header


def require_whole(data: bytes, path: str | Path) -> None:
    """A file that ends inside a line was cut."""
    if data and not data.endswith(b"\n"):
        last = data[data.rfind(b"\n") + 1 :]
        line = data.count(b"\n") + 1
        raise ExchangeError(
            "torn: the last line has no newline", path=path, line=line, value=shown(last), fix=_FIX_TORN
        )


def _parse(data: bytes, path: str | Path, limits: tuple[int, ...]) -> tuple[IntArray, Header]:
    size = len(data)
    start, line, header = read_facts(data, path)
    out = np.empty((data.count(b"\n", start), len(limits)), dtype=np.int64)
    whole = np.frombuffer(data, dtype=np.uint8)
    row = 0
    while start < size:
        end = size if start + _STEP_BYTES >= size else data.rfind(b"\n", start, start + _STEP_BYTES) + 1
        if end <= start:  # a single line of 256 KiB
            end = data.index(b"\n", start) + 1
        rows = _parse_canonical(whole[start:end], limits)
        if rows is None:
            rows = _parse_lines(data[start:end], path, limits, header, line)
            line += data.count(b"\n", start, end)
        else:
            line += len(rows)
        out[row : row + len(rows)] = rows
        row += len(rows)
        start = end
    return out[:row], header


def read_facts(data: bytes, path: str | Path) -> tuple[int, int, Header]:
    """Where the first line that is no comment begins, how many lines are above it, and their facts; of a whole file."""
    require_whole(data, path)
    header: Header = {}
    start = 0
    line = 0
    while data.startswith(b"#", start):
        line += 1
        end = data.index(b"\n", start)
        take_fact(data[start:end], header, path, line)
        start = end + 1
    return start, line, header


def take_fact(line: bytes, header: Header, path: str | Path, number: int) -> None:
    match = _FACT.fullmatch(line)
    if match is None or len(header) >= MAX_HEADER_FACTS:
        return  # a comment for people
    key, value = match[1].decode(), printable(match[2].decode("utf-8", "replace"), MAX_FACT_SHOWN)
    if header.setdefault(key, value) != value and key == "round":
        raise ExchangeError(
            f"two round ids in one file: {header[key]} and this",
            path=path,
            line=number,
            value=shown(match[2]),
            fix="write one file per round",
        )


def _parse_canonical(text: npt.NDArray[np.uint8], limits: tuple[int, ...]) -> IntArray | None:
    """Whole lines as numbers, if each has its numbers, single spaces and nothing else, all in range; else None."""
    columns = len(limits)
    digit = text - np.uint8(ord("0"))  # wraps around: everything that is no digit becomes larger than 9
    end = np.flatnonzero(digit > 9)
    if len(end) % columns:
        return None
    separator = text[end].reshape(-1, columns)
    if not ((separator[:, :-1] == ord(" ")).all() and (separator[:, -1] == ord("\n")).all()):
        return None
    length = np.diff(end, prepend=-1) - 1
    longest = int(length.max())
    if int(length.min()) < 1 or longest > _MAX_FAST_DIGITS:
        return None
    number: IntArray = digit[end - 1].astype(np.int64)
    for place in range(1, longest):
        # Shorter numbers are masked; the index of the very first may fall before the block, so it is held at 0.
        found = np.where(length > place, digit[np.maximum(end - 1 - place, 0)], 0)
        # dtype said aloud: numpy 1.x would multiply a byte array by a scalar in bytes.
        number += np.multiply(found, 10**place, dtype=np.int64)
    rows = number.reshape(-1, columns)
    for column, limit in enumerate(limits):
        # Vertices need no look: 18 digits stay below 2**63.
        if limit < VERTEX_LIMIT and int(rows[:, column].max()) >= limit:
            return None
    return rows


def _lines(data: bytes) -> Iterable[bytes]:
    """The lines of a text that ends in a newline, without making a list of them all."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield data[start:end]
        start = end + 1


def _is_comment_or_blank(line: bytes) -> bool:
    bare = line.strip(b" \t\r")
    return not bare or bare.startswith(b"#")


def _parse_lines(data: bytes, path: str | Path, limits: tuple[int, ...], header: Header, lines_above: int) -> IntArray:
    """The definition of the format: line by line, any run of spaces or tabs between numbers, CR before LF allowed."""
    numbers: list[int] = []
    for at, line in enumerate(_lines(data), start=lines_above + 1):
        if _is_comment_or_blank(line):
            take_fact(line, header, path, at)
            continue
        words = _GAP.split(line.strip(b" \t\r"))
        problem = _line_problem(words, limits)
        if problem is not None:
            reason, value = problem
            raise ExchangeError(reason, path=path, line=at, value=shown(value or line), fix=_FIX_LINE[len(limits)])
        numbers.extend(map(int, words))
    return np.array(numbers, dtype=np.int64).reshape(-1, len(limits))


def _line_problem(words: list[bytes], limits: tuple[int, ...]) -> tuple[str, bytes] | None:
    """Why a line is refused, and the word to blame (empty: the whole line)."""
    for word, limit in zip(words, (*limits, *(VERTEX_LIMIT,) * len(words)), strict=False):
        if _INTEGER.fullmatch(word):
            if len(word) > 4000 or int(word) >= limit:
                return f"too large: the limit here is {limit - 1}", word
        elif _NOT_FINITE.fullmatch(word):
            return "not a finite number", word
        elif _NEGATIVE.fullmatch(word):
            return "negative", word
        elif _FLOAT.fullmatch(word):
            return "not an integer", word
        else:
            return "not a number", word
    if len(words) != len(limits):
        return f"{plural(len(words), 'column')} where {len(limits)} belong", b""
    return None


def shown(raw: bytes) -> str:
    """A word or line fit for a message."""
    text = raw[:60].decode("ascii", "backslashreplace")
    return text if len(raw) <= 60 else text + "..."
