"""The hint that edges may have no direction: where it is given, where not, and what it costs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from hybrid.cli import main
from hybrid.errors import EXIT_OK
from hybrid.graphs.reach_hint import LOOK, direction_hint, undirected_reach


def path_graph(n: int, directed: bool = True):
    return build_graph(EdgeList(np.arange(n - 1), np.arange(1, n)), directed=directed)


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_run_suggests_to_leave_out_directions(tmp_path: Path, algorithm: str, capsys):
    (tmp_path / "road.el").write_text("".join(f"{v} {v + 1}\n" for v in range(50)))
    words = ["run", "--set", f"graph.path={tmp_path / 'road.el'}", "--set", "npu.mode=off", "--set", "source=50"]
    words += ["--set", f"algorithm={algorithm}", "--output", str(tmp_path / "out"), "--set", "graph.cache=false"]
    assert main(words) == EXIT_OK
    told = capsys.readouterr()
    assert "directed is assumed" in told.err
    hint = json.loads((tmp_path / "out" / "summary.json").read_text())["hint"]
    assert "from 50 only 1 vertex can be reached" in hint
    assert "51 without them" in hint
    assert f"hint     {hint}" in told.out
    assert main([*words, "--set", "graph.directed=false"]) == EXIT_OK
    assert "hint" not in json.loads((tmp_path / "out" / "summary.json").read_text())
    assert "hint" not in capsys.readouterr().out


def test_a_long_graph_is_looked_at_in_part():
    graph = path_graph(5000)
    hint = direction_hint(graph, [(0, 5000), (4990, 10), (4999, 1)])
    assert hint is not None
    assert f"from 4990 only 10 vertices can be reached along the edges' directions, at least {LOOK:,} without" in hint
    assert "2 sources reached 100 or fewer" in hint


def test_no_hint_where_it_would_not_help():
    assert direction_hint(path_graph(5000, directed=False), [(0, 1)]) is None
    assert direction_hint(path_graph(5000), [(0, 5000), (4000, 1000)]) is None
    assert direction_hint(path_graph(3), [(2, 1)]) is None, "three vertices are not far more than one"
    lonely = build_graph(EdgeList(np.array([0]), np.array([1]), id_range=(0, 3)), directed=True)
    assert direction_hint(lonely, [(2, 1)]) is None


def test_undirected_reach_counts_both_directions_and_stops():
    star = build_graph(EdgeList(np.arange(1, 3000), np.zeros(2999, np.int64)), directed=True)
    assert undirected_reach(star, 0, 100) == (100, False)
    assert undirected_reach(star, 5, 10_000) == (3000, True)
