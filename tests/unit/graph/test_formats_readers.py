"""Readers: the same small graph in every format gives the same edges; what each format says about ids and direction."""

from __future__ import annotations

import gzip
import lzma
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import FORMATS, read_graph, sniff

pytestmark = pytest.mark.jitless

GRAPHS = Path(__file__).parents[2] / "graphs"
HOUSE = {(1, 2): 3, (2, 3): 1, (3, 4): 4, (1, 4): 1, (1, 5): 5, (2, 5): 9}

# file, format, weighted, entries, directed, symmetric_stored, id_range
HOUSES = [
    ("house.el", "edge-list", False, 6, None, False, None),
    ("house.el.gz", "edge-list", False, 6, None, False, None),
    ("house.el.xz", "edge-list", False, 6, None, False, None),
    ("house.wel", "edge-list", True, 6, None, False, None),
    ("house.wel.gz", "edge-list", True, 6, None, False, None),
    ("house.wel.xz", "edge-list", True, 6, None, False, None),
    ("house.csv", "edge-list", True, 6, None, False, None),
    ("house-snap.txt", "edge-list", False, 6, False, False, None),
    ("house.adj", "adjacency", False, 12, None, False, None),
    ("house.mtx", "matrix-market", False, 6, False, False, (1, 5)),
    ("house-weighted.mtx", "matrix-market", True, 6, False, False, (1, 5)),
    ("house-dimacs.gr", "dimacs", True, 12, True, False, (1, 5)),
    ("house.metis", "metis", False, 12, False, True, (1, 5)),
    ("house-weighted.metis", "metis", True, 12, False, True, (1, 5)),
    ("house-galois1.gr", "galois", False, 12, None, False, (0, 6)),
    ("house-galois1-weighted.gr", "galois", True, 12, None, False, (0, 6)),
    ("house-galois2.gr", "galois", False, 12, None, False, (0, 6)),
    ("house-galois2-weighted.gr", "galois", True, 12, None, False, (0, 6)),
    ("house.sg", "gap", False, 12, False, True, (0, 6)),
    ("house.wsg", "gap", True, 12, False, True, (0, 6)),
    ("house-ldbc.properties", "ldbc", True, 6, False, False, None),
    ("house-ldbc.e", "ldbc", True, 6, False, False, None),
    ("house-ldbc.v", "ldbc", True, 6, False, False, None),
    ("house.graph500", "graph500", False, 6, False, False, None),
    ("house.graph500-packed", "graph500-packed", False, 6, False, False, None),
]


def undirected(edges: EdgeList) -> dict[tuple[int, int], int]:
    """Edges as {(smaller, larger): weight}; weight 0 where there is none."""
    weight = np.zeros(edges.edge_count) if edges.weight is None else edges.weight
    pairs = zip(edges.src.tolist(), edges.dst.tolist(), weight.tolist(), strict=True)
    return {(min(u, v), max(u, v)): w for u, v, w in pairs}


def put(folder: Path, text: str | bytes, name: str = "graph") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(("name", "kind", "weighted", "entries", "directed", "symmetric", "id_range"), HOUSES)
def test_house_is_the_same_in_every_format(name, kind, weighted, entries, directed, symmetric, id_range):
    edges = read_graph(GRAPHS / name)
    assert edges.format == sniff(GRAPHS / name) == kind
    assert edges.path == str(GRAPHS / name)
    assert edges.src.dtype == edges.dst.dtype == np.int64
    assert edges.edge_count == entries
    assert undirected(edges) == (HOUSE if weighted else dict.fromkeys(HOUSE, 0))
    assert (edges.weight is not None) == weighted
    assert edges.weight is None or edges.weight.dtype == np.int64
    assert (edges.directed, edges.symmetric_stored, edges.id_range) == (directed, symmetric, id_range)


def test_every_format_has_a_house():
    assert {kind for _, kind, *_ in HOUSES} == set(FORMATS)


@pytest.mark.parametrize(("name", "kind"), [row[:2] for row in HOUSES if row[1] != "ldbc"])
def test_suffix_plays_no_part(tmp_path, name, kind):
    other = tmp_path / "graph.gr"
    shutil.copyfile(GRAPHS / name, other)
    assert sniff(other) == kind
    assert undirected(read_graph(other)) == undirected(read_graph(GRAPHS / name, format=kind))


