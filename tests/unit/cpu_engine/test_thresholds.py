"""The registry of thresholds: complete, settable, restored - and the values that it draws are kept apart."""

from __future__ import annotations

import importlib
import inspect
import random
from contextlib import suppress

import pytest

from cpu_engine.sssp import delta as sssp_delta
from cpu_engine.sssp import engine as sssp
from cpu_engine.sssp import skeleton as sssp_skeleton
from tests import thresholds
from tests.constants import PACKAGE, survey
from tests.thresholds import DRIVER, KERNEL, ORDERED, excluded, shipped, small, using


def test_every_numeric_constant_is_a_threshold_or_says_why_not() -> None:
    """A new constant fails here until it is given small values, or a reason why it decides nothing."""
    known = [*DRIVER, *KERNEL, *excluded()]
    assert sorted(survey()) == sorted(known), "add it to tests/thresholds.py"


def test_the_survey_sees_every_folder() -> None:
    folders = {name.split(".")[0] for name in survey()}
    assert folders >= {"bfs", "comm", "graph", "intrinsics", "programs", "schedule", "sssp"}
    assert shipped("schedule.bags._HEADER") == 88, "computed from another"
    assert shipped("pagerank.kernels.personalised.WIDE_LANES") == 64, "computed from another module's"
    assert shipped("sssp.ranks.THICK_ARCS") == 1 << 18, "one of a pair"


@pytest.mark.parametrize("name", DRIVER)
def test_what_drivers_read_is_not_compiled(name: str) -> None:
    """Compiled code would keep the value that it was compiled with, and be cached with it."""
    assert survey()[name].compiled == []


@pytest.mark.parametrize("name", [*DRIVER, *KERNEL])
def test_every_threshold_can_be_set(name: str) -> None:
    constant, values = survey()[name], (DRIVER | KERNEL)[name]
    assert constant.computed == [], "another constant took its value when the module was loaded"
    assert len(set(values)) == len(values)
    assert constant.value not in values, "the shipped value is drawn anyway"
    assert {type(value) for value in values} == {type(constant.value)}, "or compiled code would be compiled again"


def test_copies_and_defaults_are_set_and_restored() -> None:
    chosen = {
        "sssp.delta.MIN_DEGREE": 3,
        "sssp.delta.BINS": 5,
        "sssp.delta.ROUNDS": 7,
    }
    modules = (sssp_delta, sssp, sssp_skeleton)
    with suppress(ZeroDivisionError), using(chosen):
        assert [module.MIN_DEGREE for module in modules] == [3, 3, 3]
        assert inspect.signature(sssp_delta.Buckets).parameters["bins"].default == 5
        assert inspect.signature(sssp_delta.Buckets.step).parameters["rounds"].default == 7
        raise ZeroDivisionError
    assert [module.MIN_DEGREE for module in modules] == [8, 8, 8]
    assert inspect.signature(sssp_delta.Buckets).parameters["bins"].default == 2048
    assert inspect.signature(sssp_delta.Buckets.step).parameters["rounds"].default == 4096


def test_a_seed_draws_the_same_again_and_zero_nothing() -> None:
    with small(0) as nothing:
        assert nothing == {}
    with small(7) as first:
        pass
    with small(7) as again:
        pass
    assert first == again != {}


def test_what_must_be_ordered_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "interpreted", lambda: True)
    drawn = set()
    for seed in range(1, 200):
        chosen = thresholds.choose(random.Random(seed))
        drawn |= chosen.keys()
        for low, high in ORDERED:
            assert chosen.get(low, shipped(low)) <= chosen.get(high, shipped(high))
    assert drawn == {*DRIVER, *KERNEL}


def test_the_sources_and_the_loaded_modules_agree() -> None:
    for name in (DRIVER | KERNEL).keys() - {"threads.SMALL_WORK"}:  # which tests/conftest.py sets for every test
        module, _, constant = name.rpartition(".")
        assert getattr(importlib.import_module(f"{PACKAGE}.{module}"), constant) == shipped(name)
