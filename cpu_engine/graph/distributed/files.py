"""Which files a graph is in, agreed on by all ranks, and each rank's range of one.

Invariant: all ranks see the same files, as far as sizes and both ends of each tell; a line belongs to the rank in whose
range it begins, so that over all ranks every line is read once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from cpu_engine.comm.agreement import AgreedInputError, together
from cpu_engine.comm.collectives import RankInfo, broadcast_facts, share_facts
from cpu_engine.comm.requests import Driver
from cpu_engine.counted import plural
from cpu_engine.errors import InputError
from cpu_engine.graph.formats.part_files import files_of, require_joinable
from cpu_engine.graph.formats.reading import AUTO, common_format, require_format
from cpu_engine.graph.formats.source import TextSource, check_file, line_start, lines_before

T = TypeVar("T")
_END_BYTES = 1 << 16


def agreed_files(info: RankInfo, path: Path, format: str) -> Driver[tuple[list[Path], list[int], str]]:
    """The files, their sizes, and the format that all of them have."""

    def look() -> tuple[list[Path], list[int], str]:
        files = files_of(path)
        sizes = [check_file(file) for file in files]
        return files, sizes, _mark_of(files, sizes)

    files, sizes, mark = yield from together(info, look)
    marks = yield from share_facts(info, mark)
    odd = [rank for rank in range(info.size) if marks[rank] != marks[0]]
    if odd:
        where = f" on {info.hosts[odd[0]]}" if info.hosts else ""
        raise AgreedInputError(
            f"rank {odd[0]}{where} sees {'another file' if len(files) == 1 else 'other files'} than rank 0"
            + (f", as {plural(len(odd) - 1, 'more rank does', 'more ranks do')}" if len(odd) > 1 else ""),
            path=path,
            fix="give every machine the same file, or one on a shared file system",
        )

    def name() -> str:
        found = common_format(path, files, sizes) if format == AUTO else format
        require_format(found)
        if len(files) > 1:
            require_joinable(found, path)
        return found

    found = yield from together(info, name if info.rank == 0 else lambda: "")
    return files, sizes, (yield from broadcast_facts(info, found))


def _mark_of(files: Sequence[Path], sizes: Sequence[int]) -> str:
    hasher = hashlib.blake2b(digest_size=16)
    for file, size in zip(files, sizes, strict=True):
        hasher.update(f"{file.name}\0{size}\0".encode(errors="surrogateescape"))
        try:
            with file.open("rb") as stream:
                hasher.update(stream.read(_END_BYTES))
                stream.seek(max(size - _END_BYTES, 0))
                hasher.update(stream.read(_END_BYTES))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", path=file, fix="check the disk") from error
    return hasher.hexdigest()


def range_of(info: RankInfo, path: Path, start: int) -> tuple[int, int]:
    """This rank's bytes of a plain file whose rows begin at ``start``: whole lines, about as many bytes at each."""
    size = path.stat().st_size
    ideal = [start + (size - start) * rank // info.size for rank in (info.rank, info.rank + 1)]
    begin, end = (start if offset <= start else line_start(path, offset) for offset in ideal)
    return begin, size if info.rank == info.size - 1 else end


def in_file_lines(path: Path, begin: int, pieces: Generator[T, None, None]) -> Generator[T, None, None]:
    """The pieces; an error in them, whose lines are counted from ``begin`` on, names the line in the whole file."""
    try:
        with closing(pieces):
            yield from pieces
    except InputError as error:
        if error.line is None or not begin:
            raise
        line = error.line + lines_before(path, begin)
        raise InputError(error.reason, path=error.path, line=line, value=error.value, fix=error.fix) from error


def is_plain(path: Path) -> bool:
    """Whether the file is not compressed."""
    with TextSource(path, longest_line=None) as source:
        return not source.compression


def runs_of_files(info: RankInfo, sizes: Sequence[int]) -> tuple[range, bool]:
    """Which files this rank reads, neighbours by name and of about equal size; and whether that is very uneven."""
    total, before, owners = max(sum(sizes), 1), 0, []
    for size in sizes:  # by the middle of each
        owners.append(min((2 * before + size) * info.size // (2 * total), info.size - 1))
        before += size
    load = [sum(size for size, owner in zip(sizes, owners, strict=True) if owner == rank) for rank in range(info.size)]
    mine = [at for at, owner in enumerate(owners) if owner == info.rank]
    return range(mine[0], mine[-1] + 1) if mine else range(0), 2 * max(load) * info.size > 3 * sum(load)