@pytest.mark.parametrize("name", ["house.mtx", "house-dimacs.gr", "house.metis", "house.adj"])
@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_text_formats_may_be_compressed(tmp_path, name, pack):
    path = put(tmp_path, pack((GRAPHS / name).read_bytes()))
    assert undirected(read_graph(path)) == undirected(read_graph(GRAPHS / name))


def test_comments_separators_line_ends_and_large_ids(tmp_path):
    path = put(
        tmp_path,
        "# comment\r\n%another\r\n\r\n1,2\r\n 3\t4 # behind\n# between 5 6\n"
        "1099511627776 , 9223372036854775807\n\n7  8",
    )
    edges = read_graph(path)
    assert edges.src.tolist() == [1, 3, 2**40, 7]
    assert edges.dst.tolist() == [2, 4, 2**63 - 1, 8]
    assert edges.weight is None


def test_byte_order_mark_is_skipped(tmp_path):
    assert read_graph(put(tmp_path, b"\xef\xbb\xbf0 1\n1 2\n")).src.tolist() == [0, 1]


def test_weights_are_integers_if_all_are(tmp_path):
    whole = read_graph(put(tmp_path, "0 1 -5\n1 2 9223372036854775807\n"))
    assert whole.weight.dtype == np.int64
    assert whole.weight.tolist() == [-5, 2**63 - 1]
    mixed = read_graph(put(tmp_path, "0 1 7\n1 2 .5\n2 3 -1e-3\n3 4 +2.5E2\n4 5 1e300\n5 6 3.\n"))
    assert mixed.weight.dtype == np.float64
    assert mixed.weight.tolist() == [7, 0.5, -0.001, 250, 1e300, 3.0]


def test_fractions_are_rounded_as_python_rounds_them(tmp_path):
    rng = np.random.default_rng(5)
    tokens = [repr(x) for x in (rng.random(300) * 10.0 ** rng.integers(-20, 20, 300)).tolist()]
    tokens += [f"{a}.{b}" for a, b in rng.integers(0, 10**17, (300, 2)).tolist()]
    tokens += ["9007199254740993.0", "0.1", "0.30000000000000004", "4.35", "123456789012345678901234567890.5", "0.0"]
    edges = read_graph(put(tmp_path, "".join(f"0 1 {token}\n" for token in tokens)))
    assert edges.weight.tolist() == [float(token) for token in tokens]


def test_fractions_may_begin_late_in_a_large_file(tmp_path, monkeypatch):
    monkeypatch.setattr("cpu_engine.graph.formats.source.BLOCK_BYTES", 1000)
    edges = read_graph(put(tmp_path, "".join(f"{i} {i + 1} {i}\n" for i in range(500)) + "500 501 0.25\n"))
    assert edges.weight.dtype == np.float64
    assert edges.weight.tolist() == [*range(500), 0.25]


@pytest.mark.parametrize("ending", ["\n", ""])
@pytest.mark.parametrize("block_bytes", [64, 100, 1 << 20])
def test_blocks_may_end_anywhere(tmp_path, monkeypatch, block_bytes, ending):
    monkeypatch.setattr("cpu_engine.graph.formats.source.BLOCK_BYTES", block_bytes)
    rows = [(i * 7919 % 10007, i) for i in range(400)]
    text = "\n".join(f"{u} {v}" for u, v in rows) + ending
    for path in (put(tmp_path, text), put(tmp_path, gzip.compress(text.encode()), "packed")):
        seen = []
        edges = read_graph(path, progress=lambda done, total, seen=seen: seen.append((done, total)))
        assert list(zip(edges.src.tolist(), edges.dst.tolist(), strict=True)) == rows
        assert seen == sorted(seen)
        assert seen[-1] == (path.stat().st_size,) * 2


def test_adjacency_blocks_may_end_anywhere(tmp_path, monkeypatch):
    monkeypatch.setattr("cpu_engine.graph.formats.source.BLOCK_BYTES", 64)
    lines = [[i, *range(i % 7)] for i in range(100)]
    edges = read_graph(put(tmp_path, "\n".join(" ".join(map(str, line)) for line in lines)), format="adjacency")
    assert edges.src.tolist() == [line[0] for line in lines for _ in line[1:]]
    assert edges.dst.tolist() == [v for line in lines for v in line[1:]]
    assert edges.vertices.tolist() == list(range(100))


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "# nothing"])
def test_empty_file_is_an_empty_graph_with_a_note(tmp_path, text):
    edges = read_graph(put(tmp_path, text))
    assert edges.edge_count == 0
    assert edges.notes == ("the file has no edges",)


