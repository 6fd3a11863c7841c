"""The JSON schema of summary.json and trace.jsonl: as checked in, and as jobs write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.cli import main
from hybrid.results.schema import EVENTS, json_schema
from tests.json_schema import SCHEMA, assert_records_fit, problems

DEFS = json_schema()["$defs"]
SMALL = ["graph.generator.scale=8", "compare.repeats=1"]


def run(folder: Path, *settings: str) -> dict[str, Any]:
    words = [word for one in (*SMALL, *settings) for word in ("--set", one)]
    assert main(["run", *words, "--output", str(folder)]) == 0
    assert_records_fit(folder)
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return summary


def test_the_checked_in_schema_is_what_the_types_say() -> None:
    assert json.loads(SCHEMA.read_text()) == json_schema(), "print it again (CONTRIBUTING.md)"


def test_every_record_is_described() -> None:
    assert all(one.get("description") or "anyOf" in one for one in DEFS.values())
    assert [one["description"] for one in DEFS["TraceEvent"]["anyOf"]] == [one.about for one in EVENTS]


def test_a_search_by_the_cpu_alone(tmp_path: Path) -> None:
    assert run(tmp_path / "out", "npu.mode=off", "engine=level")["strategy"] is not None


@pytest.mark.parametrize("batch", [1, 4])
def test_searches_with_a_simulated_device(tmp_path: Path, batch: int) -> None:
    device = ["npu.mode=share", "npu.device=simulated:oracle", f"npu.batch={batch}", "source=random:4"]
    summary = run(tmp_path / "out", *device)
    assert summary["npu"]["simulated"]["device"] == "simulated:oracle"
    assert summary["predicted"]["mode"] == "share"


def test_a_summary_with_an_unknown_or_missing_key_does_not_fit(tmp_path: Path) -> None:
    summary = run(tmp_path / "out", "algorithm=wcc", "npu.mode=off")
    summary["spread"]["colour"] = "red"
    assert list(problems(summary, DEFS["AlgorithmSummary"], DEFS)) == ["$.spread: colour is not known"]
    del summary["spread"], summary["claims"]
    found = list(problems(summary, DEFS["AlgorithmSummary"], DEFS))
    assert found == ["$: claims is missing", "$: spread is missing"]


@pytest.mark.parametrize(
    "event",
    [
        {"t0": 0.0, "t1": 1.0, "actor": "rank x", "kind": "pack", "source": None},
        {"t0": 0.0, "t1": 1.0, "actor": "cpu", "kind": "merge", "source": 3, "round": "round-000001-abc"},
        {"t0": "0", "t1": 1.0, "actor": "npu", "kind": "stop", "source": None},
    ],
)
def test_an_event_of_no_kind_does_not_fit(event: dict[str, Any]) -> None:
    assert list(problems(event, DEFS["TraceEvent"], DEFS))
