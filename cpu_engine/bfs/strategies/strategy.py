"""What a level-synchronous strategy is: it finds the next level from this one, by whatever edges and lists it likes.

The engine (bfs/level_synchronous.py) owns the depth and everything about the core; an expander owns the frontier.
Invariant: after ``expand`` at ``depth``, every vertex without a level that has an in-edge from level ``depth`` within
the view has level ``depth + 1`` and a parent at ``depth``; no other level or parent has changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from cpu_engine.bfs.traversal import EdgeView


@dataclass(frozen=True)
class Expansion:
    """What one expansion did."""

    direction: str  # push or pull, or what the strategy calls itself
    frontier: int  # vertices expanded
    edges: int  # edges looked at


@dataclass(frozen=True)
class Leap:
    """What a leap over several thin levels did."""

    levels: int  # 0: the frontier was too thick, nothing happened
    frontier: int  # vertices in the frontier now
    expanded: int
    edges: int


NO_LEAP = Leap(0, 0, 0, 0)


class Expander(Protocol):
    """A strategy at work on one graph. Made with (split, tree): levels and parents that it shares with the engine."""

    def start(self, root: int) -> None:
        """Forget the last run: level and parent are -1 but for the root, which is the frontier."""

    def expand(self, view: EdgeView, depth: int) -> Expansion:
        """Find level ``depth + 1``. May be called again before ``advance``, with more edges in the view."""

    def advance(self, extra: np.ndarray, depth: int) -> int:
        """What was found becomes the frontier, at ``depth``, and so do ``extra``: vertices that the caller found and
        gave their level. Returns the size of the frontier; 0 only if it is empty."""


@runtime_checkable
class LeapingExpander(Protocol):
    """What a strategy may offer besides, for graphs with thousands of thin levels."""

    def leap(self, view: EdgeView, depth: int) -> Leap:
        """Run thin levels on, many in one launch, instead of ``expand`` and ``advance`` for each. May do nothing."""
