"""The benchmarks as people run them, on tiny graphs and with no peer but scipy; nothing here asserts a time."""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.contest.bfs_contest import chosen_peers
from benchmarks.contest.process import Seat
from benchmarks.contest.rounds import ContestantFailed
from benchmarks.contest.workload import set_threads
from benchmarks.machine.busy import busy_processes
from benchmarks.machine.command import array_sizes
from benchmarks.machine.threads import doubling
from benchmarks.options import BENCHMARKS, add_benchmarks
from benchmarks.output import Report, check_targets, publish
from benchmarks.peers import PEERS, Peer
from benchmarks.plot import Bar, Series, draw_bars, draw_lines, spread, write_plot
from benchmarks.suites.strategies import fastest_steps
from cpu_engine.errors import ExplainedError
from hybrid.checkout import install_packages
from hybrid.devices.machine_facts import MachineState
from hybrid.errors import ConfigError

QUICK = ["--threads", "1", "--rounds", "1", "--pause", "0"]
SMALL = ["--scale", "8", "--roots", "2", "--trials", "1"]


def measured(*words: str) -> tuple[Report, argparse.Namespace]:
    parser = argparse.ArgumentParser()
    add_benchmarks(parser)
    options = parser.parse_args(words)
    return importlib.import_module(options.benchmark_module).execute(options), options


def test_busy() -> None:
    report, _ = measured(
        "busy", "--scale", "7", "--threads", "1", "--rounds", "1", "--seconds", "0.01", "--pause", "0",
        "--only", "bfs", "sssp",
    )  # fmt: skip
    assert [row["what"] for row in report.data["rows"]] == ["bfs level", "bfs async", "sssp"]
    assert all(row["ratio"] > 0 and min(row["runs"]) > 0 for row in report.data["rows"])
    assert "at most" in report.data["verdict"]


def test_busy_processes_end_whatever_happens() -> None:
    seen = []

    def fail() -> None:
        with busy_processes(2) as others:
            others.go_on()
            seen.extend(others._started)
            assert all(one.poll() is None for one in seen)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [one.poll() is not None for one in seen] == [True, True]


@pytest.mark.heavy
def test_loops() -> None:
    report, _ = measured("loops", *SMALL, *QUICK)
    ways = [row["way"] for row in report.data["edges"]]
    assert ways.count("tuned delta-stepping") == 2
    assert all(row["edges"] > 0 for row in report.data["edges"])
    assert {row["program"] for row in report.data["times"]} == {"BFS, push and pull", "components"}


