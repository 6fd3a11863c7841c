"""A sweep measures what it was asked to, proves every search, goes on after an interruption, recommends honestly."""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from hybrid.charts.axes import axis
from hybrid.charts.line_charts import Mark, Series, draw
from hybrid.charts.units import seconds
from hybrid.cli import main
from hybrid.cli.commands import tune as command
from hybrid.config import load_config
from hybrid.config.schema import Config
from hybrid.errors import EXIT_CONFIG, EXIT_ENVIRONMENT, EXIT_INTERRUPTED, EXIT_OK, ConfigError
from hybrid.experiments.tune import sweep as tune
from hybrid.experiments.tune.advice import ORACLE_DEVICE, break_even_curves, break_even_settings, noise_text, recommend
from hybrid.experiments.tune.points import NO_DEVICE, Journal, Point, Setting, point_from_json
from hybrid.job import core as job_core
from tests.core_solvers import ScriptedCoreSolver

SMALL = ["--set", "graph.generator.scale=8", "--set", "source=random:2", "--repeats", "2"]
Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run_tune(*words: str, folder: str = "sweep") -> int:
        return main(["tune", *SMALL, "--output", str(tmp_path / folder), *words])

    return run_tune


def journal_lines(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "points.jsonl").read_text().splitlines()]


def point(
    k: int = 64, device: str = "auto", cpu: float = 2.0, hybrid: float = 1.0, mode: str = "share", spread: float = 0.0,
    engine: str = "async", failure: str = "",
) -> Point:  # fmt: skip
    times = tuple(tuple((t * (1 + spread * at),) for at in (0, 1, -0.5)) for t in (cpu, hybrid))
    setting = Setting(engine, device, mode, k) if k else Setting(engine, NO_DEVICE, "off", 0)
    found = ((), ()) if failure else times
    return Point(setting, 3, 10, 0.1, 0.5, "CPU", *found, failure=failure)


