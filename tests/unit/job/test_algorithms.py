"""The job layer of the algorithm library: columns there and back, facts, bins, forms, the registry and the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from hybrid.algorithms import description_of
from hybrid.algorithms.algorithm import Arrays, Check, Description, Found, PlainCheck, Task
from hybrid.algorithms.distribution import TOP, describe_spread, group_facts, make_bins
from hybrid.algorithms.field import INT, REAL, Field, Label, Level, Parent, Shared, Unfit, UserLabel
from hybrid.algorithms.proof import restore, same_facts, take_in
from hybrid.config.schema import Config
from hybrid.graphs.sources import Source
from hybrid.registry import ALGORITHMS
from hybrid.report import render_page
from hybrid.results.forms import write_forms


def graph_of(pairs: list[tuple[int, int]], vertices: list[int]) -> Graph:
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    return build_graph(EdgeList(ends[:, 0], ends[:, 1], vertices=np.array(sorted(vertices), np.int64)), directed=False)


class Anything(Description):
    """A description with the given columns, which everything satisfies."""

    name, title, claims = "anything", "Anything", ("It is so.",)

    def __init__(self, *fields: Field) -> None:
        self.fields = fields

    def check(self, task: Task, found: Found) -> Check:
        return PlainCheck(True, "")


def test_every_entry_of_the_registry_leads_to_its_class() -> None:
    assert [description_of(name).name for name in ALGORITHMS] == list(ALGORITHMS)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    ids = draw(st.lists(st.integers(0, 10**12), min_size=2, max_size=12, unique=True))
    end = st.sampled_from(ids)
    return graph_of(draw(st.lists(st.tuples(end, end), max_size=20)), ids)


@given(graphs(), st.data())
@settings(max_examples=50, deadline=None)
def test_every_column_goes_there_and_back(graph: Graph, data: st.DataObject) -> None:
    n, ids = graph.n, graph.user_ids
    source = Source(int(ids[0]), graph.internal_id(int(ids[0])))
    inner = st.lists(st.integers(0, max(0, n - 1)), min_size=n, max_size=n)
    leader = np.array(data.draw(inner), np.int32)
    smallest = np.minimum.accumulate(leader) if n else leader
    found = Found(
        {
            "value": leader * 0.5,
            "rank": leader * 0.25,
            "group": Label("group", "").to_internal(graph, ids if not n else np.resize(smallest, ids.size)),
            "label": ids[graph.user_position],
            "level": np.full(n, -1, np.int32),
            "parent": np.full(n, -1, np.int32),
            "distance": np.full(n, np.inf),
        },
        isolated={"rank": 0.125},
    )
    if source.internal >= 0:
        for name, own in (("level", 0), ("parent", source.internal), ("distance", 0)):
            found.arrays[name][source.internal] = own
    fields = (
        Field("value", ""), Shared("rank", ""), Label("group", ""), UserLabel("label", ""), Level("level", "", own=0),
        Parent("parent", ""), Field("distance", "", own=0),
    )  # fmt: skip
    task = Task(graph, Config(), source)
    outer = restore(Anything(*fields), task, found)
    assert all(array.size == ids.size for array in outer.values())
    again = take_in(Anything(*fields), task, outer)
    for name, array in found.arrays.items():
        assert np.array_equal(again.arrays[name], array), name
    if n < ids.size:
        assert again.isolated == {"rank": 0.125}


@pytest.mark.parametrize(
    ("field", "position", "value", "told"),
    [
        (Field("x", ""), 3, 1.0, "x of vertex 9 is 1.0"),
        (Field("x", ""), 0, np.nan, "x of vertex 1 is nan"),
        (Label("x", "", (INT,)), 0, 2, "x of vertex 1 is 2"),
        (Label("x", "", (INT,)), 3, 1, "x of vertex 9 is 1"),
        (Parent("x", ""), 0, 77, "not a vertex of the graph"),
        (Parent("x", ""), 3, 1, "x of vertex 9 is 1"),
    ],
)
def test_what_no_run_could_have_written_is_refused(field: Field, position: int, value: float, told: str) -> None:
    graph = graph_of([(1, 2), (2, 3)], [1, 2, 3, 9])
    task, description = Task(graph, Config()), Anything(field)
    blank = {REAL: np.zeros(3), INT: np.zeros(3, np.int32)}[field.dtypes[0]]
    outer: Arrays = restore(description, task, Found({"x": blank}))
    outer["x"][position] = value
    with pytest.raises(Unfit, match=told):
        take_in(description, task, outer)


def test_a_group_is_called_after_its_smallest_user_id() -> None:
    """Vertex 5 is the hub, so the smallest internal id; the name is the smallest of the user's."""
    graph = graph_of([(5, 1), (5, 2), (5, 3)], [1, 2, 3, 5, 8])
    assert Label("x", "").to_user(graph, np.zeros(4, np.int32)).tolist() == [1, 1, 1, 1, 8]
    assert group_facts(np.array([1, 1, 1, 1, 8]), "groups") == {"groups": 2, "largest": 4, "largest_share": 0.8}


