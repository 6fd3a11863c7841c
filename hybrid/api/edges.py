"""From what a user holds - arrays, matrices, tables, NetworkX graphs - to an edge list. Nothing optional is imported.

Vertices that are whole numbers keep them; others are numbered, and ``Named.names`` says which is which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from hybrid.api.adjacency import Numbers, rows_of
from hybrid.api.arrow import ArrowTable


@dataclass(frozen=True)
class Named:
    """An edge list, and what its ids 0, 1, ... are called, if they are not the user's own."""

    edges: EdgeList
    names: np.ndarray | None = None  # object[N]
    numbers: Numbers | None = None  # the way back, where it is known already


def is_matrix(given: object) -> bool:
    """Whether this is a scipy sparse array or matrix."""
    return hasattr(given, "tocoo") and hasattr(given, "shape")


def is_networkx(given: object) -> bool:
    """Whether this is a NetworkX graph, or behaves like one."""
    return hasattr(given, "adj") and hasattr(given, "is_directed") and hasattr(given, "is_multigraph")


def is_table(given: object) -> bool:
    """Whether this is a table of pandas, polars, pyarrow or another library with Arrow's interface."""
    return hasattr(given, "__arrow_c_stream__") or _is_frame(given)


def _is_frame(given: object) -> bool:
    return hasattr(given, "columns") and hasattr(given, "iloc")  # pandas


def is_columns(given: object) -> bool:
    """Whether this is a tuple (source, target) or (source, target, weight); InputError where it may be edges, too."""
    if not isinstance(given, tuple) or len(given) not in (2, 3):
        return False
    if all(isinstance(one, tuple) and len(one) in (2, 3) for one in given) and len({len(one) for one in given}) == 1:
        raise InputError(
            f"a tuple of {len(given)} tuples of {len(given[0])} may be edges, or their ends column by column",
            value=given if len(repr(given)) < 60 else None,
            fix="give edges as a list, [(u, v), ...], and columns as from_edges(source, target) or as arrays",
        )
    return True


def edges_of_arrays(
    source: Any, target: Any, weight: Any = None, *, directed: bool | None = None, vertices: Any = None
) -> Named:
    """Two arrays of equal length, and perhaps a third of weights."""
    ends = [column_of(source), column_of(target)]
    if ends[0].ndim != 1 or ends[0].shape != ends[1].shape:
        raise InputError(
            f"the ends of the edges have shapes {ends[0].shape} and {ends[1].shape}",
            fix="give two one-dimensional arrays of equal length, or one of two columns",
        )
    more = None if vertices is None else column_of(vertices)
    weights = None if weight is None else _weights(np.asarray(weight), ends[0].size)
    given = [*ends, *([] if more is None else [more])]
    if all(array.dtype.kind in "iu" or not array.size for array in given):
        ids = [_whole(array) for array in given]
        alone = ids[2] if more is not None else None
        return Named(EdgeList(ids[0], ids[1], weights, vertices=alone, directed=directed, format="arrays"))
    names, number = _number([array.tolist() for array in given])
    count = ends[0].size
    edges = EdgeList(
        number[:count], number[count : 2 * count], weights,
        id_range=(0, len(names)), directed=directed, format="arrays",
    )  # fmt: skip
    return Named(edges, names)


def column_of(values: Any) -> np.ndarray:
    """Vertices as an array: of integers where they are whole numbers, of objects where they are names."""
    if not isinstance(values, list | tuple | range):
        array = np.asarray(values)
    elif all(isinstance(value, int | np.integer) for value in values):
        array = np.array(values, np.int64)
    else:
        array = _objects(values)
    if array.dtype.kind != "f":
        return array
    if not np.array_equal(array, np.floor(array)):
        raise InputError("a vertex id is no whole number", fix="give source and target as integers, or as names")
    return array.astype(np.int64)


def edges_of_rows(rows: Any, **how: Any) -> Named:
    """An array of two columns, or three, the last being weights."""
    array = np.asarray(rows)
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise InputError(
            f"an array of edges has two or three columns, this has shape {array.shape}",
            fix="give one edge per row: source, target and perhaps weight",
        )
    return edges_of_arrays(array[:, 0], array[:, 1], array[:, 2] if array.shape[1] == 3 else None, **how)


def edges_of_matrix(matrix: Any, *, directed: bool | None = None) -> Named:
    """A sparse adjacency matrix: entry (i, j) is an arc from i to j, its value the weight unless all are 1."""
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError("an adjacency matrix is square", value=tuple(matrix.shape), fix="give one row per vertex")
    coordinates = matrix.tocoo()
    source, target = coordinates.row, coordinates.col
    value = np.asarray(coordinates.data)
    if value.dtype.kind not in "biuf":
        raise InputError("the weights of a matrix must be numbers", value=str(value.dtype))
    weight = None if value.dtype.kind == "b" or bool(np.all(value == 1)) else _weights(value, value.size)
    edges = EdgeList(
        _whole(source), _whole(target), weight, id_range=(0, int(matrix.shape[0])), directed=directed, format="matrix"
    )
    return Named(edges)


