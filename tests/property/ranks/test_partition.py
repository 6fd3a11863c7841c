"""Whatever the graph, the policy and the number of parts: every arc once, the mirrors needed, lists that agree."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import POLICIES, Layout, Part, make_layout, predict
from cpu_engine.graph.partition.construct import assemble, link, mirror_lists, partition_graph, slice_arcs

Pairs = list[tuple[int, int]]
EXAMPLES = 12 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 60

graphs = st.integers(1, 24).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=80)
)
parts_and_policy = {"parts": st.integers(1, 9), "policy": st.sampled_from(POLICIES)}


def built(pairs: Pairs, directed: bool) -> Graph:
    src, dst = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    return build_graph(EdgeList(src, dst), directed=directed, self_loops="keep")


def arcs_of(graph: Graph) -> Pairs:
    row = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))
    return list(zip(row.tolist(), graph.out_targets.tolist(), strict=True))


def owners_of(graph: Graph, layout: Layout) -> list[int]:
    """By the definition: the one range of user positions that holds the vertex."""
    ranges = [range(a, b) for a, b in zip(layout.bounds[:-1].tolist(), layout.bounds[1:].tolist(), strict=True)]
    return [next(p for p, positions in enumerate(ranges) if at in positions) for at in graph.user_position.tolist()]


def naive_part(layout: Layout, owner: list[int], in_degree: list[int], u: int, v: int) -> int:
    columns = layout.grid[1]
    if layout.policy == "oec":
        return owner[u]
    if layout.policy == "iec":
        return owner[v]
    if layout.policy == "cvc":
        return owner[u] // columns * columns + owner[v] % columns
    if layout.policy == "2d":
        return owner[v] // columns * columns + owner[u] % columns
    return owner[u] if in_degree[v] > layout.threshold else owner[v]


def rows_of(part: Part, offsets: np.ndarray, neighbours: np.ndarray) -> list[tuple[int, list[int]]]:
    """(internal id, its neighbours' internal ids in the order of the row), by local id."""
    inner = part.internal_of
    return [
        (int(inner[i]), inner[neighbours[offsets[i] : offsets[i + 1]]].tolist()) for i in range(part.internal_of.size)
    ]


def check_part(part: Part, arcs: Pairs, owner: list[int]) -> None:
    own = [v for v, p in enumerate(owner) if p == part.part]
    foreign = {w for arc in arcs for w in arc} - set(own)
    mirrors = sorted(foreign, key=lambda w: (owner[w], w))
    assert part.internal_of.tolist() == own + mirrors
    assert (part.masters, part.mirrors, part.arcs) == (len(own), len(mirrors), len(arcs))
    for q in range(part.layout.parts):
        group = part.internal_of[part.mirror_bounds[q] : part.mirror_bounds[q + 1]].tolist()
        assert group == [w for w in mirrors if owner[w] == q]
    assert int(part.mirror_bounds[0]) == part.masters
    out_rows = rows_of(part, part.out_offsets, part.out_targets)
    in_rows = rows_of(part, part.in_offsets, part.in_sources)
    assert out_rows == [(u, sorted(v for w, v in arcs if w == u)) for u in own + mirrors]
    assert in_rows == [(v, sorted(u for u, w in arcs if w == v)) for v in own + mirrors]
    assert part.has_out.tolist() == [bool(row) for _, row in out_rows]
    assert part.has_in.tolist() == [bool(row) for _, row in in_rows]


def check_structure(part: Part, in_degree: list[int]) -> None:
    """What the policies promise of their mirrors: communication is derived from it."""
    has_out, has_in = part.has_out[part.masters :], part.has_in[part.masters :]
    assert np.all(has_out | has_in)
    if part.layout.policy == "oec":
        assert not has_out.any()
    elif part.layout.policy == "iec":
        assert not has_in.any()
    elif part.layout.policy in ("cvc", "2d"):
        assert not (has_out & has_in).any()
    else:
        written = part.internal_of[part.masters :][has_in != 0].tolist()
        assert all(in_degree[v] > part.layout.threshold for v in written)


def check_partners(part: Part) -> None:
    """On a grid, a part reduces along one line of it and broadcasts along the other."""
    if part.layout.policy not in ("cvc", "2d"):
        return
    columns, me = part.layout.grid[1], part.part
    for q in range(part.layout.parts):
        same_row, same_column = q // columns == me // columns, q % columns == me % columns
        along_row, along_column = part.mirrors_with_out[q], part.mirrors_with_in[q]
        if part.layout.policy == "2d":
            along_row, along_column = along_column, along_row
        assert same_row or not along_row.size
        assert same_column or not along_column.size


def check_links(parts: list[Part]) -> None:
    """Position i of a list on one side means the same vertex as position i on the other side."""
    for mine in parts:
        for theirs in parts:
            p, q = mine.part, theirs.part
            begin, end = theirs.mirror_bounds[p : p + 2]
            sides = [
                (mine.mirrored[q], np.arange(begin, end)),
                (mine.masters_read_at[q], theirs.mirrors_with_out[p]),
                (mine.masters_written_at[q], theirs.mirrors_with_in[p]),
            ]
            for masters, mirrors in sides:
                assert masters.dtype == np.int32
                assert np.all(masters < mine.masters)
                assert mine.internal_of[masters].tolist() == theirs.internal_of[mirrors].tolist()


@pytest.mark.jitless
@given(pairs=graphs, directed=st.booleans(), **parts_and_policy)
@settings(max_examples=EXAMPLES, deadline=None)
def test_parts_are_what_the_policy_says(pairs: Pairs, directed: bool, parts: int, policy: str) -> None:
    graph = built(pairs, directed)
    cut = partition_graph(graph, policy, parts)
    layout = cut[0].layout
    owner, in_degree = owners_of(graph, layout), np.diff(graph.in_offsets).tolist()
    assert layout.owner_of.tolist() == owner
    dealt: list[Pairs] = [[] for _ in range(parts)]
    for u, v in arcs_of(graph):
        dealt[naive_part(layout, owner, in_degree, u, v)].append((u, v))
    for part in cut:
        check_part(part, dealt[part.part], owner)
        check_structure(part, in_degree)
        check_partners(part)
        everybody = np.arange(graph.n)
        local = part.local_of(everybody)
        here = np.isin(everybody, part.internal_of)
        assert np.array_equal(local >= 0, here)
        assert np.array_equal(part.internal_of[local[here]], everybody[here])
    check_links(cut)


@given(pairs=graphs, directed=st.booleans(), readers=st.integers(1, 6), **parts_and_policy)
@settings(max_examples=EXAMPLES, deadline=None)
def test_readers_make_no_difference(pairs: Pairs, directed: bool, readers: int, parts: int, policy: str) -> None:
    graph = built(pairs, directed)
    layout = make_layout(graph, policy, parts)
    slices = [slice_arcs(graph, layout, reader, readers) for reader in range(readers)]
    read = [one for dealt in slices for one in map(tuple, np.concatenate(dealt).tolist())]
    assert sorted(read) == arcs_of(graph)
    unlinked = [assemble(layout, p, [dealt[p] for dealt in slices]) for p in range(parts)]
    lists = [mirror_lists(part) for part in unlinked]
    for part, expected in zip(unlinked, partition_graph(graph, policy, parts), strict=True):
        found = link(part, [told[part.part] for told in lists])
        for name in ("internal_of", "mirror_bounds", "out_offsets", "out_targets", "in_offsets", "in_sources"):
            assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@pytest.mark.jitless
@given(pairs=graphs, directed=st.booleans(), **parts_and_policy)
@settings(max_examples=EXAMPLES, deadline=None)
def test_prediction_is_what_would_be_built(pairs: Pairs, directed: bool, parts: int, policy: str) -> None:
    graph = built(pairs, directed)
    cut, predicted = partition_graph(graph, policy, parts), predict(graph, policy, parts)
    assert predicted.arcs.tolist() == [part.arcs for part in cut]
    assert predicted.masters.tolist() == [part.masters for part in cut]
    assert predicted.mirrors.tolist() == [part.mirrors for part in cut]
    assert predicted.replication == pytest.approx(sum(part.size for part in cut) / graph.n)
    for part in cut:
        assert predicted.read[part.part].tolist() == [one.size for one in part.mirrors_with_out]
        assert predicted.written[part.part].tolist() == [one.size for one in part.mirrors_with_in]
        talks_to = {q for q in range(parts) if part.mirrored[q].size or np.diff(part.mirror_bounds)[q]}
        assert predicted.partners[part.part] == len(talks_to)
        reduced = [16 + 4 * one.size for one in part.mirrors_with_in if one.size]
        spread = [16 + 4 * one.size for one in part.masters_read_at if one.size]
        assert predicted.reduce_bytes()[part.part] == sum(reduced)
        assert predicted.broadcast_bytes()[part.part] == sum(spread)


@given(pairs=graphs, directed=st.booleans(), parts=st.integers(1, 30))
@settings(max_examples=EXAMPLES, deadline=None)
def test_masters_are_balanced(pairs: Pairs, directed: bool, parts: int) -> None:
    """No range is further from its ideal ends than half the heaviest vertex."""
    graph = built(pairs, directed)
    layout = make_layout(graph, "oec", parts)
    weight = graph.degree() + 1
    load = np.bincount(layout.owner_of, weight, minlength=parts)
    assert np.all(np.abs(load - weight.sum() / parts) <= weight.max() + 1)
    assert layout.bounds[0] == 0
    assert layout.bounds[-1] == graph.user_ids.size
    assert np.all(np.diff(layout.bounds) >= 0)
