"""The algorithms as jobs see them: one small class each says what it computes, how that is proven and described."""

from __future__ import annotations

import importlib

from hybrid.algorithms.algorithm import Algorithm, Description
from hybrid.registry import ALGORITHMS


def description_of(name: str) -> Description:
    """The shape and meaning of an algorithm's result."""
    module, _, kind = ALGORITHMS[name].home.partition(":")
    found: Description = getattr(importlib.import_module(module), kind)()
    return found


def algorithm_named(name: str) -> Algorithm:
    """An algorithm that jobs can run."""
    found = description_of(name)
    assert isinstance(found, Algorithm), name
    return found