@given(
    st.one_of(
        st.lists(st.integers(0, 10**9), max_size=80).map(lambda v: np.array(v, np.int64)),
        st.lists(st.floats(0, 1e6), max_size=80).map(lambda v: np.array(v, np.float64)),
    )
)
@settings(max_examples=100, deadline=None)
def test_every_value_is_in_exactly_one_bin(values: np.ndarray) -> None:
    bins = make_bins(values)
    assert sum(amount for *_, amount in bins) == values.size
    for low, high, amount in bins[:-1]:
        inside = values == low if low == high else (values >= low) & (values < high)
        assert amount == np.count_nonzero(inside)


def test_the_largest_come_first_and_ties_by_id() -> None:
    spread = describe_spread(Field("x", "", own=0), np.arange(30), np.array([np.inf, *range(28), 27], float))
    assert spread["top"][:3] == [[28, 27.0], [29, 27.0], [27, 26.0]]
    assert len(spread["top"]) == TOP
    assert spread["unreached"] == 1


def test_forms(tmp_path: Path) -> None:
    distance = Field("distance", "", (INT,), own=0, ldbc_unreached="infinity")
    arrays = {"distance": np.array([0, 7, -1]), "parent": np.array([4, 4, -1])}
    vertex = np.array([4, 5, 6])
    write_forms(tmp_path, ["text", "ldbc"], Anything(distance, Parent("parent", "")), vertex, [("4", arrays)])
    assert (tmp_path / "result.txt").read_text() == "# vertex distance parent\n4 0 4\n5 7 4\n6 -1 -1\n"
    ldbc = (tmp_path / "ldbc.txt").read_text()
    assert ldbc == "4 0.000000000000000e+00\n5 7.000000000000000e+00\n6 infinity\n"


def test_facts_are_compared_up_to_rounding() -> None:
    assert same_facts({"sum": 1.0 + 1e-12, "count": 3}, {"sum": 1.0, "count": 3})
    assert not same_facts({"sum": 1.0 + 1e-6, "count": 3}, {"sum": 1.0, "count": 3})
    for wrong in (10**400, -(10**400), float("nan"), float("inf")):  # JSON to Python, all of them
        assert not same_facts({"sum": wrong}, {"sum": 1.0})
    assert not same_facts({"count": 4}, {"count": 3})
    assert not same_facts(None, {"count": 3})


def library_summary() -> dict:
    return {
        "certified": True, "algorithm": "wcc", "title": "Components", "headline": "2 components", "check": "proof",
        "facts": {"components": 2, "largest": 4}, "options": {"x.y": None}, "claims": ["No edge joins two."],
        "columns": {"component": "the smallest vertex"}, "graph": {"name": "g", "vertices": 5, "edges": 4},
        "spread": {"what": "groups", "of": "component", "bins": [[1, 1, 1], [4, 4, 1]], "top": [[1, 4], [8, 1]]},
        "seconds": {"run": 0.1, "certify": 0.2, "total": 0.4}, "npu": {"mode": "off", "outcome": "off (as configured)"},
        "runs": [{"facts": {"components": 2}, "counters": {"iterations": 3}}], "sources": [],
    }  # fmt: skip


def test_the_page_tells_what_was_found() -> None:
    page = render_page(Path("x"), library_summary(), [], "algorithm: wcc")
    for words in ("Certified", "2 components.", "No edge joins two.", "The largest groups", "Iterations"):
        assert words in page
    assert "NOT certified" in render_page(Path("x"), {**library_summary(), "certified": False}, [], "")


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), lambda x: st.lists(x, max_size=3)))
@settings(max_examples=50, deadline=None)
def test_a_damaged_summary_still_gives_a_page(damage: object) -> None:
    for key in library_summary():
        assert "</html>" in render_page(Path("x"), {"spread": {}, **library_summary(), key: damage}, [], "")
    spread = {"what": damage, "of": damage, "bins": [damage, [1, damage, 2]], "top": [damage, [damage, 1]]}
    assert "</html>" in render_page(Path("x"), {**library_summary(), "spread": spread}, [], "")
