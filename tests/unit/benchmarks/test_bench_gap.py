"""GAP's output as it really is, its input as it wants it, and programs that misbehave."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest

from benchmarks.contest.gap import GapContestant, find_program, parse_report, run_gap, write_sg
from benchmarks.contest.relabel import internal_rows, user_rows
from benchmarks.contest.rounds import ContestantFailed, Finding, Root
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from hybrid.errors import EnvironmentProblem

GENERATED = """\
Generate Time:       0.02717
Build Time:          0.01158
Graph has 4096 nodes and 48386 undirected edges for degree: 11
Trial Time:          0.00014
Trial Time:          0.00007
Average Time:        0.00010
"""
VERIFIED = """\
Read Time:           0.10406
Graph has 4 nodes and 3 undirected edges for degree: 0
Source:                    5
    i                0.00001
   td          0     0.00003
Trial Time:          0.00007
Verification:           PASS
Verification Time:   0.00001
Trial Time:          0.00002
BFS Tree has 3 nodes and 4 edges
Verification:           FAIL
Verification Time:   0.00001
Average Time:        0.00004
"""


def test_report_of_a_generated_graph() -> None:
    report = parse_report(GENERATED)
    assert report.trials == (0.00014, 0.00007)
    assert (report.generate, report.build, report.read) == (0.02717, 0.01158, None)
    assert (report.vertices, report.edges, report.reached, report.verified) == (4096, 48386, None, ())


def test_report_of_a_verified_run() -> None:
    report = parse_report(VERIFIED)
    assert report.trials == (0.00007, 0.00002)  # verification times are not trials
    assert (report.read, report.build, report.reached) == (0.10406, None, 3)
    assert report.verified == (True, False)


def test_report_without_trials_has_no_average() -> None:
    report = parse_report("Build Time:          0.13626\nAverage Time:        -nan\n")
    assert (report.trials, report.build) == ((), 0.13626)


def test_missing_program_is_an_error_with_a_fix(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="--gap"):
        find_program(str(tmp_path))


def program(folder: Path, script: str) -> Path:
    made = folder / "bfs"
    made.write_text(f"#!/bin/sh\n{script}\n")
    made.chmod(made.stat().st_mode | stat.S_IXUSR)
    return made


def test_contestant_asks_for_root_trials_and_one_verification(tmp_path: Path) -> None:
    said = tmp_path / "said"
    body = f'echo "$OMP_NUM_THREADS $@" >> {said}\necho "Trial Time: 0.5"\necho "BFS Tree has 3 nodes and 4 edges"'
    root = Root(user_id=9, position=7, internal=2)
    contestant = GapContestant("gap", program(tmp_path, body), Path("g.sg"), "user", 3, {root: Finding(3)}, 20)
    assert contestant.turn(root, 1).seconds == (0.5,)
    contestant.turn(root, 1)
    assert said.read_text().splitlines() == ["3 -f g.sg -r 7 -n 1 -a -v", "3 -f g.sg -r 7 -n 1 -a"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo no such file; exit 3", "code 3: no such file"),
        ("echo Trial Time: 0.1; echo BFS Tree has 3 nodes and 2 edges; echo Verification: FAIL", "verification fails"),
        ("echo nonsense", "not what GAP's bfs prints"),
        ("exec sleep 60", "--time-limit"),
    ],
    ids=["fails", "wrong", "garbage", "hangs"],
)
def test_programs_that_misbehave_are_out(tmp_path: Path, script: str, reason: str) -> None:
    root = Root(9, 7, 2)
    limit_s = 0.2 if "sleep" in script else 20.0
    contestant = GapContestant("gap", program(tmp_path, script), Path("g"), "user", 1, {root: Finding(3)}, limit_s)
    with pytest.raises(ContestantFailed, match=reason):
        contestant.turn(root, 1)


def test_memory_of_a_program_is_followed(tmp_path: Path) -> None:
    run = run_gap(program(tmp_path, "sleep 0.1; echo 'Build Time: 0.25'"), [], 1, 20, watch=True)
    assert run.report.build == 0.25
    assert run.peak_bytes is None or run.peak_bytes > 0


@pytest.mark.parametrize("directed", [False, True])
def test_written_sg_is_the_graph(tmp_path: Path, directed: bool) -> None:
    rng = np.random.default_rng(5)
    src, dst = rng.integers(0, 40, 150), rng.integers(0, 40, 150)
    graph = build_graph(EdgeList(src, dst, id_range=(0, 48), directed=directed))
    pairs = {(int(u), int(v)) for u, v in zip(src, dst, strict=True) if u != v}
    pairs |= set() if directed else {(v, u) for u, v in pairs}
    write_sg(user_rows(graph), tmp_path / "user.sg")
    read = read_graph(tmp_path / "user.sg")
    assert read.id_range == (0, 48)
    assert read.directed is directed
    assert set(zip(read.src.tolist(), read.dst.tolist(), strict=True)) == pairs
    write_sg(internal_rows(graph), tmp_path / "internal.sg")
    named = graph.user_ids[graph.user_position]
    read = read_graph(tmp_path / "internal.sg")
    assert set(zip(named[read.src].tolist(), named[read.dst].tolist(), strict=True)) == pairs


def test_rows_in_user_ids_are_sorted_both_ways() -> None:
    rng = np.random.default_rng(6)
    graph = build_graph(EdgeList(rng.integers(0, 30, 120), rng.integers(0, 30, 120), directed=True))
    rows = user_rows(graph)
    for offsets, targets in ((rows.out_offsets, rows.out_targets), (rows.in_offsets, rows.in_sources)):
        for v in range(rows.n):
            row = targets[offsets[v] : offsets[v + 1]]
            assert np.all(np.diff(row) > 0)
    out = set(zip(rows.sources().tolist(), rows.out_targets.tolist(), strict=True))
    into = np.repeat(np.arange(rows.n), np.diff(rows.in_offsets))
    assert out == set(zip(rows.in_sources.tolist(), into.tolist(), strict=True))
