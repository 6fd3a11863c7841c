"""do_all and on_each: tasks that know nothing of one another, and one call per thread.

do_all without stealing divides the tasks evenly, in order, and each thread works on its own part. With stealing, the
parts are sets of chunks: a thread takes chunks from the beginning of its own set, and when that is empty, from the end
of another's, its own package's (memory node's) first. Invariant: each task is run exactly once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from cpu_engine.bfs.numa import count_nodes
from cpu_engine.intrinsics.atomics import atomic_claim
from cpu_engine.intrinsics.team import atomic_load
from cpu_engine.schedule.entry import Kernel, real_threads
from cpu_engine.schedule.errors import OperatorError, check_count, operator_name
from cpu_engine.schedule.report import COLUMNS, LoopReport, report_of
from cpu_engine.schedule.storage import PerThread

CHUNK = 64  # tasks: Galois' default
_LINE = 8  # int64 per cache line
_END_BITS = 32
_NO_LIMIT = np.iinfo(np.int64).max


def work_of(returned):
    """How much work an operator says that its task was; 1 if it says nothing."""
    return 1 if returned is None else int(returned)


@overload(work_of)
def _overload_work_of(returned):
    if isinstance(returned, types.NoneType):
        return lambda returned: 1
    return lambda returned: np.int64(returned)


@njit(cache=True)
def take_first_chunk(ranges, thread):
    """The first chunk of the thread's own set, -1 if it is empty.

    Invariant  a set is one word, begin and end, changed by compare-and-swap: no chunk is taken twice.
    """
    while True:
        word = atomic_load(ranges, thread * _LINE)
        begin, end = word >> _END_BITS, word & ((1 << _END_BITS) - 1)
        if begin >= end:
            return np.int64(-1)
        if atomic_claim(ranges, thread * _LINE, word, word + (1 << _END_BITS)):
            return np.int64(begin)


@njit(cache=True)
def steal_last_chunk(ranges, victims):
    """The last chunk of the first of ``victims`` that has one, -1 if none has.   Invariant  see take_first_chunk."""
    for victim in victims:
        while True:
            word = atomic_load(ranges, victim * _LINE)
            begin, end = word >> _END_BITS, word & ((1 << _END_BITS) - 1)
            if begin >= end:
                break
            if atomic_claim(ranges, victim * _LINE, word, word - 1):
                return np.int64(end - 1)
    return np.int64(-1)


_STEALING = """
@njit(error_model="numpy")
def share(thread, first, tasks, count, chunk, limit, ranges, victims, tally{parameters}):
    done, work, chunks, steals = 0, np.int64(0), 0, 0
{mine}
    while chunks < limit:
        at = take_first_chunk(ranges, thread)
        if at < 0:
            at = steal_last_chunk(ranges, victims[thread])
            if at < 0:
                break
            steals += 1
        chunks += 1
        for i in range(at * chunk, min(at * chunk + chunk, count)):
            work += work_of(operator({task}{arguments}))
            done += 1
    tally[thread, 0] += done
    tally[thread, 1] += work
    tally[thread, 2] += chunks
    tally[thread, 3] += steals