def test_a_single_edge(tmp_path):
    edges = read_graph(put(tmp_path, "5 9"))
    assert (edges.src.tolist(), edges.dst.tolist()) == ([5], [9])


def test_header_line_is_recognised_and_noted(tmp_path):
    edges = read_graph(put(tmp_path, "4 5\r\n0\t1\r\n1\t2\r\n2\t0\r\n2\t1\r\n0\t2\r\n"))
    assert edges.src.tolist() == [0, 1, 2, 2, 0]
    assert edges.id_range == (0, 4)
    assert edges.notes == ("first line '4 5' read as a header: vertices edges",)


def test_header_line_before_weighted_lines(tmp_path):
    edges = read_graph(put(tmp_path, "3 2\n1 2 7\n3 1 8\n"))
    assert edges.weight.tolist() == [7, 8]
    assert edges.id_range == (1, 3)


def test_first_line_that_does_not_agree_is_an_edge(tmp_path):
    edges = read_graph(put(tmp_path, "3 4\n0 1\n1 2\n2 0\n"))
    assert edges.src.tolist() == [3, 0, 1, 2]
    assert edges.notes == ()


def test_a_tree_written_from_its_last_edge_keeps_its_first_line(tmp_path):
    edges = read_graph(put(tmp_path, "3 2\n2 1\n1 0\n"))
    assert edges.src.tolist() == [3, 2, 1]
    assert "could also be a header" in edges.notes[0]


def test_header_written_differently_from_the_edges_is_a_header(tmp_path):
    edges = read_graph(put(tmp_path, "3 2\n2\t1\n1\t0\n"))
    assert edges.src.tolist() == [2, 1]


def test_snap_comment_that_promises_other_edges_is_noted(tmp_path):
    edges = read_graph(put(tmp_path, "# Nodes: 3 Edges: 9\n0 1\n1 2\n"))
    assert edges.notes == ("a comment says 'Edges: 9', the file has 2 lines of edges",)


def test_adjacency_keeps_vertices_without_neighbours(tmp_path):
    edges = read_graph(put(tmp_path, "1 2 3 4\n2\n5 1\n7\n"), format="adjacency")
    assert edges.vertices.tolist() == [1, 2, 3, 4, 5, 7]
    assert edges.src.tolist() == [1, 1, 1, 5]


def test_metis_empty_lines_are_vertices(tmp_path):
    edges = read_graph(put(tmp_path, "% c\n5 2\n2 4\n1\n% c\n\n1\n\n"))
    assert (edges.format, edges.id_range, edges.edge_count) == ("metis", (1, 5), 4)


def test_metis_vertex_sizes_and_weights_are_skipped(tmp_path):
    edges = read_graph(put(tmp_path, "3 2 111 2\n9 8 8 2 0.5\n9 8 8 1 0.5 3 2\n9 8 8 2 2\n"), format="metis")
    assert edges.dst.tolist() == [2, 1, 3, 2]
    assert edges.weight.tolist() == [0.5, 0.5, 2, 2]


def test_metis_hub_in_the_first_line(tmp_path):
    n = 30_000
    path = put(tmp_path, f"{n} {n - 1}\n{' '.join(map(str, range(2, n + 1)))}\n" + "1\n" * (n - 1))
    edges = read_graph(path)
    assert (edges.format, edges.edge_count) == ("metis", 2 * (n - 1))


def test_more_comments_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr("cpu_engine.graph.formats.source.BLOCK_BYTES", 64)
    edges = read_graph(put(tmp_path, "# a comment\n" * 100 + "0 1 2.5\n1 2 3\n"))
    assert edges.weight.tolist() == [2.5, 3]


def test_matrix_market_general_is_directed_and_real(tmp_path):
    path = put(tmp_path, "%%MatrixMarket MATRIX Coordinate Real General\n%\n4 4 3\n1 2 0.5\n2 1 -2\n3 3 1e3\n")
    edges = read_graph(path)
    assert edges.directed is True
    assert edges.src.tolist() == [1, 2, 3]
    assert edges.weight.tolist() == [0.5, -2, 1000]
    assert edges.id_range == (1, 4)


def test_matrix_market_body_without_banner_is_an_edge_list(tmp_path):
    assert sniff(put(tmp_path, "2 1\n1113 1\n3 2\n", "body.mtx")) == "edge-list"