class Strict(HTMLParser):
    """Counts tags and fails on what a page without a network may not have."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] = self.seen.get(tag, 0) + 1
        for name, value in attrs:
            assert not (name in ("src", "href") and (value or "").startswith(("http", "//", "file"))), value


def test_a_sweep_measures_every_setting_and_certifies_every_search(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--sizes", "0", "16", "64", "--engines", "async", "level", "--devices", "910b4:direct", "oracle"]
    assert run(*words, "--delays", "50us") == EXIT_OK
    folder = tmp_path / "sweep"
    found = json.loads((folder / "tune.json").read_text())
    points = found["points"]
    swept = {(p["engine"], p["device"], p["mode"], p["k"]) for p in points if p["device"] != "simulated:50us"}
    expected = {(e, "none", "off", 0) for e in ("async", "level")} | {
        (e, d, m, k)
        for e in ("async", "level")
        for d in ("simulated:910b4:direct", "simulated:oracle")
        for m in ("share", "race")
        for k in (16, 64)
    }
    assert swept == expected
    assert len(journal_lines(folder)) == len(points) == len(expected) + 4  # the delay: both engines, both modes
    for one in points:
        assert one["failure"] == ""
        assert one["searches_certified"] == 2 * 2 * 2  # sources, repeats, ways
        assert len(one["times"]["cpu_only"]) == len(one["times"]["hybrid"]) == 2
        assert all(len(row) == 2 and min(row) > 0 for way in one["times"].values() for row in way)
        assert one["simulated"] == (one["k"] > 0)
        assert (one["predicted_s"] is None) == (one["k"] == 0)
    shared = [p for p in points if p["mode"] == "share"]
    assert all(p["rounds_merged"] == p["rounds_sent"] > 0 for p in shared)
    assert any(p["values_adopted"] > 0 for p in shared)
    assert {curve["mode"] for curve in found["break_even"]} == {"share", "race"}
    assert all(curve["simulated"] and curve["delays_s"] == pytest.approx([0, 50e-6]) for curve in found["break_even"])
    rows = list(csv.DictReader((folder / "points.csv").read_text().splitlines()))
    assert [(r["device"], int(r["k"])) for r in rows] == [(p["device"], p["k"]) for p in points]
    told = capsys.readouterr().out
    assert told.count("Recommended:") == 1
    assert "npu.mode: off" in told  # a device that is not there is never recommended


def test_the_page_is_self_contained_and_shows_every_figure(run: Run, tmp_path: Path) -> None:
    assert run("--sizes", "0", "16", "64", "--devices", "oracle", "--delays", "50us", "1ms") == EXIT_OK
    page = (tmp_path / "sweep" / "tune.html").read_text()
    parser = Strict()
    parser.feed(page)
    for title in (
        "Time: simulated:oracle, share",
        "Time: simulated:oracle, race",
        "Gain",
        "Values adopted",
        "Edges looked at",
        "Edges inside the core",
        "Hybrid time",
    ):
        assert f"<figcaption>{title}<span>" in page, title
    assert "Gain over the delay of a round (simulated)" in page
    assert "no real NPU was used" in page
    assert parser.seen["figure"] == 7 + 2 * 3  # a figure of times for each mode and device
    assert "script" not in parser.seen
    assert not re.search(r"\bnan\b|\binf\b", re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL))


def test_the_real_worker_is_swept_through_several_cores(run: Run, tmp_path: Path) -> None:
    words = ["--sizes", "16", "64", "--devices", "cpu", "--modes", "share", "--delays"]
    assert run(*words, "--set", "exchange.format=binary") == EXIT_OK
    points = json.loads((tmp_path / "sweep" / "tune.json").read_text())["points"]
    assert [p["k"] for p in points] == [16, 64]
    for one in points:
        assert not one["simulated"]
        assert not one["failure"], one["failure"]
        assert one["ran_on"] == "CPU"
        assert one["rounds_merged"] > 0
        assert one["predicted_s"] is None  # the tests' cache has no calibration
    assert (tmp_path / "sweep" / "worker.log").exists()


def test_an_interrupted_sweep_goes_on_where_it_stopped(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--sizes", "0", "16", "64", "--devices", "oracle", "--delays"]
    measure = tune.Sweep._measure
    measured: list[Setting] = []

    def interrupted(self: tune.Sweep, setting: Setting) -> Point:
        if len(measured) == 3:
            raise KeyboardInterrupt
        measured.append(setting)
        return measure(self, setting)

    monkeypatch.setattr(tune.Sweep, "_measure", interrupted)
    assert run(*words) == EXIT_INTERRUPTED
    folder = tmp_path / "sweep"
    assert "to go on" in capsys.readouterr().err
    assert not (folder / "tune.json").exists()
    first = (folder / "points.jsonl").read_text()
    assert len(first.splitlines()) == 3

    with (folder / "points.jsonl").open("a", errors="surrogateescape") as torn:
        torn.write("[" * 60_000 + "\n\udcff\n" + '{"setting": {"engine": "asy')
    again: list[Setting] = []

    def counted(self: tune.Sweep, setting: Setting) -> Point:
        again.append(setting)
        return measure(self, setting)

    monkeypatch.setattr(tune.Sweep, "_measure", counted)
    assert run(*words) == EXIT_OK
    assert not set(again) & set(measured)
    assert len(again) == 2
    assert "torn or damaged" in capsys.readouterr().err
    assert (folder / "points.jsonl").read_text().startswith(first)
    assert len(journal_lines(folder)) == 5

    again.clear()
    assert run(*words) == EXIT_OK  # nothing is left to do, and the findings are written again
    assert not again


def test_a_changed_configuration_is_refused_and_nothing_is_touched(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--sizes", "16", "--devices", "oracle", "--modes", "share", "--delays"]
    assert run(*words) == EXIT_OK
    before = {path.name: path.read_bytes() for path in (tmp_path / "sweep").iterdir()}
    for change in (["--repeats", "3"], ["--set", "source=random:3"], ["--set", "graph.generator.seed=2"]):
        capsys.readouterr()
        assert run(*words, *change) == EXIT_CONFIG
        told = capsys.readouterr().err
        assert "Fix: go on with what was set then, or start a new sweep" in told
    assert {path.name: path.read_bytes() for path in (tmp_path / "sweep").iterdir()} == before
    assert run(*[w if w != "16" else "64" for w in words]) == EXIT_OK  # another core is no other configuration
    assert {p["k"] for p in json.loads((tmp_path / "sweep" / "tune.json").read_text())["points"]} == {16, 64}


def test_a_folder_of_somebody_else_is_refused(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "thesis.txt").write_text("mine")
    assert run("--sizes", "16", "--devices", "oracle") == EXIT_ENVIRONMENT
    assert "not a tuning sweep" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "sweep").iterdir()] == ["thesis.txt"]


def test_only_one_sweep_at_a_time_in_a_folder(tmp_path: Path) -> None:
    first, second = Journal(tmp_path / "one"), Journal(tmp_path / "one")
    first.open({"host": "here"})
    try:
        with pytest.raises(Exception, match="another sweep is at work"):
            second.open({"host": "here"})
    finally:
        first.close()


def test_apply_writes_a_configuration_that_runs(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "tuned.yaml"
    words = ["--config", "configs/cluster.yaml", "--sizes", "16", "--devices", "oracle", "--delays"]
    assert run(*words, "--apply", str(target)) == EXIT_OK
    assert "tune runs on one rank; ranks: 2" in capsys.readouterr().err
    written = load_config(target)
    assert (written.npu.mode, written.ranks, written.graph.generator.scale) == ("off", 1, 8)
    assert target.read_text().startswith("# Written by `python run.py tune --apply`")
    target.write_text("mine\n")
    assert run(*words, "--apply", str(target)) == EXIT_CONFIG
    assert "--force" in capsys.readouterr().err
    assert target.read_text() == "mine\n"
    assert run(*words, "--apply", str(target), "--force") == EXIT_OK
    assert load_config(target) == written


def test_the_advised_configuration_has_the_advised_core(tmp_path: Path) -> None:
    from hybrid.experiments.tune.advice import apply_advice

    config = load_config(None, ["core.threshold=5", "core.max_bytes=64", "engine=level", "bfs.strategy=pull"])
    advice = recommend([point(64), point(0, cpu=3.0)], config)
    apply_advice(tmp_path / "t.yaml", config, advice, force=False)
    found = load_config(tmp_path / "t.yaml")
    assert (found.core.size, found.core.threshold, found.npu.mode, found.engine) == (64, None, "share", "async")
    assert found.core.max_bytes == 4 * 64 * 64
    assert found.bfs.strategy == "auto"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--sizes", "2000"], "over the budget"),
        (["--sizes", "-1"], "vertices with edges"),
        (["--thresholds", "0", "1", "--set", "core.max_bytes=400"], "--set core.max_bytes="),
        (["--devices", "910b5"], "did you mean 910b4?"),
        (["--delays", "soon"], "--delays: not a time"),
        (["--repeats", "0"], "compare.repeats"),
        (["--set", "npu.worker=external"], "--set npu.worker=launch"),
        (["--apply", "/nowhere/tuned.yaml"], "make the folder first"),
    ],
)
def test_bad_options_end_with_a_fix(
    words: list[str], told: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(*words, "--set", "graph.generator.scale=12")
    error = capsys.readouterr().err
    assert code in (EXIT_CONFIG, EXIT_ENVIRONMENT), error
    assert told in error
    assert "Fix:" in error
    assert not (tmp_path / "sweep").exists()


def test_several_started_ranks_are_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    assert run("--sizes", "16") == EXIT_CONFIG
    assert "--set ranks=1" in capsys.readouterr().err


class LyingSolver(ScriptedCoreSolver):
    """A worker that gives every core vertex without a value the level 1."""

    device = "liar"

    cold, on_clock_s = True, 0.0

    def __init__(self, *_: object) -> None:
        super().__init__(lambda values: np.where(values >= 0, values, 1).astype(np.int32), itertools.repeat(1))

    def start(self) -> None: ...

    def close(self) -> None: ...

    def publish_edges(self, *_: object, **__: object) -> None: ...

    def warm_up(self, *_: object) -> None: ...


def test_a_device_that_lies_fails_its_point_and_nothing_else(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(job_core, "WorkerSolver", LyingSolver)
    assert run("--sizes", "0", "16", "--devices", "cpu", "oracle", "--modes", "share", "--delays") == EXIT_OK
    points = {p["device"]: p for p in json.loads((tmp_path / "sweep" / "tune.json").read_text())["points"]}
    assert points["cpu"]["failure"]
    assert points["cpu"]["hybrid_s"] is None
    assert not points["simulated:oracle"]["failure"]
    assert "npu.mode: off" in capsys.readouterr().out


def test_default_sizes_double_up_to_the_budget() -> None:
    from cpu_engine.graph.build.builder import build_graph
    from cpu_engine.graph.generators import uniform

    graph = build_graph(uniform(10, 8, 1))
    assert tune.core_sizes(graph, load_config(None, ["core.max_bytes=360000"])) == (0, 64, 128, 256, 300)
    assert tune.core_sizes(graph, load_config(None, ["core.max_bytes=100"])) == (0, 5)
    assert tune.core_sizes(graph, Config(), thresholds=[10**6]) == (0,)
    everything = tune.core_sizes(graph, load_config(None, ["core.max_bytes=4194304"]), thresholds=[0])
    assert everything == (graph.n,)


def test_only_what_is_clearly_faster_is_recommended() -> None:
    config = Config()
    assert recommend([point(64, hybrid=1.0)], config).k == 64
    assert recommend([point(64, hybrid=1.95)], config).k == 0  # within what counts as equal
    uneven = ((2.0,), (1.0,), (2.0,)), ((1.5,), (2.5,), (1.0,))
    assert recommend([replace(point(64), cpu_only=uneven[0], hybrid=uneven[1])], config).k == 0  # pairs contradict
    assert recommend([point(64, hybrid=1.0, spread=0.5)], config).k == 64  # under changing load, but in turns
    thrice = point(64, hybrid=1.0)
    once = replace(thrice, cpu_only=thrice.cpu_only[:1], hybrid=thrice.hybrid[:1])
    assert recommend([once], config).k == 0  # one repeat tells nothing
    assert recommend([point(64, ORACLE_DEVICE)], config).k == 0  # there is no such device
    simulated = load_config(None, ["npu.device=simulated:oracle"])
    named = recommend([point(64, ORACLE_DEVICE)], simulated)
    assert named.k == 64
    assert "simulated, no real NPU was used" in named.sentence
    other_engine = point(0, cpu=0.5, hybrid=0.5, engine="level")
    assert recommend([point(64), other_engine], config).engine == "level"  # faster alone than the other with a device
    assert recommend([point(64, failure="gone"), other_engine], config).mode == "off"
    with pytest.raises(Exception, match="gone"):
        recommend([point(64, failure="gone")], config)


def test_break_even_is_looked_for_where_the_oracle_gains_most() -> None:
    points = [point(64, ORACLE_DEVICE, hybrid=1.5), point(128, ORACLE_DEVICE, hybrid=1.0), point(256, hybrid=0.1)]
    found = break_even_settings(points, ["share"], ["simulated:1ms"])
    assert found == [Setting("async", ORACLE_DEVICE, "share", 128), Setting("async", "simulated:1ms", "share", 128)]
    slow = [point(128, "simulated:1ms", hybrid=1.2), point(128, "simulated:5ms", hybrid=4.0)]
    curve = next(one for one in break_even_curves([*points, *slow]) if one.k == 128)
    assert curve.delays_s == (0.0, 1e-3, 5e-3)
    assert "pays up to rounds of 1.00 ms (1.67x; 2.00x with the oracle), not with rounds of 5.00 ms" in curve.sentence
    assert break_even_settings([point(64, failure="gone")], ["share"], ["simulated:1ms"]) == []


def test_noise_is_told() -> None:
    assert noise_text([point(0, cpu=1.0, hybrid=1.0)]) == ""
    assert "1.50x" in noise_text([point(0, cpu=1.0, hybrid=1.5)])


def test_a_point_survives_its_line_and_a_foreign_one_does_not() -> None:
    one = point(64, spread=0.1)
    assert point_from_json(json.loads(json.dumps(asdict(one)))) == one
    with pytest.raises(ValueError):
        point_from_json({**asdict(one), "hybrid": []})
    with pytest.raises(ValueError):
        point_from_json({"setting": {}})


def test_a_plot_keeps_its_marks_inside() -> None:
    marks = (Mark(0, 0.5, "a", 0.1, 3.0), Mark(64, 1.0, "b"), Mark(1024, 20.0, "<c>"))
    x, y = axis([one.x for one in marks], "k", str, log=True), axis([0.1, 20.0], "y", str, log=True)
    figure = draw("T", "", [Series("s", marks)], x, y, even=1.0)
    places = [float(v) for v in re.findall(r'c[xy]="([\d.-]+)"', figure)]
    assert len(places) == 2 * 4  # three marks and the legend's
    assert all(0 <= place <= 560 for place in places)
    assert "&lt;c&gt;" in figure
    assert draw("T", "", [Series("s", ())], x, y) == ""


def test_devices_are_the_configurations_words() -> None:
    config = load_config(None, ["npu.device=simulated:910c"])
    named = [command._device(config, name) for name in ("configured", "cpu", "oracle", "simulated:2ms")]
    assert named == ["simulated:910c", "cpu", "simulated:oracle", "simulated:2ms"]
    with pytest.raises(ConfigError):
        command._device(config, "nothing")


def test_what_is_over_the_budget_is_left_out_with_a_note(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--thresholds", "0", "40", "10000", "--devices", "oracle", "--modes", "share", "--delays", "50us"]
    assert run(*words, "--set", "core.max_bytes=10000") == EXIT_OK
    told = capsys.readouterr().err
    assert "--thresholds 0: a core of" in told
    assert "left out (--set core.max_bytes=" in told
    sizes = {p["k"] for p in json.loads((tmp_path / "sweep" / "tune.json").read_text())["points"]}
    assert len(sizes) == 2
    assert max(sizes) <= 50


def test_counts_go_up_to_the_end_of_the_sweep(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--sizes", "0", "16", "64", "--devices", "oracle", "--engines", "async", "level"]
    assert run(*words, "--delays", "50us", "1ms") == EXIT_OK
    counts = re.findall(r"\[(\d+)/(\d+)\]", capsys.readouterr().err)
    total = str(2 * (1 + 2 * 2) + 2 * 2 * 2)
    assert counts == [(str(at + 1), total) for at in range(int(total))]


def test_a_mark_is_drawn_beside_the_cpu_that_was_measured_with_it() -> None:
    """The load doubled between two points: each is drawn with its own CPU."""
    from hybrid.experiments.tune.report import _time_figures

    early, late = point(64, cpu=2.0, hybrid=1.0), point(128, cpu=4.0, hybrid=2.0)
    assert early.gain == late.gain == 2.0
    (figure,) = _time_figures([early, late], [64, 128])
    told = re.findall(r"<title>CPU only, in turns with it: k = (\d+), degree from 3: median ([^,]*),", figure)
    assert told == [("64", seconds(2.0)), ("128", seconds(4.0))]
