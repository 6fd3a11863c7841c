"""Every strategy, on any graph, view and number of threads: levels equal the naive reference, parents are a tree."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.bfs.balance import measure_balance
from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.kernels.groups import Tree
from cpu_engine.bfs.level_synchronous import DEEP, LevelBfs
from cpu_engine.bfs.numa import MemoryCost, copy_pays, count_nodes, measure_memory, remote_distance
from cpu_engine.bfs.strategies import small_levels as expand_small
from cpu_engine.bfs.strategies.names import STRATEGIES, Factory, load_strategy
from cpu_engine.bfs.strategies.numa import NumaPullExpander
from cpu_engine.bfs.strategies.pull import PullExpander
from cpu_engine.bfs.strategies.push import BucketedPushExpander, PrivatePushExpander, PushExpander
from cpu_engine.bfs.strategies.push_edge import EdgePushExpander, owner_starts, shuffled_rows
from cpu_engine.bfs.strategies.small_levels import SmallLevelsExpander
from cpu_engine.bfs.strategies.strategy import LeapingExpander
from cpu_engine.bfs.strategies.switch import SwitchingExpander
from cpu_engine.bfs.traversal import CoreSplit, complete_parents
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.intrinsics.team import join_team
from hybrid.offload.traverse import Traversed, traverse_alone, traverse_together
from hybrid.results.trace import Trace
from tests import naive
from tests.core_solvers import ScriptedCoreSolver, closing_word
from tests.property.test_hybrid import check, inner_pairs
from tests.proving import prove_or_repair
from tests.random_graphs import Drawn, graphs

JITLESS = os.environ.get("NUMBA_DISABLE_JIT") == "1"
EXAMPLES = 5 if JITLESS else 8
NOBODY = np.empty(0, np.int64)
FREE_COPIES, DEAR_COPIES = MemoryCost(10, 10, 0), MemoryCost(10, 10, 1e9)

# The shipped ones, and each with its limits so low that a small graph meets them.
CASES: dict[str, Factory] = {name: load_strategy(name) for name in STRATEGIES} | {
    "push-private, three threads, full buffers": partial(PrivatePushExpander, threads=3, private_vertices=2),
    "push-edge, three owners": partial(EdgePushExpander, threads=3),
    "push-bucketed, low limits": partial(
        BucketedPushExpander, threads=3, private_vertices=1, medium_edges=2, huge_edges=4
    ),
    "small-levels, always a team": partial(SmallLevelsExpander, threads=3, tiny_vertices=0, levels_per_launch=5),
    "small-levels, low limits": partial(SmallLevelsExpander, tiny_vertices=1, tiny_edges=3, levels_per_launch=2),
    "pull-numa, copies": partial(NumaPullExpander, threads=3, nodes=2, cost=FREE_COPIES),
    "switching, eager": partial(SwitchingExpander, alpha=1000, beta=3),
    "switching, claim and plain pull": partial(
        SwitchingExpander, push=PushExpander, pull=PullExpander, alpha=4, beta=3
    ),
}
SIMULATED: dict[str, Callable[..., Factory]] = {
    "push-private": lambda threads: partial(PrivatePushExpander, threads=threads),
    "push-edge": lambda threads: partial(EdgePushExpander, threads=threads),
    "push-bucketed": lambda threads: partial(BucketedPushExpander, threads=threads, medium_edges=16, huge_edges=600),
    "pull-numa": lambda threads: partial(NumaPullExpander, threads=threads, nodes=2, cost=FREE_COPIES),
}


@cache
def sample(name: str) -> Graph:
    edges = {"kronecker": partial(kronecker, 8), "large": partial(kronecker, 12), "grid": partial(grid, 40, 40)}[name]()
    return build_graph(edges, directed=False)


def expected_levels(graph: Graph, root: int) -> np.ndarray:
    level = np.full(graph.n, -1, np.int32)
    for v, value in naive.bfs_levels(inner_pairs(graph), True, root).items():
        level[v] = value
    return level


@cache
def sample_levels(name: str, root: int) -> np.ndarray:
    return expected_levels(sample(name), root)


def assert_size(frontier: int, exact: int) -> None:
    assert exact <= frontier <= 3 * exact, "one that several threads found at once may be listed by each of them"


def assert_exact(name: str, root: int, found: Traversed) -> None:
    assert certify(sample(name), found.level, found.parent, root).holds
    assert np.array_equal(found.level, sample_levels(name, root))


def with_each_case(test: Callable[..., None]) -> Any:
    """Run a test with each case, on random graphs."""
    drawn = given(drawn=graphs(), data=st.data())(settings(max_examples=EXAMPLES, deadline=None)(test))
    return pytest.mark.jitless(pytest.mark.parametrize("case", CASES)(drawn))


@with_each_case
def test_alone(case: str, drawn: Drawn, data: st.DataObject) -> None:
    graph = drawn.graph
    engine = LevelBfs(CoreSplit(graph), CASES[case])
    for root in data.draw(st.lists(st.integers(0, graph.n - 1), min_size=1, max_size=2), label="roots"):
        found = traverse_alone(engine, root)
        assert certify(graph, found.level, found.parent, root).holds
        check(drawn, root, found)


@with_each_case
def test_with_an_honest_solver(case: str, drawn: Drawn, data: st.DataObject) -> None:
    graph = drawn.graph
    k = data.draw(st.integers(0, graph.n), label="core size")
    root = data.draw(st.integers(0, graph.n - 1), label="root")
    mode = data.draw(st.sampled_from(["share", "race"]), label="mode")
    delays = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=5), label="looks until each answer")
    lifetime = data.draw(st.none() | st.integers(0, 12), label="looks until death")
    core = [(u, v) for u, v in inner_pairs(graph) if u < k and v < k]
    solver = ScriptedCoreSolver(closing_word(core), itertools.cycle(delays), lifetime)
    found = traverse_together(LevelBfs(CoreSplit(graph, k), CASES[case]), root, mode, solver, Trace())
    assert certify(graph, found.level, found.parent, root).holds, "an honest worker never needs repair, dead or alive"
    assert found.npu.values_rejected == 0
    check(drawn, root, found)


@pytest.mark.parametrize("case", CASES)
@given(drawn=graphs(), data=st.data())
@settings(max_examples=6, deadline=None)
def test_with_a_lying_solver(case: str, drawn: Drawn, data: st.DataObject) -> None:
    graph = drawn.graph
    k = data.draw(st.integers(1, graph.n), label="core size")
    root = data.draw(st.integers(0, graph.n - 1), label="root")
    mode = data.draw(st.sampled_from(["share", "race"]), label="mode")

    def lie(values: np.ndarray) -> np.ndarray:
        invented = np.array(data.draw(st.lists(st.integers(-1, graph.n), min_size=k, max_size=k)), np.int32)
        return np.where((values >= 0) & ((invented > values) | (invented < 0)), values, invented).astype(np.int32)

    solver = ScriptedCoreSolver(lie, itertools.cycle([1, 3]))
    found = traverse_together(LevelBfs(CoreSplit(graph, k), CASES[case]), root, mode, solver, Trace())
    prove_or_repair(graph, found, root, k, Trace())
    check(drawn, root, found)


@with_each_case
def test_what_an_expander_promises(case: str, drawn: Drawn, data: st.DataObject) -> None:
    """Edges inside the core stay hidden up to some level, and who they lead to comes as extra; that level is expanded
    again with all edges, and so are those after it."""
    split = CoreSplit(drawn.graph, data.draw(st.integers(1, drawn.graph.n), label="core size"))
    graph = split.graph
    root = data.draw(st.integers(0, graph.n - 1), label="root")
    last = data.draw(st.integers(0, 8), label="last level with edges withheld")
    level, parent = np.empty(graph.n, np.int32), np.empty(graph.n, np.int32)
    expander = CASES[case](split, Tree(level, parent))
    exact = expected_levels(graph, root)
    expander.start(root)
    depth, count = 0, 1
    while count:
        if depth <= last:
            expander.expand(split.outside_core, depth)
            assert level.max() <= depth + 1, "nothing beyond the next level can be known yet"
        elif isinstance(expander, LeapingExpander) and data.draw(st.booleans(), label="leap"):
            leap = expander.leap(split.all_edges, depth)
            if leap.levels:
                depth, count = depth + leap.levels, leap.frontier
                assert_size(count, np.count_nonzero(exact == depth))
                continue
        if depth >= last:
            expander.expand(split.all_edges, depth)
        depth += 1
        extra = np.flatnonzero((exact == depth) & (level == -1))
        assert depth <= last or not extra.size
        level[extra] = depth
        count = expander.advance(extra, depth)
        assert_size(count, np.count_nonzero(exact == depth))
    assert np.array_equal(level, exact)
    complete_parents(graph, level, parent, root)
    assert certify(graph, level, parent, root).holds


@pytest.mark.parametrize("name", ["kronecker", "grid"])
@pytest.mark.parametrize("case", CASES)
def test_on_the_usual_graphs(case: str, name: str) -> None:
    graph = sample(name)
    engine = LevelBfs(CoreSplit(graph), CASES[case])
    for root in (0, graph.n - 1) if name == "kronecker" else (graph.n // 2,):
        assert_exact(name, root, traverse_alone(engine, root))


@pytest.mark.parametrize("threads", range(1, 9))
@pytest.mark.parametrize("strategy", SIMULATED)
def test_any_number_of_threads(strategy: str, threads: int) -> None:
    graph = sample("large")
    assert_exact("large", 77, traverse_alone(LevelBfs(CoreSplit(graph), SIMULATED[strategy](threads)), 77))


@pytest.mark.jitless
@given(n=st.integers(1, 40), owners=st.integers(1, 9))
def test_the_shuffle_is_a_bijection_with_contiguous_owners(n: int, owners: int) -> None:
    starts, v = owner_starts(n, owners), np.arange(n)
    shuffled = starts[v % owners] + v // owners
    assert np.array_equal(np.sort(shuffled), v)
    assert ((starts[v % owners] <= shuffled) & (shuffled < starts[v % owners + 1])).all()


def test_shuffled_lists_ascend_and_are_made_once() -> None:
    split = CoreSplit(sample("kronecker"), 20)
    owners, starts = 5, owner_starts(split.graph.n, 5)
    for view in (split.all_edges, split.outside_core):
        rows = shuffled_rows(split, view, owners)
        assert rows is shuffled_rows(split, view, owners)
        for u in range(split.graph.n):
            row = slice(view.out_begin[u], view.out_end[u])
            targets = view.out_targets[row].astype(np.int64)
            assert np.array_equal(rows.targets[row], np.sort(starts[targets % owners] + targets // owners))
    assert rows is not shuffled_rows(split, split.all_edges, owners)
    assert rows is not shuffled_rows(split, view, owners + 1)


def test_edges_are_dealt_evenly_and_none_is_lost() -> None:
    graph = sample("large")
    split = CoreSplit(graph)
    level = sample_levels("large", 5)
    edges = int(np.diff(graph.out_offsets)[level >= 0].sum())
    for strategy in (EdgePushExpander, BucketedPushExpander, PrivatePushExpander):
        balance = measure_balance(split, 5, 8, strategy)
        assert balance.edges.shape == (level.max() + 1, 8)
        assert balance.edges.sum() == edges
        assert 1 <= balance.busiest_over_mean <= balance.critical_over_mean
    # Round robin over falling degrees: owner 0 leads by less than the largest list.
    owned = measure_balance(split, 5, 8, EdgePushExpander)
    assert owned.busiest_over_mean <= 1 + graph.degree()[0] / (edges / 8)


@pytest.mark.parametrize(("rows", "columns"), [(1, 5_000), (40, 2_000)])
def test_thousands_of_levels_take_few_launches(rows: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    launches = []

    def counted(step: Callable[..., object]) -> Callable[..., object]:
        return lambda *args: launches.append(step) or step(*args)

    for step in ("run_tiny_levels_step", "run_team_levels_step"):
        monkeypatch.setattr(expand_small, step, counted(getattr(expand_small, step)))
    graph = build_graph(grid(rows, columns), directed=False)
    found = traverse_alone(LevelBfs(CoreSplit(graph), partial(SmallLevelsExpander, tiny_vertices=8)), graph.n // 2)
    assert certify(graph, found.level, found.parent, graph.n // 2).holds
    assert found.level.max() >= 1_000
    assert len(launches) <= 2 * DEEP + 8 + 2 * found.level.max() // expand_small.LEVELS_PER_LAUNCH


@given(wanted=st.integers(1, 4), comers=st.integers(1, 6))
def test_a_team_closes_with_whoever_came(wanted: int, comers: int) -> None:
    """One after the other, as without threads: each waits in vain for the next, and the first is the team."""
    team = np.zeros(1, np.int64)
    assert [join_team(team, wanted, 3) for _ in range(comers)] == [(0, 1)] + [(-1, 0)] * (comers - 1)


@pytest.mark.parametrize("threads", [1, 4, 7])
@pytest.mark.parametrize("nodes", [2, 4])
def test_every_node_has_the_same_visited(nodes: int, threads: int) -> None:
    graph = sample("large")
    split = CoreSplit(graph)
    level, parent = np.empty(graph.n, np.int32), np.empty(graph.n, np.int32)
    expander = NumaPullExpander(split, Tree(level, parent), threads=threads, nodes=nodes, cost=FREE_COPIES)
    expander.start(3)
    depth, count = 0, 1
    while count:
        expander.copies[:] = np.iinfo(np.uint64).max
        within = (level >= 0) & (level <= depth)
        expander.expand(split.all_edges, depth)
        bits = np.unpackbits(expander.visited.view(np.uint8), bitorder="little")[: graph.n].astype(bool)
        assert np.array_equal(bits, within)
        assert (expander.copies == expander.visited).all()
        depth += 1
        count = expander.advance(NOBODY, depth)
    assert np.array_equal(level, sample_levels("large", 3))
    assert expander.copies_made == (depth if threads > 1 else 0)


def test_copies_are_made_only_where_they_pay() -> None:
    graph = sample("large")
    level, parent = np.empty(graph.n, np.int32), np.empty(graph.n, np.int32)
    split = CoreSplit(graph)

    def copies(**options: object) -> tuple[int, int]:
        expander = NumaPullExpander(split, Tree(level, parent), threads=4, **options)  # type: ignore[arg-type]
        expander.start(3)
        depth, count = 0, 1
        while count:
            expander.expand(split.all_edges, depth)
            depth += 1
            count = expander.advance(NOBODY, depth)
        return expander.copies_made, depth

    assert copies(nodes=1, cost=FREE_COPIES)[0] == 0
    assert copies(nodes=2, cost=DEAR_COPIES)[0] == 0
    assert 0 <= copies(nodes=2)[0] <= copies(nodes=2)[1]
    # A price between: while everyone asks, it pays; when few are left, it does not.
    dear = graph.n * 10 / 2 / (2 * graph.n / 8)
    made, levels = copies(nodes=2, cost=MemoryCost(10, 10, dear))
    assert 0 < made < levels


def test_the_rule_weighs_reads_against_bytes() -> None:
    cost = MemoryCost(local_read_ns=5, remote_extra_ns=10, copy_byte_ns=0.1)
    assert copy_pays(1_000_000, 100_000, 2, cost)
    assert not copy_pays(1_000, 100_000, 2, cost)
    assert not copy_pays(1_000_000, 100_000, 1, cost), "one node has no remote reads"


def test_the_machine_tells_its_nodes(tmp_path: Path) -> None:
    assert count_nodes(tmp_path) == 1
    for node, cpus, distance in ((0, "0-3\n", "10 32\n"), (1, "4-7\n", "32 10\n"), (2, "\n", "")):
        folder = tmp_path / f"node{node}"
        folder.mkdir()
        (folder / "cpulist").write_text(cpus)
        (folder / "distance").write_text(distance)
    assert count_nodes(tmp_path) == 2
    assert remote_distance(tmp_path) == 3.2
    cost = measure_memory(np.zeros(1 << 10, np.uint64), distance=3.0)
    assert cost.remote_extra_ns == pytest.approx(2 * cost.local_read_ns)
    assert cost.copy_byte_ns >= 0
