"""LDBC Graphalytics graphs: a vertex file (.v), an edge file (.e) and perhaps a .properties file that describes both.

Invariant: every end of an edge is in the vertex file, and the counts in the properties hold. Any one of the three paths
leads to the same graph.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats.rows import Numbers, RowLayout, read_rows, split_columns
from cpu_engine.graph.formats.source import Progress, TextSource, check_file
from cpu_engine.graph.formats.survey import as_id, survey_text

NAME = "ldbc"
CHUNK = 1 << 20
LONGEST_PROPERTY = 1 << 16  # bytes of a line of a .properties file,
MOST_PROPERTIES = 10_000  # and lines of it that count
_PART = re.compile(r"^(?P<stem>.+)\.(?P<part>e|v)(?P<packed>\.gz|\.xz)?$")
_NUMERIC_TYPES = ("real", "int", "integer", "float", "double", "long")


@dataclass
class Description:
    """Where the parts are and what the properties say about them."""

    edge_file: Path
    vertex_file: Path
    directed: bool | None = None
    edge_columns: int = 0  # 0: as many as the file has
    weight_column: int = -1
    vertices: int = -1
    edges: int = -1
    properties_file: Path | None = None
    notes: list[str] = field(default_factory=list)


def split_property(line: str) -> tuple[str, str] | None:
    """Key and value of a line ``graph.KEY = VALUE``, without what is around them; None if it is no such line."""
    line = line.strip()
    if not line.startswith("graph."):
        return None
    ends = [at for at in (line.find("="), line.find(":")) if at >= 0]
    key = line[len("graph.") : min(ends)].rstrip() if ends else ""
    return (key, line[min(ends) + 1 :].lstrip()) if key and not any(map(str.isspace, key)) else None


def sibling(path: Path, part: str) -> Path | None:
    """The .e, .v or .properties beside a part of an LDBC graph, if it exists."""
    match = _PART.match(path.name)
    stem = match["stem"] if match else path.name.removesuffix(".properties")
    names = [stem + "." + part + packed for packed in ("", ".gz", ".xz")]
    return next((found for name in names if (found := path.with_name(name)).is_file()), None)


def describe(path: Path) -> Description | None:
    """The graph that ``path`` (.properties, .e or .v) is a part of; None if it is not part of one."""
    with TextSource(path, longest_line=None) as source:
        head = source.prefix()[0][: 1 << 16].decode("latin-1")
    if any(map(split_property, head.split("\n"))):
        return _from_properties(path)
    match = _PART.match(path.name)
    if match is None:
        return None
    properties = sibling(path, "properties")
    if properties is not None:
        described = _from_properties(properties)
        # A .properties file of the same name may belong to other files: then this path is what counts.
        if path in (described.edge_file, described.vertex_file):
            return described
    edge_file, vertex_file = sibling(path, "e"), sibling(path, "v")
    if edge_file is None or vertex_file is None:
        return None
    return Description(edge_file, vertex_file)


def describe_or_refuse(path: Path) -> Description:
    """The graph that ``path`` is a part of, whose files are there; InputError if it is not part of one."""
    check_file(path)
    described = describe(path)
    if described is None:
        raise InputError(
            "not part of an LDBC graph: that needs a .v and a .e file of one name, or a .properties file",
            path=path,
            fix="put the missing file beside it",
        )
    check_file(described.vertex_file)
    check_file(described.edge_file)
    return described


def _from_properties(path: Path) -> Description:
    values, lines = _read_properties(path)

    def refuse(key: str, reason: str, fix: str) -> InputError:
        return InputError(reason, path=path, line=lines.get(key), value=values.get(key), fix=fix)

    for key in ("vertex-file", "edge-file"):
        if not values.get(key, "x").isprintable():
            raise refuse(key, f"'{key}' is no file name", "write the name of the file")
    notes = []
    vertex_file = path.parent / values["vertex-file"] if "vertex-file" in values else sibling(path, "v")
    edge_file = path.parent / values["edge-file"] if "edge-file" in values else sibling(path, "e")
    if edge_file is not None and edge_file == vertex_file:
        other = sibling(path, "e")
        if other is None:
            raise refuse("edge-file", "edge-file and vertex-file are the same file", "name the .e file as edge-file")
        notes.append(
            f"the properties name {edge_file.name} as edge file and as vertex file; {other.name} is read instead"
        )
        edge_file = other
    if vertex_file is None or edge_file is None:
        key = "vertex-file" if vertex_file is None else "edge-file"
        raise refuse(key, f"there is no {key}", f"add 'graph.<name>.{key} = <file>'")
    directed = {"true": True, "false": False}.get(values.get("directed", "").lower())
    if directed is None and "directed" in values:
        raise refuse("directed", "'directed' must be true or false", "write true or false")
    described = Description(edge_file, vertex_file, directed, properties_file=path, notes=notes)
    names = values.get("edge-properties.names", "").replace(",", " ").split()
    types = values.get("edge-properties.types", "").replace(",", " ").split()
    described.edge_columns = 2 + len(names)
    if names:
        wanted = values.get("sssp.weight-property", "weight")
        index = names.index(wanted) if wanted in names else 0
        if index >= len(types) or types[index].lower() in _NUMERIC_TYPES:
            described.weight_column = 2 + index
    for key, attribute in (("meta.vertices", "vertices"), ("meta.edges", "edges")):
        if key in values:
            if as_id(values[key]) < 0:
                raise refuse(key, f"'{key}' must be a number", "correct it or leave it out")
            setattr(described, attribute, as_id(values[key]))
    return described


def _read_properties(path: Path) -> tuple[dict[str, str], dict[str, int]]:
    """Keys without 'graph.<name>.', their values, and the lines where they stand."""
    raw: dict[str, tuple[str, int]] = {}
    with TextSource(path, longest_line=LONGEST_PROPERTY) as source:
        while (line := source.next_line()) is not None:
            if found := split_property(line):
                raw[found[0]] = (found[1], source.lines_read)
            if len(raw) > MOST_PROPERTIES:
                raise InputError(
                    f"has more than {MOST_PROPERTIES} properties", path=path, fix="name the .e file instead"
                )
    # The graph's name may contain dots: it is what all keys have in common.
    name = next((key.removesuffix(".edge-file") for key in raw if key.endswith(".edge-file")), "")
    name = name or next((key.removesuffix(".directed") for key in raw if key.endswith(".directed")), "")
    short = {key.removeprefix(name + "."): entry for key, entry in raw.items()}
    return {key: value for key, (value, _) in short.items()}, {key: line for key, (_, line) in short.items()}


def read(path: Path, progress: Progress | None = None) -> EdgeList:
    """Read the graph that ``path`` is a part of."""
    described = describe_or_refuse(path)
    vertex_bytes, edge_bytes = check_file(described.vertex_file), check_file(described.edge_file)
    total = vertex_bytes + edge_bytes

    def shift(start: int) -> Progress | None:
        return None if progress is None else lambda done, _: progress(start + done, total)

    with TextSource(described.vertex_file, shift(0)) as source:
        vertices = read_rows(source, vertex_layout(source)).src
    with TextSource(described.edge_file, shift(vertex_bytes)) as source:
        edges = read_rows(source, edge_layout(described, source))
    _check(described, vertices, edges)
    return EdgeList(
        edges.src,
        edges.dst,
        edges.weight,
        vertices=vertices,
        directed=described.directed,
        format=NAME,
        path=str(path),
        notes=tuple(described.notes),
    )


def vertex_layout(source: TextSource) -> RowLayout:
    """The columns of a vertex file."""
    return RowLayout(max(survey_text(*source.prefix()).usual_columns(), 1), id_columns=1)


def edge_layout(described: Description, source: TextSource) -> RowLayout:
    """The columns of an edge file."""
    columns = described.edge_columns or survey_text(*source.prefix()).usual_columns() or 2
    weight_column = described.weight_column if described.edge_columns else (2 if columns == 3 else -1)
    return RowLayout(columns, weight_column=weight_column)


def check_counts(described: Description, vertices: int, edges: int) -> None:
    """Refuse other counts than the properties declare."""
    for what, declared, found in (("vertices", described.vertices, vertices), ("edges", described.edges, edges)):
        if declared not in (-1, found):
            raise InputError(
                f"meta.{what} declares {declared} {what}, the files have {found}",
                path=described.properties_file,
                value=declared,
                fix=f"correct meta.{what}, or download the files again if one is cut off",
            )


def _check(described: Description, vertices: np.ndarray, edges: Numbers) -> None:
    check_counts(described, len(vertices), edges.rows)
    known = np.unique(vertices)
    if len(known) < len(vertices):
        ordered = np.sort(vertices)
        twice = int(ordered[:-1][ordered[1:] == ordered[:-1]][0])
        at = int(np.flatnonzero(vertices == twice)[1])
        raise InputError(
            "the vertex is listed twice",
            path=described.vertex_file,
            line=line_of_row(described.vertex_file, at),
            value=twice,
            fix="remove one of the lines",
        )
    for ids in (edges.src, edges.dst):
        for start in range(0, len(ids), CHUNK):
            part = ids[start : start + CHUNK]
            place = np.minimum(np.searchsorted(known, part), max(len(known) - 1, 0))
            missing = np.flatnonzero(known[place] != part) if len(known) else np.arange(len(part))
            if len(missing):
                at = start + int(missing[0])
                raise InputError(
                    f"the edge's end is not in the vertex file {described.vertex_file.name}",
                    path=described.edge_file,
                    line=line_of_row(described.edge_file, at),
                    value=int(ids[at]),
                    fix="add the vertex to the vertex file, or remove the edge",
                )


def line_of_row(path: Path, row: int) -> int:
    """The line number of data row ``row`` (from 0): a second pass over the file, only for an error message."""
    with TextSource(path) as source:
        while (line := source.next_line()) is not None:
            if split_columns(line):
                if row == 0:
                    break
                row -= 1
        return source.lines_read
