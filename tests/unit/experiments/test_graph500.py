"""The Graph500 runner: its statistics by hand, its validation against lies, its command line and exit codes."""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import hybrid.cli
import hybrid.experiments.graph500.benchmark as runner
from cpu_engine.bfs.many.engine import ManyBfs, ManyResult
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import kronecker
from hybrid.errors import NotCertified
from hybrid.experiments.graph500.benchmark import (
    Plan,
    draw_keys,
    render,
    run_benchmark,
    summarise,
    teps_summary,
    validate,
)
from hybrid.experiments.graph500.rules import check_tree
from hybrid.offload.traverse import Traversed, traverse_alone
from tests import naive

# 0-1, 1-2, 2-3, 0-4, 4-3 (a ring of five), 1-2 again, a loop at 3, and 5-6 apart; 7 is isolated.
SRC = np.array([0, 1, 2, 0, 4, 2, 3, 5], np.int64)
DST = np.array([1, 2, 3, 4, 3, 1, 3, 6], np.int64)
RING = EdgeList(SRC, DST, id_range=(0, 8), directed=False)
TREE = [0, 0, 1, 4, 0, -1, -1, -1]


def test_statistics_by_hand() -> None:
    eight = summarise([8, 1, 7, 2, 6, 3, 5, 4])
    assert (eight.minimum, eight.firstquartile, eight.median, eight.thirdquartile, eight.maximum) == (
        1,
        2.5,
        4.5,
        6.5,
        8,
    )
    assert eight.mean == 4.5
    assert eight.stddev == pytest.approx(math.sqrt(6))


@pytest.mark.parametrize(
    ("n", "expected"),
    [(1, (1, 1, 1)), (2, (1, 1.5, 2)), (4, (1.5, 2.5, 3.5)), (5, (2, 3, 4)), (64, (16.5, 32.5, 48.5))],
)
def test_a_quartile_is_the_mean_of_two_elements(n: int, expected: tuple[float, ...]) -> None:
    """x[(n-1)/4] and x[n/4] with whole-number division, and likewise from the other end, as in the reference code."""
    found = summarise(range(1, n + 1))
    assert (found.firstquartile, found.median, found.thirdquartile) == expected


def test_one_search_has_no_deviation() -> None:
    assert summarise([3.0]).stddev == 0
    assert teps_summary([0.5], [10])["harmonic_stddev_TEPS"] == 0


def test_rates_by_hand() -> None:
    """Seconds per edge 0.1 and 0.2: mean 0.15, deviation sqrt(0.005); Norris' formula for the harmonic one."""
    rates = teps_summary([1.0, 4.0], [10, 20])
    assert rates["min_TEPS"] == pytest.approx(5)
    assert rates["max_TEPS"] == pytest.approx(10)
    assert rates["harmonic_mean_TEPS"] == pytest.approx(1 / 0.15)
    assert rates["harmonic_stddev_TEPS"] == pytest.approx(math.sqrt(0.005) / 0.15**2)
    assert rates["firstquartile_TEPS"] <= rates["median_TEPS"] <= rates["thirdquartile_TEPS"]


def test_lines_look_like_the_reference_code() -> None:
    values = {"SCALE": 20, "bfs min_time": 0.25, "min_nedge": 16777216, "bfs harmonic_mean_TEPS": 4.6e7}
    assert render(values).splitlines() == [
        "SCALE:                          20",
        "bfs  min_time:                  0.25",
        "min_nedge:                      16777216",
        "bfs  harmonic_mean_TEPS:     !  4.6e+07",
    ]


