"""Writes graphs: edge lists, Matrix Market, GAP .sg/.wsg and Galois .gr.

Invariant: the target file is replaced whole or not at all (temporary file beside it, flushed, then renamed).
"""

from __future__ import annotations

import gzip
import lzma
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import edge_list, galois, gap, matrix_market
from cpu_engine.graph.formats.distinct import distinct_ids
from cpu_engine.graph.formats.text_output import highest_id, lowest_id, write_edge_lines

BY_SUFFIX = {
    ".el": edge_list.NAME,
    ".wel": edge_list.NAME,
    ".txt": edge_list.NAME,
    ".sg": gap.NAME,
    ".wsg": gap.NAME,
    ".gr": galois.NAME,
    ".mtx": matrix_market.NAME,
}
WRITABLE: tuple[str, ...] = tuple(dict.fromkeys(BY_SUFFIX.values()))
_TEXT = (edge_list.NAME, matrix_market.NAME)
_HOLD_ALL = "write .mtx, .sg, .gr or a store to keep them"
_COMPRESS: dict[str, Callable[[BinaryIO], BinaryIO]] = {
    ".gz": lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),  # type: ignore[dict-item, return-value]
    ".xz": lambda file: lzma.LZMAFile(file, "wb"),  # type: ignore[dict-item, return-value]  # noqa: SIM115
}


def write_graph(path: str | Path, edges: EdgeList, *, format: str | None = None) -> tuple[str, ...]:
    """Write ``edges`` in ``format``, or the one that the suffix names (.gz or .xz behind it compresses text).

    Returns what the format does not hold or does not say of this graph, as sentences for the user.
    """
    path = Path(path)
    name, suffix, packed = _target(path, format)
    with _replacing(path) as file:
        stream = _COMPRESS[packed](file) if packed else file
        if name == edge_list.NAME:
            _write_edge_list(stream, edges, path, suffix)
        elif name == matrix_market.NAME:
            matrix_market.write(stream, edges)
        elif name == galois.NAME:
            galois.write(stream, edges, path)
        else:
            weighted = suffix == ".wsg" or (suffix != ".sg" and edges.weight is not None)
            gap.write(stream, edges, path, weighted=weighted)
        if stream is not file:
            stream.close()
    return _losses(edges, name, suffix)


def target_format(path: str | Path, format: str | None = None) -> str:
    """The format that ``write_graph`` would write; InputError if there is none."""
    return _target(Path(path), format)[0]


def _target(path: Path, format: str | None) -> tuple[str, str, str]:
    """The format, the suffix, and that of the compression."""
    packed = path.suffix if path.suffix in _COMPRESS else ""
    suffix = Path(path.stem).suffix if packed else path.suffix
    name = format or BY_SUFFIX.get(suffix)
    if name not in WRITABLE:
        what = f"format '{format}'" if format else f"suffix '{suffix}'"
        fix = f"end the name in {', '.join(BY_SUFFIX)}, or name one of {', '.join(WRITABLE)}"
        raise InputError(f"no graph can be written in {what}", path=path, fix=fix)
    if packed and name not in _TEXT:
        raise InputError("binary graphs are not written compressed", path=path, fix=f"leave {packed} out")
    return name, suffix, packed


def _losses(edges: EdgeList, name: str, suffix: str) -> tuple[str, ...]:
    losses = []
    if edges.weight is not None and suffix in (".el", ".sg"):
        other = ".wel" if suffix == ".el" else ".wsg"
        losses.append(f"the weights are left out: {suffix} has none (end the name in {other} to keep them)")
    if edges.directed is False and (name == galois.NAME or (name == edge_list.NAME and suffix != ".txt")):
        stands = "in both directions" if name == galois.NAME or edges.symmetric_stored else "once"
        losses.append(
            f"the graph is undirected, each edge stands {stands}, and the format does not say so: "
            "read the file with graph.directed=false"
        )
    declared = len(edges.vertices) if edges.vertices is not None else edges.id_range[1] if edges.id_range else 0
    if declared or name != edge_list.NAME:
        with_edges = len(distinct_ids(edges.src, edges.dst))
        if name == edge_list.NAME and declared > with_edges:
            losses.append(f"vertices without edges are left out, {declared - with_edges} of {declared}: {_HOLD_ALL}")
        first = 0 if name != matrix_market.NAME else 1
        written = highest_id(edges) + 1 - min(first, lowest_id(edges)) if name != edge_list.NAME else 0
        if written > max(declared, with_edges):
            losses.append(
                f"the format has a vertex for every id up to the highest: {written - max(declared, with_edges)} that "
                "the graph does not have become vertices without edges"
            )
    return tuple(losses)


def _write_edge_list(file: BinaryIO, edges: EdgeList, path: Path, suffix: str) -> None:
    weight = None if suffix == ".el" else edges.weight
    if suffix == ".wel" and weight is None:
        raise InputError("the graph has no weights, a .wel file needs them", path=path, fix="write .el")
    if suffix == ".txt":
        # SNAP's form. GAP's readers of .el and .wel know no comments, so those get none.
        kind = "Undirected" if edges.directed is False else "Directed"
        names = "FromNodeId\tToNodeId" + ("\tWeight" if weight is not None else "")
        file.write(f"# {kind} graph\n# Edges: {edges.edge_count}\n# {names}\n".encode())
    write_edge_lines(file, edges.src, edges.dst, weight, separator="\t" if suffix == ".txt" else " ")


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A temporary file that takes the name ``path`` when the block ends without an exception."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:  # NumPy's, about a full disk, has no strerror
        told = f"cannot be written: {error.strerror or error}"
        with suppress(OSError):
            told += f"; it ended after {temporary.stat().st_size:,} bytes"
        raise InputError(told, path=path, fix="check the folder, its rights and the free space") from None
    finally:
        with suppress(OSError):  # gone already if all went well
            temporary.unlink()
