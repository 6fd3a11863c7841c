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
from cpu_engine.graph.formats.text_output import write_edge_lines

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
_COMPRESS: dict[str, Callable[[BinaryIO], BinaryIO]] = {
    ".gz": lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),  # type: ignore[dict-item, return-value]
    ".xz": lambda file: lzma.LZMAFile(file, "wb"),  # type: ignore[dict-item, return-value]  # noqa: SIM115
}


def write_graph(path: str | Path, edges: EdgeList, *, format: str | None = None) -> None:
    """Write ``edges`` in ``format``, or the one that the suffix names (.gz or .xz behind it compresses text)."""
    path = Path(path)
    packed = path.suffix if path.suffix in _COMPRESS else ""
    suffix = Path(path.stem).suffix if packed else path.suffix
    name = format or BY_SUFFIX.get(suffix)
    if name not in WRITABLE:
        what = f"format '{format}'" if format else f"suffix '{suffix}'"
        fix = f"end the name in {', '.join(BY_SUFFIX)}, or name one of {', '.join(WRITABLE)}"
        raise InputError(f"no graph can be written in {what}", path=path, fix=fix)
    if packed and name not in _TEXT:
        raise InputError("binary graphs are not written compressed", path=path, fix=f"leave {packed} out")
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
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", path=path, fix="check the folder, its rights and the free space"
        ) from None
    finally:
        with suppress(OSError):  # gone already if all went well
            temporary.unlink()