def test_a_right_tree_passes_and_its_edges_are_counted() -> None:
    """Duplicates and self-loops count, the other component does not."""
    depth, edges = check_tree(RING, np.array(TREE), 0)
    assert depth.tolist() == [0, 1, 2, 2, 1, -1, -1, -1]
    assert edges == 7


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({0: 1}, "parent of the search key"),
        ({2: 8}, "not a vertex"),
        ({2: -2}, "not a vertex"),
        ({2: 3, 3: 2}, "cycle"),
        ({2: 2}, "cycle"),
        ({2: 4}, "not in the input, for example 4 - 2"),
        ({4: 3, 3: 2}, "span more than one level"),
        ({2: -1}, "does not span the component"),
        ({5: 0}, "does not span the component"),
    ],
)
def test_a_wrong_tree_is_refused(change: dict[int, int], reason: str) -> None:
    parent = np.array(TREE)
    for v, p in change.items():
        parent[v] = p
    with pytest.raises(NotCertified, match=reason) as refused:
        check_tree(RING, parent, 0)
    assert "search key 0" in str(refused.value)
    assert "no figures" in str(refused.value)


def test_a_wrong_level_is_refused_even_where_the_tree_is_right() -> None:
    graph = build_graph(RING)
    root = graph.internal_id(0)
    level = np.array([{0: 0, 1: 1, 2: 2, 3: 2, 4: 1}.get(int(u), -1) for u in graph.user_position], np.int32)
    named = np.array(TREE)[graph.user_position]
    parent = np.array([graph.internal_id(int(p)) if p >= 0 else -1 for p in named], np.int32)
    checked = validate(graph, RING, root, level, parent, np.array(TREE))
    assert (checked.key, checked.edges, checked.reached, checked.depth) == (0, 7, 5, 2)
    level[graph.internal_id(2)] = 3
    with pytest.raises(NotCertified, match="search key 0"):
        validate(graph, RING, root, level, parent, np.array(TREE))


def test_keys_are_distinct_vertices_with_edges() -> None:
    graph = build_graph(kronecker(8, 8, 1))
    keys = draw_keys(graph, 64, 2)
    assert len(set(keys.tolist())) == 64
    assert (graph.degree()[keys] > 0).all()
    assert np.array_equal(keys, draw_keys(graph, 64, 2))
    assert draw_keys(build_graph(RING), 64, 2).size == 7


@pytest.mark.parametrize("batch", [False, True])
def test_a_run_equals_the_naive_reference(batch: bool) -> None:
    outcome = run_benchmark(Plan(scale=7, edge_factor=4, keys=20, batch=batch))
    edges = kronecker(7, 4, 2)
    pairs = list(zip(edges.src.tolist(), edges.dst.tolist(), strict=True))
    assert len(outcome.searches) == 20
    for search in outcome.searches:
        level = naive.bfs_levels(pairs, False, search.key)
        assert (search.reached, search.depth) == (len(level), max(level.values()))
        assert search.edges == sum(u in level for u, _ in pairs)


@pytest.mark.parametrize("plan", [Plan(14), Plan(14, batch=True), Plan(14, kernel="sssp")], ids=str)
def test_nothing_is_compiled_on_the_clock(plan: Plan) -> None:
    modules = [
        module
        for name, module in sys.modules.items()
        if ".kernels." in name or name.startswith("cpu_engine.intrinsics.")
    ]
    kernels = [one for module in modules for one in vars(module).values() if hasattr(one, "signatures")]
    assert kernels
    runner._warm_up(plan)
    before = [len(kernel.signatures) for kernel in kernels]
    run_benchmark(plan)
    late = {kernel.__name__ for kernel, known in zip(kernels, before, strict=True) if len(kernel.signatures) > known}
    assert not late


