"""What travels for the algorithms: updates, sums, assigned values, lists that overflow; parts that carry more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.comm import encoding
from cpu_engine.comm.encoding import AgreedList, Encoding
from cpu_engine.comm.errors import CommError
from cpu_engine.comm.kernels.sparse_updates import LISTED
from cpu_engine.comm.reductions import AssignPhase, DensePhase, SumPhase
from cpu_engine.comm.sparse_updates import ENTRIES_PER_PAIR, ChangeList, SparsePhase
from cpu_engine.comm.substrate import Route
from cpu_engine.comm.updates import pack_updates, unpack_updates
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.partition import POLICIES, PartStore, make_layout, partition_graph

MOST = 0xFFFFFFFF


def whole(begin: int, total: int) -> AgreedList:
    return AgreedList.of(np.arange(begin, begin + total))


# ------------------------------------------------------------------------------ updates


@pytest.mark.jitless
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(0, 63), st.randoms(use_true_random=False))
def test_news_come_back_as_they_were(total, bits, chance):
    positions = np.array(sorted(chance.sample(range(total), chance.randint(1, total))), np.int64)
    values = np.array([chance.getrandbits(bits) if bits else 7 for _ in positions], np.uint64)
    packed = pack_updates(positions, values, total)
    again = unpack_updates(packed.payload, total)
    assert again[0].tolist() == positions.tolist()
    assert again[1].tolist() == values.tolist()
    assert packed.encoding == Encoding.WHOLE if positions.size == total else packed.encoding != Encoding.NOTHING


@pytest.mark.jitless
def test_damaged_news_are_refused():
    payload = pack_updates(np.array([1, 5, 6]), np.array([3, 9, 300], np.uint64), 200).payload
    for damage, reason in (
        (payload[:10], "shorter than its header"),
        (payload[:-1], "not as long"),
        (np.where(np.arange(payload.size) == 0, 9, payload).astype(np.uint8), "of a kind"),
        (np.where(np.arange(payload.size) == 24, 250, payload).astype(np.uint8), "names a place"),
    ):
        with pytest.raises(CommError, match=reason):
            unpack_updates(damage, 200)
    with pytest.raises(CommError, match="is about a list of 200"):
        unpack_updates(payload, 100)
    assert unpack_updates(np.empty(0, np.uint8), 5)[0].size == 0


# ------------------------------------------------------------------------------ phases


@pytest.mark.jitless
def test_sums_are_told_once():
    sender = SumPhase(Route("reduce", 1, {1: whole(4, 3)}, {}))
    receiver = SumPhase(Route("reduce", 1, {}, {0: whole(0, 3)}))
    there, here = np.array([9, 9, 9, 9, 0, 2, 5], np.uint32), np.array([1, 1, 1], np.uint32)
    (payload,) = sender.messages(there).values()
    assert there.tolist() == [9, 9, 9, 9, 0, 0, 0]
    assert receiver.apply(0, payload, here).tolist() == [1, 2]
    assert here.tolist() == [1, 3, 6]
    assert sender.messages(there) == {}


@pytest.mark.jitless
def test_assigned_values_may_grow_and_are_told_when_they_change():
    sender = AssignPhase(Route("broadcast", 2, {1: AgreedList.of(np.array([0, 2]))}, {}))
    receiver = AssignPhase(Route("broadcast", 2, {}, {0: whole(3, 2)}))
    there, here = np.array([5, 6, 7], np.uint32), np.array([0, 0, 0, 5, 7], np.uint32)
    sender.knows(there)
    assert sender.messages(there) == {}
    there[:] = 8, 9, 7
    (payload,) = sender.messages(there).values()
    assert receiver.apply(0, payload, here).tolist() == [3]
    assert here.tolist() == [0, 0, 0, 8, 7]


@pytest.mark.jitless
def test_dense_values_are_added_or_assigned():
    values = np.array([0.5, 0.25, 1.0])
    (payload,) = DensePhase(Route("reduce", 1, {1: whole(1, 2)}, {})).messages(values).values()
    into = np.array([1.0, 1.0])
    DensePhase(Route("reduce", 1, {}, {0: whole(0, 2)})).apply(0, payload, into)
    assert into.tolist() == [1.25, 2.0]
    DensePhase(Route("broadcast", 2, {}, {0: whole(0, 2)})).apply(0, payload, into)
    assert into.tolist() == [0.25, 1.0]
    with pytest.raises(CommError, match="list of 3 values"):
        DensePhase(Route("broadcast", 2, {}, {0: whole(0, 3)})).apply(0, payload, into)


@pytest.mark.jitless
@pytest.mark.parametrize("dtype", [np.uint32, np.int64, np.float64])
@settings(max_examples=40, deadline=None)
@given(total=st.integers(1, 400), limit=st.integers(1, 60), chance=st.randoms(use_true_random=False))
def test_listed_values_arrive_whether_listed_or_dense(dtype, total, limit, chance):
    """After any number of rounds the receiver has every value that is below the limit and was listed."""
    most = np.inf if dtype is np.float64 else np.iinfo(dtype).max
    sender = SparsePhase(Route("broadcast", 2, {1: whole(0, total)}, {}), dtype=dtype)
    receiver = SparsePhase(Route("broadcast", 2, {}, {0: whole(5, total)}), dtype=dtype)
    changes = ChangeList(total, total)
    sender.follow(changes)
    sender.start()
    changes.start()
    assert not changes.mark.any()
    there, here = np.full(total, most, dtype), np.full(total + 5, most, dtype)
    for _ in range(3):
        sender.limit = limit
        for v in chance.sample(range(total), chance.randint(0, total)):
            there[v] = min(there[v], chance.randint(0, 100))
            if there[v] < limit and not changes.mark[v] & LISTED:
                changes.mark[v] |= LISTED
                changes.vertices[changes.counts[0]] = v
                changes.counts[0] += 1
        few = int(changes.counts[0]) <= max(total // ENTRIES_PER_PAIR, 1)
        few &= total <= encoding._SHORT_OFFSETS  # else a bit for every entry may be as short as the places
        for payload in sender.messages(there).values():
            assert not few or payload[0] in (Encoding.OFFSETS32, Encoding.OFFSETS16, Encoding.WHOLE)
            changed = receiver.apply(0, payload, here)
            assert np.all(np.diff(changed) > 0)
        assert not changes.mark.any()
        assert np.array_equal(here[5:], np.where(there < limit, there, most))
        limit += 20
        for v in np.flatnonzero((there < limit) & (there >= limit - 20)).tolist():
            changes.mark[v] |= LISTED
            changes.vertices[changes.counts[0]] = v
            changes.counts[0] += 1


# ------------------------------------------------------------------------------ parts

edges = st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15), st.integers(0, 9)), min_size=1, max_size=60)


@pytest.mark.jitless
@settings(max_examples=30, deadline=None)
@given(edges=edges, directed=st.booleans(), parts=st.integers(1, 5), policy=st.sampled_from(POLICIES))
def test_weighted_and_symmetric_parts_hold_every_arc(edges, directed, parts, policy):
    src, dst, weight = (np.array(column, np.int64) for column in zip(*edges, strict=True))
    graph = build_graph(EdgeList(src, dst, weight), directed=directed, self_loops="keep", duplicates="keep")
    row = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))
    arcs = list(zip(row.tolist(), graph.out_targets.tolist(), graph.weight.tolist(), strict=True))
    found = []
    for part in partition_graph(graph, policy, parts, weighted=True):
        source = part.internal_of[np.repeat(np.arange(part.size), np.diff(part.out_offsets))]
        found += zip(
            source.tolist(), part.internal_of[part.out_targets].tolist(), part.out_weight.tolist(), strict=True
        )
    assert sorted(found) == sorted(arcs)
    both = [(u, v) for u, v, _ in arcs] + ([(v, u) for u, v, _ in arcs] if directed else [])
    found = []
    for part in partition_graph(graph, policy, parts, symmetric=True):
        assert part.m == len(both)
        source = part.internal_of[np.repeat(np.arange(part.size), np.diff(part.out_offsets))]
        target = part.internal_of[part.out_targets]
        assert np.all((np.diff(source) != 0) | (np.diff(target) >= 0)), "rows are sorted"
        found += zip(source.tolist(), target.tolist(), strict=True)
    assert sorted(found) == sorted(both)


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_weighted_parts_are_kept_apart(tmp_path, kind):
    graph = build_graph(EdgeList(np.arange(9), np.arange(1, 10), np.arange(9).astype(kind)), directed=True)
    stores = {}
    for options in ({}, {"weighted": True}, {"symmetric": True}):
        part = partition_graph(graph, "iec", 2, **options)[1]
        store = PartStore(tmp_path, "graph", part.layout)
        assert store.keep(part) is None
        stores[store.folder] = part
        opened, remark = PartStore(tmp_path, "graph", make_layout(graph, "iec", 2, **options)).open(1)
        assert remark is None
        assert opened is not None
        assert np.array_equal(opened.out_targets, part.out_targets)
        if part.out_weight is None:
            assert opened.out_weight is None
        else:
            assert np.array_equal(opened.out_weight, part.out_weight)
            assert opened.out_weight.dtype == kind
    assert len(stores) == 3
