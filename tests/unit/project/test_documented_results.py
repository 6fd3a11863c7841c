"""docs/reference/results.md names every key of summary.json and every kind of event that a job writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hybrid.cli import main

_EVENT = re.compile(r"\.(?:add|span|extend)\(\s*\"(coordinator|cpu|npu)\",\s*\"(\w+)\"")


def documented(text: str) -> set[str]:
    return {word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", code)}


@pytest.fixture
def page(project_root: Path) -> str:
    return (project_root / "docs" / "reference" / "results.md").read_text()


def test_every_kind_of_event_is_documented(project_root: Path, page: str) -> None:
    rows = re.findall(r"^\| (\w+)(?: N)? \| (.*?) \|", page.partition("## trace.jsonl")[2], re.MULTILINE)
    told = {(actor, kind) for actor, kinds in rows for kind in documented(kinds)}
    written = {found for path in (project_root / "hybrid").rglob("*.py") for found in _EVENT.findall(path.read_text())}
    assert len(written) > 15
    assert written <= told, written - told


@pytest.mark.parametrize("algorithm", ["bfs", "pagerank"])
def test_every_key_of_the_summary_is_documented(
    project_root: Path, page: str, tmp_path: Path, algorithm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = project_root / "examples" / "karate.el"
    settings = {
        "graph.path": graph, "graph.directed": "false", "graph.cache_dir": tmp_path / "cache",
        "algorithm": algorithm, "npu.mode": "off", "source": 1,
    }  # fmt: skip
    asked = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    assert main(["run", *asked, "--output", str(tmp_path / "result")]) == 0
    summary = json.loads((tmp_path / "result" / "summary.json").read_text())
    text = page.partition("## summary.json")[2].partition("## report.html")[0]
    assert set(summary) <= documented(text), set(summary) - documented(text)
    assert set(summary["runs"][0]) <= documented(text), set(summary["runs"][0]) - documented(text)
