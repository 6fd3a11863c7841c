"""Bad files: each gives an InputError with file, line, value, reason and fix; never a crash, never a wrong graph."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.errors import InputError
from cpu_engine.graph.build.extent import path_extent
from cpu_engine.graph.formats import read_graph, sniff
from cpu_engine.graph.formats.bounds import Bounds, TooLarge, bounded
from cpu_engine.graph.formats.source import TextSource
from cpu_engine.graph.formats.survey import MOST_LINES, survey_text

pytestmark = pytest.mark.jitless

GRAPHS = Path(__file__).parents[2] / "graphs"


def put(folder: Path, text: str | bytes, name: str = "graph") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def failure(path: Path, format: str = "auto") -> InputError:
    with pytest.raises(InputError) as caught:
        read_graph(path, format=format)
    assert caught.value.fix
    assert str(caught.value).endswith(f"Fix: {caught.value.fix}")
    return caught.value


# text, line, value, part of the reason
BAD_LINES = [
    ("0 1\n1 2\nfoo 3\n", 3, "foo", "non-negative integer"),
    ("0 1\n1 2x\n2 3\n", 2, "2x", "non-negative integer"),
    ("0 1\n1 2.0\n2 3\n", 2, "2.0", "non-negative integer"),
    ("source,target\n0,1\n1,2\n", 1, "source", "non-negative integer"),
    ("# c\n\n0 1\n1 -2\n", 4, "-2", "negative"),
    ("-1 0\n1 2\n", 1, "-1", "negative"),
    ("0 1\n1 9223372036854775808\n", 2, "9223372036854775808", "64 bits"),
    ("0 1\n1 99999999999999999999999\n", 2, "99999999999999999999999", "64 bits"),
    ("0 1\n1 2\n3\n4 5\n", 3, "3", "expected 2 columns (source target), found 1"),
    ("0 1\n1 2\n3 4 5\n4 5\n", 3, "3 4 5", "expected 2 columns (source target), found 3"),
    ("0 1 5\n1 2 5\n3 4\n4 5 5\n", 3, "3 4", "expected 3 columns (source target weight), found 2"),
    ("0 1 5\n1 2 5 6\n3 4 5\n4 5 5\n", 2, "1 2 5 6", "found 4"),
    ("7 8\n1 2 5\n3 4 5\n4 5 5\n", 1, "7 8", "expected 3 columns"),
    ("0 1 5\n1 2 nan\n", 2, "nan", "finite decimal number"),
    ("0 1 5\n1 2 inf\n", 2, "inf", "finite decimal number"),
    ("0 1 5\n1 2 1e999\n", 2, "1e999", "too large"),
    ("0 1 5\n1 2 1.5.5\n", 2, "1.5.5", "finite decimal number"),
    ("0 1 5\n1 2 1e\n", 2, "1e", "finite decimal number"),
    ("0 1 5\n1 2 -\n", 2, "-", "finite decimal number"),
    ("0 1 5\n1 2 9223372036854775808\n", 2, "9223372036854775808", "64 bits"),
    ("0,1\n1,,2\n", 2, "1,,2", "empty"),
    ("0,1\n1,2,\n", 2, "1,2,", "empty"),
    (",0,1\n1,2\n", 1, ",0,1", "empty"),
    ("0;1\n1;2\n", 1, "0;1", "column"),
    ("0 1 2 3\n1 2 2 3\n", 1, "0 1 2 3", "4 columns"),
]


@pytest.mark.parametrize(("text", "line", "value", "reason"), BAD_LINES)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress], ids=["plain", "gz", "xz"])
def test_bad_line_is_named(tmp_path, text, line, value, reason, pack):
    path = put(tmp_path, pack(text.encode()))
    error = failure(path)
    assert (error.line, error.value) == (line, value)
    assert reason in error.reason
    assert str(error).startswith(f"{path}:{line}: " if line else f"{path}: ")


@pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="a million lines take minutes without the compiler"
)
@pytest.mark.parametrize("pack", [bytes, lambda text: gzip.compress(text, 1)], ids=["plain", "gz"])
def test_bad_line_one_million_is_named(tmp_path, pack):
    good = b"".join(b"%d %d\n" % (i, i + 1) for i in range(1000)) * 1000
    lines = good[: good.rfind(b"\n", 0, -1) + 1]
    error = failure(put(tmp_path, pack(lines + b"12 oops\n" + good)))
    assert (error.line, error.value) == (1_000_000, "oops")


@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_first_bad_line_wins_however_many_threads_parse(tmp_path, monkeypatch, block_bytes):
    monkeypatch.setattr("cpu_engine.graph.formats.source.BLOCK_BYTES", block_bytes)
    lines = [f"{i} {i + 1}" for i in range(200)]
    lines[50], lines[60], lines[190] = "5 -5", "x y", "1 2 3"
    error = failure(put(tmp_path, "\n".join(lines)))
    assert (error.line, error.value) == (51, "-5")


def test_missing_file_suggests_the_nearest_name(tmp_path):
    put(tmp_path, "0 1\n", "wiki-Vote.txt")
    error = failure(tmp_path / "wiki-vote.txt")
    assert error.fix == f"did you mean {tmp_path / 'wiki-Vote.txt'}?"
    assert "no such file" in str(error)
    assert "folder" in failure(tmp_path / "nowhere" / "graph.el").fix


def test_directory_and_special_files_are_refused(tmp_path):
    assert "empty directory" in failure(tmp_path).reason
    put(tmp_path, "0 1\n", "inside.el")
    (tmp_path / "below").mkdir()
    error = failure(tmp_path)
    assert "directory" in error.reason
    assert error.path == tmp_path / "below"
    assert "regular" in failure(Path("/dev/null")).reason


def test_unknown_format_suggests_the_nearest(tmp_path):
    assert failure(put(tmp_path, "0 1\n"), "edgelist").fix == "did you mean 'edge-list'?"


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gz", "xz"])
@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_truncated_compression_is_named(tmp_path, pack, kept):
    data = pack("".join(f"{i} {i * 7919 % 1000}\n" for i in range(2000)).encode())
    path = put(tmp_path, data[: int(len(data) * kept)])
    error = failure(path)
    assert error.path == path
    assert "truncated" in error.reason


def test_truncation_behind_the_first_block_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("cpu_engine.graph.formats.source.BLOCK_BYTES", 4096)
    text = "".join(f"{i} {i * 7919 % 100_003}\n" for i in range(50_000))
    data = gzip.compress(text.encode())
    assert "truncated" in failure(put(tmp_path, data[:-20])).reason


def test_damaged_compression_is_named(tmp_path):
    data = bytearray(gzip.compress(b"".join(b"%d %d\n" % (i, i * i) for i in range(3000))))
    data[len(data) // 2] ^= 0xFF
    assert "damaged" in failure(put(tmp_path, bytes(data))).reason


@pytest.mark.parametrize(
    ("start", "name"), [(b"BZh91AY", "bzip2"), (b"PK\x03\x04", "zip"), (b"\x28\xb5\x2f\xfd", "zstd")]
)
def test_other_compressions_are_refused_by_name(tmp_path, start, name):
    assert name in failure(put(tmp_path, start + bytes(50))).reason


def test_compressed_binary_is_refused(tmp_path):
    assert "unpack" in failure(put(tmp_path, gzip.compress((GRAPHS / "house.sg").read_bytes()))).fix


def test_binary_garbage_is_refused_with_an_explanation(tmp_path):
    garbage = np.random.default_rng(1).bytes(4800)
    error = failure(put(tmp_path, garbage))
    assert "Graph500" in error.reason
    assert "name the format" in error.fix
    assert "non-negative" in failure(put(tmp_path, b"0 1\n" * 2000 + b"\xff\xfe\x01 7\n")).reason
    assert "UTF-16" in failure(put(tmp_path, "0 1\n".encode("utf-16"))).reason


def test_a_line_without_end_is_refused(tmp_path):
    assert "longer" in failure(put(tmp_path, b"1" * (6 << 20)), "edge-list").reason


# name, text, format, line, part of the reason
BAD_HEADERS = [
    ("mtx entries", "%%MatrixMarket matrix coordinate pattern general\n3 3 5\n1 2\n2 3\n", 2, "declares 5 entries"),
    ("mtx too many", "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n2 3\n", 2, "there are 2"),
    (
        "mtx id",
        "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 4\n",
        4,
        "outside the declared range 1..3",
    ),
    (
        "mtx zero",
        "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n0 1\n",
        4,
        "outside the declared range",
    ),
    ("mtx columns", "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2 5\n", 3, "found 3"),
    ("mtx integer", "%%MatrixMarket matrix coordinate integer general\n3 3 1\n1 2 0.5\n", 3, "promises integers"),
    ("mtx array", "%%MatrixMarket matrix array real general\n3 3\n1\n", 1, "matrix coordinate"),
    ("mtx complex", "%%MatrixMarket matrix coordinate complex general\n3 3 1\n1 2 5 5\n", 1, "field"),
    ("mtx skew", "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n1 2 5\n", 1, "symmetry"),
    ("mtx rectangle", "%%MatrixMarket matrix coordinate pattern general\n3 4 1\n1 2\n", 2, "3 rows and 4 columns"),
    ("mtx size", "%%MatrixMarket matrix coordinate pattern general\n3 3\n1 2\n", 2, "size line"),
    ("mtx nothing", "%%MatrixMarket matrix coordinate pattern general\n", 1, "size line"),
    ("dimacs arcs", "c\np sp 3 5\na 1 2 3\n", 2, "declares 5 arcs"),
    ("dimacs id", "p sp 3 1\na 1 4 3\n", 2, "outside the declared range 1..3"),
    ("dimacs letter", "p sp 3 2\na 1 2 3\ne 1 2\n", 3, "not 'a source target weight'"),
    ("dimacs columns", "p sp 3 1\na 1 2\n", 2, "expected 4 columns (a source target weight), found 3"),
    ("dimacs problem", "p edge 3 1\na 1 2 3\n", 1, "problem line"),
    ("dimacs no problem", "c nothing\n", 1, "problem line"),
    ("metis edges", "4 9\n2 3 4\n1 3\n1 2\n1\n", 1, "declares 9 edges"),
    ("metis rows", "5 4\n2 3 4\n1 3\n1 2\n1\n", 1, "declares 5 vertices"),
    ("metis asymmetric", "4 3\n2 3 4\n1 3\n1\n\n", None, "does not name"),
]


@pytest.mark.parametrize(
    ("text", "line", "reason"), [row[1:] for row in BAD_HEADERS], ids=[row[0] for row in BAD_HEADERS]
)
def test_declarations_that_contradict_the_content_are_errors(tmp_path, text, line, reason):
    error = failure(put(tmp_path, text))
    assert error.line == line
    assert reason in error.reason


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("2 1\n2\n1\n2\n", 4, "more lines than the 2 vertices"),
        ("2 1\n3\n1\n", 2, "outside the declared range 1..2"),
        ("2 1 1\n2 5\n1\n", 3, "lacks its weight"),
        ("2 1 10\n1 2\n\n", 3, "lacks its weights"),
        ("2 1 7\n2\n1\n", 1, "not a METIS header"),
        ("", None, "empty"),
    ],
)
def test_metis_lines(tmp_path, text, line, reason):
    error = failure(put(tmp_path, text), "metis")
    assert error.line == line
    assert reason in error.reason


def test_adjacency_bad_token(tmp_path):
    error = failure(put(tmp_path, "1 2 3\n2 1 x 4\n3\n"), "adjacency")
    assert (error.line, error.value) == (2, "x")


GALOIS = (GRAPHS / "house-galois1.gr").read_bytes()
GAP = (GRAPHS / "house.sg").read_bytes()


@pytest.mark.parametrize(
    ("data", "format", "reason"),
    [
        (GALOIS[:-4], "galois", "so 128 bytes; the file has 124"),
        (GALOIS + bytes(4), "galois", "so 128 bytes; the file has 132"),
        (GALOIS[:-4] + struct.pack("<I", 77), "galois", "outside 0..5"),
        (GALOIS[:32] + struct.pack("<Q", 99) + GALOIS[40:], "galois", "row offsets"),
        (struct.pack("<4Q", 3, 0, 0, 0), "galois", "version must be 1 or 2"),
        (b"", "galois", "version"),
        (GAP[:-1], "gap", "so 121 bytes (.sg) or 169 (.wsg); the file has 120"),
        (GAP[:-4] + struct.pack("<i", -1), "gap", "outside 0..5"),
        (GAP[:-4] + struct.pack("<i", 4), "gap", "lacks its reverse"),
        (GAP[:17] + struct.pack("<q", 5) + GAP[25:], "gap", "row offsets"),
        (b"\x07" + GAP[1:], "gap", "not a GAP"),
        (bytes(15), "graph500", "not a multiple of the 16"),
        (bytes(15), "graph500-packed", "not a multiple of the 12"),
        (struct.pack("<qq", 1, -1), "graph500", "negative"),
        (struct.pack("<IIHH", 1, 1, 0x8000, 0), "graph500-packed", "negative"),
    ],
)
def test_binary_damage(tmp_path, data, format, reason):
    assert reason in failure(put(tmp_path, data), format).reason


@pytest.mark.parametrize("data", [GALOIS[:-4], GAP[:-1], GALOIS[:60]])
def test_cut_off_binary_is_an_error_without_a_named_format_too(tmp_path, data):
    failure(put(tmp_path, data))


LDBC = "graph.g.vertex-file = g.v\ngraph.g.edge-file = g.e\n"


@pytest.mark.parametrize(
    ("properties", "vertices", "edges", "name", "line", "reason"),
    [
        (LDBC, "1\n2\n", "1 2\n# c\n2 3\n", "g.e", 3, "not in the vertex file g.v"),
        (LDBC, "1\n2\n1\n", "1 2\n", "g.v", 3, "listed twice"),
        (LDBC, "1\nx\n", "1 2\n", "g.v", 2, "non-negative"),
        (LDBC + "graph.g.meta.edges = 3\n", "1\n2\n", "1 2\n", "g.properties", None, "declares 3 edges"),
        (LDBC + "graph.g.meta.vertices = 3\n", "1\n2\n", "1 2\n", "g.properties", None, "declares 3 vertices"),
        (LDBC + "graph.g.directed = maybe\n", "1\n2\n", "1 2\n", "g.properties", 3, "true or false"),
        (LDBC.replace("g.e", "h.e"), "1\n2\n", "1 2\n", "h.e", None, "no such file"),
        (LDBC + "graph.g.edge-properties.names = weight\n", "1\n2\n", "1 2\n", "g.e", 1, "expected 3 columns"),
    ],
)
def test_ldbc_contradictions(tmp_path, properties, vertices, edges, name, line, reason):
    put(tmp_path, vertices, "g.v")
    put(tmp_path, edges, "g.e")
    error = failure(put(tmp_path, properties, "g.properties"))
    assert (error.path, error.line) == (tmp_path / name, line)
    assert reason in error.reason


def test_vertex_list_alone_is_no_graph(tmp_path):
    assert "one column" in failure(put(tmp_path, "1\n2\n3\n")).reason
    assert "not part of an LDBC graph" in failure(put(tmp_path, "1 2\n"), "ldbc").reason


# What a small file is taken for. The first three are METIS and edge list at once: METIS only if all of it agrees.
AMBIGUOUS = [
    ("3 3\n2 3\n1 3\n1 2\n", "metis"),
    ("3 3\n2 3\n1 3\n1 1\n", "edge-list"),
    ("4 4\n1 2\n2 3\n3 4\n4 1\n", "edge-list"),
    ("2 1\n2\n1\n", "metis"),
    ("2 1 1\n2 5\n1 5\n", "metis"),
    ("0 0\n1 1\n", "edge-list"),
    ("1 2 3\n2 3 4 5\n3 1\n4 6 7 8\n5 2 1\n", "adjacency"),
    ("1 2\n2 3\n3\n4 5\n", "edge-list"),
    ("1 2 5\n2 3 5\n3 4\n", "edge-list"),
    ("p sp 1 0\n", "dimacs"),
    ("c only a comment\n", "dimacs"),
    ("graph.x.directed = true\n", "ldbc"),
]


@pytest.mark.parametrize(("text", "format"), AMBIGUOUS)
def test_sniffing_of_small_files(tmp_path, text, format):
    assert sniff(put(tmp_path, text)) == format


def test_sniffing_says_when_it_cannot_tell(tmp_path):
    ragged = failure(put(tmp_path, "1 2 3 4\n1 5 6\n1 7\n1 8\n2 3 4 5 6\n"))
    assert "not surely an adjacency list" in ragged.reason
    assert "name the format" in ragged.fix
    both = failure(put(tmp_path, bytes(96)))
    assert "graph500 or graph500-packed" in both.reason


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("p.properties", "graph.x.vertex-file = a\0b.v\ngraph.x.edge-file = c.e\n", "'vertex-file' is no file name"),
        ("p.properties", "graph.x.directed = " + "y" * (5 << 20), "the line is longer"),
        ("p.properties", "".join(f"graph.x.k{i} = 1\n" for i in range(10_002)), "more than 10000 properties"),
    ],
)
def test_hostile_properties(tmp_path, name, text, told):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=told):
        read_graph(tmp_path / name, format="ldbc")


def test_a_property_of_60000_spaces_is_read_in_no_time(tmp_path):
    """With a pattern of two endless repetitions this took a minute: the time limit of the test is its judge."""
    (tmp_path / "p.properties").write_text("graph.x" + " " * 60_000 + "y\n" + "graph.y = " + " " * 60_000 + "z\n")
    with pytest.raises(InputError):
        read_graph(tmp_path / "p.properties")


GAPS = {
    "edge-list": ("#\n", "1 2\n", ""),
    "matrix-market": ("%\n", "3 3 1\n1 2\n", "%%MatrixMarket matrix coordinate pattern general\n"),
    "metis": ("%\n", "2 1\n2\n1\n", ""),
    "dimacs": ("c\n", "p sp 2 1\na 1 2 3\n", ""),
    "ldbc": ("\n", "graph.g.edge-file = g.e\n", "graph.g.vertex-file = g.v\n"),
}


@pytest.mark.parametrize("format", GAPS)
def test_comments_before_the_header_are_not_read_one_by_one(tmp_path, monkeypatch, format):
    """A file may be millions of them; half a minute of a service's time."""
    comment, graph, first = GAPS[format]
    calls = []
    next_line = TextSource.next_line
    monkeypatch.setattr(TextSource, "next_line", lambda source: calls.append(1) or next_line(source))
    (tmp_path / "g.v").write_text("1\n2\n3\n")
    (tmp_path / "g.e").write_text("1 2\n")
    file = tmp_path / "graph.txt"
    file.write_text(first + comment * 100_000 + graph)
    assert read_graph(file, format=format).src.size >= 1
    assert len(calls) < 50


