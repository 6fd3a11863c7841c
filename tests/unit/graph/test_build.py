"""build_graph on chosen cases: rules and their counts, ids of every size, empty graphs, lies, memory, no JIT."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest

from cpu_engine.errors import InputError
from cpu_engine.graph import memory
from cpu_engine.graph.build import builder as build
from cpu_engine.graph.build import passes
from cpu_engine.graph.build.builder import build_graph, estimate_build_bytes
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph


def edge_list(pairs: list[tuple[int, int]], weights: list[float] | None = None, **facts: object) -> EdgeList:
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    return EdgeList(ends[:, 0].copy(), ends[:, 1].copy(), None if weights is None else np.array(weights), **facts)


def user_edges(graph: Graph) -> list[tuple[int, int]]:
    name = graph.user_ids[graph.user_position]
    source = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))
    return sorted(zip(name[source].tolist(), name[graph.out_targets].tolist(), strict=True))


def fingerprint(graph: Graph) -> str:
    hasher = hashlib.blake2b(digest_size=8)
    for array in (graph.out_offsets, graph.out_targets, graph.in_offsets, graph.in_sources, graph.user_position):
        hasher.update(array.tobytes())
    return hasher.hexdigest()


@pytest.mark.jitless
def test_directed_graph_with_everything_in_it():
    edges = edge_list(
        [(5, 9), (9, 5), (5, 9), (9, 9), (9, 30), (7, 7)], format="edge list", path="x.el", notes=("a note",)
    )
    graph = build_graph(edges, directed=True)
    assert graph.user_ids.tolist() == [5, 7, 9, 30]
    assert graph.user_ids[graph.user_position].tolist() == [9, 5, 30]  # degrees 3, 2, 1
    assert graph.internal_of_position.tolist() == [1, -1, 0, 2]
    assert user_edges(graph) == [(5, 9), (9, 5), (9, 30)]
    assert graph.in_offsets.tolist() == [0, 1, 2, 3]
    assert graph.in_sources.tolist() == [1, 0, 0]
    assert graph.meta == {
        "format": "edge list",
        "path": "x.el",
        "notes": ["a note"],
        "directed": True,
        "directed_assumed": False,
        "weighted": False,
        "vertices": 4,
        "isolated": 1,
        "edges": 3,
        "input_edges": 6,
        "self_loops": "drop",
        "self_loops_dropped": 2,
        "duplicates": "drop",
        "duplicates_dropped": 1,
        "max_degree": 3,
    }


@pytest.mark.jitless
def test_undirected_counts_each_listed_edge_once():
    graph = build_graph(edge_list([(1, 2), (2, 1), (2, 3), (3, 3)]), directed=False)
    assert user_edges(graph) == [(1, 2), (2, 1), (2, 3), (3, 2)]
    assert (graph.meta["edges"], graph.meta["duplicates_dropped"], graph.meta["self_loops_dropped"]) == (2, 1, 1)


@pytest.mark.jitless
def test_kept_loops_and_duplicates():
    graph = build_graph(
        edge_list([(1, 2), (2, 1), (3, 3), (3, 3)]), directed=False, self_loops="keep", duplicates="keep"
    )
    assert user_edges(graph) == [(1, 2), (1, 2), (2, 1), (2, 1), (3, 3), (3, 3)]
    assert (graph.meta["edges"], graph.meta["duplicates_dropped"], graph.meta["self_loops_dropped"]) == (4, 0, 0)
    once = build_graph(edge_list([(3, 3), (3, 3)]), directed=False, self_loops="keep")
    assert user_edges(once) == [(3, 3)]
    assert (once.meta["edges"], once.meta["duplicates_dropped"]) == (1, 1)


def test_direction_comes_from_the_caller_then_the_file_then_directed():
    pairs = [(0, 1)]
    assert build_graph(edge_list(pairs), directed=None).directed
    assert build_graph(edge_list(pairs), directed=None).meta["directed_assumed"]
    told = build_graph(edge_list(pairs, directed=False), directed=None)
    assert not told.directed
    assert not told.meta["directed_assumed"]
    assert build_graph(edge_list(pairs, directed=False), directed=True).directed
    assert build_graph(edge_list(pairs, directed=True), directed=False).m == 2


def test_of_duplicates_the_smallest_weight_is_kept_with_its_edge():
    graph = build_graph(edge_list([(0, 1), (0, 2), (0, 1), (0, 1)], [5, 9, 2, 7]), directed=True)
    assert graph.weight is not None
    assert graph.weight.dtype == np.int64
    name = graph.user_ids[graph.user_position][graph.out_targets]
    assert dict(zip(name.tolist(), graph.weight.tolist(), strict=True)) == {1: 2, 2: 9}


def test_weights_of_an_undirected_graph_are_the_same_both_ways():
    graph = build_graph(edge_list([(0, 1), (1, 2), (1, 0)], [0.5, 2.0, 0.25]), directed=False)
    assert graph.weight is not None
    name = graph.user_ids[graph.user_position]
    source = name[np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))]
    found = {(int(u), int(v)): w for u, v, w in zip(source, name[graph.out_targets], graph.weight, strict=True)}
    assert found == {(0, 1): 0.25, (1, 0): 0.25, (1, 2): 2.0, (2, 1): 2.0}


def test_a_weight_that_is_not_a_number_is_refused():
    with pytest.raises(InputError, match=r"edge 1 \(1 -> 2\) has a weight that is not a number"):
        build_graph(edge_list([(0, 1), (1, 2)], [1.0, float("nan")]), directed=True)


@pytest.mark.jitless
@pytest.mark.parametrize("big", [2**31, 2**40, 2**62, 2**63 - 1])
def test_huge_ids(big):
    graph = build_graph(edge_list([(3, big), (big, 2**32)]), directed=False)
    assert graph.user_ids.tolist() == sorted([3, 2**32, big])
    assert graph.internal_id(big) == 0
    assert user_edges(graph) == sorted([(3, big), (big, 3), (big, 2**32), (2**32, big)])


def test_many_sparse_ids_agree_with_the_same_graph_on_small_ids():
    edges = kronecker(9, 8, seed=4)
    spread = np.arange(512, dtype=np.int64) * (2**40 + 12345) + 17
    far = EdgeList(spread[edges.src], spread[edges.dst], vertices=spread, directed=False)
    near, wide = build_graph(edges, directed=None), build_graph(far, directed=None)
    assert fingerprint(near) == fingerprint(wide)
    assert np.array_equal(spread, wide.user_ids)


@pytest.mark.jitless
@pytest.mark.parametrize("directed", [True, False])
def test_graphs_without_edges(directed):
    nothing = build_graph(edge_list([]), directed=directed)
    assert (nothing.n, nothing.m, nothing.user_ids.size) == (0, 0, 0)
    assert nothing.to_user_levels(np.empty(0, np.int32)).size == 0
    declared = build_graph(edge_list([], id_range=(1, 5)), directed=directed)
    assert (declared.n, declared.m, declared.user_ids.tolist()) == (0, 0, [1, 2, 3, 4, 5])
    assert declared.internal_id(5) == -1
    assert declared.to_user_parents(np.empty(0, np.int32)).tolist() == [-1] * 5
    one = build_graph(edge_list([], vertices=np.array([2**40])), directed=directed)
    assert one.user_ids.tolist() == [2**40]
    loop = build_graph(edge_list([(4, 4)]), directed=directed)
    assert (loop.n, loop.user_ids.tolist(), loop.meta["self_loops_dropped"]) == (0, [4], 1)


def test_grid_degrees():
    graph = build_graph(grid(5, 7), directed=None)
    assert sorted(np.bincount(graph.degree()).tolist()) == sorted([0, 0, 4, 16, 15])
    assert graph.meta["edges"] == 5 * 6 + 4 * 7


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ([(1, 2), (2, 1), (2, 3)], "vertex 2 lists 2 neighbours, but 1 vertex lists it"),
        ([(1, 2), (2, 3), (3, 1)], "has no reverse"),
        ([(1, 2), (2, 1), (3, 4), (4, 5), (5, 3)], "has no reverse"),
    ],
)
def test_a_list_that_is_not_as_symmetric_as_it_says_is_refused(pairs, told):
    with pytest.raises(InputError, match=told) as caught:
        build_graph(edge_list(pairs, symmetric_stored=True, path="g.sg"), directed=False)
    assert "Fix: " in str(caught.value)
    assert "g.sg" in str(caught.value)
    assert build_graph(edge_list(pairs, symmetric_stored=True), directed=True).m == len(pairs)


def test_the_edge_named_as_lacking_its_reverse_really_does():
    pairs = [(1, 2), (2, 3), (3, 1), (1, 3), (4, 1), (1, 4)]
    pairs += [(3, 2), (5, 6), (6, 7), (7, 5)]
    pairs += [(2, 1)]
    with pytest.raises(InputError) as caught:
        build_graph(edge_list(pairs, symmetric_stored=True), directed=False)
    words = caught.value.reason.split("edge ")[-1].split()
    named = (int(words[0]), int(words[2]))
    assert named in pairs
    assert named[::-1] not in pairs


def test_symmetric_lists_are_not_doubled():
    pairs = [(1, 2), (2, 1), (2, 3), (3, 2), (2, 3), (3, 2)]
    graph = build_graph(edge_list(pairs, symmetric_stored=True, directed=False), directed=None)
    assert user_edges(graph) == [(1, 2), (2, 1), (2, 3), (3, 2)]
    assert (graph.meta["edges"], graph.meta["duplicates_dropped"]) == (2, 2)


@pytest.mark.parametrize(
    "edges",
    [
        edge_list([(0, -5)]),
        edge_list([(0, 5)], id_range=(0, 5)),
        edge_list([(0, 5)], id_range=(1, 9)),
        edge_list([(0, 1)], id_range=(0, 2**31)),
        edge_list([(0, 1)], id_range=(0, 2**40)),
        edge_list([], id_range=(-1, 3)),
    ],
)
def test_impossible_ids_are_refused_with_a_fix(edges, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 34)
    with pytest.raises(InputError, match=r"Fix: "):
        build_graph(edges, directed=True)


def test_unknown_rule_is_refused():
    with pytest.raises(InputError, match="duplicates must be 'drop' or 'keep'"):
        build_graph(edge_list([(0, 1)]), directed=True, duplicates="sum")


def test_read_only_strided_and_narrow_input_is_taken():
    ends = np.array([[0, 1], [1, 2], [2, 0]], np.int32)
    ends.flags.writeable = False
    graph = build_graph(EdgeList(ends[:, 0], ends[:, 1]), directed=True)
    assert user_edges(graph) == [(0, 1), (1, 2), (2, 0)]


def test_progress_is_told_in_order():
    told: list[tuple[int, int]] = []
    build_graph(grid(3, 3), directed=None, progress=lambda done, total: told.append((done, total)))
    assert told == [(i, 5) for i in range(1, 6)]


def test_too_little_memory_is_told_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 100)
    with pytest.raises(InputError, match=r"building a graph of 12 edges and 9 vertices needs about .* Fix: "):
        build_graph(edge_list([(i % 9, (i + 1) % 9) for i in range(12)]), directed=True)
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    assert build_graph(edge_list([(0, 1)]), directed=True).m == 1


def test_available_memory_is_read(monkeypatch, tmp_path):
    assert memory.available_bytes() > 1 << 20
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "absent")
    assert memory.available_bytes() is None
    (tmp_path / "absent").write_text("MemTotal: 5 kB\n")
    assert memory.available_bytes() is None


def test_the_estimate_grows_with_everything():
    base = estimate_build_bytes(1000, 100, True, False)
    assert estimate_build_bytes(2000, 100, True, False) > base
    assert estimate_build_bytes(1000, 200, True, False) > base
    assert estimate_build_bytes(1000, 100, True, True) > base
    assert estimate_build_bytes(1000, 100, False, False) > base
    assert estimate_build_bytes(0, 0, False, False) == 0


def scattered(weighted: bool) -> EdgeList:
    edges = kronecker(16, 16, seed=3)
    return replace(edges, weight=np.arange(edges.src.size) % 100) if weighted else edges


def traced_peak(edges: EdgeList, **options: object) -> tuple[int, Graph]:
    tracemalloc.start()
    try:
        graph = build_graph(edges, **options)
        return tracemalloc.get_traced_memory()[1], graph
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_the_estimate_is_kept(directed, weighted):
    edges = scattered(weighted)
    estimate = estimate_build_bytes(edges.src.size, 1 << 16, directed, weighted)
    measured, _ = traced_peak(edges, directed=directed)
    assert 0.8 < estimate / measured < 1.2


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_the_estimate_is_kept_when_the_list_is_consumed(directed, weighted):
    build_graph(scattered(weighted), directed=directed)  # whatever is kept for good is taken now
    tracemalloc.start()
    try:
        edges = scattered(weighted)
        given = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        estimate = estimate_build_bytes(edges.src.size, 1 << 16, directed, weighted, consume=True)
        build_graph(edges, directed=directed, consume=True)
        measured = tracemalloc.get_traced_memory()[1] - given
    finally:
        tracemalloc.stop()
    assert 0.8 < estimate / measured < 1.2


def test_list_and_build_together_take_less_than_three_times_the_graph():
    edges = kronecker(17)
    given = edges.src.nbytes + edges.dst.nbytes
    tracemalloc.start()
    try:
        graph = build_graph(edges, consume=True)
        # The list is not traced, but what is written over in it would be counted nowhere else.
        peak = tracemalloc.get_traced_memory()[1] + given
    finally:
        tracemalloc.stop()
    arrays = (graph.out_offsets, graph.out_targets, graph.user_ids, graph.user_position, graph.internal_of_position)
    assert peak < 3 * sum(array.nbytes for array in arrays)


@pytest.mark.parametrize("kind", ["one block", "two arrays", "narrow", "strided", "read-only", "sparse"])
def test_a_consumed_list_is_empty_and_its_graph_the_same(kind):
    edges = kronecker(12, 8, seed=4)
    src, dst = edges.src, edges.dst
    if kind == "two arrays":
        src, dst = src.astype(np.int64), dst.astype(np.int64)
    elif kind == "narrow":
        src, dst = src.astype(np.uint16), dst.astype(np.uint16)
    elif kind == "strided":
        src, dst = np.stack((src, dst), axis=1).T
    elif kind == "sparse":
        src, dst = src * np.int64(2**40 + 1), dst * np.int64(2**40 + 1)
    given = EdgeList(src, dst, directed=False)
    expected = build_graph(given)
    before = src.copy()
    if kind == "read-only":
        src.flags.writeable = dst.flags.writeable = False
        src.base.flags.writeable = False
    assert fingerprint(build_graph(given, consume=True)) == fingerprint(expected)
    assert (given.src.size, given.dst.size) == (0, 0)
    assert kind != "read-only" or np.array_equal(src, before)


@pytest.mark.parametrize("directed", [False, True])
def test_ids_of_64_bits_make_the_same_graph(directed):
    edges = scattered(weighted=True)
    narrow, wide = build_graph(edges, directed=directed), build_graph(edges, directed=directed, id_dtype=np.int64)
    for name in ("out_targets", "in_sources", "user_position", "internal_of_position", "best_in", "weight"):
        assert np.array_equal(getattr(narrow, name), getattr(wide, name)), name
        assert getattr(wide, name).dtype == np.int64
    assert wide.meta == narrow.meta


@pytest.mark.parametrize(
    ("log_edges", "span", "entry", "ids"),
    [
        (26, 2**22, np.uint32, np.int32),
        (27, 2**23, np.uint32, np.int32),  # a few more buckets keep entries narrow
        (10, 2**23, np.uint64, np.int32),  # too few entries for that
        (28, 2**24, np.uint64, np.int32),
        (35, 2**31 - 1, np.uint64, np.int32),
        (35, 2**31, np.uint64, np.int64),
        (38, 2**36, np.uint64, np.int64),
    ],
)
def test_types_follow_from_the_number_of_vertices(log_edges, span, entry, ids):
    layout = passes.choose_layout(2 << log_edges, span, build._id_type(span, None))
    assert (layout.entry, layout.id) == (entry, ids)
    assert layout.rows * layout.buckets >= span
    assert (layout.rows - 1).bit_length() + layout.bits <= 8 * layout.entry.itemsize - (entry == np.uint64)


def test_too_narrow_ids_are_refused():
    with pytest.raises(ValueError, match="more than int32 can number"):
        build._id_type(2**31, np.int32)


def test_a_star_is_one_long_bucket():
    leaves = 300_000
    edges = EdgeList(np.zeros(leaves, np.int32), np.arange(1, leaves + 1, dtype=np.int32), directed=False)
    graph = build_graph(edges)
    assert graph.out_targets[:leaves].tolist() == list(range(1, leaves + 1))
    assert (graph.out_targets[leaves:] == 0).all()
    assert (graph.best_in[0], graph.best_in[1:].max(), graph.hanging_start) == (1, 0, 1)


@pytest.mark.jitless
def test_best_in_neighbour_and_hanging_vertices():
    # 5 -> {1, 2, 3}, 1 -> {2, 3}, 3 -> 4, 6 -> 7: degrees 3, 3, 2, 3, 1, 1, 1
    pairs = [(5, 1), (5, 2), (5, 3), (1, 2), (1, 3), (3, 4), (6, 7)]
    graph = build_graph(edge_list(pairs), directed=True)
    names = graph.user_ids[graph.user_position]
    assert names.tolist() == [1, 3, 5, 2, 4, 6, 7]
    best = dict(zip(names.tolist(), names[graph.best_in].tolist(), strict=True))
    assert best == {1: 5, 3: 1, 5: 5, 2: 1, 4: 3, 6: 6, 7: 6}
    assert graph.hanging_start == 4
    undirected = build_graph(edge_list(pairs), directed=False)
    assert undirected.hanging_start == 4
    assert undirected.best_in.tolist() == [1, 0, 0, 0, 1, 6, 5]
    assert build_graph(edge_list([(0, 1)]), directed=False).hanging_start == 0
    assert build_graph(grid(3, 3), directed=None).hanging_start == 9


def test_missing_vertices_are_told_with_their_neighbours():
    graph = build_graph(edge_list([(3, 6999), (7002, 8297)]), directed=True)
    with pytest.raises(InputError, match=r"vertex 7000 is not in the graph \(ids 3\.\.8297, nearest 6999 and 7002\)"):
        graph.internal_id(7000)
    with pytest.raises(InputError, match=r"\(ids 3\.\.8297, nearest 3\)"):
        graph.internal_id(-(2**70))
    with pytest.raises(InputError, match=r"\(ids 3\.\.8297, nearest 8297\)"):
        graph.internal_id(2**70)
    with pytest.raises(InputError, match="it has no vertices"):
        build_graph(edge_list([]), directed=True).internal_id(0)


def test_results_go_back_to_user_ids():
    graph = build_graph(edge_list([(10, 20), (20, 40)], vertices=np.array([10, 20, 30, 40])), directed=True)
    assert graph.user_ids[graph.user_position].tolist() == [20, 10, 40]
    assert graph.to_user_levels(np.array([1, 0, 2], np.int32)).tolist() == [0, 1, -1, 2]
    assert graph.to_user_parents(np.array([1, 1, 0], np.int32)).tolist() == [10, 10, -1, 20]
    assert graph.to_user_parents(np.array([-1, 1, -1], np.int32)).tolist() == [10, -1, -1, -1]


@pytest.mark.parametrize("last", [41, 2**20, 2**31 - 2, 2**31 - 1, 2**31, 2**62])
@pytest.mark.parametrize("deep", [2, 8, 2**9, 2**25, 2**30, 2**31 - 2])
def test_a_search_goes_back_to_user_ids_as_its_columns_do(last, deep):
    """Ids of any width, levels of any depth, isolated vertices, and pairs that no search would find."""
    graph = build_graph(edge_list([(10, 20), (20, last)], vertices=np.array([10, 20, 30, last])), directed=True)
    for level, parent in (
        ([1, 0, deep], [1, 1, 0]), ([deep, deep - 1, -1], [2, 1, -1]), ([-1, -1, -1], [-1, -1, -1]),
        ([3, -1, 2], [-1, 0, 2]), ([-7, 0, deep], [0, -1, -1]),
    ):  # fmt: skip
        pair = np.array(level, np.int32), np.array(parent, np.int32)
        found = graph.to_user_search(*pair)
        expected = graph.to_user_levels(pair[0]), graph.to_user_parents(pair[1])
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            assert one.tolist() == other.tolist()
        ids = [20, 10, last]
        assert found[0].tolist() == [level[1], level[0], -1, level[2]]
        assert found[1].tolist() == [ids[parent[v]] if v >= 0 and parent[v] >= 0 else -1 for v in (1, 0, -1, 2)]


def test_a_search_of_nothing_goes_back_to_user_ids():
    graph = build_graph(edge_list([], vertices=np.arange(3)), directed=False)
    level, parent = graph.to_user_search(np.empty(0, np.int32), np.empty(0, np.int32))
    assert level.tolist() == parent.tolist() == [-1, -1, -1]


def test_results_that_are_held_stay_and_others_are_used_again():
    graph = build_graph(grid(4, 5), directed=None)
    parent = np.zeros(graph.n, np.int32)
    held, _ = graph.to_user_search(np.full(graph.n, 1, np.int32), parent)
    part = graph.to_user_search(np.full(graph.n, 2, np.int32), parent)[0][3:]  # only a view is left
    third = graph.to_user_levels(np.full(graph.n, 3, np.int32))
    assert set(held.tolist()) == {1}
    assert set(part.tolist()) == {2}
    assert set(third.tolist()) == {3}
    at = third.ctypes.data
    del third
    assert graph.to_user_levels(np.full(graph.n, 4, np.int32)).ctypes.data == at


def test_arrays_that_do_not_fit_are_no_graph():
    good = build_graph(grid(2, 2), directed=None)
    arrays = (
        good.out_offsets, good.out_targets, good.in_offsets, good.in_sources, None,
        good.user_ids, good.user_position, good.internal_of_position,
    )  # fmt: skip
    assert Graph(good.n, good.m, False, *arrays, {}).best_in.tolist() == good.best_in.tolist()
    with pytest.raises(ValueError, match="out_targets"):
        Graph(good.n, good.m + 1, False, *arrays)
    with pytest.raises(ValueError, match="best_in"):
        replace(good, best_in=good.best_in[1:])
    with pytest.raises(ValueError, match="hanging_start is 5, beyond all 4"):
        replace(good, hanging_start=5)


def test_large_enough_for_several_lanes_and_buckets():
    edges = kronecker(13, 16, seed=9)
    assert passes.lanes_for(2 * edges.src.size) == min(numba.get_num_threads(), 16)
    graph = build_graph(edges, directed=False)
    keep = edges.src != edges.dst
    both = np.concatenate([edges.src[keep] << 13 | edges.dst[keep], edges.dst[keep] << 13 | edges.src[keep]])
    name = graph.user_ids[graph.user_position]
    source = name[np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))]
    assert np.array_equal(np.sort(source << 13 | name[graph.out_targets]), np.unique(both))
    assert (np.diff(graph.degree()) <= 0).all()


def test_interpreted_kernels_build_the_same_graph(project_root: Path):
    script = (
        "from cpu_engine.graph.generators import kronecker; from cpu_engine.graph.build.builder import build_graph;"
        "from tests.unit.graph.test_build import fingerprint; e = kronecker(6, 4, seed=2);"
        "print(fingerprint(build_graph(e)), fingerprint(build_graph(e, directed=True)))"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(project_root)}
    command = [sys.executable, "-W", "error", "-c", script]
    run = subprocess.run(
        command, env=environment, cwd=project_root, capture_output=True, text=True, timeout=60, check=True
    )
    told = run.stdout.split()
    edges = kronecker(6, 4, seed=2)
    assert told == [fingerprint(build_graph(edges)), fingerprint(build_graph(edges, directed=True))]
