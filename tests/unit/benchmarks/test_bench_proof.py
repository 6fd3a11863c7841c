"""A wrong timed result ends a benchmark with exit code 5 and without a time: damaged in the real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.contest.proof import (
    Proofs,
    core_answer,
    require_batch,
    require_close,
    require_handed_over,
    require_search,
)
from benchmarks.contest.rounds import Finding, Root, Turn, WrongResult, play
from cpu_engine.bfs.level_synchronous import LevelBfs
from cpu_engine.bfs.many.engine import many_bfs
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.graph import Graph
from hybrid import cli
from hybrid.algorithms import algorithm_named
from hybrid.algorithms.algorithm import Found, Task
from hybrid.config import load_config
from hybrid.errors import NotCertified
from hybrid.graphs.sources import Source
from hybrid.offload.traverse import Traversed, traverse_alone

SMALL = ["--scale", "7", "--roots", "1", "--trials", "1", "--rounds", "1", "--threads", "1", "--pause", "0"]


@pytest.fixture(scope="module")
def graph() -> Graph:
    return build_graph(kronecker(7, 8))


# Each damages what our own contestant returns from its second run on: the first is the rehearsal.
DAMAGES = {
    "a level": (["bfs", "--peers"], "run", "out.traversed.level[-1] += 1"),
    "a parent in the user's ids": (["bfs", "--peers"], "run", "out.user_parent is None or damage(out.user_parent)"),
    "a distance": (["sssp", "--peers"], "_ask", "damage(out.arrays['distance'])"),
    "a parent on a path": (["sssp", "--peers"], "_ask", "damage(out.arrays['parent'])"),
    "a rank": (["pagerank", "--peers"], "_ask", "damage(out.arrays['rank'])"),
}


@pytest.mark.parametrize("damaged", DAMAGES)
def test_a_damaged_result_is_refused(damaged: str, tmp_path: Path, project_root: Path) -> None:
    words, method, damage = DAMAGES[damaged]
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'benchmarks.contest.child' in sys.orig_argv:\n"
        "    from benchmarks.peers.tandem import TandemAdapter\n"
        f"    honest, runs = TandemAdapter.{method}, []\n"
        "    def damage(values):\n"
        "        values[values.argmax()] += 1\n"
        "    def damaging(self, *asked):\n"
        "        out = honest(self, *asked)\n"
        "        runs.append(1)\n"
        f"        if len(runs) > 4 or {method!r} == '_ask' and len(runs) > 1:\n"
        f"            {damage}\n"
        "        return out\n"
        f"    TandemAdapter.{method} = damaging\n"
    )
    done = subprocess.run(
        [sys.executable, "run.py", "bench", *words, *SMALL], cwd=project_root, capture_output=True, text=True,
        timeout=110, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 5, done.stdout + done.stderr
    assert "wrong result" in done.stderr
    assert "best" not in done.stdout


class Damaged:
    """A contestant of a kind, whose second turn is wrong."""

    name = "damaged"

    def __init__(self, ours: bool, wrong: Callable[[], Turn]) -> None:
        self.ours, self._wrong, self._turns = ours, wrong, 0

    def turn(self, root: Root, trials: int) -> Turn:
        self._turns += 1
        return Turn((1.0,), Finding(3)) if self._turns == 1 else self._wrong()

    def expected(self, root: Root) -> Finding:
        return Finding(3)


def _proof_fails() -> Turn:
    raise WrongResult("its proof fails")


@pytest.mark.parametrize("wrong", [_proof_fails, lambda: Turn((1.0,), Finding(4))], ids=["proof", "finding"])
def test_our_own_wrong_result_ends_the_contest_and_a_peers_does_not(wrong: Callable[[], Turn]) -> None:
    roots = [Root(1, 1, 0)]
    with pytest.raises(NotCertified, match="wrong result from root 1"):
        play([Damaged(True, wrong)], roots, rounds=1, trials=1)
    (record,) = play([Damaged(False, wrong)], roots, rounds=1, trials=1)
    assert "wrong result" in record.problem
    assert not record.seconds


def test_batches_and_handed_over_arrays(graph: Graph) -> None:
    roots = np.array([3, 5])
    found = many_bfs(graph, roots, parents=True)
    require_batch(graph, roots, found, "many")
    assert found.parent is not None
    child = int(np.argmax(found.level[1] == 2))
    found.parent[1, child] = child
    with pytest.raises(NotCertified, match="many: a timed result is wrong"):
        require_batch(graph, roots, found, "many")
    one = traverse_alone(LevelBfs(CoreSplit(graph)), 3)
    arrays = graph.to_user_levels(one.level), graph.to_user_parents(one.parent)
    require_handed_over(graph, one.level, one.parent, *arrays, "user ids")
    for array in arrays:
        array[graph.user_position[child]] += 1
        with pytest.raises(NotCertified, match="user's ids"):
            require_handed_over(graph, one.level, one.parent, *arrays, "user ids")


def test_a_result_equal_to_a_proven_one_is_not_proven_again(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    algorithm, proofs, checks = algorithm_named("wcc"), Proofs(), []
    honest = type(algorithm).check

    def counted(self: Any, task: Task, found: Found) -> Any:
        checks.append(1)
        return honest(self, task, found)

    monkeypatch.setattr(type(algorithm), "check", counted)
    task = Task(graph, load_config(None, ["algorithm=wcc"]), None)
    for _ in range(2):
        found = algorithm.run(task)
        proofs.require(algorithm, task, found)
    assert len(checks) == 1
    label = found.arrays["component"].copy()
    label[-1] += 1
    with pytest.raises(NotCertified, match="wcc: a timed result is wrong"):
        proofs.require(algorithm, task, Found({"component": label}))
    proofs.require(algorithm, Task(graph, task.config, Source(1, 1)), found)
    assert len(checks) == 3


@pytest.mark.parametrize("program", ["min-plus", "min-select", "plus-times", "or-and"])
def test_answers_of_a_core_edge_by_edge(graph: Graph, program: str) -> None:
    k, ends = 12, []
    for u in range(12):
        ends += [(u, int(v)) for v in graph.out_targets[graph.out_offsets[u] : graph.out_offsets[u + 1]] if v < k]
    start = np.full(k, -1) if program.startswith("min") else np.zeros(k)
    start[[2, 7]] = [4, 1]
    expected = start.astype(np.float64 if program == "plus-times" else np.int64)
    if program.startswith("min"):
        for _ in range(k):
            for u, v in ends:
                offer = expected[u] + (program == "min-plus")
                if expected[u] >= 0 and (expected[v] < 0 or offer < expected[v]):
                    expected[v] = offer
    else:
        expected[:] = 0
        for u, v in ends:
            expected[v] = expected[v] + start[u] if program == "plus-times" else max(expected[v], start[u] > 0)
    both = core_answer(graph, k, program, np.stack([start, start]))
    assert np.array_equal(both, [expected, expected])
    require_close(expected, core_answer(graph, k, program, start), program)
    wrong = expected.copy()
    wrong[7] += 1
    with pytest.raises(NotCertified, match="answer of the worker is wrong"):
        require_close(wrong, both[0], program)


def _shifted(honest: Callable[..., Traversed]) -> Callable[..., Traversed]:
    def search(*asked: Any, **named: Any) -> Traversed:
        found = honest(*asked, **named)
        found.level = found.level.copy()
        found.level[-1] += 1
        return found

    return search


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("regret", ["--scales", "7", "--side", "0", "--roots", "1", "--rounds", "1", "--threads", "1"]),
        ("start", ["--scale", "7", "--repeats", "1", "--seconds", "0.1", "--threads", "1"]),
        ("loops", SMALL),
    ],
)
def test_searches_in_this_process_are_proven(
    module: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import importlib

    searching = importlib.import_module(f"benchmarks.suites.{module}")
    monkeypatch.setattr(searching, "traverse_alone", _shifted(traverse_alone))
    if module == "loops":  # its other half, which compiles for long
        monkeypatch.setattr(searching, "count_edges", lambda *_: [])
    assert cli.main(["bench", module, *words]) == 5
    assert "a timed result is wrong" in capsys.readouterr().err


def test_a_right_search_passes(graph: Graph) -> None:
    one = traverse_alone(LevelBfs(CoreSplit(graph)), 3)
    require_search(graph, one.level, one.parent, 3)
