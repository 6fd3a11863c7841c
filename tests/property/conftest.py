"""Every property test draws the thresholds at which the engines switch paths, along with its own arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.control import current_build_context

from tests.thresholds import small

HERE = Path(__file__).resolve().parent
seeds = st.integers(0, 2**32 - 1)  # 0, to which a failing example shrinks, is what is shipped


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Wrap what hypothesis runs for each example; a test marked ``shipped_thresholds`` is left alone."""
    wrapped = set()
    for item in items:
        given = getattr(getattr(item, "obj", None), "hypothesis", None)
        if given is None or HERE not in item.path.parents or item.get_closest_marker("shipped_thresholds"):
            continue
        if id(given) not in wrapped:  # which all parameters of a test share
            wrapped.add(id(given))
            given.inner_test = with_small_thresholds(given.inner_test)


def with_small_thresholds(test: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> Any:
        seed = current_build_context().data.draw(seeds)
        with small(seed) as chosen:
            note(f"with tests.thresholds.small({seed}): {chosen}")
            return test(*args, **kwargs)

    return run
