"""The strategies by name; ``auto`` is the one that changes direction and is meant to be fastest."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np

from cpu_engine.algorithms.expander import Expander
from cpu_engine.algorithms.traversal import CoreSplit

Factory = Callable[[CoreSplit, np.ndarray, np.ndarray], Expander]

# Where each lives, so that a job loads only what it uses.
_PLACES = {
    "auto": ("expand_auto", "AutoExpander"),
    "push": ("expand_push", "PushExpander"),
    "push-private": ("expand_push", "PrivatePushExpander"),
    "push-edge": ("expand_push_edge", "EdgePushExpander"),
    "push-bucketed": ("expand_push", "BucketedPushExpander"),
    "pull": ("expand_pull", "PullExpander"),
    "pull-numa": ("expand_numa", "NumaPullExpander"),
    "edge-centric": ("expand_edges", "EdgeCentricExpander"),
    "small-levels": ("expand_small", "SmallLevelsExpander"),
    "switching": ("expand_switch", "SwitchingExpander"),
}
STRATEGIES = tuple(_PLACES)


def load_strategy(name: str) -> Factory:
    """The strategy of this name."""
    module, factory = _PLACES[name]
    found: Factory = getattr(importlib.import_module(f"cpu_engine.algorithms.{module}"), factory)
    return found
