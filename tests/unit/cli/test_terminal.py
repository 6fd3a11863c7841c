"""Numbers and what they count, as people write them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

import hybrid
from cpu_engine.bfs.certificate import Certificate
from cpu_engine.bfs.many.check import LevelsCertificate
from cpu_engine.communities.check_labels import LabelsCheck
from cpu_engine.components.check import ComponentsCheck
from cpu_engine.errors import InputError
from cpu_engine.graph.formats import read_graph
from cpu_engine.kcore.check import CoreNumbersCheck
from cpu_engine.sssp.check import PathCertificate
from cpu_engine.triangles.check import CountCheck, check_triangles
from exchange.counted import plural as exchange_plural
from exchange.worker_mailbox import WorkerMailbox
from hybrid.charts.units import SPACE
from hybrid.charts.units import plural as report_plural
from hybrid.cli import main
from hybrid.errors import EXIT_OK
from hybrid.terminal import plural
from npu_engine.pulse import Pulse, StatusLine


class Explained(Protocol):
    def explain(self) -> str: ...


@pytest.mark.parametrize(
    ("value", "noun", "told"),
    [
        (0, "edge", "0 edges"),
        (1, "edge", "1 edge"),
        (1, "vertex", "1 vertex"),
        (1234567, "vertex", "1,234,567 vertices"),
        (1, "core vertex", "1 core vertex"),
        (2, "core vertex", "2 core vertices"),
        (2, "search", "2 searches"),
        (1, "undirected edge", "1 undirected edge"),
    ],
)
def test_plural(value: int, noun: str, told: str) -> None:
    assert plural(value, noun) == told


def test_one_of_a_thing_is_told_as_one(tmp_path: Path, capsys) -> None:
    (tmp_path / "one.el").write_text("0 1\n")
    graph = ["--set", f"graph.path={tmp_path / 'one.el'}", "--set", "graph.cache=false", "--set", "npu.mode=off"]
    assert main(["info", *graph, "--set", "graph.directed=false"]) == EXIT_OK
    assert "1 undirected edge\n" in capsys.readouterr().out
    assert main(["run", *graph, "--set", "source=1", "--output", str(tmp_path / "out")]) == EXIT_OK
    assert "1 edge, directed" in capsys.readouterr().out
    words = [*graph, "--set", "source=1", "--set", "algorithm=sssp", "--output", str(tmp_path / "out")]
    assert main(["run", *words]) == EXIT_OK
    assert "1 vertex reached" in capsys.readouterr().out
    assert repr(hybrid.from_edges([0], [1])) == "Graph(arrays: 2 vertices, 1 edge, directed)"


def test_the_other_helpers_count_alike() -> None:
    assert exchange_plural(1, "row") == "1 row"
    assert exchange_plural(2000, "vertex", "vertices") == "2,000 vertices"
    assert report_plural(1, "vertex").split(SPACE) == ["1", "vertex"]
    assert report_plural(2, "vertex").split(SPACE) == ["2", "vertices"]
    assert report_plural(None, "level").endswith("levels"), "what is missing is a dash, not an error"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (Certificate((0, 1, 0, 0), (-1, 0, -1, -1)), "1 edge that leads more than one level further"),
        (Certificate((0, 2, 0, 0), (-1, 0, -1, -1)), "2 edges that lead more than one level further"),
        (PathCertificate((0, 1, 0, 0, 0), (-1, 0, -1, -1, -1)), "1 edge that leads nearer than its target's distance"),
        (ComponentsCheck((0, 1, 0, 0), (-1, 0, -1, -1)), "1 vertex that is not connected to its label"),
        (CoreNumbersCheck((1, 0), (0, -1)), "1 core number that is too high"),
        (LabelsCheck(0, -1, 1), "1 round made again gives the same labels"),
        (LabelsCheck(1, -1, 1), "1 label differs from those of 1 round made again"),
        (CountCheck((), 1), "the sums agree, and 1 vertex counted again has the same counts"),
        (
            LevelsCertificate(np.array([[0, 1, 0]]), np.array([[-1, 0, -1]])),
            "1 vertex with an edge from more than one level nearer; in 1 of 1 search",
        ),
    ],
)
def test_checks_that_found_one(told: Explained, words: str) -> None:
    assert told.explain() == words


def test_one_wrong_count_of_a_real_graph() -> None:
    graph = hybrid.from_edges([0, 1, 2], [1, 2, 0], directed=False).rows
    told = check_triangles(graph, 1, np.array([1, 1, -1])).explain()
    assert "not three for each of 1 triangle;" in told
    assert "1 negative count;" in told
    assert told.endswith("1 count that differs when counted again")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("g.gr", "p sp 2 1\n", "declares 1 arc, there are 0"),
        ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n", "declares 1 entry, there are 0"),
        ("h.mtx", "%%MatrixMarket matrix coordinate pattern general\n1 2 1\n1 1\n", "has 1 row and 2 columns"),
    ],
)
def test_files_that_declare_one(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words):
        read_graph(tmp_path / name)


class OneCore:
    nbytes = 1 << 20

    def __len__(self) -> int:
        return 1


def test_a_worker_with_one_core_and_one_round(tmp_path: Path) -> None:
    stream = io.StringIO()
    pulse = Pulse(WorkerMailbox(tmp_path), OneCore(), device="CPU", status=StatusLine(stream))  # type: ignore[arg-type]
    pulse.round_done(0.002)
    pulse.beat("ready")
    assert stream.getvalue().endswith("CPU ready: 1 round served, the last in 2.0 ms; 1 core resident, 1.0 MiB")


def test_a_check_that_passed_does_not_sound_like_a_repair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``computed again`` is what a repair says; the check of PageRank, which is a second computation, says that."""
    shown = repr(hybrid.from_edges([0, 1], [1, 0]).pagerank())
    assert "certified: a second computation agrees\n" in shown
    (tmp_path / "two.el").write_text("0 1\n1 0\n")
    words = [f"graph.path={tmp_path / 'two.el'}", "graph.cache=false", "npu.mode=off", "algorithm=pagerank"]
    settings = [part for word in words for part in ("--set", word)]
    assert main(["run", *settings, "--output", str(tmp_path / "out")]) == EXIT_OK
    shown = capsys.readouterr().out
    assert "certified: yes (a second computation agrees)" in shown
    assert "computed again" not in shown
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (summary["check"], summary["repairs"]) == ("computed again", []), "what scripts read stays"
