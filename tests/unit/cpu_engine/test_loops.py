"""The loops: each task once, semantics as documented, errors that name the operator, machine code kept between runs."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from numba import njit

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import kronecker
from cpu_engine.schedule import (
    Bitset,
    OperatorError,
    PerThread,
    Reduction,
    add_task,
    atomic_add,
    atomic_increase,
    atomic_lower,
    atomic_raise,
    atomic_unite,
    do_all,
    for_each,
    on_each,
    set_bit,
    test_bit,
)
from cpu_engine.schedule.bags import make_bags, put_tasks, take_task
from cpu_engine.schedule.entry import Kernel
from cpu_engine.schedule.fingerprint import fingerprint
from cpu_engine.schedule.loops import victims_of
from cpu_engine.schedule.report import COLUMNS

JITLESS = os.environ.get("NUMBA_DISABLE_JIT") == "1"
compiled_only = pytest.mark.skipif(JITLESS, reason="about compiled operators")
test_bit.__test__ = False  # not one of pytest's

WAYS = [
    {},
    {"threads": 1},
    {"threads": 5},
    {"steal": True},
    {"steal": True, "chunk": 3, "packages": 2, "threads": 4},
    {"steal": True, "threads": 8, "chunk": 2, "simulate": True},
]


def hit(task, hits, total):
    atomic_add(hits, task, 1)
    total[0] += task


def split_in_two(task, tasks, hits):
    atomic_add(hits, task, 1)
    for child in range(2 * task + 1, min(2 * task + 3, hits.size)):
        add_task(tasks, child, child % 3)


def row_length(task, offsets):
    return offsets[task + 1] - offsets[task]


@pytest.mark.jitless
@pytest.mark.parametrize("way", WAYS)
def test_do_all_runs_each_task_once(way):
    for tasks, expected in [
        (50, range(50)),
        (range(7, 19), range(7, 19)),
        (np.array([3, 40, 9], np.int32), (3, 9, 40)),
    ]:
        hits, total = np.zeros(50, np.int64), Reduction("sum")
        report = do_all(hit, tasks, hits, total, **way)
        assert np.flatnonzero(hits).tolist() == list(expected)
        assert hits.max() == 1
        assert total.value == sum(expected)
        assert report.tasks.sum() == report.work.sum() == len(expected)
    assert do_all(hit, 0, hits, total, **way).tasks.sum() == 0


@pytest.mark.jitless
def test_without_stealing_each_thread_keeps_its_part():
    def remember(task, owner, mine):
        owner[task] = mine[0]

    def number(thread, threads, mine):
        mine[0] = thread

    owner, mine = np.zeros(10, np.int64), PerThread(1)
    on_each(number, mine, threads=3)
    do_all(remember, 10, owner, mine, threads=3)
    assert owner.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]


@pytest.mark.jitless
def test_a_thief_takes_from_the_end():
    """Thread 0 has one long task; thread 1, done with its own, takes the rest of thread 0's set, last chunk first."""

    def work(task, order, count):
        order[count[0]] = task
        count[0] += 1
        return 100 if task == 0 else 1

    order, count = np.zeros(8, np.int64), np.zeros(1, np.int64)
    report = do_all(work, 8, order, count, steal=True, chunk=1, threads=2, simulate=True)
    assert order.tolist() == [0, 4, 5, 6, 7, 3, 2, 1]
    assert report.tasks.tolist() == [1, 7]
    assert report.steals.tolist() == [0, 3]
    assert report.attributes()["steals"] == [0, 3]


def test_own_package_is_robbed_first():
    assert victims_of(4, 2).tolist() == [[1, 2, 3], [0, 2, 3], [3, 0, 1], [2, 0, 1]]
    assert victims_of(1, 1).shape == (1, 0)


def test_stealing_evens_out_a_kronecker_graph():
    graph = build_graph(kronecker(13, 16, 1), directed=False)
    divided = do_all(row_length, graph.n, graph.out_offsets, threads=8)
    stolen = do_all(row_length, graph.n, graph.out_offsets, threads=8, steal=True, chunk=16, simulate=True)
    again = do_all(row_length, graph.n, graph.out_offsets, threads=8, steal=True, chunk=16, simulate=True)
    assert stolen.work.sum() == divided.work.sum() == graph.m
    assert divided.busiest_over_mean > 4  # hubs come first
    assert stolen.busiest_over_mean < 1.1
    assert stolen.work.tolist() == again.work.tolist()


@pytest.mark.jitless
@pytest.mark.parametrize(
    "way", [{}, {"threads": 1}, {"threads": 4, "packages": 2, "chunk": 2}, {"threads": 8, "simulate": True, "chunk": 4}]
)
def test_for_each_runs_what_is_created(way):
    hits = np.zeros(200, np.int64)
    report = for_each(split_in_two, [0], hits, **way)
    assert (hits == 1).all()
    assert report.tasks.sum() == 200


