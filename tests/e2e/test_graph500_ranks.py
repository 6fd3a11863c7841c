"""Graph500 on ranks: the keys, trees and counts of one rank, and no figure for a search that fails its validation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hybrid.experiments.graph500.on_ranks as on_ranks
from cpu_engine.bfs.ranks.engine import RankEngine
from cpu_engine.comm.collectives import RankInfo
from cpu_engine.comm.loopback import run_loopback
from hybrid.cli import main
from hybrid.errors import EXIT_CONFIG
from hybrid.experiments.graph500.benchmark import Outcome, Plan, run_benchmark
from hybrid.ranks.rendezvous import Agreed
from tests.conftest import ROOT

PLAN = Plan(scale=9, edge_factor=8, keys=5)


def run_on(ranks: int, plan: Plan = PLAN) -> Outcome:
    infos = [RankInfo(rank, ranks, ("here",) * ranks) for rank in range(ranks)]
    found = run_loopback([on_ranks._run(info, plan) for info in infos])
    assert found[0] is not None
    assert found[1:] == [None] * (ranks - 1)
    return found[0]


def facts(outcome: Outcome) -> list[tuple[int, int, int, int]]:
    return [(one.key, one.edges, one.reached, one.depth) for one in outcome.searches]


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_the_searches_of_one_rank(ranks: int) -> None:
    found, right = run_on(ranks), run_benchmark(PLAN)
    assert facts(found) == facts(right)
    assert (found.vertices, found.isolated, found.edges) == (right.vertices, right.isolated, right.edges)
    assert found.ranks == ranks


def test_some_keys_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ranks, "_LEVEL_BYTES", 2 << PLAN.scale)
    assert facts(run_on(2)) == facts(run_benchmark(PLAN))


@pytest.mark.parametrize("wrong", ["level", "parent"])
def test_a_false_value_gives_no_figures(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = RankEngine.search

    def lying(self, root, *given, **named):
        found = yield from honest(self, root, *given, **named)
        values = found.levels if wrong == "level" else found.parents
        if self.part.part == 0:
            values[np.argmax(found.levels)] += 1
        return found

    monkeypatch.setattr(RankEngine, "search", lying)
    with pytest.raises(Agreed, match="no figures are given"):
        run_on(2)


def test_an_edge_of_the_input_that_the_parts_lack_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts' own proof cannot know: the rules on the input do."""
    honest = on_ranks.build_on_ranks

    def forgetful(info, share, policy):
        kept = on_ranks.share_of_kronecker(info.rank, info.size, PLAN.scale, 2, PLAN.seed)
        return honest(info, kept, policy)

    monkeypatch.setattr(on_ranks, "build_on_ranks", forgetful)
    with pytest.raises(Agreed, match="input edges span more than one level, or leave the tree"):
        run_on(2)


def test_the_command_on_real_ranks(tmp_path: Path) -> None:
    words = ["graph500", "--scale", "9", "--edge-factor", "8", "--roots", "3", "--ranks", "2"]
    output = tmp_path / "g500.json"
    done = subprocess.run(
        [sys.executable, "run.py", *words, "--output", str(output)],
        cwd=ROOT, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    written = json.loads(output.read_text())
    assert written["statistics"]["num_mpi_processes"] == 2
    assert "num_mpi_processes:              2" in done.stdout
    right = run_benchmark(Plan(scale=9, edge_factor=8, keys=3))
    assert [one["key"] for one in written["searches"]] == [one.key for one in right.searches]
    assert [one["edges"] for one in written["searches"]] == [one.edges for one in right.searches]


@pytest.mark.parametrize("more", [["--batch"], ["--kernel", "sssp"], ["--engine", "async"]])
def test_what_one_rank_alone_can_do_is_refused(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph500", "--scale", "9", "--ranks", "2", *more]) == EXIT_CONFIG
    assert "on several ranks there is kernel 2" in capsys.readouterr().err
