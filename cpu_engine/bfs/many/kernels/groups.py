"""Arguments that the kernels of the search from many roots take together; see cpu_engine/bfs/kernels/groups.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Words(NamedTuple):
    """A 64-bit word per vertex in which bit s belongs to root s; levels.py says what each means."""

    seen: np.ndarray
    front: np.ndarray
    fresh: np.ndarray
    planes: np.ndarray


class Core(NamedTuple):
    """What the core solver answered about the core's vertices, a word for each.

    ``known`` and ``closed`` are its last answer (core.py). ``within`` has all bits set where a vertex has an
    in-neighbour in the core, else none. ``due`` has the roots for which a vertex joins the level that is being made.
    """

    known: np.ndarray
    closed: np.ndarray
    within: np.ndarray
    due: np.ndarray
