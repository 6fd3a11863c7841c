"""Writers: what is written reads back as the same graph, replaces its target whole, and refuses what it cannot hold."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.errors import InputError
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import WRITABLE, read_graph, sniff, write_graph

pytestmark = pytest.mark.jitless

GRAPHS = Path(__file__).parents[2] / "graphs"


def graph(weights: list | None = None, **facts) -> EdgeList:
    """0 -> 1, 0 -> 4, 2 -> 1, 4 -> 0, 4 -> 4; vertices 3 and 5 have no edges."""
    src, dst = np.array([0, 0, 2, 4, 4]), np.array([1, 4, 1, 0, 4])
    return EdgeList(src, dst, None if weights is None else np.array(weights), id_range=(0, 6), **facts)


def arcs(edges: EdgeList) -> list[tuple]:
    """All arcs, both directions of an undirected edge, sorted."""
    weight = [None] * edges.edge_count if edges.weight is None else edges.weight.tolist()
    found = list(zip(edges.src.tolist(), edges.dst.tolist(), weight, strict=True))
    if edges.directed is False and not edges.symmetric_stored:
        found += [(v, u, w) for u, v, w in found if u != v]
    return sorted(found, key=repr)


def without_weights(edges: EdgeList) -> list[tuple]:
    return sorted(((u, v, None) for u, v, _ in arcs(edges)), key=repr)


@pytest.mark.parametrize(
    "weights", [None, [5, 0, -7, 2**31 - 1, 1], [5, 6, 7, 2**40, 1], [0.1, 1e-12, 3.0, -2.5, 1e15]]
)
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".txt.xz", ".gr", ".mtx", ".mtx.gz"])
def test_directed_round_trip(tmp_path, suffix, weights):
    path = tmp_path / f"graph{suffix}"
    edges = graph(weights, directed=True)
    write_graph(path, edges)
    back = read_graph(path)
    assert arcs(back) == arcs(edges)
    assert weights is None or back.weight.dtype == edges.weight.dtype
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".sg", ".gr", ".mtx", ".wsg"])
@pytest.mark.parametrize("directed", [True, False])
def test_binary_and_matrix_round_trip_keep_vertices_and_direction(tmp_path, suffix, directed):
    path = tmp_path / f"graph{suffix}"
    edges = (
        graph([5, 0, 7, 8, 0], directed=directed)
        if directed
        else EdgeList(np.array([0, 2, 4]), np.array([1, 1, 4]), np.array([5, 7, 9]), id_range=(0, 6), directed=False)
    )
    write_graph(path, edges)
    back = read_graph(path)
    assert (without_weights(back) if suffix == ".sg" else arcs(back)) == (
        without_weights(edges) if suffix == ".sg" else arcs(edges)
    )
    assert back.id_range == (0, 6)
    assert back.directed is (None if suffix == ".gr" else directed)


@pytest.mark.parametrize("suffix", [".el", ".wel"])
def test_edge_lists_for_gap_have_no_comments(tmp_path, suffix):
    path = tmp_path / f"graph{suffix}"
    write_graph(path, graph([1, 2, 3, 4, 5]))
    assert path.read_text().splitlines()[0] == ("0 1" if suffix == ".el" else "0 1 1")
    back = read_graph(path)
    assert back.src.tolist() == [0, 0, 2, 4, 4]
    assert (back.weight is None) == (suffix == ".el")


@pytest.mark.parametrize(
    "name", ["house.mtx", "house-weighted.mtx", "house.sg", "house.wsg", "house-galois1-weighted.gr"]
)
def test_writing_what_was_read_gives_the_same_bytes(tmp_path, name):
    path = tmp_path / name
    write_graph(path, read_graph(GRAPHS / name))
    assert path.read_bytes() == (GRAPHS / name).read_bytes().replace(b"% a house\n", b"")


def test_undirected_edges_stand_in_both_rows_and_loops_once(tmp_path):
    path = tmp_path / "graph.sg"
    write_graph(path, EdgeList(np.array([0, 1]), np.array([1, 1]), directed=False))
    assert path.read_bytes() == struct.pack("<?qq3q3i", False, 3, 2, 0, 1, 3, 1, 0, 1)


def test_matrix_ids_from_zero_are_shifted_and_come_back(tmp_path):
    path = tmp_path / "graph.mtx"
    write_graph(path, graph(directed=True))
    lines = path.read_text().splitlines()
    assert lines[2] == "6 6 5"
    assert lines[3] == "1 2"
    assert read_graph(path).src.tolist() == [0, 0, 2, 4, 4]


def test_large_ids_survive_an_edge_list(tmp_path):
    edges = EdgeList(np.array([2**62, 0]), np.array([1, 2**63 - 1]))
    write_graph(tmp_path / "graph.el", edges)
    assert arcs(read_graph(tmp_path / "graph.el")) == arcs(edges)


@pytest.mark.parametrize("suffix", [".el", ".txt", ".sg", ".gr", ".mtx"])
@pytest.mark.parametrize("id_range", [None, (0, 3), (0, 0)])
def test_empty_graph_round_trip(tmp_path, suffix, id_range):
    path = tmp_path / f"graph{suffix}"
    write_graph(path, EdgeList(np.empty(0, np.int64), np.empty(0, np.int64), id_range=id_range, directed=True))
    back = read_graph(path)
    assert back.edge_count == 0
    if suffix not in (".el", ".txt"):
        assert back.id_range[1] == (id_range[1] if id_range else 0)


def test_more_lines_than_one_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr("cpu_engine.graph.formats.text_output.LINES_AT_ONCE", 7)
    edges = EdgeList(np.arange(100), np.arange(100)[::-1].copy(), np.linspace(0, 1, 100))
    write_graph(tmp_path / "graph.wel.gz", edges)
    assert arcs(read_graph(tmp_path / "graph.wel.gz")) == arcs(edges)


@pytest.mark.parametrize("name", WRITABLE)
def test_format_may_be_named(tmp_path, name):
    path = tmp_path / "graph.dat"
    write_graph(path, graph([1, 2, 3, 4, 5], directed=True), format=name)
    assert sniff(path) == name
    assert arcs(read_graph(path)) == arcs(graph([1, 2, 3, 4, 5], directed=True))


@pytest.mark.parametrize(
    ("name", "edges", "reason"),
    [
        ("graph.xyz", graph(), "suffix '.xyz'"),
        ("graph.wel", graph(), "no weights"),
        ("graph.wsg", graph(), "no weights"),
        ("graph.wsg", graph([0.5, 1, 1, 1, 1]), "32 bits"),
        ("graph.wsg", graph([2**31, 1, 1, 1, 1]), "32 bits"),
        ("graph.sg.gz", graph(), "not written compressed"),
        ("graph.sg", EdgeList(np.array([2**31]), np.array([0])), "above what the format holds"),
        ("graph.gr", EdgeList(np.array([2**33]), np.array([0])), "above what the format holds"),
        ("graph.sg", EdgeList(np.array([2**30]), np.array([0])), "far beyond the number of edges"),
        ("missing/graph.el", graph(), "cannot be written"),
    ],
)
def test_what_cannot_be_written_is_refused_and_leaves_nothing(tmp_path, name, edges, reason):
    with pytest.raises(InputError) as caught:
        write_graph(tmp_path / name, edges)
    assert reason in caught.value.reason
    assert caught.value.fix
    assert list(tmp_path.iterdir()) == []


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "graph.el"
    write_graph(path, graph())
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cpu_engine.graph.formats.writing.write_edge_lines", full)
    with pytest.raises(InputError, match="No space left"):
        write_graph(path, graph([1, 1, 1, 1, 1]))
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["graph.el"]


def test_compressed_output_is_reproducible(tmp_path):
    write_graph(tmp_path / "graph.el.gz", graph())
    first = (tmp_path / "graph.el.gz").read_bytes()
    write_graph(tmp_path / "graph.el.gz", graph())
    assert (tmp_path / "graph.el.gz").read_bytes() == first
    assert gzip.decompress(first).startswith(b"0 1\n")


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError("9 requested and 4 written")])
def test_a_full_disk_is_told_with_how_much_fitted(tmp_path, monkeypatch, error):
    def some(file, *arguments: object, **options: object) -> None:
        file.write(b"x" * 5000)
        file.flush()
        raise error

    monkeypatch.setattr("cpu_engine.graph.formats.writing.write_edge_lines", some)
    with pytest.raises(InputError, match=r"cannot be written: (No space|9 requested).*ended after 5,000 bytes.*Fix: "):
        write_graph(tmp_path / "graph.el", graph())
    assert not list(tmp_path.iterdir())
