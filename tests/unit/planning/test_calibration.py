"""The calibration's file, what models are made of it, and a real, small measurement with a real worker."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import socket
from pathlib import Path

import pytest

from hybrid.cli.commands import calibrate
from hybrid.config import load_config
from hybrid.devices.model import Sample
from hybrid.devices.profiles import PROFILES, parse_device
from hybrid.errors import ConfigError, EnvironmentProblem
from hybrid.experiments import calibrate as measurement
from hybrid.planning.calibration import (
    VERSION,
    Calibration,
    CpuRates,
    DeviceRates,
    RoundTime,
    SearchTime,
    calibration_path,
    device_model,
    load_calibration,
    store_calibration,
)


def made_up() -> Calibration:
    """Round numbers: a product takes k*k ns, an iteration twice that; files 1 ms and 1 us (text: 2 us) per vertex."""
    products = tuple(Sample(k, batch, k * k * batch * 1e-9) for k in (256, 1024) for batch in (1, 16))
    rounds = tuple(
        RoundTime(format, k, 9 * k, k, 0.1, 0.2, 1e-3 + k * cost + 2 * 2 * k * k * 1e-9, 2 * 2 * k * k * 1e-9, 2)
        for format, cost in (("text", 2e-6), ("binary", 1e-6))
        for k in (256, 1024)
    )
    device = DeviceRates("CPU", "because", "2.10.0", "float32", 4, 1 << 34, 1, 1e-6, products)
    searches = (SearchTime("kronecker-s8", 200, 4000, "level", "auto", 1, 1e-3, 5, 900),)
    cpu = CpuRates(2, 1e8, 2e8, 2e-5, searches)
    return Calibration(VERSION, "0.1.0", socket.gethostname(), 2, 0.1, "today", 9.0, device, rounds, cpu)


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    path = store_calibration(made_up(), tmp_path / "new" / "folder")
    assert path == calibration_path(tmp_path / "new" / "folder")
    assert load_calibration(tmp_path / "new" / "folder") == made_up()
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_nothing_measured(tmp_path: Path) -> None:
    assert load_calibration(tmp_path) is None


@pytest.mark.parametrize("damage", ["torn", "version", "host", "field", "list", "empty", "nested", "bytes", "pipe"])
def test_what_cannot_be_used_counts_as_none_and_is_told(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = store_calibration(made_up(), tmp_path)
    data = json.loads(path.read_text())
    if damage == "version":
        data["version"] = VERSION + 1
    elif damage == "host":
        data["host"] = "elsewhere"
    elif damage == "field":
        del data["cpu"]["level_s"]
    elif damage == "list":
        data["device"]["products"] = []
    text = json.dumps(data)
    damaged = {"torn": text[: len(text) // 2], "empty": "[]", "nested": "[" * 60_000, "bytes": "\udcff"}
    path.write_bytes(os.fsencode(damaged.get(damage, text)))
    if damage == "pipe":
        path.unlink()
        os.mkfifo(path)
    assert load_calibration(tmp_path) is None
    assert "run.py calibrate" in caplog.text


def test_a_disk_that_fails_leaves_the_old_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store_calibration(made_up(), tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(EnvironmentProblem, match="No space left"):
        store_calibration(dataclasses.replace(made_up(), cpus=99), tmp_path)
    monkeypatch.undo()
    assert load_calibration(tmp_path) == made_up()
    assert list(tmp_path.iterdir()) == [path]


def test_the_model_of_this_machine() -> None:
    found = made_up()
    costs = found.exchange_costs()
    assert costs.measured
    assert (costs.text.fixed_s, costs.text.per_value_s) == pytest.approx((1e-3, 2e-6))
    assert (costs.binary.fixed_s, costs.binary.per_value_s) == pytest.approx((1e-3, 1e-6))
    model = found.device_model()
    assert model.kind == "measured"
    assert model.product_factor == pytest.approx(2.0)
    for row in found.rounds:
        assert model.round_s(row.k, 1, row.iterations, row.format) == pytest.approx(row.seconds)


def test_profiles_stand_beside_the_machine_that_was_measured() -> None:
    simulation = parse_device("simulated:910b2")
    assert simulation is not None
    alone, beside = device_model(simulation, None), device_model(simulation, made_up())
    assert alone == PROFILES["910b2"]
    assert not alone.exchange.measured
    assert beside.exchange == made_up().exchange_costs()
    assert beside.round_s(1024, format="direct") == alone.round_s(1024, format="direct")


def test_this_machine_must_have_been_measured() -> None:
    simulation = parse_device("simulated:this-machine")
    assert simulation is not None
    assert device_model(simulation, made_up()).kind == "measured"
    with pytest.raises(ConfigError, match=r"run\.py calibrate"):
        device_model(simulation, None)


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    calibrate.add_arguments(parser)
    return parser.parse_args(words)


def test_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TANDEM_CACHE", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="tandem calibrate"):
        calibrate.execute(options("--show"))
    store_calibration(made_up())
    assert calibrate.execute(options("--show")) == 0
    shown = capsys.readouterr().out
    lines = {line.split()[0]: line for line in shown.splitlines() if line.strip()}
    assert " measured " in lines["this-machine"]
    for name in PROFILES:
        assert " model " in lines[name]
    assert "no NPU was measured" in shown
    assert "busy" not in shown
    assert "busy" in calibrate.render(dataclasses.replace(made_up(), busy=2.0))
    calibrate.execute(options("--show", "--json"))
    assert json.loads(capsys.readouterr().out)["version"] == VERSION


@pytest.mark.heavy
def test_a_real_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TANDEM_CACHE", str(tmp_path))
    for name, small in {"SCALES": (8, 9), "CORES": (16, 64), "LEVELS": 30, "_ROUNDS": 2, "_REPEATS": 2}.items():
        monkeypatch.setattr(measurement, name, small)
    assert calibrate.execute(options("--set", "npu.device=cpu")) == 0
    found = load_calibration()
    assert found is not None
    assert "kept in" in capsys.readouterr().out
    assert found.device.device == "CPU"
    assert {(one.k, one.batch) for one in found.device.products} == {
        (k, batch) for k in (256, 1024, 4096) for batch in (1, 16, 64)
    }
    assert {(one.format, one.k) for one in found.rounds} == {(f, k) for f in ("text", "binary") for k in (16, 64)}
    assert all(0 < one.compute_s < one.seconds for one in found.rounds)
    assert {(one.graph, one.engine) for one in found.cpu.searches} == {
        (f"kronecker-s{scale}", engine) for scale in (8, 9) for engine in ("async", "level", "many")
    }
    assert min(found.cpu.push_edges_per_s, found.cpu.pull_edges_per_s, found.cpu.level_s) > 0
    model = found.device_model()
    assert model.matvec(4096) > model.launch_s > 0


def test_a_worker_that_cannot_measure_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_config(None, ["npu.device=cpu"])
    broken = dataclasses.replace(config, npu=dataclasses.replace(config.npu, device="abacus"))
    with pytest.raises(EnvironmentProblem, match=r"could not measure.*abacus"):
        measurement.measure_device(broken)