@pytest.fixture
def tandem(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """The command line in this process, without its hands on signals and logging."""
    monkeypatch.setattr(hybrid.cli, "raise_on_signals", lambda: None)
    root = logging.getLogger()
    before = root.level, [(handler, handler.level) for handler in root.handlers]
    yield lambda *words: hybrid.cli.main(["graph500", *words])
    root.setLevel(before[0])
    for handler, level in before[1]:
        handler.setLevel(level)


@pytest.mark.parametrize("mode", [[], ["--engine", "async"], ["--batch"]])
def test_command_line(
    tandem: Callable[..., int], capsys: pytest.CaptureFixture, tmp_path: Path, mode: list[str]
) -> None:
    file = tmp_path / "out.json"
    assert tandem("--scale", "8", "--roots", "9", "--output", str(file), *mode) == 0
    printed = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    written = json.loads(file.read_text())
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    assert printed["SCALE"].strip() == "8"
    assert printed["edgefactor"].strip() == "16"
    assert printed["NBFS"].strip() == "9"
    assert printed["num_mpi_processes"].strip() == "1"
    assert written["validated"] is True
    assert len(written["searches"]) == len({search["key"] for search in written["searches"]}) == 9
    official = {"construction_time", "graph_generation", "min_nedge", "stddev_nedge", "bfs  max_validate"}
    times = {f"bfs  {name}_{what}" for name in ("min", "median", "thirdquartile", "max") for what in ("time", "TEPS")}
    single = times | {"bfs  harmonic_mean_TEPS", "bfs  harmonic_stddev_TEPS", "bfs  internal_mean_time"}
    assert official <= set(printed)
    assert (single <= set(printed)) == (mode != ["--batch"])
    assert ("batch TEPS" in printed) == (mode == ["--batch"])
    assert not (mode == ["--batch"] and times & set(printed)), "a batch has no time per search"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--scale", "0"], 2, "--scale must be 1 to 30"),
        (["--scale", "31"], 2, "--scale must be 1 to 30"),
        (["--scale", "8", "--edge-factor", "0"], 2, "--edge-factor must be at least 1"),
        (["--scale", "8", "--roots", "0"], 2, "--roots must be at least 1"),
        (["--scale", "8", "--seed", "-1"], 2, "--seed must be at least 0"),
        (["--scale", "8", "--batch", "--engine", "level"], 2, "leave out --engine or --batch"),
        (["--scale", "8", "--kernel", "sssp", "--batch"], 2, "leave out --batch"),
        (["--scale", "8", "--kernel", "sssp", "--engine", "level"], 2, "leave out --engine level"),
        (["--scale", "8", "--output", "no/such/folder/out.json"], 4, "make the folder first"),
    ],
)
def test_mistakes(
    tandem: Callable[..., int], capsys: pytest.CaptureFixture, words: list[str], code: int, said: str
) -> None:
    assert tandem(*words) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--scale", "8", "--skip-validation"]])
def test_what_is_not_offered(tandem: Callable[..., int], words: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        tandem(*words)
    assert left.value.code == 2


def test_a_false_search_gives_no_figures(
    tandem: Callable[..., int], capsys: pytest.CaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []

    def lie_at_last(engine: object, root: int) -> Traversed:
        found = traverse_alone(engine, root)  # type: ignore[arg-type]
        searched.append(root)
        if len(searched) == 6:
            found.parent[np.flatnonzero(found.level == found.level.max())[0]] = -1
        return found

    monkeypatch.setattr(runner, "_warm_up", lambda plan: None)
    monkeypatch.setattr(runner, "traverse_alone", lie_at_last)
    file = tmp_path / "out.json"
    assert tandem("--scale", "8", "--output", str(file)) == 5
    output = capsys.readouterr()
    graph = build_graph(kronecker(8, 16, 2))
    assert f"search key {graph.user_ids[graph.user_position[searched[-1]]]}: " in output.err
    assert "does not span the component" in output.err
    assert output.out == ""
    assert not file.exists()


def test_a_false_batch_gives_no_figures(
    tandem: Callable[..., int], capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lie(engine: ManyBfs, roots: np.ndarray, *, parents: bool = False) -> ManyResult:
        found = honest(engine, roots, parents=parents)
        found.level[-1, np.argmax(found.level[-1])] -= 1
        return found

    honest = ManyBfs.run
    monkeypatch.setattr(runner, "_warm_up", lambda plan: None)
    monkeypatch.setattr(ManyBfs, "run", lie)
    assert tandem("--scale", "8", "--batch") == 5
    output = capsys.readouterr()
    assert "search key" in output.err
    assert output.out == ""
