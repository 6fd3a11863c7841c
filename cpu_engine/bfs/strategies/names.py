"""The strategies by name; ``auto`` is the one that changes direction and is meant to be fastest."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from cpu_engine.bfs.kernels.groups import Tree
from cpu_engine.bfs.strategies.strategy import Expander
from cpu_engine.bfs.traversal import CoreSplit

Factory = Callable[[CoreSplit, Tree], Expander]

# Where each lives, so that a job loads only what it uses.
_PLACES = {
    "auto": ("auto", "AutoExpander"),
    "push": ("push", "PushExpander"),
    "push-private": ("push", "PrivatePushExpander"),
    "push-edge": ("push_edge", "EdgePushExpander"),
    "push-bucketed": ("push", "BucketedPushExpander"),
    "pull": ("pull", "PullExpander"),
    "pull-numa": ("numa", "NumaPullExpander"),
    "edge-centric": ("edges", "EdgeCentricExpander"),
    "small-levels": ("small_levels", "SmallLevelsExpander"),
    "switching": ("switch", "SwitchingExpander"),
}
STRATEGIES = tuple(_PLACES)


def load_strategy(name: str) -> Factory:
    """The strategy of this name."""
    module, factory = _PLACES[name]
    found: Factory = getattr(importlib.import_module(f"cpu_engine.bfs.strategies.{module}"), factory)
    return found
