"""Which format a file has, by its content.

Invariant: the suffix plays no part (only the parts of an LDBC graph are found by name); where the content fits no
format, or two that would give different graphs, the answer is an error that says how to decide.
"""

from __future__ import annotations

import re
from pathlib import Path

from cpu_engine.counted import plural
from cpu_engine.errors import InputError
from cpu_engine.graph.formats import adjacency, dimacs, edge_list, galois, gap, graph500, ldbc, matrix_market, metis
from cpu_engine.graph.formats.source import TextSource, check_file
from cpu_engine.graph.formats.survey import Survey, as_id, survey_text

HEAD_BYTES = 64 << 10
MOST_CONTROL_SHARE = 0.01  # binary graphs are full of zero bytes, text has none
MOST_WRONG_LINES = 0.1  # an edge list with more lines of another length is taken for something else
_CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1a")) + b"\x7f"
_DIMACS_LINE = re.compile(r"^(c(\s.*)?|p\s.*|a\s.*)$")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def sniff(path: str | Path) -> str:
    """The name of the format that the content of ``path`` has; InputError when there is no saying."""
    path = Path(path)
    size = check_file(path)
    if size == 0:
        return edge_list.NAME
    with TextSource(path, longest_line=None) as source:
        text, whole = source.prefix()
        compressed = bool(source.compression)
    head = text[:HEAD_BYTES]
    if head.startswith(_UTF16):
        raise InputError("the text is UTF-16", path=path, fix="save it as UTF-8 or ASCII (iconv -t utf-8)")
    if _is_binary(head):
        if compressed:
            raise InputError(
                "a compressed binary graph: only text formats are read from .gz and .xz",
                path=path,
                fix="unpack it first",
            )
        return _sniff_binary(path, size)
    return _sniff_text(path, text, whole)


def _is_binary(head: bytes) -> bool:
    return len(head) - len(head.translate(None, _CONTROL)) > MOST_CONTROL_SHARE * len(head)


def _sniff_binary(path: Path, size: int) -> str:
    with path.open("rb") as file:
        start = file.read(galois.HEADER_BYTES)
        galois_header, gap_header = galois.parse_header(start), gap.parse_header(start)
        if galois_header is not None and size in galois_header.sizes():
            return galois.NAME
        if gap_header is not None and gap_header.weighted(size) is not None:
            return gap.NAME
        layouts = graph500.plausible_layouts(file, size)
    lookalikes = list(layouts)
    if galois_header is not None and size < min(galois_header.sizes()):
        lookalikes.append(f"a cut-off Galois .gr ({galois.NAME})")
    if gap_header is not None and size < gap_header.size(weighted=False, inverse=False):
        lookalikes.append(f"a cut-off GAP .sg ({gap.NAME})")
    if not layouts and galois_header is not None and galois_header.datum_bytes in (0, 1, 2, 4, 8) and galois_header.n:
        return galois.NAME  # whose reader says what is wrong with its size
    if not layouts and gap_header is not None and gap_header.n:
        return gap.NAME
    if len(layouts) == len(lookalikes) == 1:
        return layouts[0]
    reason = (
        f"binary without a magic number; it could be {' or '.join(lookalikes)}"
        if lookalikes
        else "binary, and neither a Galois .gr nor a GAP .sg/.wsg; a Graph500 edge list would have a multiple of 16 "
        f"bytes (plain) or 12 (packed) and ids that fit the number of edges; the file has {plural(size, 'byte')}"
    )
    raise InputError(reason, path=path, fix=f"name the format: {graph500.PLAIN}, {graph500.PACKED}, galois or gap")


def _sniff_text(path: Path, text: bytes, whole: bool) -> str:
    head = text[:HEAD_BYTES].decode("latin-1")
    if head.lower().startswith(matrix_market.BANNER.lower()):
        return matrix_market.NAME
    lines = [line.strip() for line in head.split("\n")[: None if whole and len(text) <= HEAD_BYTES else -1]]
    data_lines = [line for line in lines if line and line[0] not in "#%!"]
    if data_lines and _DIMACS_LINE.match(data_lines[0]):
        return dimacs.NAME
    if data_lines and ldbc.split_property(data_lines[0]):
        return ldbc.NAME
    survey = survey_text(text, whole)
    if _is_metis(path, survey):
        return metis.NAME
    counts = survey.counts()
    if set(counts) == {1}:
        return _sniff_single_column(path, survey)
    if _is_adjacency(survey):
        return adjacency.NAME
    if ldbc.sibling(path, "e") == path and ldbc.describe(path) is not None:
        return ldbc.NAME
    _refuse_ragged(path, survey)
    return edge_list.NAME


