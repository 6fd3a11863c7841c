"""``convert`` on the command line: the direction asked for, a stored graph as the source, what a format loses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hybrid
from cpu_engine.graph.edges import EdgeList, with_direction
from cpu_engine.graph.formats import read_graph, write_graph
from hybrid.cli import main
from hybrid.errors import EXIT_CONFIG, EXIT_OK

UNDIRECTED = ["--set", "graph.directed=false"]
SILENT = (".el", ".wel", ".gr")  # formats that do not state a direction
GRAPHS = Path(__file__).parents[2] / "graphs"


@pytest.fixture
def path_graph(tmp_path: Path) -> Path:
    """0 - 1 - 2 - 3, of which 1 - 2 stands in both directions with different weights."""
    file = tmp_path / "path.wel"
    file.write_text("0 1 5\n1 2 6\n2 1 4\n2 3 7\n")
    return file


@pytest.mark.parametrize("suffix", [".el", ".wel", ".txt", ".sg", ".wsg", ".gr", ".mtx", ".txt.gz", "-store"])
@pytest.mark.parametrize("from_store", [False, True])
def test_undirected_in_every_target_format(tmp_path, path_graph, suffix, from_store, capsys):
    source, target = path_graph, tmp_path / f"target{suffix}"
    if from_store:
        source = tmp_path / "source-store"
        assert main(["convert", str(path_graph), str(source), "--to", "store"]) == EXIT_OK
    form = ["--to", "store"] if suffix == "-store" else []
    assert main(["convert", str(source), str(target), *form, *UNDIRECTED]) == EXIT_OK
    told = capsys.readouterr()
    assert f"{target}: 3 edges, undirected, from {'store' if from_store else 'edge-list'}" in told.out
    assert ("does not say so" in told.err) == (suffix in SILENT)
    assert ("weights are left out" in told.err) == (suffix in (".el", ".sg"))
    graph = hybrid.load(target, directed=False if suffix in SILENT else None, cache=False)
    assert not graph.directed
    assert graph.edge_count == 3
    assert graph.bfs(3).to_dict() == {0: 3, 1: 2, 2: 1, 3: 0}
    assert graph.weighted == (suffix not in (".el", ".sg"))
    if graph.weighted:
        assert graph.sssp(3).to_dict() == {0: 16, 1: 11, 2: 7, 3: 0}


@pytest.mark.parametrize("name", ["house-weighted.mtx", "house-weighted.metis", "house.wsg", "house-ldbc.e"])
@pytest.mark.parametrize("suffix", [".txt", ".wsg", ".gr", ".mtx", "-store"])
def test_an_undirected_file_read_as_directed_has_both_arcs(tmp_path, name, suffix):
    target = tmp_path / f"target{suffix}"
    form = ["--to", "store"] if suffix == "-store" else []
    words = ["convert", str(GRAPHS / name), str(target), *form, "--set", "graph.directed=true"]
    assert main(words) == EXIT_OK
    for graph in (hybrid.load(target, cache=False), hybrid.load(GRAPHS / name, directed=True, cache=False)):
        assert graph.directed
        assert graph.edge_count == 12
        assert len(graph.bfs(5).to_dict()) == 5


@pytest.mark.parametrize("name", ["house-weighted.mtx", "house-weighted.metis", "house.wsg", "house-ldbc.e"])
@pytest.mark.parametrize("suffix", [".txt", ".wsg", ".mtx"])
def test_an_undirected_file_stays_undirected(tmp_path, name, suffix):
    target = tmp_path / f"target{suffix}"
    assert main(["convert", str(GRAPHS / name), str(target)]) == EXIT_OK
    graph, same = hybrid.load(target, cache=False), hybrid.load(GRAPHS / name, cache=False)
    assert not graph.directed
    assert graph.edge_count == same.edge_count == 6
    assert graph.sssp(5).to_dict() == same.sssp(5).to_dict()


def test_a_store_comes_back_with_its_ids_weights_and_isolated_vertices(tmp_path, capsys):
    ids = [3, 10, 2**40, 7]
    edges = EdgeList(
        np.array([3, 10, 10, 3]),
        np.array([10, 2**40, 10, 2**40]),
        np.array([0.5, 2.0, 9.0, -1.0]),
        vertices=np.array(ids),
        directed=True,
    )
    store = tmp_path / "store"
    from cpu_engine.graph.build.builder import build_graph
    from cpu_engine.graph.store.graph_store import save_store

    save_store(build_graph(edges, self_loops="keep"), store)
    assert main(["convert", str(store), str(tmp_path / "back.wel")]) == EXIT_OK
    told = capsys.readouterr()
    assert "vertices without edges are left out, 1 of 4" in told.err
    back = read_graph(tmp_path / "back.wel")
    found = sorted(zip(back.src.tolist(), back.dst.tolist(), back.weight.tolist(), strict=True))
    assert found == [(3, 10, 0.5), (3, 2**40, -1.0), (10, 10, 9.0), (10, 2**40, 2.0)]
    assert main(["convert", str(store), str(tmp_path / "again"), "--to", "store"]) == EXIT_OK
    assert hybrid.load(tmp_path / "again").vertices.tolist() == sorted(ids)


def test_a_store_of_the_other_direction_names_the_command_that_converts_it(tmp_path, path_graph, capsys):
    store, other = tmp_path / "store", tmp_path / "other"
    assert main(["convert", str(path_graph), str(store), "--to", "store"]) == EXIT_OK
    assert main(["info", str(store), *UNDIRECTED]) == EXIT_CONFIG
    told = capsys.readouterr().err
    assert f"python run.py convert {store} OTHER --to store --set graph.directed=false" in told
    assert main(["convert", str(store), str(other), "--to", "store", *UNDIRECTED]) == EXIT_OK
    assert main(["info", str(other), *UNDIRECTED]) == EXIT_OK
    assert "3 undirected edges" in capsys.readouterr().out


def test_a_direction_that_was_assumed_is_told(tmp_path, path_graph, capsys):
    assert main(["info", str(path_graph), "--set", "graph.cache=false"]) == EXIT_OK
    assert "directed is assumed" in capsys.readouterr().err
    assert main(["convert", str(path_graph), str(tmp_path / "p.sg")]) == EXIT_OK
    assert "directed is assumed" in capsys.readouterr().err
    assert main(["info", str(path_graph), "--set", "graph.directed=true", "--set", "graph.cache=false"]) == EXIT_OK
    assert main(["info", str(tmp_path / "p.sg"), "--set", "graph.cache=false"]) == EXIT_OK
    assert "assumed" not in capsys.readouterr().err


def test_mutual_arcs_stay_apart_where_duplicates_are_kept():
    edges = EdgeList(np.array([0, 1, 2]), np.array([1, 0, 2]), np.array([3, 2, 1]))
    kept = with_direction(edges, False, merge=False)
    assert (kept.src.tolist(), kept.directed) == ([0, 1, 2], False)
    merged = with_direction(edges, False)
    assert (merged.src.tolist(), merged.dst.tolist(), merged.weight.tolist()) == ([0, 2], [1, 2], [2, 1])


def test_large_whole_weights_come_back_whole_from_a_galois_file(tmp_path):
    weight = np.array([1_000_000_000, 1_050_000_000])  # the bits of two everyday floats
    write_graph(tmp_path / "graph.gr", EdgeList(np.array([0, 1]), np.array([1, 2]), weight, directed=True))
    assert read_graph(tmp_path / "graph.gr").weight.tolist() == weight.tolist()
