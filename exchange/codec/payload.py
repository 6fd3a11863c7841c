"""What is inside the files, as bytes: cores, questions and answers of any program, in text and in binary. No I/O.

Invariant: min-plus with unit weights and a single vector is written as it always was (`vertex value` pairs). Everything
else is rows [B, k], a column per core vertex, and says so: `# program`, `# values`, `# batch`, in the text itself or
in a meta file beside the .npy one. An answer repeats program and batch, so that a worker which did not understand the
question is found out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exchange.codec import binary, text
from exchange.codec import rows as lines
from exchange.codec.text import VALUE_LIMIT, Header, IntArray
from exchange.counted import plural
from exchange.errors import ExchangeError
from exchange.protocol.layout import Format
from exchange.protocol.programs import MIN_PLUS, ProgramFacts, Rows, program_facts, row_problem

Facts = Mapping[str, str | int | float]
_CORE_DIGITS = 9
_FIX_CORE = "write a line `# core k`: the core is the vertices 0 to k - 1"
_FIX_OLD = "use a worker that knows this program (see docs/reference/protocol.md), or send single vectors of min-plus"


@dataclass(frozen=True)
class CoreFile:
    """What a core's file holds: int64[e, 2], or [e, 3] with integer weights; or float32 weights apart."""

    edges: IntArray
    weight: npt.NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Question:
    """A round as a worker reads it: pairs `vertex value` (a single vector of min-plus), or rows [B, k]."""

    program: ProgramFacts
    header: Header
    pairs: IntArray | None = None
    rows: Rows | None = None

    @property
    def batch(self) -> int:
        return 1 if self.rows is None else len(self.rows)


# ------------------------------------------------------------------------------------------------ cores


def core_weight(
    program: ProgramFacts, weight: npt.NDArray[Any] | None, targets: npt.NDArray[np.integer]
) -> npt.NDArray[Any] | None:
    """The weights as the program's file holds them: int64, float32, or none."""
    if weight is None:
        return None
    if program.weights is None:
        raise ExchangeError(f"{program.name} knows no weights", fix="publish the core without them")
    if weight.shape != targets.shape:
        raise ExchangeError(
            f"{plural(weight.size, 'weight')} for {plural(targets.size, 'edge')}",
            fix="give one weight per entry of out_targets",
        )
    if program.weights == "float32":
        if not np.isfinite(weight).all() or np.abs(weight).max(initial=0) > np.finfo(np.float32).max:
            raise ExchangeError("a weight is not a finite float32", fix="give finite weights")
        return weight.astype(np.float32)
    found = weight.astype(np.int64)
    bad = (found != weight) | (found < 0) | (found >= VALUE_LIMIT)
    if bad.any():
        raise ExchangeError(
            f"weights of {program.name} are integers from 0 to {VALUE_LIMIT - 1}",
            value=weight[bad][0].item(),
            fix="scale and round them",
        )
    return found


def encode_core(
    format: Format,
    offsets: npt.NDArray[np.integer],
    targets: npt.NDArray[np.integer],
    k: int,
    program: ProgramFacts,
    weight: npt.NDArray[Any] | None,
) -> bytes:
    """The edges among the vertices [0, k)."""
    if format == "binary":
        return binary.encode_edges(offsets, targets, k, weight)
    facts: dict[str, str | int] = {"core": k, **_program_facts(program)}
    if weight is not None and weight.dtype == np.float32:
        facts["weights"] = "float32"
    return text.encode_edges(offsets, targets, k, facts, weight)


def parse_core(format: Format, data: bytes, path: Path) -> CoreFile:
    """A core of either kind of weights; the file says which."""
    if format == "text":
        if text.read_facts(data, path)[2].get("weights") == "float32":
            ends, weight, _ = lines.parse_weighted_edges(data, path)
            return CoreFile(ends, weight)
        return CoreFile(text.parse_edges(data, path)[0])
    if b"weight" in data[:256]:  # a field's name, in the .npy header
        return CoreFile(*binary.parse_weighted_edges(data, path))
    return CoreFile(binary.parse_edges(data, path))


# -------------------------------------------------------------------------------------------- questions


def encode_rows(
    format: Format, program: ProgramFacts, rows: Rows, facts: Facts, *, every_vertex: bool = False
) -> tuple[bytes, bytes | None]:
    """Rows [B, k] as file and, in binary, meta file; in text only the vertices that hold anything have a line."""
    named: dict[str, str | int | float] = {**facts, "program": program.name, "values": program.kind, "batch": len(rows)}
    if format == "binary":
        return binary.encode_array(rows), text.encode_header(named)
    k = rows.shape[1]
    vertices = np.arange(k) if every_vertex else np.flatnonzero((rows != program.empty).any(axis=0))
    return lines.encode_rows(vertices, rows[:, vertices].T, named), None


