"""The strategies by name; ``auto`` is the one that changes direction and is meant to be fastest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cpu_engine.algorithms.expand_auto import AutoExpander
from cpu_engine.algorithms.expand_edges import EdgeCentricExpander
from cpu_engine.algorithms.expand_numa import NumaPullExpander
from cpu_engine.algorithms.expand_pull import PullExpander
from cpu_engine.algorithms.expand_push import BucketedPushExpander, PrivatePushExpander, PushExpander
from cpu_engine.algorithms.expand_push_edge import EdgePushExpander
from cpu_engine.algorithms.expand_small import SmallLevelsExpander
from cpu_engine.algorithms.expand_switch import SwitchingExpander
from cpu_engine.algorithms.expander import Expander
from cpu_engine.algorithms.traversal import CoreSplit

Factory = Callable[[CoreSplit, np.ndarray, np.ndarray], Expander]

STRATEGIES: dict[str, Factory] = {
    "auto": AutoExpander,
    "push": PushExpander,
    "push-private": PrivatePushExpander,
    "push-edge": EdgePushExpander,
    "push-bucketed": BucketedPushExpander,
    "pull": PullExpander,
    "pull-numa": NumaPullExpander,
    "edge-centric": EdgeCentricExpander,
    "small-levels": SmallLevelsExpander,
    "switching": SwitchingExpander,
}
