"""An algorithm of your own: a maximal independent set, by an operator that the runtime runs on all threads.

An undecided vertex whose number is smallest among its undecided neighbours joins the set, and excludes the neighbours.

    python examples/custom_operator.py [SCALE] [REPORT.html]

With a name for it, a page is written that shows what each thread did when.
"""

from __future__ import annotations

import sys

import numpy as np

import hybrid
from cpu_engine.schedule import Reduction, do_all
from hybrid.report.threads import write_threads_report
from hybrid.results.trace import Trace

UNDECIDED, INSIDE, OUTSIDE = 0, 1, 2


def decide(vertex, offsets, targets, number, state, after, open_ones):  # type: ignore[no-untyped-def]
    """Read ``state``, write only ``after[vertex]``: tasks are independent of each other."""
    after[vertex] = state[vertex]
    if state[vertex] != 0:
        return
    wins = True
    for e in range(offsets[vertex], offsets[vertex + 1]):
        other = targets[e]
        if state[other] == 1:
            after[vertex] = 2
            return
        if state[other] == 0 and number[other] < number[vertex]:
            wins = False
    if wins:
        after[vertex] = 1
    else:
        open_ones[0] += 1


def independent_set(graph: hybrid.Graph, trace: Trace, seed: int = 1) -> np.ndarray:
    """A mask over the internal vertices: no two of them are joined, and no other vertex could be added."""
    rows = graph.rows
    number = np.random.default_rng(seed).permutation(rows.n)
    state = np.zeros(rows.n, np.int8)
    while True:
        after, still_open = np.empty_like(state), Reduction("sum")
        report = do_all(
            decide, rows.n, rows.out_offsets, rows.out_targets, number, state, after, still_open, steal=True
        )
        report.trace(trace)  # what each thread did
        state = after
        if still_open.value == 0 and not np.any(state == UNDECIDED):
            return state == INSIDE


def main(scale: int, page: str | None) -> None:
    graph, trace = hybrid.generate(scale=scale), Trace()
    chosen = independent_set(graph, trace)
    rows = graph.rows
    source = np.repeat(np.arange(rows.n), np.diff(rows.out_offsets))
    joined = np.count_nonzero(chosen[source] & chosen[rows.out_targets])
    beside = np.zeros(rows.n, bool)
    beside[rows.out_targets[chosen[source]]] = True
    print(graph)
    maximal = bool((chosen | beside).all())
    print(f"{np.count_nonzero(chosen)} of {rows.n} vertices; edges inside: {joined}; maximal: {maximal}")
    if page is not None:
        print("what each thread did:", write_threads_report(page, trace, "A maximal independent set"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12, sys.argv[2] if len(sys.argv) > 2 else None)
