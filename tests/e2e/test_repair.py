"""Jobs whose engine is wrong, on one rank and on several: the answer is exact, and the account says what happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.algorithms import description_of
from hybrid.cli.commands.run import account
from hybrid.cli.commands.validate import validate_result
from hybrid.config import load_config
from hybrid.config.schema import Config
from hybrid.errors import NotCertified
from hybrid.job.driver import run_job
from hybrid.ranks import part_runs
from hybrid.registry import ALGORITHMS, names_on_ranks
from hybrid.results.record import Finished
from tests.damage import break_engine
from tests.json_schema import assert_records_fit
from tests.property.ranks.test_ranks_library_job import run_on
from tests.unit.ranks.test_job import run_on as run_bfs_on

Settings = Callable[..., Config]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Jobs on a random graph with weights."""
    monkeypatch.setenv("TANDEM_CACHE", str(tmp_path / "cache"))
    random = np.random.default_rng(8)
    rows = random.integers(0, 80, (500, 2)), random.integers(0, 30, 500)
    text = "".join(f"{u} {v} {w}\n" for (u, v), w in zip(*(one.tolist() for one in rows), strict=True))
    (tmp_path / "g.wel").write_text(text)

    def make(algorithm: str, *more: str) -> Config:
        usual = [f"graph.path={tmp_path / 'g.wel'}", "graph.directed=false", f"algorithm={algorithm}", "source=[3, 5]"]
        return load_config(None, [*usual, f"output={tmp_path / 'out'}", "npu.mode=off", *more])

    return make


def exact(finished: Finished, name: str, config: Config) -> None:
    """The folder has what an honest engine gives."""
    description = description_of(name)
    graph = hybrid.load(str(config.graph.path), directed=False)
    found = np.load(finished.folder / f"{description.fields[0].name}.npy")
    honest: dict[str, Callable[[int], Any]] = {
        "bfs": lambda source: graph.bfs(source).values,
        "sssp": lambda source: graph.sssp(source).values,
        "wcc": lambda _: graph.components().values,
        "scc": lambda _: graph.strong_components().values,
        "pagerank": lambda _: graph.pagerank().values,
        "cdlp": lambda _: graph.label_propagation().values,
        "kcore": lambda _: graph.k_core().values,
        "triangles": lambda _: graph.triangles().values,
        "lcc": lambda _: graph.clustering().values,
        "closeness": lambda _: graph.closeness().values,
        "betweenness": lambda _: graph.betweenness().values,
    }
    if name != "louvain":
        rows = found if description.sourced else [found]
        for source, values in zip((3, 5), rows, strict=False):
            assert values == pytest.approx(honest[name](source), rel=1e-4)
    assert validate_result(finished.folder, []) == 0


def told(finished: Finished, name: str) -> None:
    """Summary, log, report and terminal say it, and name the record."""
    summary, description = finished.summary, description_of(name)
    assert summary["certified"] is True
    repairs = summary["repairs"]
    assert [one["source"] for one in repairs] == ([3, 5] if description.sourced else [None])
    assert all(run["repaired"] > 0 for run in summary["runs"])
    assert json.loads((finished.folder / "summary.json").read_text())["repairs"] == repairs
    assert_records_fit(finished.folder)
    assert summary["npu"]["outcome"].startswith("off"), "no worker took part, so none is blamed"
    log, report = (finished.folder / "log.txt").read_text(), (finished.folder / "report.html").read_text()
    shown = account(summary, finished.folder)
    for one in repairs:
        assert one["method"] == description.plain
        assert (Path(one["record"]) / "record.json").is_file()
        assert one["reason"] in log
        assert one["record"] in log
        assert f"computed again by {one['method']}, and passed; kept in {one['record']}" in shown
    assert "Computed again by" in report
    kinds = [json.loads(line)["kind"] for line in (finished.folder / "trace.jsonl").read_text().splitlines()]
    assert "repair" in kinds


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_job_on_one_rank(name: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    config = settings(name)
    with monkeypatch.context() as broken:
        break_engine(name, broken.setattr)
        finished = run_job(config)
    told(finished, name)
    exact(finished, name, config)


@pytest.mark.parametrize(
    "more", [("engine=level",), ("npu.batch=2", "npu.mode=race", "npu.device=simulated:910b2:direct")]
)
def test_other_engines_of_bfs(more: tuple[str, ...], settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    config = settings("bfs", *more)
    with monkeypatch.context() as broken:
        break_engine("bfs", broken.setattr)
        finished = run_job(config)
    assert finished.summary["certified"] is True
    if "engine=level" in more:
        told(finished, "bfs")
    exact(finished, "bfs", config)


@pytest.mark.parametrize("name", names_on_ranks())
def test_a_job_on_ranks(name: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    config = settings(name, "ranks=2")
    with monkeypatch.context() as broken:
        scatter = part_runs.scatter
        broken.setattr(part_runs, "scatter", lambda *given: scatter(*given) + 1)
        finished = (run_bfs_on if name == "bfs" else run_on)("ab", config)
    told(finished, name)
    assert "ranks" in finished.summary
    exact(finished, name, config)


def test_when_the_repair_fails_too(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bfs", "scc"):
        kind: Any = type(description_of(name))
        break_engine(name, monkeypatch.setattr)
        honest = kind.recompute

        def wrong(self: Any, task: Any, honest: Any = honest) -> Any:
            found = honest(self, task)
            return type(found)({name: array + 1 for name, array in found.arrays.items()})

        monkeypatch.setattr(kind, "recompute", wrong)
        with pytest.raises(NotCertified, match=r"failed its check .* and so did .* kept as .*Fix: ") as refused:
            run_job(settings(name))
        assert Path(str(refused.value.path), "record.json").is_file(), "kept although the job left no folder"
        assert not (tmp_path / "out").exists()
