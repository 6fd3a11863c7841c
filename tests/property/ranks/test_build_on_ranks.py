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
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.distributed import build, shares
from cpu_engine.graph.distributed.build import BuiltPart, build_on_ranks
from cpu_engine.graph.distributed.shares import Share, share_of_kronecker, share_of_list, share_of_uniform
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import kronecker, uniform
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


@pytest.mark.jitless
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_the_parts_of_the_whole_graph(policy, data):
    n = data.draw(st.integers(1, 30), label="vertices")
    first = data.draw(st.sampled_from([0, 7, 1 << 40]), label="first id")
    pairs = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=90), label="edges")
    directed = data.draw(st.booleans(), label="directed")
    weighted = data.draw(st.booleans(), label="weighted")
    rules = {f"drop_{name}": data.draw(st.booleans(), label=f"drop {name}") for name in ("loops", "duplicates")}
    parts = data.draw(st.integers(1, 6), label="ranks")
    piece = data.draw(st.integers(1, 40), label="edges in a piece")
    src, dst = (np.array([pair[i] for pair in pairs], np.int64) + first for i in (0, 1))
    numbers = data.draw(st.sampled_from([np.int64, np.float64]), label="weights are")
    weight = data.draw(st.lists(st.integers(0, 9), min_size=len(pairs), max_size=len(pairs))) if weighted else None
    edges = EdgeList(src, dst, None if weight is None else np.array(weight, numbers), id_range=(first, n))
    keep = {name.removeprefix("drop_"): "drop" if drop else "keep" for name, drop in rules.items()}
    graph = build_graph(
        edges,
        directed=directed,
        self_loops=keep["loops"],
        duplicates=keep["duplicates"],  # type: ignore[arg-type]
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shares, "PIECE_EDGES", piece)
        patched.setattr(build, "PIECE_EDGES", piece)
        share = [share_of_list(rank, parts, edges, first, n, directed) for rank in range(parts)]
        found = built(parts, share, policy, weighted=weighted, **rules)
    if graph.n:
        assert_same(found, graph, policy, weighted=weighted)
    assert found[0].loops == sum(a == b for a, b in pairs)


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
