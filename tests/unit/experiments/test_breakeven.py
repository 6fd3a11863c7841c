"""The break-even experiment: fair turns, curves that say what their points say, every run proven, all `simulated`."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import kronecker
from cpu_engine.pagerank.engine import PageRankEngine
from cpu_engine.pagerank.personalised import ManyRanksEngine
from hybrid.cli import main
from hybrid.cli.commands import breakeven as command
from hybrid.devices.model import DeviceModel
from hybrid.errors import NotCertified
from hybrid.experiments.breakeven.experiment import Case, Device, Point, curves_of, measure
from hybrid.experiments.breakeven.workloads import ALGORITHMS, SweepRanks, make_workloads
from hybrid.job import engines as job_engines

ORACLE = Device(0.0, math.inf)


class Clockwork:
    """A workload whose times are known: the CPU alone takes 10, the device half of it and its round."""

    name, batched = "clockwork", True

    def __init__(self) -> None:
        self.log: list[str] = []

    def prepare(self, k: int, batch: int) -> None:
        self.k, self.batch = k, batch
        self.log.append(f"k{k} b{batch}")

    def run_cpu_only(self) -> float:
        self.log.append("cpu")
        return 10.0

    def run_hybrid(self, device: DeviceModel) -> float:
        self.log.append(device.name)
        return 5.0 + device.round_s(self.k, self.batch, 1, "direct")

    def inside(self) -> float:
        return 0.5


def test_turns_and_curves() -> None:
    workload = Clockwork()
    devices = [Device(latency, math.inf) for latency in (0.0, 1.0, 4.0, 20.0)]
    points = measure([workload], [8, 16], [1, 4], devices, 3)
    assert len(points) == 2 * 2 * 4
    assert workload.log[:5] == ["k8 b1", "cpu", "oracle", "cpu", "1.00 s, any rate"]
    curves = curves_of(points)
    assert len(curves) == 4
    for curve in curves:
        assert [round(point.gain, 3) for point in curve.points] == [2.0, 1.667, 1.111, 0.4]
        assert curve.break_even_s == pytest.approx(5.0)
        assert curve.points[0].pays
        assert not curve.points[3].pays
        assert "even at 5.00 s a round" in curve.sentence
        assert curve.sentence.startswith("simulated, clockwork")


def test_published_devices_are_points_of_their_own() -> None:
    devices = [ORACLE, Device(0.0, 1e12, "910b4")]
    points = measure([Clockwork()], [8, 200_000], [4], devices, 1)
    assert [(one.case.k, one.case.device.name) for one in points] == [
        (8, "oracle"),
        (8, "910b4 (model)"),
        (200_000, "oracle"),  # 80 GB of fp16 are more than the other one has
    ]
    assert points[1].hybrid[0] > points[0].hybrid[0]
    assert [len(curve.points) for curve in curves_of(points)] == [1, 1]
    assert points[0].gain == 2.0
    assert not points[0].pays, "measured once"


def test_curves_without_an_end_or_a_beginning() -> None:
    def curve(*gains: float) -> object:
        points = [
            Point(Case("x", 8, 1, Device(float(i), 1e12)), 0.1, (10.0,), (10.0 / gain,), 10.0)
            for i, gain in enumerate(gains)
        ]
        return curves_of(points)[0]

    assert curve(0.5, 0.4).break_even_s is None  # type: ignore[attr-defined]
    assert math.isinf(curve(3.0, 2.0).break_even_s)  # type: ignore[attr-defined]
    assert "no latency pays" in curve(0.5, 0.4).sentence  # type: ignore[attr-defined]
    assert "still 2.00x" in curve(3.0, 2.0).sentence  # type: ignore[attr-defined]


def test_a_device_is_its_latency_and_its_rate() -> None:
    model = Device(1e-3, 1e12).model()
    assert model.round_s(1000, 64, 2, "direct") == pytest.approx(1e-3 + 2 * 2 * 1000 * 1000 * 64 / 1e12)
    assert ORACLE.model().round_s(1 << 20, 1024, 100, "direct") == 0
    assert ORACLE.name == "oracle"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_is_proven(name: str) -> None:
    graph = build_graph(kronecker(8, 8, 1), directed=False)
    roots = np.arange(0, graph.n, 9)
    (workload,) = make_workloads([name], graph, roots, "level")
    assert workload.name == name
    points = measure([workload], [1, 30, graph.n], [3] if workload.batched else [1], [ORACLE, Device(1e-4, 1e12)], 1)
    assert len(points) == 6
    assert all(min(point.hybrid) > 0 for point in points)
    assert points[-1].inside == 1.0


def test_a_wrong_rank_is_noticed() -> None:
    graph = build_graph(kronecker(8, 8, 1), directed=False)
    workload = SweepRanks(graph)
    workload.prepare(30, 1)
    workload._sums[3] = workload._sums[3] * 2
    with pytest.raises(NotCertified, match="other ranks"):
        workload.run_hybrid(ORACLE.model())


@pytest.mark.parametrize("name", ["pagerank", "ppr-batch"])
def test_the_ranks_that_runs_are_compared_with_are_proven(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = build_graph(kronecker(8, 8, 1), directed=False)
    (workload,) = make_workloads([name], graph, np.arange(3), "level")
    engine = PageRankEngine if name == "pagerank" else ManyRanksEngine
    honest = engine.rank
    monkeypatch.setattr(engine, "rank", lambda self: honest(self) * 1.01)
    with pytest.raises(NotCertified):
        workload.prepare(30, 3 if workload.batched else 1)


@pytest.mark.parametrize(("array", "at", "change"), [("parent", 7, lambda _: 7), ("level", 0, lambda one: one + 1)])
def test_a_wrong_parent_or_level_is_noticed(
    array: str, at: int, change: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = build_graph(kronecker(8, 8, 1), directed=False)
    (workload,) = make_workloads(["bfs"], graph, np.array([100]), "level")
    workload.prepare(30, 1)
    honest = job_engines.traverse_alone

    def lie(*given: object) -> object:
        found = honest(*given)  # type: ignore[arg-type]
        values = getattr(found, array)
        values[at] = change(values[at])
        return found

    monkeypatch.setattr(job_engines, "traverse_alone", lie)
    with pytest.raises(NotCertified):
        workload.run_cpu_only()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command._ALGORITHMS == ALGORITHMS
    folder = tmp_path / "out"
    words = ["breakeven", "--algorithms", "bfs-batch", "pagerank", "--sizes", "20", "--batches", "4", "--latencies",
             "0", "100us", "--rates", "any", "50", "--repeats", "1", "--output", str(folder),
             "--set", "graph.generator.scale=8", "--set", f"graph.cache_dir={tmp_path}"]  # fmt: skip
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "no real NPU was used" in told
    rows = list(csv.DictReader((folder / "breakeven.csv").read_text().splitlines()))
    assert len(rows) == 2 * 4
    assert all(row["simulated"] == "True" for row in rows)
    whole = json.loads((folder / "breakeven.json").read_text())
    assert len(whole["curves"]) == 4
    assert whole["points"][0]["times"]["cpu_only"]
    page = (folder / "breakeven.html").read_text()
    assert page.count("<svg") >= 2
    assert "simulated" in page
    assert main(words) == 2, "a folder with something in it is somebody's"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--latencies", "soon"], "not a time"),
        (["--rates", "fast"], "not a number of TFLOPS"),
        (["--rates", "-1"], "not a number of TFLOPS"),
        (["--sizes", "0"], "at least 1"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["breakeven", *words]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(("hybrid", "title", "said"), [
    ((1.2, 1.3, 1.25), "Some device would pay: up to 8.", "The best: x, k = 8, oracle: 8."),
    ((1.2, 30.0, 9.0), "No device would clearly pay", "The largest gain may be chance: x, k = 8, oracle: 1.11x, 80%"),
    ((1.2, 30.0, 12.0), "No device would clearly pay", "None was faster; the nearest: x, k = 8, oracle: 0.83x, 80%"),
])  # fmt: skip
def test_the_headline_says_what_the_best_point_says(hybrid: tuple[float, ...], title: str, said: str) -> None:
    from hybrid.experiments.breakeven.report import render

    identity = {"graph": {"name": "g", "n": 1, "m": 1}, "host": "here", "threads": 1, "written": "now",
                "warning": "BUSY with other work"}  # fmt: skip
    page = render(identity, [Point(Case("x", 8, 1, ORACLE), 0.1, (10.0, 10.1, 9.0), hybrid, 9.0)])
    assert title in page
    assert said in page
    assert "The machine was BUSY" in page
