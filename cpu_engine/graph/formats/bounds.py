"""How much of a file that is not trusted a reader may take in: text, lines, edges, declared vertices.

A packed file tells its size only while it is unpacked, so the readers look between two blocks. The bounds hold for all
reading inside ``with bounded(...)`` on the same thread; without it there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from cpu_engine.errors import InputError


class TooLarge(InputError):
    """A file that holds more than the reader may take in."""


@dataclass(frozen=True)
class Bounds:
    """The most of each; ``check`` is called before every block and may raise to end the reading."""

    edges: int
    vertices: int
    text_bytes: int
    line_bytes: int
    check: Callable[[], None] = lambda: None
    packed_bytes: int = 2**63  # of a compressed file, for one block of text: empty members take time and give none

    def require_packed(self, count: int, path: Path) -> None:
        self.check()
        self._require(count, self.packed_bytes, "bytes of compressed data for one block of text", path)

    def require_text(self, count: int, path: Path) -> None:
        self.check()
        self._require(count, self.text_bytes, "bytes of text", path)

    def require_edges(self, count: int, path: Path) -> None:
        self._require(count, self.edges, "edges", path)

    def require_vertices(self, count: int, path: Path) -> None:
        self._require(count, self.vertices, "vertices", path)

    def _require(self, count: int, most: int, what: str, path: Path) -> None:
        if count > most:
            raise TooLarge(f"the file has more than {most} {what}", path=path, fix="give a smaller graph")


_NONE = Bounds(2**63, 2**63, 2**63, 2**63)
_current: ContextVar[Bounds] = ContextVar("bounds", default=_NONE)


@contextmanager
def bounded(bounds: Bounds) -> Iterator[None]:
    """Hold all reading inside to ``bounds``."""
    before = _current.set(bounds)
    try:
        yield
    finally:
        _current.reset(before)


def current_bounds() -> Bounds:
    """What holds here."""
    return _current.get()
