"""Several files that are one graph: a folder of part files, or a pattern such as ``edges/*.txt.gz``.

Invariant: the edges are those of the files one after the other, in the order of their names. All files have one format,
agree on weights, and none contradicts another on the direction. A file without edges agrees with every other.
"""

from __future__ import annotations

import glob
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cpu_engine.counted import plural
from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import adjacency, edge_list, graph500

JOINABLE = (edge_list.NAME, adjacency.NAME, graph500.PLAIN, graph500.PACKED)  # formats without a header or a size
_MOST_NOTES = 5


def files_of(path: Path) -> list[Path]:
    """The files that ``path`` names, by name: the file itself, those in the folder, or those that fit the pattern.

    Names that begin with a dot or an underscore mark no data (``_SUCCESS``) and are left out of a folder.
    """
    try:
        if path.is_dir():
            found = sorted(entry for entry in path.iterdir() if not entry.name.startswith((".", "_")))
            is_store = (path / "meta.json").exists() and (path / "out_offsets.npy").exists()
            if is_store or not found:
                return [path]
            folder = next((entry for entry in found if entry.is_dir()), None)
            if folder is not None:
                fix = f"name the files by a pattern, such as {path}/*.txt"
                raise InputError("is a directory among the part files of a graph", path=folder, fix=fix)
            return found
        if not path.exists() and glob.has_magic(str(path)):
            found = sorted(map(Path, glob.glob(str(path))))
            if not found:
                raise InputError("no file fits this pattern", path=path, fix="check the folder and the pattern")
            return found
    except OSError:
        pass  # opening it will say what is wrong
    return [path]


def name_of(path: Path) -> str:
    """What people call the graph: the name of the file or folder; for a pattern, of the folder that it looks into."""
    if path.exists() or not glob.has_magic(str(path)):
        return path.name
    plain = [part for part in path.parts[:-1] if not glob.has_magic(part) and part not in ("/", ".", "..")]
    return plain[-1] if plain else "graph"


def require_joinable(format: str, path: Path) -> None:
    """InputError for a format whose files say how large the whole graph is."""
    if format not in JOINABLE:
        raise InputError(
            f"several files of the format {format} cannot be read as one graph",
            path=path,
            fix=f"name one file; part files may be {', '.join(JOINABLE)}",
        )


@dataclass(frozen=True)
class Summary:
    """What the files must agree on, of one of them."""

    file: Path
    edges: int
    weighted: bool
    directed: bool | None
    notes: tuple[str, ...]


def join(path: Path, files: list[Path], parts: list[EdgeList]) -> EdgeList:
    """One list of all edges; the parts are emptied on the way, so that the edges are in memory once."""
    directed, notes = agree_on(
        [
            Summary(file, part.edge_count, part.weight is not None, part.directed, part.notes)
            for file, part in zip(files, parts, strict=True)
        ]
    )
    filled = [part for part in parts if part.edge_count]
    first = filled[0] if filled else parts[0]
    src, dst = [part.src for part in filled], [part.dst for part in filled]
    weight = [part.weight for part in filled if part.weight is not None]
    vertices = [part.vertices for part in parts if part.vertices is not None]
    parts.clear()
    filled.clear()
    return replace(
        first,
        src=_concatenate(src) if src else first.src,
        dst=_concatenate(dst) if dst else first.dst,
        weight=_concatenate(weight) if weight else None,
        vertices=_concatenate(vertices) if vertices else None,
        id_range=None,  # a header counts the vertices of its own file
        directed=directed,
        path=str(path),
        notes=notes,
    )


def agree_on(parts: list[Summary]) -> tuple[bool | None, tuple[str, ...]]:
    """The direction of the whole, and the notes on it; InputError if one part contradicts another."""
    filled = [part for part in parts if part.edges]
    _require_agreement(filled)
    notes = [f"{part.file.name}: {note}" for part in parts for note in part.notes]
    if len(notes) > _MOST_NOTES:
        notes[_MOST_NOTES:] = [f"... and {plural(len(notes) - _MOST_NOTES, 'more note')} on other files"]
    first = filled[0] if filled else parts[0]
    stated = next((part.directed for part in filled if part.directed is not None), first.directed)
    return stated, (f"{plural(len(parts), 'file')} read as one graph", *notes)


def _require_agreement(parts: list[Summary]) -> None:
    known: Summary | None = None  # the first that states a direction
    for part in parts:
        if part.weighted != parts[0].weighted:
            has, other = ("weights", "has none") if part.weighted else ("no weights", "has some")
            raise InputError(
                f"this part of a graph has {has}, but {parts[0].file.name} {other}",
                path=part.file,
                fix="give every part file the same columns",
            )
        if part.directed is None:
            continue
        if known is not None and part.directed is not known.directed:
            kind, other = ("directed", "undirected") if part.directed else ("undirected", "directed")
            raise InputError(
                f"this part of a graph says that it is {kind}, but {known.file.name} is {other}",
                path=part.file,
                fix="read the two as two graphs, or mend the comment",
            )
        known = known or part


def _concatenate(pieces: list[np.ndarray]) -> np.ndarray:
    """All pieces in one array; each is let go once it is copied."""
    whole = np.empty(sum(piece.size for piece in pieces), np.result_type(*{piece.dtype for piece in pieces}))
    start = 0
    for i, piece in enumerate(pieces):
        whole[start : start + piece.size] = piece
        start += piece.size
        pieces[i] = whole[:0]
    return whole
