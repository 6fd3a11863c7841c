"""build_graph against a dictionary-based reference, on any edge list, with any number of lanes and buckets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpu_engine.graph.build import passes
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph

Rows = dict[int, list[tuple[int, float]]]


@dataclass(frozen=True)
class Case:
    edges: EdgeList
    directed: bool
    self_loops: str
    duplicates: str


@st.composite
def cases(draw: st.DrawFn) -> Case:
    pool = draw(
        st.sampled_from(
            [
                list(range(8)),
                list(range(100, 140)),
                [0, 3, 5, 900, 901, 1500],
                [7, 2**31 - 1, 2**31, 2**40, 2**40 + 1, 2**62, 2**63 - 1],
                [k * 2**33 + 5 for k in range(12)],
            ]
        )
    )
    vertex = st.sampled_from(pool)
    pairs = draw(st.lists(st.tuples(vertex, vertex), max_size=60))
    kind = draw(st.sampled_from(["none", "int", "float"]))
    weights = draw(st.lists(st.integers(-3, 9), min_size=len(pairs), max_size=len(pairs)))
    directed = draw(st.booleans())
    symmetric = not directed and draw(st.booleans())
    if symmetric:
        both = [(p, w) for p, w in zip(pairs, weights, strict=True)]
        both += [((v, u), w) for (u, v), w in both if u != v]
        pairs, weights = [p for p, _ in both], [w for _, w in both]
    dtype = {"none": None, "int": np.int64, "float": np.float64}[kind]
    vertices = draw(st.one_of(st.none(), st.lists(vertex, max_size=10)))
    id_range = (0, pool[-1] + 3) if pool[-1] < 2000 and draw(st.booleans()) else None
    edges = EdgeList(
        np.array([u for u, _ in pairs], np.int64),
        np.array([v for _, v in pairs], np.int64),
        weight=None if dtype is None else np.array(weights, dtype),
        vertices=None if vertices is None else np.array(vertices, np.int64),
        id_range=id_range,
        symmetric_stored=symmetric,
    )
    rule = st.sampled_from(["drop", "keep"])
    return Case(edges, directed, draw(rule), draw(rule))


def naive_rows(case: Case) -> tuple[Rows, set[int]]:
    """Out-rows by user id, entries sorted by target (parallel edges in the order of the list), and all vertices."""
    edges = case.edges
    weights = [0] * edges.src.size if edges.weight is None else edges.weight.tolist()
    entries: list[tuple[int, int, float]] = []
    for u, v, w in zip(edges.src.tolist(), edges.dst.tolist(), weights, strict=True):
        if u == v and case.self_loops == "drop":
            continue
        entries.append((u, v, w))
        if not case.directed and not edges.symmetric_stored and u != v:
            entries.append((v, u, w))
    if case.duplicates == "drop":
        best: dict[tuple[int, int], float] = {}
        for u, v, w in entries:
            best[u, v] = min(w, best.get((u, v), w))
        entries = [(u, v, w) for (u, v), w in best.items()]
    rows: Rows = {}
    for u, v, w in entries:
        rows.setdefault(u, []).append((v, w))
    vertices = set(edges.src.tolist()) | set(edges.dst.tolist())
    if edges.vertices is not None:
        vertices |= set(edges.vertices.tolist())
    if edges.id_range is not None:
        first, count = edges.id_range
        vertices |= set(range(first, first + count))
    return rows, vertices


def naive_degrees(case: Case, rows: Rows) -> Counter[int]:
    degree = Counter({u: len(row) for u, row in rows.items()})
    if case.directed:
        degree.update(v for row in rows.values() for v, _ in row)
    return degree


def user_rows(graph: Graph) -> Rows:
    """The graph's rows back in user ids."""
    name = graph.user_ids[graph.user_position].tolist()
    weights = np.zeros(graph.m) if graph.weight is None else graph.weight
    rows: Rows = {}
    for u in range(graph.n):
        span = slice(graph.out_offsets[u], graph.out_offsets[u + 1])
        row = [(name[v], w) for v, w in zip(graph.out_targets[span].tolist(), weights[span].tolist(), strict=True)]
        if row:
            rows[name[u]] = row
    return rows


def by_target(rows: Rows, exact_order: bool) -> Rows:
    key = (lambda entry: entry[0]) if exact_order else None
    return {u: sorted(row, key=key) for u, row in rows.items()}