def test_bfs_from_the_command_line(project_root: Path, tmp_path: Path) -> None:
    files = ["--json", str(tmp_path / "r.json"), "--plot", str(tmp_path / "r.svg"), "--work", str(tmp_path / "work")]
    command = [sys.executable, "run.py", "bench", "bfs", *SMALL, *QUICK, "--peers", *files]
    done = subprocess.run(command, cwd=project_root, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "tandem level, user ids" in done.stdout
    told = json.loads((tmp_path / "r.json").read_text())
    assert told["benchmark"] == "bfs"
    assert told["machine"]["cores"] >= 1
    assert {row["name"] for row in told["contestants"]} == {
        "tandem level", "tandem level, user ids", "tandem async", "tandem async, user ids",
    }  # fmt: skip
    for row in told["contestants"]:
        assert row["problem"] == ""
        assert row["runs"] == 2
        assert row["times_baseline"] > 0
    ElementTree.parse(tmp_path / "r.svg")
    assert list((tmp_path / "work").iterdir()) == []  # nothing is left behind


def test_bfs_with_a_peer_in_both_numberings() -> None:
    pytest.importorskip("scipy")
    report, _ = measured("bfs", *SMALL, *QUICK, "--peers", "scipy", "--ids", "both")
    rows = {row["name"]: row for row in report.data["contestants"]}
    assert {"scipy, user ids", "scipy, internal ids"} <= set(rows)
    assert all(row["problem"] == "" for row in rows.values())


def test_directed_file_and_named_roots(project_root: Path) -> None:
    file = project_root / "tests" / "graphs" / "house.el"
    report, _ = measured("bfs", "--graph", str(file), "--root", "1", *QUICK, "--trials", "1", "--peers")
    assert report.data["graph"]["roots"] == [1]
    assert all(row["problem"] == "" for row in report.data["contestants"])


def test_build_in_memory_and_from_text() -> None:
    pytest.importorskip("scipy")
    report, _ = measured("build", "--scale", "8", "--threads", "1", "--rounds", "1", "--peers", "scipy")
    rows = {row["name"]: row for row in report.data["contestants"]}
    assert rows["scipy"]["edges"] == rows["tandem"]["edges"] == report.data["edges"]
    report, _ = measured("build", "--edges", "3000", "--threads", "1", "--rounds", "1", "--peers")
    [ours] = report.data["contestants"]
    assert ours["problem"] == ""
    assert set(ours["phases"]) == {"parse", "build", "store"}


def test_strategies_level_by_level() -> None:
    report, _ = measured("strategies", *SMALL, *QUICK, "--only", "auto")
    [row] = report.data["strategies"]
    assert row["problem"] == ""
    steps = next(iter(report.data["levels"]["auto"].values()))
    assert [step["level"] for step in steps] == list(range(len(steps)))
    assert all(step["edges"] >= 0 and step["frontier"] >= 1 for step in steps)
    with pytest.raises(ConfigError, match="no such strategy"):
        measured("strategies", *SMALL, *QUICK, "--only", "sideways")


def test_many_sources_at_once() -> None:
    pytest.importorskip("cpu_engine.bfs.many.engine")
    report, _ = measured("many", *SMALL, *QUICK)
    assert {row["name"] for row in report.data["ways"]} == {
        "one by one", "at once, levels", "at once, levels and parents",
    }  # fmt: skip
    assert all(row["problem"] == "" for row in report.data["ways"])


def test_a_contestant_whose_process_ends_is_out(tmp_path: Path) -> None:
    seat = Seat("nobody", 1, tmp_path / "log", time_limit_s=60)
    try:
        with pytest.raises(ContestantFailed, match="ended with code 1: ModuleNotFoundError"):
            seat.ask("introduce")
    finally:
        seat.close()


def test_a_contestant_that_hangs_is_out(tmp_path: Path) -> None:
    seat = Seat("tandem", 1, tmp_path / "log", time_limit_s=0.01)
    with pytest.raises(ContestantFailed, match="--time-limit"):
        seat.ask("introduce")
    seat.close()


def test_threads_growth_and_machine() -> None:
    report, _ = measured("threads", *SMALL, *QUICK)
    assert [(row["engine"], row["threads"]) for row in report.data["scaling"]] == [("level", 1), ("async", 1)]
    report, _ = measured("growth", "--scales", "8", "--roots", "1", "--trials", "1", *QUICK, "--peers")
    assert [step["scale"] for step in report.data["steps"]] == [8]
    report, _ = measured("machine", "--threads", "1", "--largest", "1", "--repeats", "1")
    assert report.data["bandwidth"][-1]["where"] == "memory"
    assert all(row["read_bytes_per_second"] > 0 for row in report.data["bandwidth"])


def test_absent_peers_are_named_with_the_way_to_get_them(capsys: pytest.CaptureFixture[str]) -> None:
    ghost = Peer("ghost", "no_such_module_anywhere", "ghost[all]")
    assert not ghost.present
    nothing = argparse.Namespace(json=None, plot=None)
    publish(Report("bfs", {}, ["line"], absent=[ghost]), nothing, MachineState.now())
    assert f"ghost: absent. To compare with it: {install_packages('ghost[all]')}" in capsys.readouterr().out
    assert {peer.name for peer in PEERS} == {"networkit", "graphblas", "igraph", "scipy"}


@pytest.mark.parametrize(
    ("words", "check", "reason"),
    [
        (["--plot", "x.png"], check_targets, ".svg or .html"),
        (["--json", "no/such/folder/x.json"], check_targets, "folder does not exist"),
        (["--peers", "nobody"], chosen_peers, "no such peer"),
        (["--threads", "100000"], lambda options: set_threads(options.threads), "NUMBA_NUM_THREADS"),
    ],
    ids=["plot", "json", "peer", "threads"],
)
def test_mistakes_are_told_before_anything_is_measured(
    words: list[str], check: Callable[[argparse.Namespace], object], reason: str
) -> None:
    parser = argparse.ArgumentParser()
    add_benchmarks(parser)
    options = parser.parse_args(["bfs", *words])
    with pytest.raises(ExplainedError, match=reason):
        check(options)


def test_every_benchmark_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in BENCHMARKS:
        parser = argparse.ArgumentParser()
        add_benchmarks(parser)
        with pytest.raises(SystemExit, match="0"):
            parser.parse_args([name, "--help"])
        assert "--json" in capsys.readouterr().out


def test_fastest_steps() -> None:
    def step(level: int, seconds: float, direction: str = "push") -> dict:
        return {"level": level, "direction": direction, "seconds": seconds}

    once, again = [step(0, 2.0), step(1, 1.0)], [step(0, 1.0), step(1, 5.0)]
    assert fastest_steps(None, once) == once
    assert fastest_steps(once, again) == [step(0, 1.0), step(1, 1.0)]
    other = [step(0, 1.0, "pull"), step(1, 1.0)]
    assert fastest_steps(once, other) == other  # different steps: the faster run as a whole


def test_thread_counts_and_array_sizes() -> None:
    assert [doubling(most) for most in (1, 2, 3, 8)] == [[1], [1, 2], [1, 2, 3], [1, 2, 4, 8]]
    assert array_sizes({1: 1 << 15, 2: 1 << 21}, 512) == [("L2", 1 << 20), ("memory", 512 << 20)]
    assert array_sizes({}, None)[-1][0] == "memory"


def test_plots_are_well_formed_and_escape_names() -> None:
    bars = draw_bars("a < b", "sub & title", [Bar("<x>", 0.001, "1 ms"), Bar("y", 12.0, "12 s", ours=True)])
    lines = draw_lines(
        "t", "s", [Series("a", [(1, 0.5), (4, 2.0)]), Series("b", [])], x_label="edges", x_logarithmic=True
    )
    flat = draw_lines("t", "s", [Series("a", [(1, 0.0)])], x_label="n", y_logarithmic=False)
    empty = [draw_bars("t", "s", []), draw_lines("t", "s", [], x_label="x")]
    text = write_plot([bars, lines, flat, *empty], html=False)
    tree = ElementTree.fromstring(text)
    assert any(part.text == "<x>" for part in tree.iter())
    assert write_plot([bars], html=True).startswith("<!doctype html>")


def test_names_are_spread_apart_and_stay_inside() -> None:
    assert spread([1, 2, 3], 10, 100) == [1, 11, 21]
    assert spread([95, 96, 97], 10, 100) == [80, 90, 100]
