"""A sweep over batches: each measured, proven, told apart, and recommended in the configuration's own words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.cli import main
from hybrid.config import load_config
from hybrid.experiments.tune.advice import Advice, advised_config
from hybrid.experiments.tune.points import Setting
from hybrid.experiments.tune.sweep import Grid


def words(tmp_path: Path, *more: str) -> list[str]:
    return [
        "tune", "--set", "graph.generator.scale=8", "--set", "source=random:6", "--set", "ranks=1",
        "--set", f"graph.cache_dir={tmp_path / 'cache'}", "--sizes", "0", "20", "--devices", "oracle", "--modes",
        "share", "--repeats", "2", "--output", str(tmp_path / "sweep"), *more,
    ]  # fmt: skip


def test_batches_are_swept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    applied = tmp_path / "tuned.yaml"
    assert main(words(tmp_path, "--batches", "1", "4", "--delays", "100us", "--apply", str(applied))) == 0
    told = capsys.readouterr().out
    assert "4 at once" in told
    whole = json.loads((tmp_path / "sweep" / "tune.json").read_text())
    batched = [point for point in whole["points"] if point["batch"] == 4]
    assert {point["k"] for point in batched} == {0, 20}
    assert all(point["searches_certified"] == 2 * 2 * 6 for point in whole["points"])
    assert all(len(point["times"]["hybrid"][0]) == 2 for point in batched), "six sources are two batches"
    assert {curve["engine"] for curve in whole["break_even"]} >= {"4 at once"}
    assert load_config(applied).npu.batch in (1, 4)
    capsys.readouterr()
    assert main(words(tmp_path, "--batches", "4", "--delays")) == 0, "goes on with what is there"
    assert "found of an earlier run" in capsys.readouterr().err


def test_more_than_the_sources_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(tmp_path, "--batches", "64")) == 2
    assert "--set source=random:64" in capsys.readouterr().err


def test_settings_and_advice() -> None:
    grid = Grid((0, 8), ("level",), ("simulated:oracle",), ("share",), (1, 16))
    assert [(one.engine, one.k, one.batch) for one in grid.settings()] == [
        ("level", 0, 1), ("16 at once", 0, 16), ("level", 8, 1), ("16 at once", 8, 16),
    ]  # fmt: skip
    assert Setting("level", "auto", "share", 8).batch == 1
    config = load_config(None, ["engine=level"])
    wanted = advised_config(config, Advice("16 at once", "share", "auto", 8, 1.0, 2.0, "", 16))
    assert (wanted.engine, wanted.npu.batch, wanted.core.size) == ("level", 16, 8)