def check(case: Case, graph: Graph) -> None:
    rows, vertices = naive_rows(case)
    degree = naive_degrees(case, rows)
    assert graph.user_ids.tolist() == sorted(vertices)
    ranked = sorted(degree, key=lambda u: (-degree[u], u))
    assert graph.user_ids[graph.user_position].tolist() == ranked
    assert graph.degree().tolist() == [degree[u] for u in ranked]
    assert graph.m == sum(len(row) for row in rows.values())
    # In a list with both directions stored, parallel edges may be listed in another order on the other side.
    exact_order = not case.edges.symmetric_stored
    assert by_target(user_rows(graph), exact_order) == by_target(rows, exact_order)
    for offsets, ends in ((graph.out_offsets, graph.out_targets), (graph.in_offsets, graph.in_sources)):
        assert all((np.diff(ends[offsets[u] : offsets[u + 1]]) >= 0).all() for u in range(graph.n))
    if case.directed:
        forward = Counter((u, int(v)) for u in range(graph.n) for v in row_of(graph.out_offsets, graph.out_targets, u))
        backward = Counter((int(u), v) for v in range(graph.n) for u in row_of(graph.in_offsets, graph.in_sources, v))
        assert forward == backward
    else:
        assert graph.in_offsets is graph.out_offsets
        assert graph.in_sources is graph.out_targets
    in_rows = [row_of(graph.in_offsets, graph.in_sources, v) for v in range(graph.n)]
    assert graph.best_in.tolist() == [row[0] if row else v for v, row in enumerate(in_rows)]
    assert graph.hanging_start == sum(degree[u] > 1 for u in ranked)
    isolated = vertices - set(degree)
    assert [graph.internal_id(u) for u in ranked] == list(range(graph.n))
    assert {graph.internal_id(u) for u in isolated} <= {-1}
    assert graph.meta["isolated"] == len(isolated)


def row_of(offsets: np.ndarray, ends: np.ndarray, u: int) -> list[int]:
    return ends[offsets[u] : offsets[u + 1]].tolist()


def build_case(case: Case, **options: object) -> Graph:
    return build_graph(
        case.edges, directed=case.directed, self_loops=case.self_loops, duplicates=case.duplicates, **options
    )


@contextmanager
def cut(lanes: int, bucket_log: int, group: int, long_bucket: int = 8, wide: bool = False) -> Iterator[None]:
    """The build as on another machine or for a larger graph: more lanes, smaller buckets, entries of 64 bits."""

    def layout(*args: object) -> passes.Layout:
        chosen = real(*args)
        return replace(chosen, entry=np.dtype(np.uint64)) if wide else chosen

    real = passes.choose_layout
    with (
        mock.patch.object(passes, "lanes_for", return_value=lanes),
        mock.patch.object(passes, "ENTRIES_PER_BUCKET_LOG", bucket_log),
        mock.patch.object(passes, "GROUP_LOG", group),
        mock.patch.object(passes, "LONG_BUCKET", long_bucket),
        mock.patch.object(passes, "choose_layout", layout),
    ):
        yield


@pytest.mark.jitless
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), lanes=st.integers(1, 5), bucket_log=st.integers(0, 4), group=st.integers(0, 4), wide=st.booleans())
def test_equals_the_reference(case, lanes, bucket_log, group, wide):
    with cut(lanes, bucket_log, group, wide=wide):
        check(case, build_case(case))


@pytest.mark.jitless
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    case=cases(),
    lanes=st.integers(2, 5),
    bucket_log=st.integers(0, 4),
    group=st.integers(0, 4),
    long_bucket=st.integers(0, 2),
    wide=st.booleans(),
    consume=st.booleans(),
    id_dtype=st.sampled_from([np.int32, np.int64]),
)
def test_neither_cutting_nor_types_nor_memory_show(
    case, lanes, bucket_log, group, long_bucket, wide, consume, id_dtype
):
    plain = build_case(case)
    with cut(lanes, bucket_log, group, long_bucket, wide):
        cut_up = build_case(case, consume=consume, id_dtype=id_dtype)
    assert case.edges.src.size == 0 or not consume
    assert cut_up.out_targets.dtype == cut_up.in_sources.dtype == cut_up.best_in.dtype == id_dtype
    assert plain.hanging_start == cut_up.hanging_start
    for name in ("out_offsets", "out_targets", "in_offsets", "in_sources", "user_ids", "user_position", "best_in"):
        assert np.array_equal(getattr(plain, name), getattr(cut_up, name)), name
    assert (plain.weight is None) == (cut_up.weight is None)
    if plain.weight is not None:
        assert np.array_equal(plain.weight, cut_up.weight)
    assert plain.meta == cut_up.meta


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), salt=st.integers(0, 2**20))
def test_other_names_for_the_vertices_leave_the_shape(case, salt):
    ids = sorted(naive_rows(case)[1])
    names = dict(zip(ids, np.random.default_rng(salt).choice(2**50, len(ids), replace=False).tolist(), strict=True))
    renamed = EdgeList(
        np.array([names[u] for u in case.edges.src.tolist()], np.int64),
        np.array([names[v] for v in case.edges.dst.tolist()], np.int64),
        weight=case.edges.weight,
        vertices=np.array([names[u] for u in ids], np.int64),
        symmetric_stored=case.edges.symmetric_stored,
    )
    before = build_case(case)
    after = build_case(Case(renamed, case.directed, case.self_loops, case.duplicates))
    assert (before.n, before.m) == (after.n, after.m)
    assert before.degree().tolist() == after.degree().tolist()
    assert before.meta == after.meta