def edges_of_table(table: Any, columns: Sequence[str] | None = None, *, directed: bool | None = None) -> Named:
    """A table with an edge per row: the first two columns, and ``weight`` if there is one - or the columns named."""
    arrow = None if _is_frame(table) else ArrowTable(table)
    names = [str(name) for name in table.columns] if arrow is None else arrow.names
    chosen = list(columns) if columns is not None else [*names[:2], *(["weight"] if "weight" in names[2:] else [])]
    missing = [name for name in chosen if name not in names]
    if missing or len(chosen) not in (2, 3):
        raise InputError(
            "an edge table needs a column for each end, and perhaps one of weights",
            value=tuple(missing or chosen),
            fix=f"name two or three of its columns: {', '.join(names)}",
        )
    arrays = [
        arrow.column(name) if arrow is not None and arrow.is_numeric(name) else np.asarray(table[name].to_numpy())
        for name in chosen
    ]
    return edges_of_arrays(*arrays, directed=directed)


def edges_of_networkx(graph: Any, weight: str | None = "weight", default: float = 1) -> Named:
    """A NetworkX graph; ``weight`` is the attribute of edges to read, if any edge has it.

    Of parallel edges the least weight counts, as a shortest path would have it.
    """
    adjacency = getattr(graph, "_adj", None)
    if not isinstance(adjacency, dict):
        adjacency = {node: dict(neighbours) for node, neighbours in graph.adj.items()}
    rows, directed = rows_of(adjacency), bool(graph.is_directed())
    total, weights = rows.target.size, None
    if weight is not None:
        weights = _networkx_weights(adjacency, graph.is_multigraph(), weight, default, total)
    if directed or weights is not None:
        source, target, mirrored = np.repeat(rows.own, np.diff(rows.offsets)), rows.target, not directed
    else:
        (source, target), mirrored = rows.half(), False
    edges = EdgeList(
        source, target, weights, directed=directed, symmetric_stored=mirrored,
        vertices=None if rows.dense else rows.own, id_range=(0, rows.own.size) if rows.dense else None,
        format="networkx", path=str(getattr(graph, "name", "") or ""),
    )  # fmt: skip
    return Named(edges, None if rows.nodes is None else _objects(rows.nodes), rows.numbers)


def _networkx_weights(
    adjacency: Mapping[Any, Any], multigraph: bool, weight: str, default: float, total: int
) -> np.ndarray | None:
    found: list[Any]
    if multigraph:
        found = [
            min(data.get(weight, default) for data in parallel.values())
            for neighbours in adjacency.values()
            for parallel in neighbours.values()
        ]
        present = any(
            weight in data for nbrs in adjacency.values() for parallel in nbrs.values() for data in parallel.values()
        )
    else:
        absent = object()
        found = [data.get(weight, absent) for neighbours in adjacency.values() for data in neighbours.values()]
        some = found.count(absent)
        present = some < len(found)
        if some and present:
            found = [default if value is absent else value for value in found]
    return _weights(np.array(found), total) if present else None


def _weights(weight: np.ndarray, count: int) -> np.ndarray:
    if weight.shape != (count,) or weight.dtype.kind not in "biuf":
        kind = f"{weight.dtype} of shape {weight.shape}"
        raise InputError("the weights must be one number per edge", value=kind, fix="give an array of numbers")
    if weight.dtype.kind == "u" and weight.size and int(weight.max()) >= 2**63:
        raise InputError("a weight is beyond 64 bits with sign", value=int(weight.max()), fix="give floats")
    return weight.astype(np.float64 if weight.dtype.kind == "f" else np.int64, copy=False)


def _whole(ids: np.ndarray) -> np.ndarray:
    """Ids as the builder takes them: int32 and int64 as they are, others widened."""
    if ids.dtype in (np.dtype(np.int32), np.dtype(np.int64)):
        return ids
    if ids.dtype.kind == "u" and ids.size and int(ids.max()) >= 2**63:
        raise InputError("a vertex id is beyond 64 bits with sign", value=int(ids.max()), fix="number the vertices")
    return ids.astype(np.int64)


def _number(given: Sequence[Sequence[Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Names in the order of their first appearance, and the number of each mention."""
    number: dict[Any, int] = {}
    try:
        mentions = [number.setdefault(name, len(number)) for one in given for name in one]
    except TypeError as error:
        raise InputError(f"a vertex cannot be a name: {error}", fix="use numbers, texts or tuples") from None
    strange = [name for name in number if name is None or name != name]
    if strange:
        raise InputError("a vertex is missing", value=strange[0], fix="drop the edges without both ends")
    return _objects(list(number)), np.array(mentions, np.int64)


def _objects(names: Sequence[Any]) -> np.ndarray:
    """Names as an array that leaves tuples whole."""
    return np.fromiter(names, object, len(names))