def test_directed_gap_graph_reads_its_out_edges(tmp_path):
    out, back = struct.pack("<4q3i", 0, 2, 3, 3, 1, 2, 2), struct.pack("<4q3i", 0, 0, 1, 3, 0, 0, 1)
    for data in (out + back, out):  # with and without the in-edges
        edges = read_graph(put(tmp_path, struct.pack("<?qq", True, 3, 3) + data))
        assert (edges.format, edges.directed, edges.symmetric_stored) == ("gap", True, False)
        assert (edges.src.tolist(), edges.dst.tolist()) == ([0, 0, 1], [1, 2, 2])


@pytest.mark.parametrize(
    ("size", "form", "values", "dtype"),
    [
        (1, "3B", (1, 2, 3), np.int64),
        (2, "3H", (1, 2, 3), np.int64),
        (4, "3I", (1, 2, 2**32 - 1), np.int64),
        (4, "3f", (0.5, 2.0, 0.0), np.float64),
        (8, "3q", (-1, 2, 2**40), np.int64),
        (8, "3d", (0.1, -2.0, 1e200), np.float64),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_galois_edge_data_types(tmp_path, version, size, form, values, dtype):
    targets = struct.pack("<3I4x" if version == 1 else "<3Q", 1, 2, 0)
    head = struct.pack("<4Q3Q", version, size, 3, 3, 1, 2, 3)
    edges = read_graph(put(tmp_path, head + targets + struct.pack(f"<{form}", *values)))
    assert edges.format == "galois"
    assert edges.weight.dtype == dtype
    assert edges.weight.tolist() == list(values)
    assert "does not state their type" in edges.notes[0]


def test_galois_structures_on_edges_are_left_out_and_noted(tmp_path):
    data = struct.pack("<4Q2Q2I", 1, 12, 2, 2, 1, 2, 1, 0) + bytes(24)
    edges = read_graph(put(tmp_path, data))
    assert edges.weight is None
    assert "12 bytes per edge" in edges.notes[0]


def test_graph500_packed_holds_48_bits(tmp_path):
    data = struct.pack("<IIHH", 5, 6, 1, 0x7FFF) + struct.pack("<IIHH", 2**32 - 1, 0, 0, 0)
    edges = read_graph(put(tmp_path, data), format="graph500-packed")
    assert edges.src.tolist() == [(1 << 32) + 5, 2**32 - 1]
    assert edges.dst.tolist() == [(0x7FFF << 32) + 6, 0]


def test_ldbc_pair_without_properties(tmp_path):
    put(tmp_path, "1\n2\n3\n9\n", "g.v")
    path = put(tmp_path, "1 2\n2 3\n", "g.e")
    for part in (path, tmp_path / "g.v"):
        edges = read_graph(part)
        assert (edges.format, edges.directed, edges.weight) == ("ldbc", None, None)
        assert edges.vertices.tolist() == [1, 2, 3, 9]
        assert edges.edge_count == 2


def test_ldbc_takes_the_weight_among_several_properties(tmp_path):
    put(tmp_path, "1 red\n2 blue\n", "g.v")
    put(tmp_path, "1 2 friend 0.5 2020\n", "g.e")
    path = put(
        tmp_path,
        "graph.my.graph.vertex-file = g.v\ngraph.my.graph.edge-file = g.e\ngraph.my.graph.directed = true\n"
        "graph.my.graph.edge-properties.names = kind, weight, year\n"
        "graph.my.graph.edge-properties.types = string, real, int\n",
        "g.properties",
    )
    edges = read_graph(path)
    assert edges.weight.tolist() == [0.5]
    assert edges.directed is True


def test_ldbc_files_may_be_in_a_folder_and_compressed(tmp_path):
    (tmp_path / "parts").mkdir()
    put(tmp_path / "parts", gzip.compress(b"1\n2\n"), "g.v.gz")
    put(tmp_path / "parts", gzip.compress(b"1 2\n"), "g.e.gz")
    path = put(tmp_path, "graph.g.vertex-file = parts/g.v.gz\ngraph.g.edge-file = parts/g.e.gz\n", "g.properties")
    assert read_graph(path).edge_count == read_graph(tmp_path / "parts" / "g.e.gz").edge_count == 1


def test_ldbc_edge_file_alone_is_an_edge_list(tmp_path):
    assert read_graph(put(tmp_path, "1 2\n2 3\n", "g.e")).format == "edge-list"