def _is_metis(path: Path, survey: Survey) -> bool:
    """Whether the first line is a METIS header that agrees with the lines behind it."""
    if not survey.lines or (header := metis.parse_header(survey.lines[0])) is None or header.vertices == 0:
        return False
    rows = survey.lines[1:]
    if not rows or len(rows) > header.vertices:
        return False
    stride = 2 if header.weighted else 1
    counts = survey.counts(1)
    if len(counts) == 1:
        # Lines of equal length may be edges as well: METIS only if all of it agrees. The sums tell most files apart
        # without reading them.
        neighbours = header.vertices * (next(iter(counts)) - header.skip)
        sums_agree = neighbours == 2 * header.edges * stride or survey.blank_lines > 0
        return sums_agree and _reads_as_metis(path)
    ids = [as_id(token) for row in rows for token in row[header.skip :: stride]]
    entries_fit = len(ids) == 2 * header.edges if survey.whole else len(ids) <= 2 * header.edges
    if min(ids, default=1) < 1 or max(ids, default=1) > header.vertices:
        return False
    rows_fit = header.vertices <= len(rows) + survey.blank_lines if survey.whole else True
    # One of the two sums may be wrong in a damaged METIS file: reading it then gives the error.
    return entries_fit or (rows_fit and not _is_adjacency(survey))


def _reads_as_metis(path: Path) -> bool:
    try:
        metis.read(path)
    except InputError:
        return False
    return True


def _is_adjacency(survey: Survey) -> bool:
    """Lines of differing length, each of another vertex, too many of them to be the odd wrong line of an edge list."""
    counts = survey.counts()
    if len(counts) < 2 or (max(counts) < 4 and len(counts) < 3):
        return False
    deviating = len(survey.lines) - max(counts[2], counts[3])
    if deviating < max(2, MOST_WRONG_LINES * len(survey.lines)):
        return False
    owners = {line[0] for line in survey.lines}
    return len(owners) == len(survey.lines) and all(as_id(token) >= 0 for line in survey.lines for token in line)


def _sniff_single_column(path: Path, survey: Survey) -> str:
    if ldbc.sibling(path, "v") == path and ldbc.describe(path) is not None:
        return ldbc.NAME
    if as_id(survey.lines[0][0]) < 0:
        raise InputError(
            "there is one column, and it is no number",
            path=path,
            line=survey.first_line,
            value=survey.lines[0][0][:60],
            fix="separate the columns by white space or commas",
        )
    raise InputError(
        "there is one column: a list of vertices, without edges",
        path=path,
        line=survey.first_line,
        value=" ".join(survey.lines[0])[:60],
        fix="name the edge file; for an LDBC graph put the .e file beside the .v file",
    )


def _refuse_ragged(path: Path, survey: Survey) -> None:
    """Refuse what is neither an edge list (perhaps with a bad line, which its reader reports) nor anything else."""
    counts = survey.counts()
    behind = survey.counts(1)  # the first line may be a header
    if not counts or not _all_numbers(survey):
        return
    if any(max(some[2], some[3]) * 2 > sum(some.values()) for some in (counts, behind)):
        return
    shape = f"{min(counts)} to {max(counts)} columns" if len(counts) > 1 else plural(min(counts), "column")
    raise InputError(
        f"the lines have {shape}: not an edge list (2 or 3), no METIS header, and not surely an adjacency list",
        path=path,
        line=survey.first_line,
        value=" ".join(survey.lines[0])[:60],
        fix="name the format: adjacency for 'vertex neighbour ...', metis, or edge-list to be told its first bad line",
    )


def _all_numbers(survey: Survey) -> bool:
    return all(as_id(token) >= 0 for line in survey.lines[:1000] for token in line)
