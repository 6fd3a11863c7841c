"""Connected components by two: the CPU links all edges outside the core, the partner spreads labels inside it.

Rounds repeat until a word of the partner joins nothing new. A partner that gives labels which nobody could have is not
asked again; one that joins what is not connected is found out by check_components, and the job computes again alone.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.components.core import CoreComponents
from cpu_engine.components.weak import ComponentsResult
from cpu_engine.errors import InputError
from hybrid.offload.rounds import CoreRounds
from hybrid.results.trace import Trace

PROGRAM = "min-select"


def components_together(engine: CoreComponents, rounds: CoreRounds, trace: Trace) -> ComponentsResult:
    """The components of the whole graph, whatever the partner does or fails to do."""
    with trace.span("cpu", "link", edges="outside the core"):
        engine.start()
    while engine.split.core_size:
        mine = engine.core_labels()
        closed = rounds.receive() if rounds.send(mine) else None
        if closed is None:
            with trace.span("cpu", "take_back", why=rounds.partner.failure or "the CPU was first"):
                engine.take_core_back()
            break
        try:
            joined = engine.adopt(closed)
        except InputError as error:
            rounds.partner.distrust(str(error))
            continue
        rounds.adopted(int(np.count_nonzero(closed != mine)))
        if not joined:
            break
    return engine.finish()