@pytest.mark.jitless
def test_priorities_are_an_order_for_one_thread():
    def note(task, tasks, order, count):
        order[count[0]] = task
        count[0] += 1
        if task == 30:
            add_task(tasks, 11, 1)
            add_task(tasks, 99, 9)

    order, count = np.zeros(5, np.int64), np.zeros(1, np.int64)
    for_each(note, [50, 30, 40], order, count, priorities=[5, 3, 4], threads=1)
    assert order.tolist() == [30, 11, 40, 50, 99]


@pytest.mark.jitless
def test_more_priorities_than_bags_share_them():
    bags, tally = make_bags(1, 1, 4, 1000, bags=3), np.zeros((1, COLUMNS), np.int64)
    put_tasks(bags, np.int64(0), np.arange(20, dtype=np.int64), np.arange(20, dtype=np.int64) * -7)
    taken = []
    while True:
        some, task = take_task(bags, np.int64(0), tally)
        if not some:
            break
        taken.append(int(task))
    assert sorted(taken) == list(range(20))


@pytest.mark.jitless
def test_no_room_for_tasks_is_an_error():
    def multiply(task, tasks):
        add_task(tasks, task)
        add_task(tasks, task)

    with pytest.raises(OperatorError, match="multiply created more tasks than there is room for"):
        for_each(multiply, [1], chunk=8, room=500)


@pytest.mark.jitless
def test_reductions_and_bits():
    def look(task, low, high, seen, bits):
        low[0] = min(low[0], task)
        high[0] = max(high[0], np.float64(task))
        if task == 77:
            seen[0] = True
        if task % 5 == 0 and not test_bit(bits, task):
            set_bit(bits, task)

    low, high, seen, bits = Reduction("min"), Reduction("max", np.float64), Reduction("any", np.bool_), Bitset(100)
    do_all(look, range(10, 100), low, high, seen, bits.words, threads=4)
    assert (low.value, high.value, seen.value) == (10, 99.0, True)
    assert bits.indices().tolist() == list(range(10, 100, 5))
    assert bits.count() == 18
    bits.clear()
    low.reset()
    assert (bits.count(), low.value) == (0, np.iinfo(np.int64).max)
    with pytest.raises(OperatorError, match="'product' is not known"):
        Reduction("product")


