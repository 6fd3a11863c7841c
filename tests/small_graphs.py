"""Small graphs, written as files."""

from __future__ import annotations

from pathlib import Path


def write_tailed_triangle(folder: Path) -> Path:
    """A triangle 10, 20, 30 with a tail to 40, a pair 50, 60, and 70 alone, with weights, as LDBC's files."""
    (folder / "g.v").write_text("".join(f"{v}\n" for v in range(10, 80, 10)))
    (folder / "g.e").write_text("10 20 1\n20 30 2\n10 30 5\n30 40 1\n50 60 3\n")
    (folder / "g.properties").write_text(
        "graph.g.vertex-file = g.v\ngraph.g.edge-file = g.e\ngraph.g.directed = false\n"
        "graph.g.edge-properties.names = weight\ngraph.g.edge-properties.types = int\n"
    )
    return folder / "g.properties"
