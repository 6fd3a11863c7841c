"""What counts as a graph: files, arrays, matrices, tables, NetworkX; all of one small graph give the same answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from hybrid.api.arrow import ArrowTable
from hybrid.api.opening import as_graph

SOURCE, TARGET, WEIGHT = [0, 0, 1, 2, 5], [1, 2, 2, 5, 0], [4, 1, 1, 7, 2]
LEVELS, DISTANCES = {0: 0, 1: 1, 2: 1, 5: 2}, {0: 0, 1: 4, 2: 1, 5: 8}


def assert_same(given: Any, weighted: bool = True) -> None:
    assert hybrid.bfs(given, 0).to_dict() == LEVELS
    if weighted:
        assert hybrid.sssp(given, 0).to_dict() == DISTANCES


def test_arrays() -> None:
    assert_same((SOURCE, TARGET, WEIGHT))
    assert_same((np.array(SOURCE, np.uint16), np.array(TARGET, np.int32)), weighted=False)
    assert_same(np.array([SOURCE, TARGET, WEIGHT]).T)
    assert_same(np.array([SOURCE, TARGET, WEIGHT], float).T)
    assert_same(list(zip(SOURCE, TARGET, WEIGHT, strict=True)))
    assert_same(as_graph((SOURCE, TARGET)).rows, weighted=False)


@pytest.mark.parametrize("length", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", [list, np.array])
def test_a_tuple_is_columns_everywhere_and_at_every_length(length: int, kind: Any) -> None:
    u, v, w = (kind(one[:length]) for one in ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [4, 1, 1, 7, 2]))
    for given in ((u, v), (u, v, w)):
        apart = hybrid.from_edges(*given)
        for graph in (hybrid.from_edges(given), as_graph(given)):
            assert graph.edge_count == length
            assert graph.bfs(0).to_dict() == apart.bfs(0).to_dict() == {0: 0, 5: 1}
            assert graph.weighted == apart.weighted == (len(given) == 3)
    assert hybrid.sssp((u, v, w), 0).to_dict() == {0: 0, 5: 4}
    assert hybrid.from_edges((u, v), weight=w, vertices=[17], directed=False).vertex_count == 2 * length + 1
    with pytest.raises(InputError, match="weights in the tuple and beside it"):
        hybrid.from_edges((u, v, w), weight=w)


def test_a_tuple_of_short_tuples_is_asked_about() -> None:
    for given in (((0, 1), (2, 3)), ((0, 1, 2), (1, 2, 3)), ((0, 1), (1, 2), (2, 3))):
        for read in (hybrid.from_edges, as_graph):
            with pytest.raises(InputError, match="may be edges, or their ends column by column"):
                read(given)
        assert hybrid.from_edges(list(given)).edge_count == len(given)
    assert hybrid.from_edges(((0, 1, 2, 3), (1, 2, 3, 4))).edge_count == 4
    assert hybrid.from_edges(((0, 1), (1, 2), (2, 3), (3, 4))).edge_count == 4


def test_arrays_that_are_no_graph() -> None:
    for wrong in (5, "", np.zeros((2, 2, 2)), np.zeros((3, 4)), [1, 2], [(1, 2, 3, 4)], [(1, 2), (1, 2, 3)]):
        with pytest.raises(InputError):
            as_graph(wrong)
    with pytest.raises(InputError, match="equal length"):
        hybrid.from_edges([1, 2], [3])
    with pytest.raises(InputError, match="no whole number"):
        hybrid.from_edges(np.array([0.5]), np.array([1.0]))
    with pytest.raises(InputError, match="one number per edge"):
        hybrid.from_edges([0], [1], ["far"])
    with pytest.raises(InputError, match="is missing"):
        hybrid.from_edges(["a"], [None])
    with pytest.raises(InputError, match="beyond 64 bits"):
        hybrid.from_edges(np.array([2**64 - 1], np.uint64), np.array([1], np.uint64))
    with pytest.raises(InputError, match="source and target apart"):
        hybrid.from_edges([(0, 1)], weight=[1])
    with pytest.raises(InputError, match="cannot be a name"):
        hybrid.from_edges([[], []], [[], []])
    with pytest.raises(InputError, match="a weight is beyond 64 bits"):
        hybrid.from_edges([1], [2], np.array([2**63], np.uint64))


def test_tuples_are_names() -> None:
    graph = hybrid.from_edges([(0, 0), (0, 1)], [(0, 1), (1, 1)])
    assert graph.bfs((0, 0)).path((1, 1)) == [(0, 0), (0, 1), (1, 1)]


def test_files(tmp_path: Path) -> None:
    rows = "".join(f"{u} {v} {w}\n" for u, v, w in zip(SOURCE, TARGET, WEIGHT, strict=True))
    (tmp_path / "house.wel").write_text(rows)
    assert_same(str(tmp_path / "house.wel"))
    assert_same(tmp_path / "house.wel")
    undirected = hybrid.load(tmp_path / "house.wel", directed=False, cache=False)
    assert undirected.bfs(1).to_dict() == {0: 1, 1: 0, 2: 1, 5: 2}
    with pytest.raises(InputError, match="nowhere"):
        hybrid.load(tmp_path / "nowhere")


def test_matrices() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.coo_array((WEIGHT, (SOURCE, TARGET)), shape=(7, 7))
    for form in (matrix, matrix.tocsr(), matrix.tocsc(), sparse.csr_matrix(matrix)):
        assert_same(form)
    graph = as_graph(matrix)
    assert graph.vertex_count == 7
    ones = as_graph(matrix.astype(bool))
    assert not ones.weighted
    with pytest.raises(InputError, match="square"):
        as_graph(sparse.coo_array((2, 3)))


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"u": SOURCE, "v": TARGET, "colour": list("rgbrg"), "weight": WEIGHT})
    assert_same(frame)
    assert hybrid.from_edges(frame, columns=["v", "u"]).bfs(5).to_dict() == {5: 0, 2: 1, 0: 2, 1: 2}
    towns = pandas.DataFrame({"from": ["Ulm", "Bonn"], "to": ["Bonn", "Kiel"]})
    assert hybrid.bfs(towns, "Ulm").to_dict() == {"Ulm": 0, "Bonn": 1, "Kiel": 2}
    with pytest.raises(InputError, match="u, v, colour, weight"):
        hybrid.from_edges(frame, columns=["u", "w"])


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"u": SOURCE, "v": TARGET, "weight": WEIGHT})
    assert_same(frame)
    assert_same(polars.concat([frame[:2], frame[2:]], rechunk=False))
    towns = polars.DataFrame({"from": ["Ulm", "Bonn"], "to": ["Bonn", "Kiel"]})
    assert hybrid.bfs(towns, "Ulm").to_dict() == {"Ulm": 0, "Bonn": 1, "Kiel": 2}


def test_arrow() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"u": SOURCE, "v": TARGET, "weight": WEIGHT})
    assert_same(table)
    assert_same(table.to_batches()[0])
    assert_same(pyarrow.concat_tables([table[:1], table[1:4], table[4:]]))
    assert_same(pyarrow.concat_tables([table, table])[5:])
    short = table.cast(pyarrow.schema([("u", pyarrow.uint8()), ("v", pyarrow.int32()), ("weight", pyarrow.float32())]))
    assert_same(short)
    gaps = pyarrow.table({"u": [0, None], "v": [1, 2]})
    with pytest.raises(InputError, match="missing values"):
        hybrid.from_edges(gaps)
    assert hybrid.from_edges(gaps[:1]).edge_count == 1
    towns = pyarrow.table({"from": ["Ulm", "Bonn"], "to": ["Bonn", "Kiel"]})
    assert hybrid.bfs(towns, "Ulm").to_dict() == {"Ulm": 0, "Bonn": 1, "Kiel": 2}
    nothing = pyarrow.table({"u": pyarrow.array([], "int64"), "v": pyarrow.array([], "int64")})
    assert hybrid.from_edges(nothing).vertex_count == 0


def test_arrow_columns_are_not_copied() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"u": np.arange(1000), "v": np.arange(1000)[::-1].copy()})
    address = table["u"].chunk(0).buffers()[1].address
    column = ArrowTable(table).column("u")
    assert column.ctypes.data == address
    del table
    assert column.sum() == 499500  # the memory is still there
    assert not column.flags.writeable


def test_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from(zip(SOURCE, TARGET, WEIGHT, strict=True))
    assert_same(graph)
    parallel = networkx.MultiDiGraph(graph)
    parallel.add_edge(0, 1, weight=9)
    assert_same(parallel)
    letters = networkx.relabel_nodes(graph.to_undirected(), {0: "a", 1: "b", 2: (2, "c")})
    assert hybrid.bfs(letters, "b").to_dict() == {"a": 1, "b": 0, (2, "c"): 1, 5: 2}
    letters.add_node("alone")
    letters.add_edge("a", "new")  # without a weight: 1
    assert hybrid.sssp(letters, "a")["new"] == 1
    assert as_graph(letters).vertex_count == 6
    negative = networkx.Graph([(-1, -2)])
    assert hybrid.bfs(negative, -2).to_dict() == {-1: 1, -2: 0}
    with pytest.raises(InputError, match="to_directed"):
        hybrid.from_edges(negative, directed=True)


def test_a_graph_without_vertices() -> None:
    empty = as_graph(build_graph(EdgeList(np.empty(0, np.int64), np.empty(0, np.int64))))
    assert empty.components().groups() == []
    assert empty.pagerank().to_dict() == {}
    with pytest.raises(InputError, match="no vertices"):
        empty.bfs(0)