@pytest.mark.jitless
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64])
def test_atomics_for_every_type(dtype):
    def update(task, low, high, total, lowered):
        value = (task * 37) % 101 + 1
        if atomic_lower(low, 0, value):
            atomic_add(lowered, 0, 1)
        atomic_raise(high, 0, value)
        atomic_increase(total, 0, value)

    low, high, total = np.full(1, 120, dtype), np.zeros(1, dtype), np.zeros(1, dtype)
    lowered = np.zeros(1, np.int64)
    do_all(update, 101, low, high, total, lowered, threads=2)
    assert (low[0], high[0], total[0]) == (1, 101, 101 * 102 // 2)
    assert 1 <= lowered[0] <= 101


@pytest.mark.jitless
def test_unite_tells_who_was_first():
    def unite(task, words, news):
        if atomic_unite(words, 0, np.uint64(1) << np.uint64(task % 10)):
            atomic_add(news, 0, 1)

    words, news = np.zeros(1, np.uint64), np.zeros(1, np.int64)
    do_all(unite, 200, words, news)
    assert (words[0], news[0]) == (1023, 10)


# ------------------------------------------------------------------------------------------------ errors


@pytest.mark.jitless
def test_the_number_of_arguments_is_checked_before_anything_runs():
    values = np.zeros(3)
    with pytest.raises(OperatorError, match="operator row_length has no argument for argument_2"):
        do_all(row_length, 3, values, values)
    with pytest.raises(OperatorError, match="operator hit has an argument 'total' that nothing is passed for"):
        do_all(hit, 3, values)
    with pytest.raises(OperatorError, match="must be a function"):
        do_all("hit", 3)

    def variadic(task, *rest):
        return 0

    with pytest.raises(OperatorError, match="argument 'rest' is not an ordinary one"):
        do_all(variadic, 3, values)


@pytest.mark.jitless
def test_what_cannot_be_passed_is_named():
    with pytest.raises(OperatorError, match=r"argument_0.*<U1.*integers, floats or booleans"):
        do_all(row_length, 3, np.array(["a"]))
    with pytest.raises(OperatorError, match="gaps"):
        do_all(row_length, 3, np.zeros(8)[::2])
    with pytest.raises(OperatorError, match="range of step 1"):
        do_all(row_length, range(0, 9, 2), np.zeros(8))
    with pytest.raises(OperatorError, match="at least 1"):
        do_all(row_length, 3, np.zeros(8), threads=0)


@compiled_only
def test_what_numba_refuses_is_said_of_the_operator():
    def misspelt(task, values):
        values.sort_of_missing()

    with pytest.raises(OperatorError) as told:
        do_all(misspelt, 3, np.zeros(3))
    assert "operator misspelt, line" in str(told.value)
    assert "sort_of_missing" in str(told.value)
    assert "values: array(float64" in str(told.value)
    assert "Traceback" not in str(told.value)
    assert "\n" not in str(told.value)


@compiled_only
def test_an_operator_that_raises_ends_the_loop_with_an_error():
    def fail(task, values):
        if values[task] < 0:
            raise ValueError
        values[task] = 1

    with pytest.raises(OperatorError, match="operator fail raised an exception"):
        do_all(fail, 100, -np.ones(100), threads=2)


@compiled_only
@pytest.mark.parametrize("priorities", [0, [3]])
def test_an_operator_that_raises_leaves_nobody_waiting_for_its_tasks(priorities):
    def fail_late(task, tasks, values):
        if task == 7:
            raise ValueError
        add_task(tasks, task + 1)

    with pytest.raises(OperatorError, match="operator fail_late raised an exception"):
        for_each(fail_late, [0], np.zeros(1), priorities=priorities, threads=2)


def test_priorities_are_one_for_all_or_one_for_each():
    with pytest.raises(OperatorError, match="1 tasks and 2 priorities"):
        for_each(lambda task, tasks: 0, [0], priorities=[0, 1])


# ------------------------------------------------------------------------------------------------ machine code

STEP = 2


def step_on(task, values):
    values[task] += STEP


@njit
def helper(x):
    return x + 1


def calls_helper(task, values):
    values[task] = helper(values[task])


def _code_of(module: str) -> object:
    operator = getattr(sys.modules[module], "operator", None)
    return getattr(getattr(operator, "py_func", None), "__code__", None)


@compiled_only
def test_machine_code_is_kept_and_found_again():
    values = np.zeros(4, np.int64)
    do_all(step_on, 4, values)
    modules = [name for name in sys.modules if name.startswith("tandem_operator_")]
    mine = next(name for name in modules if _code_of(name) is step_on.__code__)
    assert sys.modules[mine].CACHED
    del sys.modules[mine]  # as a new process would have it
    do_all(step_on, 4, values)
    assert sys.modules[mine].COMPILED.cache_hits == 1
    assert values.tolist() == [4, 4, 4, 4]


@compiled_only
@pytest.mark.parametrize("loop", [do_all, for_each, on_each])
def test_no_loop_is_compiled_in_every_process(loop):
    def nothing(first, second):
        return 0

    def nothing_more(task, tasks, values):
        return 0

    def nothing_else(task, values):
        return 0

    values = np.zeros(3, np.int64)
    before = set(sys.modules)
    if loop is on_each:
        on_each(nothing, threads=1)
    else:
        loop(nothing_more if loop is for_each else nothing_else, [1] if loop is for_each else 1, values, threads=1)
    made = [name for name in set(sys.modules) - before if name.startswith("tandem_operator_")]
    assert not any(name.startswith("tandem_operator_uncached") for name in made)


def test_the_fingerprint_is_of_all_that_matters(monkeypatch):
    before = fingerprint(step_on)
    assert before == fingerprint(njit(step_on).py_func)
    monkeypatch.setitem(step_on.__globals__, "STEP", 3)
    assert fingerprint(step_on) != before
    with_helper = fingerprint(calls_helper)
    monkeypatch.setitem(step_on.__globals__, "helper", lambda x: x + 2)
    assert fingerprint(calls_helper) != with_helper
    monkeypatch.setitem(step_on.__globals__, "STEP", object())
    assert fingerprint(step_on) is None
    assert fingerprint(np.arange(3)) != fingerprint(np.arange(3) + 1)
    assert fingerprint((1, "a")) != fingerprint((1, "b"))


@compiled_only
def test_without_a_writable_cache_operators_still_run(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TANDEM_CACHE", str(tmp_path / "file"))

    def unkept(task, values):
        values[task] = 41 + 1

    values = np.zeros(3, np.int64)
    do_all(unkept, 3, values)
    assert values.tolist() == [42, 42, 42]


@pytest.mark.jitless
def test_scalars_keep_their_type_and_can_be_set_between_runs():
    text = "\n@njit\ndef share(thread, out, x, flag):\n    out[thread] = x + thread * flag\n"
    like = {"out": np.zeros(2, np.uint32), "x": np.uint32(4_000_000_000), "flag": True}
    bound = Kernel(text, {}, like, {}).bind(**like)
    bound.run(2)
    assert like["out"].tolist() == [4_000_000_000, 4_000_000_001]
    bound.set("x", 7)
    bound.set("flag", False)
    bound.run_one(1)
    assert like["out"].tolist() == [4_000_000_000, 7]
