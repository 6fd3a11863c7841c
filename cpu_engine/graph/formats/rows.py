"""Numbers out of text blocks: drives the parse kernels, collects their output and turns a stop into an error message.

Invariant: the output order is the file's order however many threads parse, and the first error of the file wins.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cpu_engine.counted import count, plural
from cpu_engine.errors import InputError
from cpu_engine.graph.formats.bounds import current_bounds
from cpu_engine.graph.formats.source import Block, TextSource, show_text
from cpu_engine.graph.kernels import parse
from cpu_engine.graph.memory import require_bytes

HIGHEST_ID = np.iinfo(np.int64).max
MOST_THREADS = 4  # reading and decompressing is one thread's work, which more parsers only wait for
ASKED_BYTES = 256 << 20  # each time that this much more is filled: how much there is shows only while it is unpacked
_NO_INTS, _NO_FLOATS = np.empty(0, np.int64), np.empty(0, np.float64)


@dataclass(frozen=True)
class RowLayout:
    """What a line must look like: ``columns`` tokens, the first ``id_columns`` of them ids."""

    columns: int
    id_columns: int = 2
    weight_column: int = -1
    lead: str = ""  # a letter in front of the ids, as in DIMACS
    comments: str = "#%"
    lowest: int = 0
    highest: int = HIGHEST_ID
    integer_weights: bool = False

    def spec(self, float_mode: bool) -> np.ndarray:
        spec = np.zeros(parse.ROW_SPEC_FIELDS, np.int64)
        spec[parse.LEAD] = ord(self.lead) if self.lead else 0
        spec[parse.COMMENT_A], spec[parse.COMMENT_B] = ord(self.comments[0]), ord(self.comments[-1])
        spec[parse.ID_COLUMNS], spec[parse.COLUMNS] = self.id_columns, self.columns
        spec[parse.WEIGHT_COLUMN] = self.weight_column
        spec[parse.LOWEST], spec[parse.HIGHEST] = self.lowest, self.highest
        spec[parse.FLOAT_MODE] = float_mode
        return spec


class GrowingArray:
    """An array that grows in place (realloc), so that its peak is near its final size."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._array = np.empty(0, dtype)
        self._used = 0

    def append(self, values: np.ndarray) -> None:
        needed = self._used + len(values)
        size = self._array.itemsize
        if needed * size // ASKED_BYTES > self._used * size // ASKED_BYTES:
            require_bytes(
                ASKED_BYTES, "reading more of the edges", "use a machine with more memory, or a smaller graph"
            )
        if needed > len(self._array):
            self._array.resize(max(needed, len(self._array) * 5 // 4), refcheck=False)
        self._array[self._used : needed] = values
        self._used = needed

    def reserve(self, count: int) -> None:
        """Make room at once; memory that is not used in the end is never touched, so a guess too high costs nothing."""
        if count > len(self._array):
            larger = np.empty(count, self._array.dtype)
            larger[: self._used] = self._array[: self._used]
            self._array = larger

    def become_float(self) -> None:
        larger = np.empty(len(self._array), np.float64)
        larger[: self._used] = self._array[: self._used]
        self._array = larger

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    def __len__(self) -> int:
        return self._used

    def take(self) -> np.ndarray:
        """The values; the array is spent afterwards."""
        self._array.resize(self._used, refcheck=False)
        return self._array


@dataclass
class Numbers:
    """Columns parsed from text, and how many rows there were."""

    src: np.ndarray
    dst: np.ndarray
    weight: np.ndarray | None
    rows: int


@dataclass(frozen=True)
class _Parsed:
    """One block's output; ``status`` other than OK means that it stopped at ``position``."""

    block: Block
    src: np.ndarray
    dst: np.ndarray
    weight: np.ndarray
    status: int
    position: int


def read_rows(source: TextSource, layout: RowLayout) -> Numbers:
    """Parse the rest of ``source`` as rows of ``layout``."""
    weighted, bounds = layout.weight_column >= 0, current_bounds()
    src, dst, weight = GrowingArray(np.int64), GrowingArray(np.int64), GrowingArray(np.int64)
    float_mode = False
    with closing(_sound_in_order(source, layout)) as stream:
        for number, parsed in enumerate(stream):
            src.append(parsed.src)
            dst.append(parsed.dst)
            bounds.require_edges(len(src), source.path)
            if weighted:
                if parsed.weight.dtype == np.float64 and not float_mode:
                    weight.become_float()
                    float_mode = True
                weight.append(parsed.weight)
            if number == 0:
                guess = int(1.05 * len(parsed.src) * source.expected_bytes() / len(parsed.block.text))
                for array in (src, dst, weight) if weighted else (src, dst):
                    array.reserve(guess)
    starts = src.take()
    return Numbers(starts, dst.take(), weight.take() if weighted else None, len(starts))


def row_pieces(source: TextSource, layout: RowLayout) -> Generator[Numbers, None, None]:
    """The same, a block at a time; the weights of a piece are floats if one of that piece is."""
    with closing(_sound_in_order(source, layout)) as stream:
        for parsed in stream:
            weight = parsed.weight if layout.weight_column >= 0 else None
            yield Numbers(parsed.src, parsed.dst, weight, len(parsed.src))


def _sound_in_order(source: TextSource, layout: RowLayout) -> Generator[_Parsed, None, None]:
    """The blocks in file order; InputError for the first line that is not a row of the layout."""
    with closing(_parse_in_order(source, layout)) as stream:
        for parsed in stream:
            if parsed.status == parse.NEEDS_FLOAT and not layout.integer_weights:
                parsed = _parse_block(parsed.block, layout, True, source.path)
            if parsed.status != parse.OK:
                raise row_error(parsed.status, parsed.block, parsed.position, layout, source.path)
            yield parsed


def _parse_in_order(source: TextSource, layout: RowLayout) -> Generator[_Parsed, None, None]:
    """Parse blocks on a few threads (the kernels release the GIL) and yield them in file order."""
    blocks = source.blocks()
    first = next(blocks, None)
    if first is None:
        return
    second = next(blocks, None)
    if second is None:
        yield _parse_block(first, layout, False, source.path)
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = min(MOST_THREADS, cores)
    float_mode = False
    with ThreadPoolExecutor(threads, thread_name_prefix="parse") as pool:
        waiting: deque[Future[_Parsed]] = deque()

        def submit(block: Block) -> None:
            waiting.append(pool.submit(_parse_block, block, layout, float_mode, source.path))

        def finish() -> _Parsed:
            parsed = waiting.popleft().result()
            # Once one block has fractions the next ones most likely have too: do not parse them twice.
            nonlocal float_mode
            float_mode = float_mode or parsed.status == parse.NEEDS_FLOAT
            return parsed

        submit(first)
        yield finish()
        submit(second)
        for block in blocks:
            submit(block)
            if len(waiting) > threads:
                yield finish()
        while waiting:
            yield finish()


def _parse_block(block: Block, layout: RowLayout, float_mode: bool, path: Path) -> _Parsed:
    text = np.frombuffer(block.text, np.uint8)
    most = block.lines + 1
    src = np.empty(most, np.int64)
    dst = np.empty(most if layout.id_columns > 1 else 0, np.int64)
    weighted = layout.weight_column >= 0
    ints = np.empty(most, np.int64) if weighted and not float_mode else _NO_INTS
    floats = np.empty(most, np.float64) if weighted and float_mode else _NO_FLOATS
    hard = np.empty((len(floats), 3), np.int64)
    out = np.zeros(parse.OUT_FIELDS, np.int64)
    parse.parse_rows(text, layout.spec(float_mode), parse.EdgeArrays(src, dst, ints, floats, hard, out))
    rows, status, position = int(out[parse.ROWS]), int(out[parse.STATUS]), int(out[parse.POSITION])
    if status == parse.OK:
        finish_hard_weights(block, hard[: out[parse.HARD]], floats, path)
    return _Parsed(block, src[:rows], dst[:rows], (floats if float_mode else ints)[:rows], status, position)


def finish_hard_weights(block: Block, hard: np.ndarray, floats: np.ndarray, path: Path) -> None:
    """Fill in the weights that need more than double arithmetic to be rounded correctly."""
    if not len(hard):
        return
    text = block.text
    values = np.array([float(text[start:stop]) for start, stop in hard[:, 1:].tolist()])
    if not np.isfinite(values).all():
        start = int(hard[np.argmin(np.isfinite(values)), 1])
        raise _error_at(block, start, path, "the weight is too large for a number of 64 bits", "use a smaller weight")
    floats[hard[:, 0]] = values


@dataclass(frozen=True)
class RaggedLayout:
    """One vertex per line. ``implicit``: the line's number is the vertex, its first ``skip`` columns are left out."""

    implicit: bool = False
    skip: int = 0
    weighted: bool = False
    row_limit: int = HIGHEST_ID
    lowest: int = 0
    highest: int = HIGHEST_ID

    def spec(self, first_row: int, float_mode: bool) -> np.ndarray:
        spec = np.zeros(parse.RAGGED_SPEC_FIELDS, np.int64)
        spec[parse.IMPLICIT], spec[parse.SKIP], spec[parse.STRIDE] = self.implicit, self.skip, 1 + self.weighted
        spec[parse.FIRST_ROW], spec[parse.ROW_LIMIT] = first_row, self.row_limit
        spec[parse.RAGGED_LOWEST], spec[parse.RAGGED_HIGHEST] = self.lowest, self.highest
        spec[parse.RAGGED_FLOAT_MODE] = float_mode
        return spec


def read_ragged(source: TextSource, layout: RaggedLayout) -> tuple[Numbers, np.ndarray]:
    """Parse the rest of ``source`` as adjacency lines; return the entries and the vertex of each line."""
    src, dst, weight = GrowingArray(np.int64), GrowingArray(np.int64), GrowingArray(np.int64)
    vertices, bounds = GrowingArray(np.int64), current_bounds()
    for piece, owners in ragged_pieces(source, layout):
        if piece.weight is not None:
            if piece.weight.dtype == np.float64 and weight.dtype != np.float64:
                weight.become_float()
            weight.append(piece.weight)
        src.append(piece.src)
        dst.append(piece.dst)
        vertices.append(owners)
        bounds.require_edges(len(src), source.path)
        bounds.require_vertices(len(vertices), source.path)
    starts, rows = src.take(), len(vertices)
    return Numbers(starts, dst.take(), weight.take() if layout.weighted else None, rows), vertices.take()


def ragged_pieces(source: TextSource, layout: RaggedLayout) -> Generator[tuple[Numbers, np.ndarray], None, None]:
    """The same, a block at a time; the weights are floats from the first piece on that has one."""
    rows, float_mode = 0, False
    out = np.zeros(parse.OUT_FIELDS, np.int64)
    for block in source.blocks():
        text = np.frombuffer(block.text, np.uint8)
        entries, lines = len(text) // 2 + 1, block.lines + 1
        block_src, block_dst = np.empty(entries, np.int64), np.empty(entries, np.int64)
        block_rows = np.empty(lines, np.int64)
        while True:
            ints = np.empty(entries if layout.weighted and not float_mode else 0, np.int64)
            floats = np.empty(entries if layout.weighted and float_mode else 0, np.float64)
            hard = np.empty((len(floats), 3), np.int64)
            spec = layout.spec(rows, float_mode)
            parse.parse_ragged(text, spec, parse.EdgeArrays(block_src, block_dst, ints, floats, hard, out), block_rows)
            if out[parse.STATUS] != parse.NEEDS_FLOAT:
                break
            float_mode = True
        status, edges = int(out[parse.STATUS]), int(out[parse.EDGES])
        if status != parse.OK:
            raise ragged_error(status, block, int(out[parse.POSITION]), layout, source.path)
        finish_hard_weights(block, hard[: out[parse.HARD]], floats, source.path)
        found, owners = int(out[parse.ROWS]), block_rows[: out[parse.ROWS]]
        rows += found
        weight = (floats if float_mode else ints)[:edges] if layout.weighted else None
        yield Numbers(block_src[:edges], block_dst[:edges], weight, found), owners


def row_error(status: int, block: Block, position: int, layout: RowLayout, path: Path) -> InputError:
    """Why a line is not a row of ``layout``."""
    names = ["source", "target"][: layout.id_columns] if layout.id_columns > 1 else ["vertex"]
    names += ["weight" if column == layout.weight_column else "value" for column in range(len(names), layout.columns)]
    wanted = " ".join([layout.lead, *names] if layout.lead else names)
    line = show_text(_line_at(block.text, position))
    if status in (parse.TOO_FEW_COLUMNS, parse.TOO_MANY_COLUMNS):
        count = layout.columns + bool(layout.lead)
        found = len(split_columns(_line_at(block.text, position).decode("latin-1"), layout.comments))
        return _error_at(
            block,
            position,
            path,
            f"expected {count} column{'s' if count > 1 else ''} ({wanted}), found {found}",
            "correct the line; if the lines are 'vertex neighbour neighbour ...', name the format: adjacency",
            value=line,
        )
    if status == parse.BAD_LEAD:
        return _error_at(block, position, path, f"the line is not '{wanted}'", "correct or remove the line", value=line)
    if status == parse.NEEDS_FLOAT:
        return _error_at(
            block, position, path, "the header promises integers, this weight is not one", "declare the field 'real'"
        )
    return _number_error(status, block, position, path, layout.lowest, layout.highest)


def ragged_error(status: int, block: Block, position: int, layout: RaggedLayout, path: Path) -> InputError:
    """Why a line is not an adjacency line of ``layout``."""
    line = show_text(_line_at(block.text, position))
    if status == parse.TOO_MANY_ROWS:
        reason = f"there are more lines than the {plural(layout.row_limit, 'vertex')} that the header declares"
        return _error_at(
            block, position, path, reason, "correct the header's vertex count or remove the line", value=line
        )
    if status == parse.TOO_FEW_COLUMNS:
        reason = "a neighbour lacks its weight" if layout.weighted else "the vertex lacks its weights"
        return _error_at(block, position, path, reason, "correct the line, or the header's format flags", value=line)
    return _number_error(status, block, position, path, layout.lowest, layout.highest)


def _number_error(status: int, block: Block, position: int, path: Path, lowest: int, highest: int) -> InputError:
    if status == parse.EMPTY_FIELD:
        line = show_text(_line_at(block.text, position))
        return _error_at(block, position, path, "a field is empty", "put a number between the commas", value=line)
    reason, fix = {
        parse.NOT_A_NUMBER: (
            "a vertex id must be a non-negative integer",
            "correct the line, or put '#' in front of it if it is a comment or a row of column names",
        ),
        parse.NEGATIVE_ID: ("a vertex id is negative", "use ids from 0 to 2^63-1"),
        parse.ID_OVERFLOW: ("a vertex id does not fit in 64 bits", "use ids from 0 to 2^63-1"),
        parse.ID_OUT_OF_RANGE: (
            f"the vertex id is outside the declared range {lowest}..{highest}",
            "correct the id, or the vertex count in the header",
        ),
        parse.BAD_WEIGHT: ("a weight must be a finite decimal number", "correct the line"),
        parse.WEIGHT_OVERFLOW: (
            "an integer weight does not fit in 64 bits",
            "use a smaller weight, or write it as 1e19",
        ),
    }[status]
    return _error_at(block, position, path, reason, fix)


def wrong_count(head: str, declared: str, rows: int, path: Path, line: int, value: str) -> InputError:
    """The ``head`` line, which reads ``value``, declares another number of rows than there are."""
    return InputError(
        f"the {head} line declares {declared}, there are {count(rows)}",
        path=path,
        line=line,
        value=value,
        fix=f"download the file again if it is cut off, else correct the {head} line",
    )


def _error_at(block: Block, position: int, path: Path, reason: str, fix: str, value: str | None = None) -> InputError:
    text = block.text
    if value is None:
        end = position
        while end < len(text) and text[end] not in b" \t\r\n\v\f,":
            end += 1
        value = show_text(text[position:end])
    return InputError(
        reason, path=path, line=block.lines_before + text.count(b"\n", 0, position) + 1, value=value, fix=fix
    )


def _line_at(text: bytes, position: int) -> bytes:
    start = text.rfind(b"\n", 0, position) + 1
    end = text.find(b"\n", position)
    return text[start : len(text) if end < 0 else end].strip()


def split_columns(line: str, comments: str = "#%") -> list[str]:
    """The tokens of a line, without its comment."""
    for mark in comments:
        line = line.split(mark, 1)[0]
    return line.replace(",", " ").split()
