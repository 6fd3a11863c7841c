"""Edges as lines of text, for the writers.

Invariant: what is written parses back to the same numbers (integers exactly, floats by their shortest exact form).
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from cpu_engine.graph.edges import EdgeList

LINES_AT_ONCE = 1 << 16


def write_edge_lines(
    file: BinaryIO, src: np.ndarray, dst: np.ndarray, weight: np.ndarray | None, *, separator: str = " ", shift: int = 0
) -> None:
    """Write ``source target [weight]`` per line."""
    form = f"%d{separator}%d"
    columns = 2
    if weight is not None:
        form += f"{separator}%d" if weight.dtype.kind in "iu" else f"{separator}%r"
        columns = 3
    form += "\n"
    for start in range(0, len(src), LINES_AT_ONCE):
        part = slice(start, start + LINES_AT_ONCE)
        rows = len(src[part])
        # One formatting call per chunk: several times faster than one per line.
        values: list[object] = [None] * (rows * columns)
        values[0::columns] = (src[part] + shift).tolist()
        values[1::columns] = (dst[part] + shift).tolist()
        if weight is not None:
            values[2::columns] = weight[part].tolist()
        file.write((form * rows % tuple(values)).encode())


def highest_id(edges: EdgeList) -> int:
    """The highest vertex id that occurs or is declared, -1 when there is none."""
    highest = sum(edges.id_range) - 1 if edges.id_range and edges.id_range[1] else -1
    for ids in (edges.src, edges.dst, edges.vertices):
        if ids is not None and len(ids):
            highest = max(highest, int(ids.max()))
    return highest


def lowest_id(edges: EdgeList) -> int:
    """The lowest vertex id that occurs or is declared, 1 when there is none."""
    declared = [edges.id_range[0]] if edges.id_range else []
    present = [int(ids.min()) for ids in (edges.src, edges.dst, edges.vertices) if ids is not None and len(ids)]
    return min([*declared, *present], default=1)
