"""Jobs in batches and with an index: the same results as one by one, every number certified, and the truth told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.config import load_config
from hybrid.graphs.opening import open_graph
from hybrid.job.driver import run_job
from hybrid.results.trace import Trace
from hybrid.worker.index import CoreIndex, compute_index, index_path, store_index

SMALL = [
    "graph.generator.scale=9", "graph.generator.edge_factor=8", "source=random:10", "core.size=40", "threads=2",
    "npu.device=simulated:oracle", "compare.repeats=1",
]  # fmt: skip


def run(
    tmp_path: Path, name: str, *settings: str
) -> tuple[dict[str, Any], np.ndarray, np.ndarray, list[dict[str, Any]]]:
    config = load_config(
        None, [*SMALL, f"graph.cache_dir={tmp_path / 'cache'}", f"output={tmp_path / name}", *settings]
    )
    finished = run_job(config)
    level, parent = (np.load(finished.folder / f"{part}.npy") for part in ("level", "parent"))
    trace = [json.loads(line) for line in (finished.folder / "trace.jsonl").read_text().splitlines()]
    return finished.summary, level, parent, trace


@pytest.fixture(scope="module")
def one_by_one(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    return run(tmp_path_factory.mktemp("one"), "single", "npu.mode=off")[1]


@pytest.mark.parametrize("mode", ["share", "race", "off"])
@pytest.mark.parametrize("batch", ["4", "auto"])
def test_a_job_in_batches(tmp_path: Path, one_by_one: np.ndarray, mode: str, batch: str) -> None:
    summary, level, parent, trace = run(tmp_path, "batches", f"npu.mode={mode}", f"npu.batch={batch}")
    assert summary["certified"]
    assert np.array_equal(level, one_by_one)
    assert np.array_equal(parent >= 0, level >= 0)
    size = 10 if batch == "auto" else 4
    assert [one["batch"]["sources"] for one in summary["runs"]][:1] == [size]
    if mode == "share":
        rounds = [event for event in trace if event["kind"] == "round"]
        assert rounds
        assert all(event["simulated"] == "simulated:oracle" for event in rounds)
        assert summary["npu"]["rounds_merged"] == len(rounds)
        assert f"{size} at once" in summary["verdict"]["text"]
        assert "no real NPU was used" in summary["verdict"]["text"]


def test_a_source_without_edges_is_in_no_batch(tmp_path: Path) -> None:
    edges = tmp_path / "graph.el"
    edges.write_text("0 1\n1 2\n2 3\n")
    settings = [f"graph.path={edges}", "graph.directed=false", "source=[0, 3]", "core.size=2", "npu.batch=8"]
    summary, level, _, _ = run(tmp_path, "small", *settings)
    assert level.tolist() == [[0, 1, 2, 3], [3, 2, 1, 0]]
    assert summary["npu"]["rounds_sent"] >= 1


@pytest.mark.parametrize("batch", ["1", "4"])
def test_a_job_with_an_index(tmp_path: Path, one_by_one: np.ndarray, batch: str) -> None:
    asked = [f"npu.batch={batch}", "npu.index=on"]
    summary, level, _, trace = run(tmp_path, "first", *asked)
    assert np.array_equal(level, one_by_one)
    stored = list((tmp_path / "cache" / "indexes").iterdir())
    assert len(stored) == 1
    assert any(str(event.get("round", "")).startswith("index") for event in trace)
    again, level, _, trace = run(tmp_path, "second", f"npu.batch={batch}", "npu.index=auto")
    assert np.array_equal(level, one_by_one)
    rounds = [event["round"] for event in trace if event["kind"] == "round"]
    assert rounds
    assert all(name.startswith("index") for name in rounds), "what is kept is used from the first search on"
    assert summary["certified"]
    assert again["certified"]


def test_few_searches_do_not_ask_for_an_index(tmp_path: Path) -> None:
    run(tmp_path, "few", "npu.index=auto")
    assert not (tmp_path / "cache" / "indexes").exists()


@pytest.mark.parametrize("batch", ["1", "4"])
def test_a_wrong_index_changes_nothing(tmp_path: Path, one_by_one: np.ndarray, batch: str) -> None:
    config = load_config(None, [*SMALL, f"graph.cache_dir={tmp_path / 'cache'}"])
    graph = open_graph(config.graph, Trace()).graph
    true = compute_index(graph.out_offsets, graph.out_targets, 40)
    assert true is not None
    path = index_path(tmp_path / "cache", graph, 40)
    store_index(path, CoreIndex(np.where(true.distance > 1, 1, true.distance).astype(np.uint8)))
    summary, level, _, trace = run(tmp_path, "wrong", f"npu.batch={batch}", "npu.index=auto")
    assert summary["certified"]
    assert np.array_equal(level, one_by_one)
    assert sum(one["repaired"] for one in summary["runs"]) > 0
    assert not path.exists()
    rounds = [event["round"] for event in trace if event["kind"] == "round"]
    assert not rounds[-1].startswith("index"), "the worker is asked again"


def test_several_ranks_take_the_same_settings() -> None:
    for batch in ("4", "auto"):
        load_config(None, ["ranks=2", f"npu.batch={batch}", "npu.index=on", "npu.device=simulated:910b4"])
