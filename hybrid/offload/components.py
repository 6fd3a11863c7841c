"""Components with a core solver: the CPU links all edges outside the core, the solver spreads labels inside it.

Rounds repeat until an answer of the solver joins nothing new. A solver that answers with impossible labels is not
asked again; check_components finds one that joins what is not connected, and the job then computes again alone.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.components.core import CoreComponents
from cpu_engine.components.weak import ComponentsResult
from cpu_engine.errors import InputError
from hybrid.offload.rounds import Rounds
from hybrid.results.trace import Trace


def components_together(engine: CoreComponents, rounds: Rounds, trace: Trace) -> ComponentsResult:
    """The components of the whole graph, whatever the solver does or fails to do."""
    with trace.span("cpu", "link", edges="outside the core"):
        engine.start()
    while engine.split.core_size:
        mine = engine.core_labels()
        answer = rounds.receive() if rounds.send(mine) else None
        if answer is None:
            with trace.span("cpu", "take_back", why=rounds.solver.failure or "the CPU was first"):
                engine.take_core_back()
            break
        t0 = trace.now()
        try:
            joined = engine.adopt(answer.values)
        except InputError as error:
            rounds.refuse(answer, str(error))
            continue
        rounds.merge(answer, t0, int(np.count_nonzero(answer.values != mine)))
        if not joined:
            break
    return engine.finish()
