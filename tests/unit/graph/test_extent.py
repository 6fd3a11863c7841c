"""Memory is asked for before anything is generated or read: by every command and function that makes a graph."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

import hybrid
from cpu_engine.errors import InputError
from cpu_engine.graph import memory
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.build.extent import Extent, file_extent, generated_extent, require_room
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from hybrid.cli import main
from hybrid.errors import EXIT_INPUT, EXIT_OK

GRAPHS = Path(__file__).parents[2] / "graphs"
SCALE = 12
SIZE = ["--set", f"graph.generator.scale={SCALE}", "--set", "npu.mode=off"]
LIST_BYTES = 8 * (16 << SCALE)
DECLARED = (".gr", ".mtx", ".metis", ".sg", ".wsg", ".properties", ".e", ".v")  # formats that tell the vertices


@pytest.fixture
def little(monkeypatch) -> None:
    """Room for the edge list, but not for the graph; whoever makes or reads edges all the same fails."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the edges were made before their memory was asked for")

    monkeypatch.setattr(memory, "available_bytes", lambda: LIST_BYTES * 5 // 4)
    places = (
        ("cpu_engine.graph.generators", "kronecker"),
        ("hybrid.experiments.graph500.benchmark", "kronecker"),
        ("benchmarks.suites.build", "kronecker"),
        ("hybrid.graphs.opening", "read_graph"),
        ("hybrid.cli.commands.run", "_launch"),
    )
    modules = [importlib.import_module(module) for module, _ in places]  # all before one is patched: they import names
    for module, (_, name) in zip(modules, places, strict=True):
        monkeypatch.setattr(module, name, refuse)


@pytest.mark.parametrize(
    "words",
    [
        ["run", *SIZE],
        ["run", *SIZE, "--set", "algorithm=pagerank"],
        ["info", *SIZE, "--set", "graph.cache=false"],
        ["plan", *SIZE, "--device", "oracle"],
        ["partition", *SIZE],
        ["tune", *SIZE, "--devices", "oracle"],
        ["breakeven", *SIZE],
        ["generate", "--scale", str(SCALE), "-o", "out.sg"],
        ["graph500", "--scale", str(SCALE)],
        ["graph500", "--scale", str(SCALE), "--kernel", "sssp"],
        ["bench", "bfs", "--scale", str(SCALE)],
        ["bench", "build", "--scale", str(SCALE)],
        ["bench", "build", "--edges", str(16 << SCALE)],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_every_command_refuses_before_it_makes_the_graph(words, little, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TANDEM_CACHE", str(tmp_path / "cache"))
    assert main(words) == EXIT_INPUT
    told = capsys.readouterr().err
    assert "needs about" in told
    assert "Fix: " in told
    assert not list(tmp_path.glob("**/*.npy"))


def test_ranks_are_not_started_for_a_graph_that_does_not_fit(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 34)
    monkeypatch.setattr("hybrid.launch.command.find_launcher", lambda *_: pytest.fail("mpirun was looked for"))
    monkeypatch.setattr("hybrid.cli.commands.run.detect_mpi_environment", lambda environment: None)
    words = ["run", "--set", "graph.generator.scale=27", "--set", "ranks=2", "--set", f"graph.cache_dir={tmp_path}"]
    assert main(words) == EXIT_INPUT
    told = capsys.readouterr().err
    assert "building a graph of about 2,147,483,648 edges and 134,217,728 vertices needs about" in told


def test_python_refuses_before_it_makes_the_graph(little):
    with pytest.raises(InputError, match="needs about"):
        hybrid.generate(scale=SCALE)
    with pytest.raises(InputError, match="needs about"):
        hybrid.generate(scale=SCALE - 1, weights=(1, 9))


@pytest.mark.parametrize("command", ["info", "convert"])
def test_a_file_is_not_read_if_its_graph_does_not_fit(command, little, tmp_path, capsys):
    ends = np.random.default_rng(1).integers(0, 1 << 20, (2, 200_000))
    file = tmp_path / "graph.el"
    file.write_bytes(b"".join(b"%d %d\n" % pair for pair in zip(*ends.tolist(), strict=True)))
    cache = ["--set", f"graph.cache_dir={tmp_path / 'cache'}"]
    words = ["convert", str(file), str(tmp_path / "out.sg")] if command == "convert" else ["info", str(file)]
    assert main([*words, *cache]) == EXIT_INPUT
    assert "needs about" in capsys.readouterr().err
    assert not (tmp_path / "cache" / "digests").exists(), "the file was read for its digest"


def test_a_graph_that_was_built_before_opens_without_that_memory(monkeypatch, tmp_path):
    file = tmp_path / "graph.el"
    file.write_text("0 1\n1 2\n")
    monkeypatch.setattr(
        "cpu_engine.graph.store.remembered.RACY_WINDOW_NS", -1
    )  # remember the digest of a file this young
    words = ["info", str(file), "--set", f"graph.cache_dir={tmp_path / 'cache'}"]
    assert main(words) == EXIT_OK
    monkeypatch.setattr(memory, "available_bytes", lambda: 0)
    assert main(words) == EXIT_OK
    file.write_text("0 1\n1 3\n")
    assert main(words) == EXIT_INPUT


@pytest.mark.parametrize("path", sorted(GRAPHS.iterdir()), ids=lambda path: path.name)
def test_the_extent_of_every_format_is_what_the_reader_finds(path):
    extent, edges = file_extent(path), read_graph(path)
    comments = 2 if path.name == "house-snap.txt" else 0  # lines of text count as edges
    assert extent.edges == edges.edge_count + comments
    assert extent.weighted == (edges.weight is not None)
    assert extent.symmetric_stored == edges.symmetric_stored
    if path.suffix in DECLARED:
        assert extent.vertices == build_graph(edges).user_ids.size
        assert extent.directed == edges.directed


def test_the_extent_of_a_long_text_is_guessed_low_from_its_first_block(tmp_path):
    lines = 1_000_000
    (tmp_path / "graph.wel").write_bytes(b"1000000 2000000 17\n" * lines)
    extent = file_extent(tmp_path / "graph.wel")
    assert extent.weighted
    assert 0.7 * lines < extent.edges <= lines


def test_generated_extents(monkeypatch):
    for made, extent in (
        (hybrid.generate("kronecker", scale=6, edge_factor=3), generated_extent("kronecker", scale=6, edge_factor=3)),
        (hybrid.generate("grid", rows=5, cols=7), generated_extent("grid", rows=5, cols=7)),
    ):
        assert (made.rows.meta["input_edges"], made.vertex_count) == (extent.edges, extent.vertices)
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    require_room(Extent(10**12, 10**10), None, consume=True)  # the system does not say how much there is


def test_a_list_with_both_directions_is_counted_once():
    twice = Extent(1000, 100, directed=False, symmetric_stored=True)
    once = Extent(1000, 100, directed=False)
    assert twice.build_bytes(None, consume=False) < once.build_bytes(None, consume=False)
    assert build_graph(EdgeList(np.array([0, 1]), np.array([1, 0]), directed=False, symmetric_stored=True)).m == 2
