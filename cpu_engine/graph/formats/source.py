"""A graph file as bytes: found, opened, decompressed and cut into blocks of whole lines.

Invariant: every byte of the (decompressed) text is handed out exactly once and in order, each block ends at a line end
(the last one at the end of the file), and the number of lines handed out before it is known.
"""

from __future__ import annotations

import difflib
import gzip
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.formats.bounds import current_bounds

Progress = Callable[[int, int], None]

BLOCK_BYTES = 4 << 20  # a block and what it parses to (up to 24 bytes per 4 of text) stay in tens of MB
LONGEST_ROW_BYTES = 1 << 20  # a line of two or three numbers is never this long
COMPRESSED_MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz"}
REFUSED_MAGIC = {b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip", b"7z\xbc\xaf": "7-zip"}
MOST_COMPRESSED = 20
_SCAN_BYTES = 1 << 16
NEWLINE = ord("\n")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def check_file(path: Path) -> int:
    """Return the size of a readable regular file; explain everything else."""
    try:
        info = path.stat()
    except FileNotFoundError:
        raise InputError("there is no such file", path=path, fix=_nearest_name(path)) from None
    except OSError as error:
        raise InputError(
            f"cannot be looked at: {error.strerror}", path=path, fix="check the path and its rights"
        ) from None
    if stat.S_ISDIR(info.st_mode):
        if (path / "meta.json").exists() and (path / "out_offsets.npy").exists():
            fix = "build the store again from the edge list"
            raise InputError("is a stored graph whose meta.json is damaged", path=path, fix=fix)
        raise InputError("is an empty directory, not a graph", path=path, fix="name a file, or put part files there")
    if not stat.S_ISREG(info.st_mode):
        raise InputError("is not a regular file", path=path, fix="write the graph to a file first")
    if not os.access(path, os.R_OK):
        raise InputError("may not be read", path=path, fix="give yourself the right to read it (chmod u+r)")
    return info.st_size


def _nearest_name(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"check the path: the folder {folder} does not exist"
    near = difflib.get_close_matches(path.name, [entry.name for entry in folder.iterdir()], n=1, cutoff=0.5)
    return f"did you mean {folder / near[0]}?" if near else "check the path"


def compression_of(magic: bytes, path: Path) -> str:
    """'gzip', 'xz' or '' by the first bytes of the file."""
    for start, name in REFUSED_MAGIC.items():
        if magic.startswith(start):
            raise InputError(f"is compressed with {name}", path=path, fix="unpack it, or use .gz or .xz")
    return next((name for start, name in COMPRESSED_MAGIC.items() if magic.startswith(start)), "")


@dataclass(frozen=True)
class Block:
    """Whole lines of text; ``lines_before`` lines of the file come in front of it."""

    text: bytes
    lines_before: int
    lines: int  # newlines in the text


class TextSource:
    """Reads header lines first (``next_line``), then the rest as blocks (``blocks``). A context manager.

    ``span``: of a plain file only the bytes [begin, end); lines are then counted from there.
    """

    def __init__(
        self,
        path: Path,
        progress: Progress | None = None,
        *,
        longest_line: int | None = LONGEST_ROW_BYTES,
        span: tuple[int, int] | None = None,
    ) -> None:
        self.path = path
        self.size = check_file(path)
        self.lines_read = 0
        self._progress = progress
        self._bounds = current_bounds()
        self._longest_line = min(longest_line or self._bounds.line_bytes, self._bounds.line_bytes)
        self._pending = b""  # text read from the file; the first _used bytes of it are handed out
        self._used = 0
        self._line_start = 0
        self._text_read = 0
        self._at_end = False
        self._end = self.size if span is None else span[1]
        self._file = path.open("rb")
        self._stream: BinaryIO = self._file
        try:
            self.compression = compression_of(self._start(), path)
            if self.compression == "gzip":
                self._stream = gzip.GzipFile(fileobj=self._file)  # type: ignore[assignment]
            elif self.compression == "xz":
                self._stream = lzma.LZMAFile(self._file)  # type: ignore[assignment]  # noqa: SIM115
            if span is not None:
                self._file.seek(span[0])
            self._fill()
        except BaseException:
            self.close()
            raise
        if span is None:
            self._pending = self._pending.removeprefix(BYTE_ORDER_MARK)

    def __enter__(self) -> TextSource:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        if self._stream is not self._file:
            self._stream.close()
        self._file.close()

    def prefix(self) -> tuple[bytes, bool]:
        """The text not yet handed out that is already in memory, and whether it reaches the end of the file."""
        self._drop_used()
        if len(self._pending) < BLOCK_BYTES:
            self._fill()
        return self._pending, self._at_end

    def next_line(self) -> str | None:
        """The next line without its end, or None at the end of the file."""
        while (cut := self._pending.find(b"\n", self._used)) < 0 and not self._at_end:
            self._drop_used()
            self._check_line_length()
            self._fill()
        end = len(self._pending) if cut < 0 else cut
        line = self._pending[self._used : end]
        if cut < 0 and not line:
            return None
        self._line_start = self._used
        self._used = min(end + 1, len(self._pending))
        self.lines_read += 1
        return show_text(line.rstrip(b"\r"), limit=None)

    @property
    def offset(self) -> int:
        """Where in a plain file the next line begins."""
        return self._file.tell() - len(self._pending) + self._used

    def expected_bytes(self) -> float:
        """About how long the whole text is, by how much of the file its first part took."""
        # The start of a compressed file may be far from typical: allow for text of MOST_COMPRESSED times the size.
        return min(self._text_read / max(self._file.tell(), 1), MOST_COMPRESSED) * self.size

    def unread_line(self) -> None:
        """Take back the line that ``next_line`` just gave."""
        self._used = self._line_start
        self.lines_read -= 1

    def blocks(self) -> Iterator[Block]:
        """The rest of the file."""
        self._drop_used()
        while True:
            cut = len(self._pending) if self._at_end else self._pending.rfind(b"\n") + 1
            if cut:
                text = self._pending[:cut]
                self._pending = self._pending[cut:]
                # bytes.count takes longer than parsing does.
                block = Block(text, self.lines_read, np.count_nonzero(np.frombuffer(text, np.uint8) == NEWLINE))
                # Added before it is handed out, so that several blocks may be under way at once.
                self.lines_read += block.lines
                yield block
                if self._progress is not None:
                    self._progress(self._file.tell(), self.size)
            if self._at_end:
                return
            self._check_line_length()
            self._fill()

    def _drop_used(self) -> None:
        self._pending, self._used = self._pending[self._used :], 0

    def _check_line_length(self) -> None:
        if len(self._pending) > self._longest_line:
            raise InputError(
                f"the line is longer than {self._longest_line} bytes",
                path=self.path,
                line=self.lines_read + 1,
                value=show_text(self._pending),
                fix="write one edge per line, or name the format",
            )

    def _start(self) -> bytes:
        try:
            start = self._file.read(6)
            self._file.seek(0)
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror or error}", path=self.path, fix="check the disk"
            ) from None
        return start

    def _fill(self) -> None:
        try:
            # A line that fills what is pending is read on in ever larger pieces, so that joining them stays linear.
            wanted = max(BLOCK_BYTES, len(self._pending))
            if self._end < self.size:
                wanted = min(wanted, self._end - self._file.tell())
            data = self._stream.read(wanted)
        except EOFError:
            raise InputError(
                f"the {self.compression} data ends in the middle: the file is truncated",
                path=self.path,
                fix="download or compress it again",
            ) from None
        except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
            raise InputError(
                f"the {self.compression} data is damaged: {error}", path=self.path, fix="download or compress it again"
            ) from None
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror or error}", path=self.path, fix="check the disk"
            ) from None
        self._at_end = not data
        self._text_read += len(data)
        self._bounds.require_text(self._text_read, self.path)
        self._pending = self._pending + data if self._pending else data


def line_start(path: Path, offset: int) -> int:
    """Where the first line begins that does so at ``offset`` or behind it, in a plain file; its end if none does."""
    with path.open("rb") as file:
        at = file.seek(max(offset - 1, 0))
        if offset == 0:
            return 0
        while data := file.read(_SCAN_BYTES):
            cut = data.find(b"\n")
            if cut >= 0:
                return at + cut + 1
            at += len(data)
        return at


def lines_before(path: Path, offset: int) -> int:
    """How many lines end in front of ``offset`` in a plain file: a pass over it, only for an error message."""
    lines = 0
    with path.open("rb") as file:
        while offset > 0 and (data := file.read(min(offset, BLOCK_BYTES))):
            lines += data.count(b"\n")
            offset -= len(data)
    return lines


def show_text(data: bytes, limit: int | None = 60) -> str:
    """Bytes as a message may show them: undecodable ones escaped, long ones cut."""
    text = data[:limit].decode("utf-8", errors="backslashreplace")
    return text + "..." if limit is not None and len(data) > limit else text
