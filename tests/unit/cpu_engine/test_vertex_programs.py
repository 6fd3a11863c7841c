"""Programs are checked before they are compiled: an error names the operator, the argument and the fix."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hybrid
from cpu_engine.components.weak import components
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.pagerank.engine import pagerank
from cpu_engine.programs import Field, Runner, VertexProgram, run
from cpu_engine.schedule import OperatorError
from cpu_engine.sssp.engine import sssp
from tests.property.test_vertex_programs import BFS, COMPONENTS, PAGERANK, SSSP, example

JITLESS = os.environ.get("NUMBA_DISABLE_JIT") == "1"
compiled_only = pytest.mark.skipif(JITLESS, reason="about compiled operators")
EXAMPLES = sorted(path.name for path in (Path(__file__).parents[3] / "examples" / "vertex_programs").glob("*.py"))


def hop(level):
    return level + np.uint32(1)


def level_field(**changes):
    return Field(**({"name": "level", "dtype": np.uint32, "initial": 0, "reduction": "min"} | changes))


def program(**changes):
    return VertexProgram(**({"name": "bfs", "fields": [level_field()], "push": hop} | changes))


@pytest.fixture(scope="module")
def weighted() -> Graph:
    edges = kronecker(10)
    weight = np.random.default_rng(3).integers(1, 100, edges.src.size)
    return build_graph(EdgeList(edges.src, edges.dst, weight=weight), directed=True)


# -------------------------------------------------------------------------------- against the tuned versions


def test_examples_equal_the_tuned_algorithms(weighted):
    distance = run(SSSP, weighted, start=0, delta=16)["distance"]
    assert np.where(distance == SSSP.offered.neutral, -1, distance).tolist() == sssp(weighted, 0).distance.tolist()
    looped, report = example("sssp_loop").shortest_paths(weighted, 0, 16)
    assert looped.tolist() == sssp(weighted, 0).distance.tolist()
    assert report.work.sum() > 0
    assert run(COMPONENTS, weighted)["label"].tolist() == components(weighted).label.tolist()
    vertices = weighted.user_ids.size
    mine = run(PAGERANK, weighted, vertices=vertices, isolated=vertices - weighted.n)["rank"]
    np.testing.assert_allclose(mine, pagerank(weighted).rank, rtol=1e-12)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_short_and_run(name, project_root):
    path = project_root / "examples" / "vertex_programs" / name
    assert len(path.read_text().splitlines()) < 40
    done = subprocess.run(
        [sys.executable, str(path)], cwd=project_root, capture_output=True, text=True, timeout=100,
        env={**os.environ, "PYTHONPATH": str(project_root)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_direction_is_chosen_by_the_frontier(weighted):
    graph = build_graph(kronecker(12), directed=False)
    assert {step.direction for step in run(BFS, graph, start=0).steps} == {"push", "pull"}
    deep = build_graph(grid(3, 60), directed=False)
    assert {step.direction for step in run(BFS, deep, start=0).steps} == {"push"}
    both = run(BFS, graph, start=0)
    assert both.edges < run(BFS, graph, start=0, strategy="push").edges


@pytest.mark.jitless
def test_a_runner_begins_anew_each_time():
    runner = Runner(BFS, build_graph(grid(4, 5), directed=False))
    first, other = runner.run(0), runner.run([3, 7])
    assert runner.run(0)["level"].tolist() == first["level"].tolist()
    assert np.flatnonzero(other["level"] == 0).tolist() == [3, 7]
    assert first.rounds == len(first.steps)


@pytest.mark.jitless
def test_until_ends_a_program_by_its_totals():
    def keep(inbox, mass):
        return inbox + mass / 2

    def offer(mass):
        return mass / 8

    def size(mass):
        return mass

    fields = [
        Field("inbox", np.float64, reduction="add", read="vertex"),
        Field("mass", np.float64, initial=1.0, written="vertex", read="source"),
    ]
    decay = VertexProgram(
        "decay", fields, pull=offer, update=keep, totals={"left": size}, until=lambda left, least: left < least
    )
    graph = build_graph(EdgeList(np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0])), directed=True)
    result = run(decay, graph, least=1.0)
    assert result.rounds == 3
    assert result.totals["left"] == pytest.approx(4 * 0.625**3)
    assert result["mass"].sum() == pytest.approx(result.totals["left"])


@pytest.mark.jitless
def test_operators_may_ask_for_facts():
    def known(vertex, degree, base):
        return vertex * base + degree

    def told(value, source, target, degree, round):
        return source * 1000 + target * 100 + degree * 10 + round

    field = Field("value", np.int64, initial=known, reduction="max")
    graph = build_graph(EdgeList(np.array([0, 0, 1]), np.array([1, 2, 2])), directed=True)
    arcs = [(u, int(v)) for u in range(3) for v in graph.out_targets[graph.out_offsets[u] : graph.out_offsets[u + 1]]]
    degree = np.diff(graph.out_offsets).tolist()
    for strategy in ("push", "pull"):
        result = run(VertexProgram("facts", [field], push=told, pull=told, rounds=1), graph, base=5, strategy=strategy)
        right = [v * 5 + degree[v] for v in range(3)]
        for u, v in arcs:
            right[v] = max(right[v], u * 1000 + v * 100 + degree[u] * 10)
        assert result["value"].tolist() == right


# -------------------------------------------------------------------------------------------- what is refused


@pytest.mark.jitless
def test_fields_are_checked():
    for changes, words in [
        ({"name": "a b"}, "'a b' has no name"),
        ({"dtype": np.int16}, "has the type int16.*32 or 64 bits"),
        ({"written": "tarjet"}, "written is 'tarjet'.*did you mean 'target'"),
        ({"read": "sauce"}, "read is 'sauce'.*'source'"),
        ({"reduction": "mean"}, "reduction is 'mean'.*min, max, or, add"),
        ({"written": "vertex"}, "written at the vertex, where nothing is reduced"),
        ({"dtype": np.float64, "reduction": "or"}, "floats have no bits"),
        ({"written": "any"}, "in different ways"),
    ]:
        with pytest.raises(OperatorError, match=words):
            level_field(**changes)


@pytest.mark.jitless
def test_programs_are_checked():
    mass = Field("mass", np.float64, written="vertex")
    add = Field("inbox", np.float64, reduction="add")
    for changes, words in [
        ({"push": None}, "neither push nor pull"),
        ({"fields": [level_field(), level_field()]}, "has 'level' twice"),
        ({"fields": [level_field(name="weight")]}, "'weight' is the name of a fact"),
        ({"fields": [level_field(), level_field(name="more")]}, "writes 2 fields along arcs"),
        ({"fields": [level_field(), mass]}, "no update operator"),
        ({"fields": [add], "push": lambda inbox: inbox}, "never uses the sum"),
        ({"fields": [add, mass], "push": lambda mass: mass, "update": lambda inbox: inbox}, "never ends"),
        ({"fields": [level_field(reduction="or")], "monotone": True}, "monotone is for fields reduced by min or max"),
        ({"totals": {"sum": hop}}, "taken after an update"),
        ({"push": lambda level: level - 1, "monotone": True}, "not monotone in 'level'"),
    ]:
        with pytest.raises(OperatorError, match=words):
            program(**changes)


@pytest.mark.jitless
def test_an_operator_that_writes_is_refused():
    def assigns(level):
        level += 1
        return level

    def stores(level, table):
        table[3] = level
        return level

    with pytest.raises(OperatorError, match=r"operator assigns, line \d+, writes to its argument 'level'.*Fix: return"):
        program(push=assigns)
    with pytest.raises(OperatorError, match=r"operator stores.*writes to its argument 'table'"):
        program(push=stores)


@pytest.mark.jitless
def test_a_field_is_read_only_where_it_says():
    def peek(rank):
        return rank

    fields = [
        Field("inbox", np.float64, reduction="add", read="vertex"),
        Field("rank", np.float64, written="vertex", read="vertex"),
    ]
    with pytest.raises(OperatorError, match=r"operator peek reads field 'rank' at the source.*read='source'"):
        VertexProgram("peek", fields, pull=peek, update=lambda inbox: inbox, rounds=1)
    with pytest.raises(OperatorError, match="argument 'weight' is not known to a priority operator"):
        program(priority=lambda weight: weight)
    with pytest.raises(OperatorError, match="argument 'level' is a field, and fields begin here"):
        program(fields=[level_field(initial=hop)])


@pytest.mark.jitless
def test_parameters_are_checked_with_the_nearest_name(weighted):
    def misspelt(levle):
        return levle

    with pytest.raises(OperatorError, match=r"operator misspelt: argument 'levle' is neither.*did you mean 'level'"):
        run(program(push=misspelt), weighted, start=0)
    with pytest.raises(OperatorError, match=r"no parameter 'dleta'.*did you mean 'delta'"):
        run(SSSP, weighted, start=0, delta=3, dleta=4)
    with pytest.raises(OperatorError, match="has no pull operator"):
        run(program(), weighted, start=0, strategy="pull")
    with pytest.raises(OperatorError, match="strategy is 'sideways'"):
        run(BFS, weighted, start=0, strategy="sideways")
    with pytest.raises(OperatorError, match="has no start"):
        run(PAGERANK, weighted, start=0, vertices=5, isolated=0)
    for start in (-1, weighted.n, "a", 0.5):
        with pytest.raises(OperatorError, match="start must be internal ids"):
            run(BFS, weighted, start=start)
    with pytest.raises(OperatorError, match=r"field 'level': the initial values have the shape \(3,\)"):
        run(program(fields=[level_field(initial=np.zeros(3, np.uint32))]), weighted, start=0)
    with pytest.raises(OperatorError, match=r"runs on a graph's rows, not on Graph.*graph\.rows"):
        run(BFS, hybrid.Graph(weighted), start=0)  # type: ignore[arg-type]
    plain = build_graph(grid(2, 3), directed=False)
    with pytest.raises(OperatorError, match="asks for 'weight', and the graph has none"):
        run(SSSP, plain, start=0, delta=3)


@compiled_only
def test_what_an_operator_returns_must_fit(weighted):
    def nothing(level):
        pass

    def fraction(level):
        return level / 2

    def two(level):
        return level, level

    def unknown(level):
        return level.bit_count_of_everything()

    for operator, words in [
        (nothing, "operator nothing returns nothing.*return the value of 'level'"),
        (fraction, "operator fraction returns float64 for field 'level', which holds uint32"),
        (two, "operator two returns 2 values for 1 field"),
        (unknown, r"operator unknown, line \d+.*bit_count_of_everything.*level: uint32"),
    ]:
        with pytest.raises(OperatorError, match=words) as failed:
            run(program(push=operator), weighted, start=0)
        assert "\n" not in str(failed.value)
