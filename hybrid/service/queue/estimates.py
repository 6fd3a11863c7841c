"""How much memory a request would take, before it takes any; and the refusal of what is too much.

The figures are upper estimates of what build, search and result hold at their peak, so that no request can take the
process down. They are generous: a graph that is refused here might just have fitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cpu_engine.graph.formats.bounds import Bounds
from cpu_engine.graph.formats.source import BLOCK_BYTES, compression_of
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.memory import available_bytes
from hybrid.config.schema import GeneratorConfig, ServiceConfig
from hybrid.service.http.problems import Problem

_PER_EDGE = 48  # an edge's ends as read, both arcs of it, and what sorting them needs
_PER_VERTEX = 96  # id maps, offsets, and the buffers of two engines
_PER_BYTE_OF_TEXT = 12  # "1 2\n" is an edge in four bytes
_PACKED = 6  # a packed file's content is so many times as large; more is noticed while it is read
_LONGEST_LINE_OF_AN_EDGE = 64
_SEARCH_PER_VERTEX = 8 * 12 + 64 + 24  # words and planes, a table of levels, one search


@dataclass(frozen=True)
class Limits:
    settings: ServiceConfig

    def of_generator(self, wanted: GeneratorConfig) -> None:
        """Problem if making this graph needs too much memory."""
        if wanted.kind == "grid":
            vertices = wanted.rows * wanted.cols
            edges = 2 * vertices
        else:
            vertices = 1 << wanted.scale
            edges = vertices * wanted.edge_factor
        if vertices > self.settings.max_vertices:
            most = f"at most {self.settings.max_vertices} vertices (service.max_vertices)"
            raise Problem(422, f"a graph of {vertices} vertices is too large", most)
        self.require(vertices * _PER_VERTEX + edges * _PER_EDGE, "the graph")

    def of_file(self, path: Path) -> None:
        """Problem if building from this file needs too much memory."""
        if path.is_dir():  # stored: its pages are the file's
            needed = 2 * sum(part.stat().st_size for part in path.iterdir() if part.is_file())
        else:
            with path.open("rb") as file:
                packed = _PACKED if compression_of(file.read(6), path) else 1
            needed = path.stat().st_size * packed * _PER_BYTE_OF_TEXT
        self.require(needed, "the graph")

    def while_reading(self, check: Callable[[], None]) -> Bounds:
        """What a reader may take in of a file whose size is known only when it is unpacked."""
        budget = int(min(self._budget(), 2**62))
        edges, text = budget // _PER_EDGE, budget // _PER_BYTE_OF_TEXT
        lines = edges * _LONGEST_LINE_OF_AN_EDGE
        return Bounds(edges, self.settings.max_vertices, lines, text, check, packed_bytes=4 * BLOCK_BYTES)

    def of_job(self, graph: Graph, sources: int) -> None:
        """Problem if a job's arrays, and what makes them, are too much."""
        result = graph.user_ids.size * 16 * max(1, sources)
        most = min(self.settings.max_result_bytes, self.settings.disk_bytes)
        if result > most:
            fix = f"fewer sources: at most {most} bytes (service.max_result_bytes, service.disk_bytes)"
            raise Problem(413, f"the result would take {result} bytes", fix)
        self.require(3 * result + graph.n * _SEARCH_PER_VERTEX + graph.m * 16, "the job")

    def require(self, needed: int, what: str) -> None:
        """Problem if it needs more bytes than the share of the memory that is available now."""
        budget = self._budget()
        if needed > budget:
            gib = f"{needed / 2**30:.1f} GiB, and a request may take {budget / 2**30:.1f}"
            raise Problem(507, f"{what} needs about {gib}", "ask for less, or unload a graph (service.memory_share)")

    def _budget(self) -> float:
        """Bytes that a request may take."""
        available = available_bytes()
        return math.inf if available is None else available * self.settings.memory_share