def test_properties_are_counted_though_all_have_one_name(tmp_path):
    file = tmp_path / "g.properties"
    file.write_text("graph.g.directed = true\n" * 10_001)
    with pytest.raises(InputError, match="more than 10000 properties"):
        read_graph(file)


def test_a_hub_before_millions_of_short_lines_is_not_surveyed_with_all_of_them():
    text = b"0 " * 40_000 + b"\n" + b"0\n" * 100_000
    survey = survey_text(text, whole=True)
    assert len(survey.lines) == MOST_LINES
    assert not survey.whole


@pytest.mark.parametrize("number", ["9" * 5000, "\xb2"])
@pytest.mark.parametrize("text", [
    "# Edges: {}\n0 1\n", "p sp {0} {0}\na 1 2 3\n", "{} 1\n1 2\n",
    "%%MatrixMarket matrix coordinate pattern general\n{0} {0} {0}\n1 2\n",
])  # fmt: skip
def test_a_number_of_5000_digits_or_of_odd_digits_is_an_error_or_passed_over(tmp_path, text, number):
    file = tmp_path / "graph.txt"
    file.write_bytes(text.format(number).encode("latin-1"))
    for attempt in (read_graph, path_extent):
        with contextlib.suppress(InputError):
            attempt(file)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed_data_that_holds_next_to_nothing_is_bounded_and_can_be_stopped(tmp_path, pack):
    """A quarter of a gigabyte of empty members would take minutes before the first edge."""
    file = put(tmp_path, pack(b"0 1\n") + pack(b"") * 20_000 + pack(b"1 2\n"))
    assert read_graph(file).src.tolist() == [0, 1]
    looked = []
    bounds = Bounds(100, 100, 1 << 20, 1 << 20, lambda: looked.append(1), packed_bytes=1 << 17)
    with bounded(bounds), pytest.raises(TooLarge, match="compressed data for one block"):
        sniff(file)
    assert len(looked) > 3
    numbers = " ".join(map(str, np.random.default_rng(1).integers(0, 1 << 40, 30_000).tolist()))
    long_line = put(tmp_path, pack(f"1 {numbers}\n2 3\n".encode()), "hub")
    with bounded(replace(bounds, edges=1 << 20, vertices=1 << 20, packed_bytes=1 << 20)):
        assert read_graph(long_line, format="adjacency").src.size == 30_001


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="no file here that fails when it is read")
def test_a_disk_that_fails_is_named():
    with pytest.raises(InputError, match=r"^/proc/self/mem: cannot be read: .*Fix: "):
        read_graph("/proc/self/mem")
