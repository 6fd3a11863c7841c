"""The formula and the profiles: hand-computed points, order of durations, names that exist and names that do not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.config import load_config
from hybrid.devices.model import DeviceModel, ExchangeCosts, FileCosts, Sample, fit_line
from hybrid.devices.profiles import PROFILES, fixed_delay, parse_device, simulation_names
from hybrid.errors import ConfigError

SAMPLES = (
    Sample(256, 1, 1e-4),
    Sample(1024, 1, 4e-4),
    Sample(4096, 1, 4e-3),
    Sample(256, 64, 2e-4),
    Sample(1024, 64, 1e-3),
    Sample(4096, 64, 1.2e-2),
)


def measured(samples: tuple[Sample, ...] = SAMPLES, **changes: object) -> DeviceModel:
    figures: dict[str, object] = {"launch_s": 5e-5, "flops": 1e11, "bytes_per_s": 1e10, "memory_bytes": 1 << 34}
    return DeviceModel(name="bench", kind="measured", samples=samples, **{**figures, **changes})  # type: ignore[arg-type]


MODELS = [*PROFILES.values(), measured(), measured(product_factor=2.5, sync_s=1e-4)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.name}-{model.product_factor:g}")
@given(
    k=st.integers(1, 40_000),
    batch=st.integers(1, 2_000),
    iterations=st.integers(0, 50),
    more=st.integers(0, 5_000),
    format=st.sampled_from(["text", "binary", "direct"]),
)
@settings(max_examples=60, deadline=None)
def test_more_work_never_takes_less(
    model: DeviceModel, k: int, batch: int, iterations: int, more: int, format: str
) -> None:
    took = model.round_s(k, batch, iterations, format)
    assert math.isfinite(took)
    assert took >= 0
    slack = 1 - 1e-12
    assert model.round_s(k + more, batch, iterations, format) >= took * slack
    assert model.round_s(k, batch + more, iterations, format) >= took * slack
    assert model.round_s(k, batch, iterations + more, format) >= took * slack
    assert model.matmul(k, batch) >= model.launch_s


def test_a_published_profile_by_hand() -> None:
    model = PROFILES["910b4"]
    k, batch = 4096, 1
    moved = 2 * (k * k + 2 * k * batch) / (0.7 * 0.8e12)  # fp16, memory-bound
    assert model.matvec(k) == pytest.approx(20e-6 + moved)
    assert model.iteration_s(k) == pytest.approx(20e-6 + moved + 3 * 20e-6 + 20e-6)
    arithmetic = 2 * k * k * 4096 / (0.6 * 246e12)  # compute-bound
    assert model.matmul(k, 4096) == pytest.approx(20e-6 + arithmetic)
    direct = 2 * 4 * k / 25e9 + 3 * model.iteration_s(k)
    assert model.round_s(k, 1, 3, "direct") == pytest.approx(direct)
    files = ExchangeCosts(FileCosts(2e-3, 1e-6), FileCosts(1e-3, 5e-7))
    beside = model.with_exchange(files)
    assert beside.round_s(k, 1, 3, "text") == pytest.approx(direct + 2e-3 + 4096e-6)
    assert beside.round_s(k, 2, 0, "binary") == pytest.approx(2 * 2 * 4 * k / 25e9 + 1e-3 + 2 * 4096 * 5e-7)


def test_faster_devices_are_faster() -> None:
    rounds = [PROFILES[name].round_s(16_384, 64, 3, "direct") for name in ("910b4", "910b2", "910c")]
    assert rounds == sorted(rounds, reverse=True)
    assert rounds[0] > rounds[-1]


def test_a_measured_device_says_what_was_measured_and_goes_on_from_there() -> None:
    model = measured()
    for sample in SAMPLES:
        assert model.matmul(sample.k, sample.batch) == pytest.approx(sample.seconds)
    assert 4e-4 < model.matvec(2048) < 4e-3
    assert 4e-4 < model.matmul(1024, 8) < 1e-3
    assert model.matvec(8192) == pytest.approx(4 * 4e-3)
    assert model.matmul(4096, 128) == pytest.approx(2 * 1.2e-2)
    assert model.matvec(16) == pytest.approx(1e-4)


def test_noise_does_not_make_more_work_cheaper() -> None:
    model = measured((Sample(256, 1, 5e-4), Sample(1024, 1, 2e-4), Sample(4096, 1, 9e-4), Sample(1024, 64, 1e-4)))
    times = [model.matvec(k) for k in (256, 512, 1024, 1100, 2048, 4096)]
    assert times == sorted(times)
    assert model.matmul(1024, 64) >= model.matvec(1024)


def test_what_fits() -> None:
    small = measured(memory_bytes=4 * 1024 * 1024 + 2 * 4 * 1024)
    assert small.fits(1024)
    assert not small.fits(1024, 2)
    assert not small.fits(1025)


def test_a_fixed_delay_is_one() -> None:
    assert fixed_delay("oracle", 0.0).round_s(65_536, 64, 99, "text") == 0
    assert fixed_delay("x", 2e-3).round_s(1, 1, 0, "direct") == 2e-3


def test_unknown_format() -> None:
    with pytest.raises(ValueError, match="text, binary, direct"):
        PROFILES["910c"].round_s(10, format="paper")


def test_fit_line() -> None:
    assert fit_line([(1, 3.0), (2, 5.0), (4, 9.0)]) == pytest.approx((1.0, 2.0))
    assert fit_line([(7, 3.0)]) == (3.0, 0.0)
    assert fit_line([(1, 3.0), (2, 1.0)]) == (2.0, 0.0)  # it never gets cheaper
    fixed, slope = fit_line([(1, 0.0), (2, 10.0)])
    assert fixed == 0
    assert slope == pytest.approx(4.0)


def test_every_profile_says_that_it_is_a_model_and_where_from() -> None:
    assert set(PROFILES) == {"ascend-910", "910b4", "910b2", "910c"}
    for name, model in PROFILES.items():
        assert model.name == name
        assert model.kind == "model"
        assert "TFLOPS" in model.source
        assert "assumed" in model.source
        assert "not measured" in model.describe()


def test_names_of_devices() -> None:
    assert parse_device("auto") is parse_device("cpu") is None
    found = parse_device("simulated:910b4")
    assert found is not None
    assert (found.name, found.direct, found.delay_s, found.label) == ("910b4", False, None, "simulated:910b4")
    direct = parse_device("simulated:910c:direct")
    assert direct is not None
    assert direct.direct
    assert direct.label == "simulated:910c:direct"
    delays = {"oracle": 0.0, "250us": 250e-6, "1.5ms": 1.5e-3, "2s": 2.0}
    for name, delay in delays.items():
        told = parse_device(f"simulated:{name}")
        assert told is not None
        assert told.delay_s == pytest.approx(delay)


@pytest.mark.parametrize(
    "device", ["simulated:", "simulated:910x", "simulated:910b4:fast", "simulated:3 ms", "simulated"]
)
def test_a_device_that_does_not_exist(device: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(None, options={"npu.device": device})
    text = str(caught.value)
    assert "npu.device" in text
    assert "Fix: " in text
    assert ":direct" in text if device.endswith("fast") else all(name in text for name in simulation_names())


def test_a_simulated_device_serves_any_number_of_ranks() -> None:
    assert load_config(None, ["npu.device=simulated:910b4", "ranks=2"]).ranks == 2
    assert load_config(None, ["npu.device=simulated:oracle"]).npu.device == "simulated:oracle"
