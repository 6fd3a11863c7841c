"""The build on ranks: part by part and array by array what cutting the whole graph gives."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.comm.collectives import RankInfo
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.distributed import assembly, build, numbering, shares
from cpu_engine.graph.distributed.build import BuiltPart, build_on_ranks
from cpu_engine.graph.distributed.shares import Share, share_of_kronecker, share_of_list, share_of_uniform
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import grid, kronecker, uniform
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import POLICIES, partition_graph

EXAMPLES = 8 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 30
ARRAYS = ("internal_of", "mirror_bounds", "out_offsets", "out_targets", "in_offsets", "in_sources", "has_out", "has_in")
LINKS = ("bounds", "masters", "roles")


def built(parts: int, share: list[Share], policy: str, **rules: bool) -> list[BuiltPart]:
    infos = [RankInfo(rank, parts, ("here",) * parts) for rank in range(parts)]
    return run_loopback([build_on_ranks(info, share[info.rank], policy, **rules) for info in infos])


def assert_same(found: list[BuiltPart], graph: Graph, policy: str, *, weighted: bool = False) -> None:
    right = partition_graph(graph, policy, len(found), weighted=weighted)
    for mine, theirs in zip(found, right, strict=True):
        assert (mine.part.masters, mine.part.n, mine.part.m) == (theirs.masters, graph.n, graph.m)
        assert np.array_equal(mine.part.layout.bounds, theirs.layout.bounds)
        assert (mine.part.layout.threshold, mine.part.layout.grid) == (theirs.layout.threshold, theirs.layout.grid)
        for name in ARRAYS:
            assert np.array_equal(getattr(mine.part, name), getattr(theirs, name)), name
        for name in LINKS:
            assert np.array_equal(getattr(mine.part.links, name), getattr(theirs.links, name)), name
        if weighted:
            assert mine.part.out_weight is not None
            assert np.array_equal(mine.part.out_weight, theirs.out_weight)
            assert mine.part.out_weight.dtype == theirs.out_weight.dtype
        positions = graph.user_position[mine.part.internal_of]
        assert np.array_equal(mine.position_of, positions)
        assert np.array_equal(mine.user_ids, graph.user_ids[positions])
        assert mine.vertices == graph.user_ids.size
        begin, end = theirs.layout.bounds[mine.part.part : mine.part.part + 2]
        assert np.array_equal(mine.range_ids, graph.user_ids[begin:end])
    told = {key: value for key, value in graph.meta.items() if key != "directed_assumed"}
    for mine in found:
        assert {key: mine.meta[key] for key in told} == told


@st.composite
def edge_lists(draw) -> EdgeList:
    """Lists whose ids are declared, or named, close together or far apart; perhaps both ways, perhaps weighted."""
    n = draw(st.integers(1, 30), label="vertices")
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=90), label="edges")
    both_ways = draw(st.booleans(), label="both directions")
    if both_ways:
        pairs = pairs + [(v, u) for u, v in pairs if u != v]
    ids = draw(st.sampled_from(["declared", "wide", "named", "far"]), label="ids")
    first = draw(st.sampled_from([0, 7, 1 << 40]), label="first id")
    step = {"far": draw(st.sampled_from([1000, (1 << 32) + 1]), label="step")}.get(ids, 1)
    src, dst = (np.array([pair[i] for pair in pairs], np.int64) * step + first for i in (0, 1))
    weight = None
    if draw(st.booleans(), label="weighted"):
        dtype = draw(st.sampled_from([np.int64, np.float64]), label="weights are")
        weight = np.array(draw(st.lists(st.integers(0, 9), min_size=len(pairs), max_size=len(pairs))), dtype)
    declared = {"declared": (first, n), "wide": (first, n + 5000)}.get(ids)
    more = None
    if declared is None and draw(st.booleans(), label="a list of vertices"):
        more = np.array(draw(st.lists(st.integers(0, 2 * n), max_size=9)), np.int64) * step + first
    return EdgeList(src, dst, weight, more, declared, symmetric_stored=both_ways, format="x", path="y", notes=("z",))


@pytest.mark.jitless
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_the_parts_of_the_whole_graph(policy, data):
    edges = data.draw(edge_lists(), label="edges")
    directed = data.draw(st.booleans(), label="directed")
    rules = {f"drop_{name}": data.draw(st.booleans(), label=f"drop {name}") for name in ("loops", "duplicates")}
    parts = data.draw(st.integers(1, 6), label="ranks")
    weighted = edges.weight is not None and data.draw(st.booleans(), label="with weights")
    keep = {name.removeprefix("drop_"): "drop" if drop else "keep" for name, drop in rules.items()}
    graph = build_graph(
        edges,
        directed=directed,
        self_loops=keep["loops"],  # type: ignore[arg-type]
        duplicates=keep["duplicates"],  # type: ignore[arg-type]
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shares, "PIECE_EDGES", data.draw(st.integers(1, 40), label="edges in a piece"))
        patched.setattr(build, "PIECE_EDGES", data.draw(st.integers(1, 40), label="arcs in a piece"))
        patched.setattr(numbering, "COMPACT_FLOOR", data.draw(st.sampled_from([0, 1024]), label="compact floor"))
        patched.setattr(numbering, "SAMPLES", data.draw(st.sampled_from([1, 64]), label="samples"))
        first, vertices = edges.id_range or (0, None)
        share = [share_of_list(rank, parts, edges, first, vertices, directed) for rank in range(parts)]
        found = built(parts, share, policy, weighted=weighted, **rules)
    if graph.n:
        assert_same(found, graph, policy, weighted=weighted)
    assert found[0].loops == np.count_nonzero(edges.src == edges.dst)


@pytest.mark.parametrize("far", [False, True])
def test_ids_of_64_bits(far, monkeypatch):
    """What a graph of more than 2**31 vertices takes: internal ids of 64 bits, whatever the numbering."""
    for module in (numbering, assembly):
        monkeypatch.setattr(module, "MAX_NARROW", 100)
    edges = uniform(9, 8, 3)
    if far:
        step = (1 << 33) + 5
        edges = EdgeList(edges.src.astype(np.int64) * step, edges.dst.astype(np.int64) * step)
    first, vertices = edges.id_range or (0, None)
    graph = build_graph(edges, directed=False)
    for policy in POLICIES:
        share = [share_of_list(rank, 3, edges, first, vertices, directed=False) for rank in range(3)]
        found = built(3, share, policy)
        assert all(one.part.internal_of.dtype == np.int64 for one in found)
        assert_same(found, graph, policy)


def test_ids_that_collide_only_beyond_32_bits(monkeypatch):
    monkeypatch.setattr(numbering, "COMPACT_FLOOR", 0)
    low = np.array([1, 2, 3, 1], np.int64)
    edges = EdgeList(np.concatenate((low, low + (1 << 32))), np.concatenate((low[::-1] + (1 << 33), low + (1 << 34))))
    graph = build_graph(edges, directed=True)
    assert graph.n == 12
    found = built(3, [share_of_list(rank, 3, edges, 0, None, directed=True) for rank in range(3)], "oec")
    assert_same(found, graph, "oec")


def test_more_vertices_than_32_bits_are_declared():
    """A wide range with few edges costs what the edges cost."""
    first, count = 5, (1 << 35) + 7
    src, dst = np.array([first, first + count - 1, 9], np.int64), np.array([first + (1 << 34), 9, first], np.int64)
    edges = EdgeList(src, dst, id_range=(first, count))
    found = built(2, [share_of_list(rank, 2, edges, first, count, directed=False) for rank in range(2)], "iec")
    assert {one.vertices for one in found} == {count}
    assert found[0].part.n == 4
    for one in found:
        assert np.array_equal(one.user_ids, one.position_of + first)
    own = np.concatenate([one.user_ids[: one.part.masters] for one in found])
    assert np.array_equal(np.sort(own), np.union1d(src, dst))


@pytest.mark.parametrize("ends", [(-1, 3), (3, 40), (3, 1 << 50)])
def test_an_id_outside_of_the_declared_range(ends):
    src, dst = np.array([0, 1, ends[0]], np.int64), np.array([1, 2, ends[1]], np.int64)
    edges = EdgeList(src, dst, id_range=(0, 10), path="the file")
    with pytest.raises(InputError) as one:
        build_graph(edges)
    with pytest.raises(InputError) as many:
        built(2, [share_of_list(rank, 2, edges, 0, 10, directed=True) for rank in range(2)], "oec")
    assert str(many.value) == str(one.value)


def test_weights_that_are_asked_for_and_not_there():
    edges = EdgeList(np.array([0]), np.array([1]))
    with pytest.raises(InputError, match="no weights"):
        built(1, [share_of_list(0, 1, edges, 0, 2, directed=True)], "oec", weighted=True)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["kronecker", "uniform"])
def test_generated_graphs_of_medium_size(kind, policy, monkeypatch):
    monkeypatch.setattr(shares, "PIECE_EDGES", 5000)
    monkeypatch.setattr(build, "PIECE_EDGES", 3000)
    whole, cut = (kronecker, share_of_kronecker) if kind == "kronecker" else (uniform, share_of_uniform)
    graph = build_graph(whole(12, 8, 3))
    for parts in (1, 2, 3, 6):
        found = built(parts, [cut(rank, parts, 12, 8, 3) for rank in range(parts)], policy)
        assert_same(found, graph, policy)


def test_a_grid_and_kronecker_probabilities(monkeypatch):
    monkeypatch.setattr(shares, "PIECE_EDGES", 500)
    for parts in (1, 3, 5):
        found = built(parts, [shares.share_of_grid(rank, parts, 23, 17) for rank in range(parts)], "cvc")
        assert_same(found, build_graph(grid(23, 17)), "cvc")
        probabilities = (0.3, 0.3, 0.2)
        found = built(parts, [share_of_kronecker(rank, parts, 8, 4, 2, *probabilities) for rank in range(parts)], "iec")
        assert_same(found, build_graph(kronecker(8, 4, 2, *probabilities)), "iec")


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (0, 5), (7, 4)])
def test_a_range_of_grid_edges_is_that_of_the_whole_list(shape):
    whole = grid(*shape)
    for first, last in ((0, whole.edge_count), (whole.edge_count // 3, whole.edge_count // 2)):
        piece = grid(*shape, edges=(first, last))
        assert np.array_equal(piece.src, whole.src[first:last])
        assert np.array_equal(piece.dst, whole.dst[first:last])


def test_edges_of_scales_that_no_list_has():
    """The edges of a graph of more than 2**31 vertices can be made, some at a time."""
    piece = kronecker(33, 16, 1, edges=(1 << 36, (1 << 36) + 1000))
    assert piece.src.dtype == np.int64
    assert int(piece.src.max()) > 1 << 32
    assert int(uniform(32, 16, 1, edges=(5, 900)).dst.max()) > 1 << 31
    for make, scale in ((kronecker, 37), (uniform, 33)):
        with pytest.raises(InputError, match="scale"):
            make(scale, 16, 1, edges=(0, 1))


@pytest.mark.parametrize("make", [kronecker, uniform])
def test_a_range_of_generated_edges_is_that_of_the_whole_list(make):
    whole = make(9, 8, 5)
    cuts = [0, 1, 700, 700, 4096]
    for first, last in pairwise(cuts):
        piece = make(9, 8, 5, edges=(first, last))
        assert np.array_equal(piece.src, whole.src[first:last])
        assert np.array_equal(piece.dst, whole.dst[first:last])


def test_one_hub_with_more_arcs_than_a_share():
    n = 2000
    edges = EdgeList(np.zeros(n - 1, np.int64), np.arange(1, n), id_range=(0, n))
    graph = build_graph(edges, directed=False)
    for policy in POLICIES:
        found = built(4, [share_of_list(rank, 4, edges, 0, n, directed=False) for rank in range(4)], policy)
        assert_same(found, graph, policy)
