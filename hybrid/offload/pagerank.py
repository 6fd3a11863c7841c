"""PageRank with a core solver: in every iteration it adds up the core's own arcs while the CPU follows all others.

The solver's answers only enter sums, so a wrong one is not noticed here: check_pagerank finds it afterwards, and the
job then computes again without the solver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_engine.pagerank.engine import PageRankEngine, PageRankResult, limits_of
from hybrid.offload.rounds import Rounds
from hybrid.results.trace import Trace

if TYPE_CHECKING:
    from cpu_engine.pagerank.personalised import ManyRanksEngine


def pagerank_together(
    engine: PageRankEngine, rounds: Rounds, trace: Trace, *, tolerance: float | None, iterations: int | None
) -> PageRankResult:
    """Iterate as ``pagerank`` does, one round per iteration; where no answer comes, the CPU does the core as well.

    ``None`` stands for the definition's default. All iterations read the last one's ranks, also for "gap".
    """
    tolerance, most = limits_of(engine.definition, tolerance, iterations)
    engine.begin()
    done, change = 0, float("inf")
    while done < most and (tolerance is None or change >= tolerance):
        change = iterate_together(engine, rounds, trace)
        done += 1
    converged = tolerance is None or change < tolerance
    return PageRankResult(engine.rank(), engine.isolated_rank, done, change, converged)


def iterate_together(engine: PageRankEngine | ManyRanksEngine, rounds: Rounds, trace: Trace) -> Any:
    """One iteration; how far the ranks moved. Many sources go out as [B, k], a row for each."""
    contributions = engine.core_contributions()
    sent = contributions.size > 0 and rounds.send(np.ascontiguousarray(contributions.T))
    with trace.span("cpu", "sweep"):
        engine.sweep_outside()
    answer = rounds.receive() if sent else None
    if answer is not None:
        t0 = trace.now()
        engine.add_core_sums(answer.values.T)
        rounds.merge(answer, t0, int(answer.values.size))
    elif engine.core_size:
        with trace.span("cpu", "take_back", why=rounds.solver.failure or "the CPU was first"):
            engine.sum_core()
    return engine.finish_iteration()
