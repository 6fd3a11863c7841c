"""Engines that give wrong results: every value of an algorithm's first array is one too high."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

SetAttribute = Callable[[Any, str, Any], None]


def raised(found: Any) -> Any:
    """A ``Found`` with its first array damaged."""
    name, values = next(iter(found.arrays.items()))
    return dataclasses.replace(found, arrays={**found.arrays, name: values + 1})


def break_engine(algorithm: str, setattr_: SetAttribute = setattr) -> None:
    """From now on the engines of this algorithm are wrong, whoever runs them."""
    if algorithm == "bfs":
        _break_searches(setattr_)
        return
    if algorithm == "sssp":  # Python's own interface keeps an engine
        from cpu_engine.sssp.engine import SsspEngine

        honest_engine = SsspEngine.run

        def wrong_engine(self: Any, root: int) -> Any:
            found = honest_engine(self, root)
            return dataclasses.replace(found, distance=found.distance + 1)

        setattr_(SsspEngine, "run", wrong_engine)
        return
    from hybrid.algorithms import algorithm_named

    kind: Any = type(algorithm_named(algorithm))
    setattr_(kind, "run", lambda self, task: raised(self.recompute(task)))  # an engine may stumble over another's fault


def _break_searches(setattr_: SetAttribute) -> None:
    from cpu_engine.bfs.asynchronous import AsyncBfs
    from cpu_engine.bfs.level_synchronous import LevelBfs
    from cpu_engine.bfs.many.engine import ManyBfs

    for kind in (AsyncBfs, LevelBfs):
        _break_one(kind, setattr_)
    honest = ManyBfs.run

    def wrong(self: Any, roots: Any, *, parents: bool = False) -> Any:
        found = honest(self, roots, parents=parents)
        return dataclasses.replace(found, level=found.level + 1)

    setattr_(ManyBfs, "run", wrong)


def _break_one(kind: Any, setattr_: SetAttribute) -> None:
    honest = kind.finish

    def wrong(self: Any) -> Any:
        level, parent = honest(self)
        return level + 1, parent

    setattr_(kind, "finish", wrong)
