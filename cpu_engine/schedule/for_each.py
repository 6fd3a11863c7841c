"""for_each: tasks that create tasks, from concurrent bags, in no order or by soft priority (bags.py).

Invariant: each task that was given or created is run exactly once; the loop ends when none is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cpu_engine.bfs.numa import count_nodes
from cpu_engine.intrinsics.atomics import atomic_add
from cpu_engine.intrinsics.clock import now_ns
from cpu_engine.schedule import bags as kernel
from cpu_engine.schedule.bags import make_bags
from cpu_engine.schedule.entry import Kernel
from cpu_engine.schedule.errors import OperatorError, operator_name
from cpu_engine.schedule.loops import CHUNK, Arguments, checked_threads, work_of
from cpu_engine.schedule.report import COLUMNS, IDLE_NS, LoopReport, report_of

_NO_LIMIT = np.iinfo(np.int64).max

_SHARE = """
@njit(error_model="numpy")
def share(thread, limit, bags, tally{parameters}):
    tasks = (bags, thread)
{mine}
    done, work = 0, np.int64(0)
    atomic_add(bags, {active}, 1)
    while done < limit and bags[{full}] == 0:
        some, task = take_task(bags, thread, tally)
        if some:
            work += work_of(operator(task, tasks{arguments}))
            done += 1
            continue
        if limit < {no_limit}:
            break
        since = now_ns()
        more = wait_for_work(bags)
        tally[thread, {idle}] += now_ns() - since
        if not more:
            break
    if limit < {no_limit}:
        atomic_add(bags, {active}, -1)
    tally[thread, 0] += done
    tally[thread, 1] += work
"""


def for_each(
    operator: Callable[..., Any],
    tasks: Any,
    *arguments: Any,
    priorities: Any = 0,
    chunk: int = CHUNK,
    threads: int | None = None,
    simulate: bool = False,
    packages: int | None = None,
    room: int | None = None,
) -> LoopReport:
    """Run ``operator(task, tasks, *arguments)`` for each of ``tasks`` and for each that an operator creates.

    Tasks are integers of 64 bits. An operator creates one by ``add_task(tasks, task)`` or, with soft priority,
    ``add_task(tasks, task, priority)``: the smaller, the sooner. ``priorities``: of the tasks given, one or one each.
    ``chunk``: tasks that a thread takes at once. ``room``: tasks that may wait at once, by default what a quarter of
    the available memory holds. ``simulate``: as in do_all; a thread that finds nothing waits for the next in time.
    """
    threads, packages = checked_threads(threads, chunk), packages or count_nodes()
    given = Arguments(operator, arguments, threads, ["task", "tasks"])
    first = np.atleast_1d(np.asarray(tasks, np.int64))
    priority = np.asarray(priorities, np.int64)
    if priority.ndim and priority.shape != first.shape:
        raise OperatorError(
            f"there are {first.size} tasks and {priority.size} priorities", fix="give one for all, or one for each"
        )
    bags = make_bags(threads, packages, chunk, room)
    tally = np.zeros((threads, COLUMNS), np.int64)
    _put_first(bags, first, np.broadcast_to(priority, first.shape), threads, chunk)
    limit = np.int64(chunk if simulate else _NO_LIMIT)
    passed = {"limit": limit, "bags": bags, "tally": tally} | given.passed
    text = _SHARE.format(active=kernel.ACTIVE, full=kernel.FULL, no_limit=_NO_LIMIT, idle=IDLE_NS, **given.text)
    names = {
        "operator": operator, "work_of": work_of, "atomic_add": atomic_add, "now_ns": now_ns,
        "take_task": kernel.take_task, "wait_for_work": kernel.wait_for_work,
    }  # fmt: skip
    handle = (bags, np.int64(0))
    like = {"operator": [np.int64(0), handle, *given.like]}
    stop = f"bags[{kernel.FULL}] = 1"  # or the others would wait for tasks of the thread that is gone
    bound = Kernel(text, names, passed, like, on_raise=stop).bind(**passed)
    began = time.perf_counter()
    spans = None
    if simulate:
        _run_in_turns(bound.run_one, tally, bags)
    else:
        spans = bound.run(threads)
    if bags[kernel.FULL]:
        raise OperatorError(
            f"operator {operator_name(operator)} created more tasks than there is room for",
            value=int(bags[kernel.MOST_CHUNKS]) * chunk,
            fix="create a task only when something has changed, or pass a larger room",
        )
    return report_of("for_each", operator_name(operator), tally, began, spans)


def _put_first(bags: np.ndarray, first: np.ndarray, priority: np.ndarray, threads: int, chunk: int) -> None:
    """Deal the tasks given to the threads, in turns of a chunk, and list their chunks, so that all can take them."""
    for thread in range(threads):
        turns = np.arange(first.size) // chunk % threads == thread
        kernel.put_tasks(bags, np.int64(thread), first[turns], np.ascontiguousarray(priority[turns]))


def _run_in_turns(run: Callable[[int], None], tally: np.ndarray, bags: np.ndarray) -> None:
    """Chunk by chunk, always the thread whose clock is lowest; one without work waits until the next one's time."""
    threads = tally.shape[0]
    clock = [0] * threads
    idle: set[int] = set()  # since a thread did anything
    while len(idle) < threads and not bags[kernel.FULL]:
        thread = min(range(threads), key=lambda t: clock[t])
        tasks, work = int(tally[thread, 0]), int(tally[thread, 1])
        run(thread)
        if int(tally[thread, 0]) > tasks:
            clock[thread] += max(int(tally[thread, 1]) - work, 1)
            idle.clear()
        else:
            clock[thread] = min((c for c in clock if c > clock[thread]), default=clock[thread]) + 1
            idle.add(thread)
