"""Layouts, grids, the hybrid cut, the ends of the range of parts, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import (
    POLICIES,
    MirrorList,
    assemble,
    choose_grid,
    link,
    make_layout,
    mirror_lists,
    partition_graph,
    predict,
    slice_arcs,
)
from cpu_engine.graph.partition.policies import arc_terms
from cpu_engine.graph.partition.prediction import bitset_bytes, whole_bytes


@pytest.fixture(scope="module")
def small_kronecker() -> Graph:
    return build_graph(kronecker(9, 8, 2), directed=False)


def from_pairs(pairs: list[tuple[int, int]], directed: bool = False) -> Graph:
    src, dst = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    return build_graph(EdgeList(src, dst), directed=directed)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (1, (1, 1)),
        (2, (1, 2)),
        (4, (2, 2)),
        (6, (2, 3)),
        (7, (1, 7)),
        (12, (3, 4)),
        (1024, (32, 32)),
        (2048, (32, 64)),
    ],
)
def test_grid_is_as_square_as_it_can_be(parts, expected):
    assert choose_grid(parts) == expected


@pytest.mark.parametrize(("vertex_cut", "edge_cut"), [("cvc", "iec"), ("2d", "oec")])
def test_a_prime_number_of_parts_makes_a_grid_an_edge_cut(small_kronecker, vertex_cut, edge_cut):
    for one, other in zip(
        partition_graph(small_kronecker, vertex_cut, 5), partition_graph(small_kronecker, edge_cut, 5), strict=True
    ):
        assert np.array_equal(one.internal_of, other.internal_of)
        assert np.array_equal(one.out_targets, other.out_targets)


@pytest.mark.parametrize("policy", POLICIES)
def test_one_part_is_the_graph(small_kronecker, policy):
    graph = small_kronecker
    (part,) = partition_graph(graph, policy, 1)
    assert (part.masters, part.mirrors, part.n, part.m) == (graph.n, 0, graph.n, graph.m)
    assert np.array_equal(part.out_offsets, graph.out_offsets)
    assert np.array_equal(part.out_targets, graph.out_targets)
    assert np.array_equal(part.in_sources, graph.in_sources)
    assert part.mirrored[0].size == 0
    assert predict(graph, policy, 1).replication == 1.0


@pytest.mark.parametrize("policy", POLICIES)
def test_more_parts_than_vertices(policy):
    graph = from_pairs([(0, 1), (1, 2)])
    parts = partition_graph(graph, policy, 11)
    assert sum(part.masters for part in parts) == 3
    assert sum(part.arcs for part in parts) == 4
    empty = [part for part in parts if part.size == 0]
    assert len(empty) >= 5
    for part in empty:
        assert part.out_offsets.tolist() == [0]
        assert all(one.size == 0 for one in (*part.mirrored, *part.mirrors_with_in, *part.mirrors_with_out))
        assert part.local_of(np.arange(3)).tolist() == [-1, -1, -1]
    assert predict(graph, policy, 11).arcs.tolist() == [part.arcs for part in parts]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_graph_without_edges(policy):
    graph = build_graph(EdgeList(np.array([3]), np.array([3])), directed=False, self_loops="drop")
    assert graph.n == 0
    assert [part.size for part in partition_graph(graph, policy, 3)] == [0, 0, 0]
    predicted = predict(graph, policy, 3)
    assert predicted.replication == 0.0
    assert predicted.arc_imbalance == 1.0
    assert predicted.messages == 0


def test_masters_are_contiguous_in_the_users_order_and_balanced_by_edges():
    graph = from_pairs([(9, v) for v in range(9)])  # the user's last vertex is the hub
    layout = make_layout(graph, "oec", 2)
    user = graph.user_ids[graph.user_position]
    owner = dict(zip(user.tolist(), layout.owner_of.tolist(), strict=True))
    assert owner == {v: 0 if v < 7 else 1 for v in range(10)}  # 7 leaves of weight 2; 2 leaves and a hub of weight 10


def test_locality_of_the_users_numbering_is_kept():
    graph = build_graph(grid(40, 40), directed=False)
    assert predict(graph, "oec", 4).mirrors.tolist() == [40, 80, 80, 40], "rows next to a cut, no others"


def test_the_hybrid_cut_splits_the_in_arcs_of_hubs_only():
    spokes = [(v, 0) for v in range(1, 41)] + [(v, v + 1) for v in range(1, 40)]
    graph = from_pairs(spokes, directed=True)
    layout = make_layout(graph, "uvc", 4)
    in_degree = np.diff(graph.in_offsets)
    assert np.flatnonzero(in_degree > layout.threshold).tolist() == [0]
    parts = partition_graph(graph, "uvc", 4)
    assert sum(1 for part in parts if part.has_in[part.local_of(np.array([0]))[0]]) == 4
    for part in parts:
        mirrors = part.internal_of[part.masters :][part.has_in[part.masters :] != 0]
        assert set(mirrors.tolist()) <= {0}


def test_terms_give_every_policy_its_definition():
    owner, in_degree = np.array([0, 3, 4, 5], np.uint16), np.array([1, 9, 9, 1])
    expected = {  # of the arcs 0 -> 1, 1 -> 2, 2 -> 3, 3 -> 0 on a grid of 2 x 3
        "oec": [0, 3, 4, 5],
        "iec": [3, 4, 5, 0],
        "cvc": [0, 4, 5, 3],
        "2d": [3, 3, 4, 2],
        "uvc": [0, 3, 5, 0],
    }
    for policy, wanted in expected.items():
        source, target = arc_terms(policy, owner, in_degree, columns=3, threshold=4)
        target = np.roll(target, -1)
        assert np.where(target < 0, ~target, source + target).tolist() == wanted, policy


@pytest.mark.parametrize(
    ("policy", "parts", "words"), [("metis", 2, "choose one of oec"), ("oec", 0, "ask for 1 or more")]
)
def test_what_cannot_be_cut_is_refused_with_a_fix(small_kronecker, policy, parts, words):
    with pytest.raises(InputError, match=words):
        partition_graph(small_kronecker, policy, parts)


def test_wide_ids_are_refused():
    graph = build_graph(EdgeList(np.array([0]), np.array([1])), directed=False, id_dtype=np.int64)
    with pytest.raises(InputError, match="32 bits"):
        make_layout(graph, "oec", 2)


def test_links_are_needed_before_they_are_used(small_kronecker):
    layout = make_layout(small_kronecker, "oec", 2)
    part = assemble(layout, 0, [slice_arcs(small_kronecker, layout, reader)[0] for reader in range(2)])
    with pytest.raises(ValueError, match="not been linked"):
        _ = part.mirrored


def test_mirrors_of_foreign_vertices_are_refused(small_kronecker):
    first, second = partition_graph(small_kronecker, "oec", 2)
    told = mirror_lists(second)
    assert told[0].internal_ids.size > 0
    with pytest.raises(ValueError, match="does not own"):
        link(second, [told[0], told[1]])
    assert link(first, [told[1], told[0]]).mirrored[1].size == told[0].internal_ids.size


def test_mirror_lists_survive_the_wire(small_kronecker):
    (one, *_) = (told for told in mirror_lists(partition_graph(small_kronecker, "cvc", 4)[0]) if told.roles.size)
    again = MirrorList.from_bytes(one.to_bytes())
    assert one.to_bytes().dtype == np.uint8
    assert np.array_equal(again.internal_ids, one.internal_ids)
    assert np.array_equal(again.roles, one.roles)
    with pytest.raises(ValueError, match="5 bytes"):
        MirrorList.from_bytes(one.to_bytes()[:-1])
    assert MirrorList.from_bytes(np.empty(0, np.uint8)).internal_ids.size == 0


def test_more_parts_than_16_bits_can_number():
    graph = from_pairs([(0, 1), (1, 2)])
    layout = make_layout(graph, "cvc", 70_001)
    assert layout.owner_of.dtype == np.uint32
    assert len(set(layout.owner_of.tolist())) == 3


def test_bytes_of_a_message():
    counts = np.array([0, 1, 8, 9])
    assert whole_bytes(counts).tolist() == [0, 20, 48, 52]
    assert bitset_bytes(counts).tolist() == [0, 18, 25, 27]


def test_sync_bytes_follow_the_mirrors(small_kronecker):
    predicted = predict(small_kronecker, "oec", 4)
    assert predicted.broadcast_bytes().sum() == 0
    assert predicted.reduce_bytes().sum() == 4 * predicted.mirrors.sum() + 16 * predicted.messages
    flipped = predict(small_kronecker, "iec", 4)
    assert flipped.reduce_bytes().sum() == 0
    assert flipped.broadcast_bytes().sum() == 4 * flipped.mirrors.sum() + 16 * flipped.messages
    # An undirected graph is its own transpose, so the masters send what the mirrors sent before.
    assert np.array_equal(flipped.read, predicted.written)


@pytest.mark.heavy
def test_a_thousand_parts_predicted_as_they_are_built(small_kronecker):
    predicted = predict(small_kronecker, "cvc", 1024)
    parts = partition_graph(small_kronecker, "cvc", 1024)
    assert predicted.mirrors.tolist() == [part.mirrors for part in parts]
    assert predicted.partners.max() <= 31 + 31