"""

_DIVIDED = """
@njit(error_model="numpy")
def share(thread, first, tasks, count, tally{parameters}):
    threads = tally.shape[0]
    work = np.int64(0)
{mine}
    for i in range(count * thread // threads, count * (thread + 1) // threads):
        work += work_of(operator({task}{arguments}))
    tally[thread, 0] = count * (thread + 1) // threads - count * thread // threads
    tally[thread, 1] = work
"""

_ON_EACH = """
@njit(error_model="numpy")
def share(thread, tally{parameters}):
{mine}
    tally[thread, 1] = work_of(operator(thread, tally.shape[0]{arguments}))
    tally[thread, 0] = 1
"""


class Arguments:
    """A loop's further arguments: arrays, scalars, and PerThread, of which each thread is given its own row."""

    def __init__(self, operator: Any, given: tuple[Any, ...], threads: int, leading: list[str]) -> None:
        check_count(operator, "the operator", [*leading, *(f"argument_{i}" for i in range(1, len(given) + 1))])
        self.passed: dict[str, Any] = {}
        mine, names = [], []
        self.like: list[Any] = []
        for i, one in enumerate(given):
            name = f"argument_{i}"
            names.append(name)
            if isinstance(one, PerThread):
                self.passed |= {f"{name}_rows": one.fit(threads), f"{name}_size": np.int64(one.size)}
                mine.append(f"    {name} = {name}_rows[thread, :{name}_size]")
                self.like.append(one.rows[0, : one.size])
            else:
                self.passed[name] = one if isinstance(one, np.ndarray) else np.asarray(one)[()]
                self.like.append(self.passed[name])
        self.text = {
            "parameters": "".join(f", {name}" for name in self.passed),
            "arguments": "".join(f", {name}" for name in names),
            "mine": "\n".join(mine) or "    pass",
        }


def do_all(
    operator: Callable[..., Any],
    tasks: int | range | np.ndarray,
    *arguments: Any,
    steal: bool = False,
    chunk: int = CHUNK,
    threads: int | None = None,
    simulate: bool = False,
    packages: int | None = None,
) -> LoopReport:
    """Run ``operator(task, *arguments)`` for each task, in any order, on all threads.

    ``tasks``: how many (0, 1, ...), a range of step 1, or an array of integers. Tasks must be independent, or meet only
    in atomic updates. ``steal``: in chunks of ``chunk`` tasks, see the module; worth it when tasks differ in size.
    ``simulate``: the shares of ``threads`` threads run here, chunk by chunk, always that of the thread which has done
    the least work: deterministic, to see how even the load would be.
    """
    threads = checked_threads(threads, chunk)
    given = Arguments(operator, arguments, threads, ["task"])
    first, listed, count = _tasks(tasks)
    tally = np.zeros((threads, COLUMNS), np.int64)
    common = {"first": first, "tasks": listed, "count": np.int64(count)}
    task = "first + i" if listed.size == 0 else "tasks[i]"
    if steal:
        sets = {
            "chunk": np.int64(chunk), "limit": np.int64(1 if simulate else _NO_LIMIT),
            "ranges": _chunk_sets(-(-count // chunk), threads),
            "victims": victims_of(threads, packages or count_nodes()),
        }  # fmt: skip
        passed = common | sets | {"tally": tally} | given.passed
        text, names = _STEALING, {"take_first_chunk": take_first_chunk, "steal_last_chunk": steal_last_chunk}
    else:
        passed, text, names = common | {"tally": tally} | given.passed, _DIVIDED, {}
    example = first if listed.size == 0 else listed.dtype.type(0)
    kernel = Kernel(
        text.format(task=task, **given.text),
        {"operator": operator, "work_of": work_of, **names},
        passed,
        {"operator": [example, *given.like]},
    )
    bound = kernel.bind(**passed)
    began = time.perf_counter()
    spans = None
    if simulate:
        run_by_least_work(lambda thread: bound.run_one(thread), tally)
    else:
        spans = bound.run(threads)
    return report_of("do_all", operator_name(operator), tally, began, spans)


def on_each(operator: Callable[..., Any], *arguments: Any, threads: int | None = None) -> LoopReport:
    """Run ``operator(thread, threads, *arguments)`` once on each thread."""
    threads = checked_threads(threads, 1)
    given = Arguments(operator, arguments, threads, ["thread", "threads"])
    tally = np.zeros((threads, COLUMNS), np.int64)
    passed = {"tally": tally} | given.passed
    kernel = Kernel(
        _ON_EACH.format(**given.text),
        {"operator": operator, "work_of": work_of},
        passed,
        {"operator": [np.int64(0), np.int64(1), *given.like]},
    )
    began = time.perf_counter()
    spans = kernel.bind(**passed).run(threads)
    return report_of("on_each", operator_name(operator), tally, began, spans)


def run_by_least_work(run: Callable[[int], None], tally: np.ndarray) -> None:
    """Run a piece of a share at a time, that of the thread with the least work so far, until no thread gets any."""
    done = set(range(tally.shape[0]))
    clock = tally[:, 1]
    while done:
        thread = min(done, key=lambda t: int(clock[t]))
        before = int(tally[thread, 0])
        run(thread)
        if int(tally[thread, 0]) == before:
            done.discard(thread)


def victims_of(threads: int, packages: int) -> np.ndarray:
    """For each thread whom it steals from, in order: its own package's threads first; int64[threads, threads - 1]."""
    package = [thread * packages // threads for thread in range(threads)]
    rows = [
        sorted((t for t in range(threads) if t != me), key=lambda t: (package[t] != package[me], (t - me) % threads))
        for me in range(threads)
    ]
    return np.array(rows, np.int64).reshape(threads, threads - 1)


def _chunk_sets(chunks: int, threads: int) -> np.ndarray:
    sets = np.zeros(threads * _LINE, np.int64)
    bounds = chunks * np.arange(threads + 1) // threads
    sets[::_LINE] = (bounds[:-1] << _END_BITS) | bounds[1:]
    return sets


def _tasks(tasks: int | range | np.ndarray) -> tuple[np.int64, np.ndarray, int]:
    """The first task, or the list of tasks (then not empty), and how many there are."""
    if isinstance(tasks, np.ndarray) and tasks.ndim == 1 and tasks.dtype.kind in "iu":
        return np.int64(0), tasks, int(tasks.size)
    if isinstance(tasks, (int, np.integer)) and tasks >= 0:
        return np.int64(0), np.empty(0, np.int64), int(tasks)
    if isinstance(tasks, range) and tasks.step == 1:
        return np.int64(tasks.start), np.empty(0, np.int64), len(tasks)
    raise OperatorError(
        "tasks must be a number, a range of step 1 or a one-dimensional array of integers",
        value=tasks,
        fix="pass numpy.asarray(tasks)",
    )


def checked_threads(threads: int | None, chunk: int) -> int:
    if (threads is not None and threads < 1) or chunk < 1:
        raise OperatorError("threads and chunk must be at least 1", value=(threads, chunk))
    return threads or real_threads()
