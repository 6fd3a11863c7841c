"""The strategies by name; ``auto`` is the one that changes direction and is meant to be fastest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cpu_engine.algorithms.expand_auto import AutoExpander
from cpu_engine.algorithms.expander import Expander
from cpu_engine.algorithms.traversal import CoreSplit

Factory = Callable[[CoreSplit, np.ndarray, np.ndarray], Expander]

STRATEGIES: dict[str, Factory] = {"auto": AutoExpander}