def parse_question(format: Format, data: bytes, meta: Header | None, path: Path, max_bytes: int) -> Question:
    """A round's values. ``meta``: the facts of value.meta, if there is one."""
    if format == "binary":
        if meta is None or "batch" not in meta:
            return Question(program_facts(MIN_PLUS), meta or {}, pairs=binary.parse_pairs(data, path))
        program = program_facts(meta.get("program", MIN_PLUS), path)
        rows = binary.parse_rows(data, path, program.kind)
        _require_facts(meta, {"batch": len(rows), "core": rows.shape[1]}, path)
        return Question(program, meta, rows=_sound(program, rows, path))
    header = text.read_facts(data, path)[2]
    program = program_facts(header.get("program", MIN_PLUS), path)
    if program.name == MIN_PLUS and "batch" not in header and _columns(data) <= 2:
        pairs, header = text.parse_pairs(data, path)
        return Question(program, header, pairs=pairs)
    vertices, columns, header = lines.parse_rows(data, path, program.kind)
    k = core_size(header, path)
    if 4 * k * columns.shape[1] > max_bytes:
        raise ExchangeError(
            f"{columns.shape[1]} vectors on {k} vertices take more than the {max_bytes} bytes that are allowed here",
            path=path,
            fix="send fewer vectors at once",
        )
    return Question(program, header, rows=_sound(program, _dense(program, vertices, columns, k, path), path))


def core_size(header: Header, path: Path) -> int:
    """The k of `# core k`."""
    size = header.get("core", "")
    if not size.isascii() or not size.isdecimal() or len(size) > _CORE_DIGITS:
        raise ExchangeError("the size of the core is missing or no number", path=path, value=size, fix=_FIX_CORE)
    return int(size)


# ---------------------------------------------------------------------------------------------- answers


def parse_answer_rows(
    format: Format, data: bytes, meta: Header, path: Path, program: ProgramFacts, shape: tuple[int, int]
) -> tuple[Rows, Header]:
    """The rows of an answer to rows of that shape, and its facts."""
    if format == "binary":
        _require_understood(meta, program, shape[0], path)
        rows, header = binary.parse_rows(data, path, program.kind), meta
        if rows.shape != shape:
            raise ExchangeError(
                f"the shape must be that of the question, {list(shape)}",
                path=path,
                value=list(rows.shape),
                fix="answer with a row per vector and a column per core vertex",
            )
        return _sound(program, rows, path), header
    _require_understood(text.read_facts(data, path)[2], program, shape[0], path)
    vertices, columns, header = lines.parse_rows(data, path, program.kind)
    rows = _dense(program, vertices, columns, shape[1], path)
    if not program.closes and len(vertices) != shape[1]:
        raise ExchangeError(
            f"{plural(len(vertices), 'line')} where all {shape[1]} vertices of the core belong",
            path=path,
            fix="write them all",
        )
    return _sound(program, rows, path), header


def _dense(program: ProgramFacts, vertices: IntArray, columns: Rows, k: int, path: Path) -> Rows:
    """Lines as rows [B, k]."""
    if len(vertices) and int(vertices.max()) >= k:
        raise ExchangeError(
            f"unknown vertex: the core has the vertices 0 to {k - 1}",
            path=path,
            value=int(vertices.max()),
            fix="name core vertices only",
        )
    if len(vertices) and int(np.bincount(vertices, minlength=1).max()) > 1:
        raise ExchangeError("a vertex has two lines", path=path, fix="write one line per vertex")
    rows: Rows = np.full((columns.shape[1], k), program.empty, program.dtype)
    rows[:, vertices] = columns.T
    return rows


def _sound(program: ProgramFacts, rows: Rows, path: Path) -> Rows:
    problem = row_problem(program, rows)
    if problem:
        raise ExchangeError(problem, path=path, fix=f"see the values of {program.name} in docs/reference/protocol.md")
    return rows


def _require_understood(header: Header, program: ProgramFacts, batch: int, path: Path) -> None:
    """A worker that knows single vectors of min-plus only may well have answered: something else."""
    name, count = header.get("program", "nothing"), header.get("batch", "nothing")
    if (name, count) != (program.name, str(batch)):
        raise ExchangeError(
            f"the question was {program.name} on {plural(batch, 'vector')}, and the answer does not say so",
            path=path,
            value=f"# program {name}, # batch {count}",
            fix=_FIX_OLD,
        )


def _require_facts(header: Header, facts: dict[str, int], path: Path) -> None:
    for key, value in facts.items():
        if header.get(key) != str(value):
            raise ExchangeError(
                f"the array says {key} {value}, its meta file does not",
                path=path,
                value=header.get(key),
                fix="write both files of one round, the meta file first",
            )


def _columns(data: bytes) -> int:
    """How many words the first line has that is no comment; 0 without one."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        words = data[start : end if end >= 0 else len(data)].split(None, 64)
        if words and not words[0].startswith(b"#"):
            return len(words)
        if end < 0:
            break
        start = end + 1
    return 0


def _program_facts(program: ProgramFacts) -> dict[str, str]:
    return {} if program.name == MIN_PLUS else {"program": program.name, "values": program.kind}
