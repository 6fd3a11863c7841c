"""A team whose members wait long for one another dissolves, and the driver goes on with one thread for a while."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.strategies import small_levels as expand_small
from cpu_engine.bfs.strategies.kernels.small_levels import run_team_levels_step
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import grid
from cpu_engine.intrinsics.team import leave_team, meet_team
from cpu_engine.sssp import delta as sssp_delta
from cpu_engine.sssp.check import check_sssp
from cpu_engine.sssp.delta import Buckets
from cpu_engine.sssp.kernels.buckets import run_rounds_step
from cpu_engine.sssp.rows import prepare_rows


@pytest.mark.jitless
def test_all_leave_after_the_meeting_that_was_named() -> None:
    gate = np.zeros(8, np.int64)
    for meeting in range(1, 6):
        meet_team(gate, 1, meeting)
        assert leave_team(gate, meeting) == (meeting >= 4)
        if meeting == 3:
            gate[1] = 4  # said by a member that waited long at meeting 3


class Slow:
    """A kernel of a team in which every launch ends as if members had waited long; counts the launches."""

    def __init__(self, kernel: Any) -> None:
        self._kernel, self.launches = kernel, 0

    def __call__(self, team: np.ndarray, *rest: Any) -> Any:
        self.launches += 1
        team[1, 1] = 2  # at most one more level, or round
        return self._kernel(team, *rest)


@pytest.mark.parametrize("strategy", ["small-levels", "auto"])
def test_levels_go_on_with_one_thread(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = build_graph(grid(60, 70))
    make = expand_small.SmallLevelsExpander
    monkeypatch.setattr(make.__init__, "__kwdefaults__", {**make.__init__.__kwdefaults__, "tiny_vertices": 1})
    slow = Slow(run_team_levels_step)
    monkeypatch.setattr(expand_small, "run_team_levels_step", slow)
    engine = LevelBfs(CoreSplit(graph), strategy)
    engine.start(0, withhold_core=False)
    while engine.can_step():
        engine.step()
        engine.settle()
    level, parent = engine.finish()
    assert certify(graph, level, parent, 0).holds
    assert slow.launches == 1  # the other levels are fewer than ALONE_LEVELS


def test_rounds_go_on_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = build_graph(grid(40, 50))
    slow = Slow(run_rounds_step)
    monkeypatch.setattr(sssp_delta, "run_rounds_step", slow)
    monkeypatch.setattr(sssp_delta, "ALONE_ROUNDS", 7)
    solver = Buckets(prepare_rows(graph), np.int32, 1.0, (), serial_edges=0, threads=2)
    solver.start(0)
    ran = []
    while solver.waiting:
        ran.append(solver.step().rounds)
    assert solver.dist.max() < solver.unreached
    assert slow.launches > 1
    assert 7 in ran
    parent = np.full(graph.n, -1, np.int32)
    parent[0] = 0
    for v in range(1, graph.n):
        near = graph.in_sources[graph.in_offsets[v] : graph.in_offsets[v + 1]]
        parent[v] = near[np.argmin(solver.dist[near])]
    assert check_sssp(graph, 0, solver.dist.astype(np.int64), parent).holds
