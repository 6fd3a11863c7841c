"""Thin rounds are run many at a time, and nobody can tell but by the launches."""

from __future__ import annotations

import numpy as np
import pytest

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import grid
from cpu_engine.graph.graph import Graph
from cpu_engine.programs import Field, Runner, VertexProgram, run, spread
from tests.property.test_vertex_programs import BFS, COMPONENTS, SSSP, reach_with_labels


def path_graph(n: int, *, directed: bool) -> Graph:
    source = np.arange(n - 1)
    return build_graph(EdgeList(source, source + 1, weight=source % 7 + 1), directed=directed)


def round_by_round(program, graph, monkeypatch, **options):
    """The same run without thin rounds."""
    with monkeypatch.context() as patched:
        patched.setattr(spread.Spread, "_run_thin", lambda self: False)
        return run(program, graph, **options)


@pytest.mark.jitless
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    ("program", "options"),
    [(BFS, {"start": 0}), (SSSP, {"start": 0, "delta": 3}), (COMPONENTS, {"strategy": "push"}), (None, {})],
    ids=["bfs", "sssp", "components", "reach"],
)
def test_thin_rounds_are_rounds(program, options, directed, monkeypatch):
    graph = path_graph(60, directed=directed)
    if program is None:
        program = reach_with_labels((np.arange(graph.n) % 3 == 0).astype(np.uint64), 4)
    together, apart = run(program, graph, **options), round_by_round(program, graph, monkeypatch, **options)
    name = program.offered.name
    assert together[name].tolist() == apart[name].tolist()
    assert together.rounds == len(together.steps)
    if program.synchronous or name == "level":  # others may see values of the same round, in another order
        assert together.steps == apart.steps


@pytest.mark.jitless
def test_a_launch_has_many_rounds():
    result = run(BFS, build_graph(grid(3, 60), directed=False), start=0, strategy="push")
    assert result.rounds > 50
    assert len(result.launches) == 1
    assert result.launches[0].rounds == result.rounds
    assert sum(result.launches[0].edges) == result.edges


def test_a_launch_ends_where_a_round_is_thick(monkeypatch):
    monkeypatch.setattr(spread, "THIN_EDGES", 64)
    monkeypatch.setattr(spread, "THIN_ROUNDS", 5)
    graph = build_graph(grid(40, 40), directed=False)
    result = run(BFS, graph, start=0, strategy="push")
    assert {launch.rounds for launch in result.launches} >= {1, 5}
    assert sum(launch.rounds for launch in result.launches) == result.rounds
    assert result["level"].tolist() == run(BFS, graph, start=0, strategy="pull")["level"].tolist()
    for launch in result.launches:
        steps = result.steps[launch.first_round : launch.first_round + launch.rounds]
        assert sum(launch.edges) == sum(step.edges for step in steps)
        assert launch.rounds == 1 or all(step.edges <= 64 for step in steps)


@pytest.mark.jitless
def test_operators_are_told_the_round():
    def later(value, round):
        return value + round

    graph = path_graph(6, directed=True)
    value = Field("value", np.int64, initial=0, reduction="max")
    start = int(np.flatnonzero(np.isin(np.arange(graph.n), graph.out_targets, invert=True))[0])
    runner = Runner(VertexProgram("later", [value], push=later, rounds=5), graph)
    for _ in range(2):
        values = np.sort(runner.run(start)["value"])
        assert values.tolist() == sorted([0, 0, 1, 3, 6, 10])
