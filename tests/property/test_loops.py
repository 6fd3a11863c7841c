"""Whatever the tasks, chunks, threads and packages: each task is run exactly once, and the reports add up."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.schedule import add_task, atomic_add, do_all, for_each

EXAMPLES = 15 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 60

shapes = st.fixed_dictionaries(
    {"threads": st.integers(1, 9), "chunk": st.integers(1, 9), "packages": st.integers(1, 3), "simulate": st.booleans()}
)


def count_task(task, hits, cost):
    atomic_add(hits, task, 1)
    return cost[task]


def count_and_create(task, tasks, hits, offsets, children, priority, cost):
    atomic_add(hits, task, 1)
    for i in range(offsets[task], offsets[task + 1]):
        add_task(tasks, children[i], priority[children[i]])
    return cost[task]


@pytest.mark.jitless
@settings(max_examples=EXAMPLES, deadline=None)
@given(costs=st.lists(st.integers(0, 50), max_size=60), shape=shapes)
def test_do_all_with_stealing(costs, shape):
    hits, cost = np.zeros(len(costs), np.int64), np.array(costs, np.int64)
    report = do_all(count_task, len(costs), hits, cost, steal=True, **shape)
    assert (hits == 1).all()
    assert report.tasks.sum() == len(costs)
    assert report.work.sum() == sum(costs)
    assert report.chunks.sum() == -(-len(costs) // shape["chunk"])
    assert (report.steals <= report.chunks).all()
    if shape["simulate"] and costs:  # greedy: nobody is ahead by more than the largest chunk
        largest = max(sum(costs[i : i + shape["chunk"]]) for i in range(0, len(costs), shape["chunk"]))
        assert report.work.max() <= report.work.sum() / shape["threads"] + largest


@pytest.mark.jitless
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data(), n=st.integers(1, 60), shape=shapes)
def test_for_each_over_any_forest(data, n, shape):
    """Task v is created by its parent, which has a smaller number; roots are given."""
    parent = [data.draw(st.integers(-1, v - 1), label=f"parent of {v}") for v in range(n)]
    priority = np.array(data.draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n)), np.int64)
    order = np.argsort(parent, kind="stable")
    roots = [v for v in range(n) if parent[v] < 0]
    children = order[len(roots) :].astype(np.int64)
    offsets = np.searchsorted(np.array(parent)[children], np.arange(n + 1)).astype(np.int64)
    hits, cost = np.zeros(n, np.int64), np.arange(n, dtype=np.int64)
    report = for_each(
        count_and_create, roots, hits, offsets, children, priority, cost, priorities=priority[roots], room=200, **shape
    )
    assert (hits == 1).all()
    assert report.tasks.sum() == n
    assert report.work.sum() == cost.sum()
