"""Further forms of a result beside .npy: a table as text, and what LDBC Graphalytics reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hybrid.algorithms.algorithm import Arrays, Description


def write_forms(
    folder: Path, forms: Sequence[str], description: Description, vertex: np.ndarray, runs: Sequence[tuple[str, Arrays]]
) -> None:
    """One file per form and run; with several runs it is named after the source as well."""
    for source, arrays in runs:
        suffix = f"-{source}" if len(runs) > 1 else ""
        if "text" in forms:
            columns = [vertex, *arrays.values()]
            layout = " ".join("%.17g" if column.dtype.kind == "f" else "%d" for column in columns)
            header = " ".join(["# vertex", *arrays])
            _write(folder / f"result{suffix}.txt", columns, layout, header)
        if "ldbc" in forms:
            _write_ldbc(folder / f"ldbc{suffix}.txt", description, vertex, arrays)


def _write_ldbc(path: Path, description: Description, vertex: np.ndarray, arrays: Arrays) -> None:
    """``vertex value`` per line; distances are reals for LDBC, whatever the weights were."""
    main = description.fields[0]
    value = arrays[main.name]
    real = value.dtype.kind == "f" or isinstance(main.ldbc_unreached, str)
    layout = "%d %.15e" if real else "%d %d"
    if main.ldbc_unreached is None or main.reached(value).all():
        _write(path, [vertex, value], layout)
        return
    reached = main.reached(value).tolist()
    pairs = zip(vertex.tolist(), value.tolist(), reached, strict=True)
    lines = [layout % (v, x) if inside else f"{v} {main.ldbc_unreached}" for v, x, inside in pairs]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write(path: Path, columns: Sequence[np.ndarray], layout: str, header: str = "") -> None:
    rows = zip(*(column.tolist() for column in columns), strict=True)
    lines = ([header] if header else []) + [layout % row for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
