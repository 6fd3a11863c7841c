"""The library beside a worker: PageRank, components and shortest paths share their core; a lie changes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hybrid.config import load_config
from hybrid.job.driver import run_job
from hybrid.offload.rounds import Rounds
from hybrid.results.record import Finished
from hybrid.worker.core_solver import Answer

FIELDS = {"pagerank": "rank", "wcc": "component", "sssp": "distance"}


@pytest.fixture(scope="module")
def weighted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of a few hundred vertices with hubs and whole weights."""
    random = np.random.default_rng(7)
    ends = np.minimum(random.zipf(1.4, (3000, 2)), 400)
    path = tmp_path_factory.mktemp("graph") / "hubs.wel"
    lines = [f"{u} {v} {w}" for (u, v), w in zip(ends, random.integers(1, 50, len(ends)), strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def run(tmp_path: Path, graph: Path, algorithm: str, *settings: str) -> Finished:
    common = [f"graph.path={graph}", f"algorithm={algorithm}", "source=random:2", "core.size=48"]
    common += ["compare.repeats=1", f"output={tmp_path / 'out'}"]
    return run_job(load_config(None, [*common, *settings]))


def external(directory: Path) -> list[str]:
    return ["npu.worker=external", "npu.keep_worker=true", f"exchange.dir={directory}"]


@pytest.mark.parametrize("directed", ["true", "false"])
@pytest.mark.parametrize("algorithm", FIELDS)
def test_shared_equals_alone(
    algorithm: str, directed: str, weighted: Path, exchange_directory: Path, tmp_path: Path
) -> None:
    field = f"{FIELDS[algorithm]}.npy"
    alone = run(tmp_path, weighted, algorithm, "npu.mode=off", f"graph.directed={directed}")
    expected = np.load(alone.folder / field)
    for mode in ("share", "race"):
        settings = [f"npu.mode={mode}", f"graph.directed={directed}", *external(exchange_directory)]
        found = run(tmp_path, weighted, algorithm, *settings)
        values, npu = np.load(found.folder / field), found.summary["npu"]
        if algorithm == "pagerank":
            assert values == pytest.approx(expected, rel=1e-5)
        else:
            assert np.array_equal(values, expected)
        assert found.summary["certified"]
        assert npu["mode"] == mode
        if mode == "share":
            assert npu["rounds_merged"] == npu["rounds_sent"] >= 1, npu["outcome"]
            assert found.summary["verdict"]["cpu_only_seconds"] > 0


def test_a_false_sum_is_found_out_and_computed_again(
    weighted: Path, exchange_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Rounds.receive

    def lying(self: Rounds) -> Answer | None:
        answer = honest(self)
        return None if answer is None else replace(answer, values=answer.values * np.float32(1.5))

    alone = run(tmp_path, weighted, "pagerank", "npu.mode=off")
    expected = np.load(alone.folder / "rank.npy")
    monkeypatch.setattr(Rounds, "receive", lying)
    found = run(tmp_path, weighted, "pagerank", "npu.mode=share", *external(exchange_directory))
    assert np.array_equal(np.load(found.folder / "rank.npy"), expected)
    assert "failed the check" in found.summary["npu"]["outcome"]
    assert found.summary["npu"]["values_rejected"] > 0


def test_what_cannot_be_shared_says_why(weighted: Path, tmp_path: Path) -> None:
    assert "runs on the CPU alone" in run(tmp_path, weighted, "kcore").summary["npu"]["outcome"]
    real = tmp_path / "real.wel"
    real.write_text("0 1 0.5\n1 2 0.25\n")
    told = run(tmp_path, real, "sssp", "core.size=2", "source=0", "npu.mode=race").summary["npu"]["outcome"]
    assert "whole weights" in told
    auto = run(tmp_path, weighted, "wcc", "npu.mode=auto").summary["npu"]
    assert (auto["mode"], auto["device"]) == ("off", "none")


@pytest.mark.parametrize("mode", ["share", "race"])
@pytest.mark.parametrize("algorithm", FIELDS)
def test_a_simulated_device_serves_every_algorithm_that_shares(
    algorithm: str, mode: str, weighted: Path, tmp_path: Path
) -> None:
    field = f"{FIELDS[algorithm]}.npy"
    expected = np.load(run(tmp_path, weighted, algorithm, "npu.mode=off").folder / field)
    found = run(tmp_path, weighted, algorithm, f"npu.mode={mode}", "npu.device=simulated:oracle")
    values, npu = np.load(found.folder / field), found.summary["npu"]
    assert values == pytest.approx(expected, rel=1e-5)
    assert npu["outcome"].startswith("simulated: ")
    assert npu["simulated"]["device"] == "simulated:oracle"
    if mode == "share":
        assert npu["rounds_merged"] == npu["rounds_sent"] >= 1
        assert "no real NPU was used" in found.summary["verdict"]["text"]
