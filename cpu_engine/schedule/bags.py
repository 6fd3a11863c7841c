"""Concurrent bags of tasks, one per priority: chunks of tasks in lists, and each thread's view of which bags there are.

A thread puts tasks into a chunk of its own and takes them from another, first in first out. A full chunk goes to the
list of the thread's package (memory node); an empty one is replaced from that list, from the own half-filled one, and
then from the other packages' lists (a steal). With priorities there is a bag for each: which, stands in a global log,
and each thread keeps an ordered copy of it, read up to a point, and refreshed when a bag is missing there (OBIM: source
000, 4.2.1). Whenever a chunk is used up the thread looks for the least priority that any thread may still have, so all
work at about the same one. The order is soft: a thread does not see another's chunks before they are full.

Invariants: a chunk is in one place - free, in one list, or held by one thread; a thread's ``scan`` is not above any
priority of which it left tasks behind; a task is taken exactly once. All state is one array of words, so that handing
it on costs nothing: a header (the places below), and from there the offsets of the tables. 0 is none: chunks and bags
are numbered from 1, as fresh memory is 0.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numba import njit
from numba.extending import overload

from cpu_engine.graph.memory import available_bytes
from cpu_engine.intrinsics.atomics import atomic_add, atomic_claim, atomic_exchange
from cpu_engine.intrinsics.bisect import first_not_below
from cpu_engine.intrinsics.team import atomic_load, give_way
from cpu_engine.schedule.report import CHUNKS, STEALS

MOST_BAGS = 1 << 16  # beyond, a priority shares the bag of its nearest neighbour
LAST = np.iinfo(np.int64).max
_LINE = 8

# What never changes.
CHUNK, PACKAGES, THREADS, MOST_CHUNKS, BAGS = 0, 1, 2, 3, 4
NEXT, FILLED, USED, LISTS, HELD, LOGGED, KNOWN, OWN, POOL = 8, 9, 10, 11, 12, 13, 14, 15, 16  # offsets of tables
# What threads change, on lines of their own.
ACTIVE, LISTED, FULL, LOG, LOG_LOCK, FREE, FREE_LOCK, FRESH = (line * _LINE for line in range(3, 11))
_HEADER = 11 * _LINE

_LOCK, _FIRST, _TAIL = 0, 1, 2  # of a list: words
_TAKE, _PUT = 0, 1  # of what a thread holds of a bag: chunks
_POINT, _BAG, _PRIORITY, _SCAN, _PACKAGE = 0, 1, 2, 3, 4  # of what is a thread's own: words; _SCAN is read by others
_NORESERVE = 0x4000  # Linux: pages are found when they are touched


def make_bags(threads: int, packages: int, chunk: int, room: int | None, bags: int = MOST_BAGS) -> np.ndarray:
    """Empty bags. ``room``: tasks that may wait at once; memory is taken as it is filled."""
    if room is None:
        room = (available_bytes() or 1 << 33) // 4 // 8
    chunks = -(-room // chunk) + 4 * threads
    tables = {
        NEXT: chunks, FILLED: chunks, USED: chunks, LISTS: bags * packages * _LINE, HELD: bags * threads * 2,
        LOGGED: bags, KNOWN: threads * bags * 2, OWN: threads * _LINE, POOL: chunks * chunk,
    }  # fmt: skip
    bounds = np.cumsum([_HEADER, *(-(-size // _LINE) * _LINE for size in tables.values())])
    state = _lazy(int(bounds[-1]))
    state[[CHUNK, PACKAGES, THREADS, MOST_CHUNKS, BAGS]] = chunk, packages, threads, chunks, bags
    state[list(tables)] = bounds[:-1]
    own = state[state[OWN] : state[OWN] + threads * _LINE].reshape(threads, _LINE)
    own[:, _SCAN] = LAST
    own[:, _PACKAGE] = np.arange(threads) * packages // threads
    return state


def _lazy(words: int) -> np.ndarray:
    """Zeroes that take no memory before they are touched."""
    try:
        block = mmap.mmap(-1, 8 * words, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
    except (OSError, ValueError):
        return np.zeros(words, np.int64)
    return np.frombuffer(block, np.int64)


def add_task(tasks: Any, task: int, priority: int = 0) -> None:
    """In an operator: create a task. The smaller the priority, the sooner it is run, roughly."""
    put_task(tasks[0], tasks[1], task, priority)


@overload(add_task)
def _overload_add_task(tasks, task, priority=0):
    return lambda tasks, task, priority=0: put_task(tasks[0], tasks[1], np.int64(task), np.int64(priority))


@njit(cache=True)
def lock(state, at):
    """Wait for a lock and take it; ``atomic_exchange(state, at, 0)`` gives it back."""
    while not atomic_claim(state, at, 0, 1):
        give_way()


@njit(cache=True)
def new_chunk(state):
    """An empty chunk; 0 if there is no room left.

    Invariant  a chunk is given to one thread.   Races  free ones by lock, fresh ones by ticket.   Work  O(1).
    """
    if atomic_load(state, FREE) != 0:
        lock(state, FREE_LOCK)
        chunk = state[FREE]
        if chunk != 0:
            state[FREE] = state[state[NEXT] + chunk - 1]
        atomic_exchange(state, FREE_LOCK, 0)
        if chunk != 0:
            return chunk
    chunk = atomic_add(state, FRESH, 1) + 1
    if chunk > state[MOST_CHUNKS]:
        state[FULL] = 1
        return np.int64(0)
    return chunk


@njit(cache=True)
def free_chunk(state, chunk):
    """Give an empty chunk back.   Races  by lock.   Work  O(1)."""
    state[state[FILLED] + chunk - 1] = 0
    state[state[USED] + chunk - 1] = 0
    lock(state, FREE_LOCK)
    state[state[NEXT] + chunk - 1] = state[FREE]
    state[FREE] = chunk
    atomic_exchange(state, FREE_LOCK, 0)


@njit(cache=True)
def append_chunk(state, bag, package, chunk):
    """Put a chunk at the end of a package's list.   Races  by the list's lock.   Work  O(1)."""
    one = state[LISTS] + ((bag - 1) * state[PACKAGES] + package) * _LINE
    state[state[NEXT] + chunk - 1] = 0
    lock(state, one + _LOCK)
    if state[one + _FIRST] == 0:
        state[one + _FIRST] = chunk
    else:
        state[state[NEXT] + state[one + _TAIL] - 1] = chunk
    state[one + _TAIL] = chunk
    atomic_add(state, LISTED, 1)
    atomic_exchange(state, one + _LOCK, 0)


@njit(cache=True)
def take_chunk(state, bag, package):
    """The first chunk of a package's list, 0 if there is none.   Races  by the list's lock.   Work  O(1)."""
    one = state[LISTS] + ((bag - 1) * state[PACKAGES] + package) * _LINE
    if atomic_load(state, one + _FIRST) == 0:
        return np.int64(0)
    lock(state, one + _LOCK)
    chunk = state[one + _FIRST]
    if chunk != 0:
        state[one + _FIRST] = state[state[NEXT] + chunk - 1]
        atomic_add(state, LISTED, -1)
    atomic_exchange(state, one + _LOCK, 0)
    return chunk


@njit(cache=True)
def known_place(state, thread, priority):
    """Where a priority is, or would be, among the bags that the thread knows.   Work  a bisection."""
    known = state[KNOWN] + thread * state[BAGS] * 2
    count = state[state[OWN] + thread * _LINE + _POINT]
    return first_not_below(state[known : known + 2 * count : 2], priority)


@njit(cache=True)
def read_log(state, thread):
    """Bring the thread's ordered copy of the bags up to date.

    Invariant  the copy ascends by priority; as many entries of the log as _POINT says are in it.
    Races      the log only grows, and its length is raised after its entry.   Work  O(new bags * known bags).
    """
    known, own = state[KNOWN] + thread * state[BAGS] * 2, state[OWN] + thread * _LINE
    length = atomic_load(state, LOG)
    while state[own + _POINT] < length:
        count = state[own + _POINT]
        priority = state[state[LOGGED] + count]
        at = known_place(state, thread, priority)
        for i in range(2 * count - 1, 2 * at - 1, -1):
            state[known + i + 2] = state[known + i]
        state[known + 2 * at], state[known + 2 * at + 1] = priority, count + 1
        state[own + _POINT] = count + 1


@njit(cache=True)
def known_bag(state, thread, priority):
    """The bag of this priority as far as the thread knows, 0 if it knows none."""
    at = known_place(state, thread, priority)
    entry = state[KNOWN] + thread * state[BAGS] * 2 + 2 * at
    if at < state[state[OWN] + thread * _LINE + _POINT] and state[entry] == priority:
        return state[entry + 1]
    return np.int64(0)


@njit(cache=True)
def find_bag(state, thread, priority):
    """The bag of this priority, which the thread does not know; created if there is none.

    Invariant  one bag per priority, until there are as many as there is room for.
    Races      created under the log's lock, after reading it once more.   Work  the log's new entries.
    """
    read_log(state, thread)
    bag = known_bag(state, thread, priority)
    if bag != 0:
        return bag
    lock(state, LOG_LOCK)
    read_log(state, thread)
    bag = known_bag(state, thread, priority)
    length = state[LOG]
    if bag == 0 and length < state[BAGS]:
        state[state[LOGGED] + length] = priority
        atomic_add(state, LOG, 1)
        read_log(state, thread)
        bag = length + 1
    atomic_exchange(state, LOG_LOCK, 0)
    if bag == 0:
        at = min(known_place(state, thread, priority), length - 1)
        bag = state[state[KNOWN] + thread * state[BAGS] * 2 + 2 * at + 1]
    return bag


@njit(cache=True)
def put_task(state, thread, task, priority):
    """Put a task into the bag of its priority.

    Invariant, races: see the module.   Work  O(1), and a list's lock once per chunk.
    """
    own = state[OWN] + thread * _LINE
    bag = state[own + _BAG]
    if bag == 0 or state[own + _PRIORITY] != priority:
        bag = known_bag(state, thread, priority)
        if bag == 0:
            bag = find_bag(state, thread, priority)
            priority = state[state[LOGGED] + bag - 1]
        if state[own + _BAG] != 0 and priority < state[own + _PRIORITY]:
            state[own + _BAG], state[own + _PRIORITY] = bag, priority
        if priority < state[own + _SCAN]:
            atomic_exchange(state, own + _SCAN, priority)
    place = state[HELD] + ((bag - 1) * state[THREADS] + thread) * 2 + _PUT
    chunk = state[place]
    if chunk != 0 and state[state[FILLED] + chunk - 1] == state[CHUNK]:
        append_chunk(state, bag, state[own + _PACKAGE], chunk)
        chunk = np.int64(0)
    if chunk == 0:
        chunk = new_chunk(state)
        state[place] = chunk
        if chunk == 0:
            return
    filled = state[state[FILLED] + chunk - 1]
    state[state[POOL] + (chunk - 1) * state[CHUNK] + filled] = task
    state[state[FILLED] + chunk - 1] = filled + 1


@njit(cache=True)
def put_tasks(state, thread, some, priorities):
    """Put these tasks, and list every chunk that the thread holds, half-filled ones too.

    Invariant  afterwards any thread can take them.   Races  none: called before the loop.   Work  O(tasks + bags).
    """
    for i in range(some.size):
        put_task(state, thread, some[i], priorities[i])
    for bag in range(1, state[LOG] + 1):
        place = state[HELD] + ((bag - 1) * state[THREADS] + thread) * 2 + _PUT
        if state[place] != 0:
            append_chunk(state, bag, state[state[OWN] + thread * _LINE + _PACKAGE], state[place])
            state[place] = 0


@njit(cache=True)
def refill(state, thread, bag, tally):
    """Get a chunk with tasks to take from this bag; whether there was one.

    Invariant  own package, own half-filled chunk, other packages.   Races  see take_chunk.   Work  O(packages).
    """
    held = state[HELD] + ((bag - 1) * state[THREADS] + thread) * 2
    chunk = state[held + _TAKE]
    if chunk != 0:
        if state[state[USED] + chunk - 1] < state[state[FILLED] + chunk - 1]:
            return True
        free_chunk(state, chunk)
        state[held + _TAKE] = 0
    package = state[state[OWN] + thread * _LINE + _PACKAGE]
    chunk = take_chunk(state, bag, package)
    if chunk == 0:
        chunk = state[held + _PUT]
        state[held + _PUT] = 0
    i = 1
    while chunk == 0 and i < state[PACKAGES]:
        chunk = take_chunk(state, bag, (package + i) % state[PACKAGES])
        if chunk != 0:
            tally[thread, STEALS] += 1
        i += 1
    state[held + _TAKE] = chunk
    if chunk != 0:
        tally[thread, CHUNKS] += 1
    return chunk != 0


@njit(cache=True)
def find_work(state, thread, tally):
    """Turn to the bag of least priority that has tasks for this thread; whether there is one.

    Invariant  begins at the least priority that any thread may have left.   Races  soft: bags may fill meanwhile.
    Work       the bags from there on, empty ones by one look per package.
    """
    own, known = state[OWN] + thread * _LINE, state[KNOWN] + thread * state[BAGS] * 2
    read_log(state, thread)
    least = LAST
    for other in range(state[THREADS]):
        least = min(least, atomic_load(state, state[OWN] + other * _LINE + _SCAN))
    for at in range(known_place(state, thread, least), state[own + _POINT]):
        bag = state[known + 2 * at + 1]
        if refill(state, thread, bag, tally):
            state[own + _BAG], state[own + _PRIORITY] = bag, state[known + 2 * at]
            atomic_exchange(state, own + _SCAN, state[known + 2 * at])
            return True
    state[own + _BAG] = 0
    atomic_exchange(state, own + _SCAN, LAST)
    return False


@njit(cache=True)
def take_task(state, thread, tally):
    """Whether there is a task for this thread, and the task.

    Invariant  a task is given once.   Races  see the module.   Work  O(1), and a look around once per chunk.
    """
    for _ in range(2):
        bag = state[state[OWN] + thread * _LINE + _BAG]
        if bag != 0:
            chunk = state[state[HELD] + ((bag - 1) * state[THREADS] + thread) * 2 + _TAKE]
            if chunk != 0:
                used = state[state[USED] + chunk - 1]
                if used < state[state[FILLED] + chunk - 1]:
                    state[state[USED] + chunk - 1] = used + 1
                    return True, state[state[POOL] + (chunk - 1) * state[CHUNK] + used]
        if not find_work(state, thread, tally):
            break
    return False, np.int64(0)


@njit(cache=True)
def wait_for_work(state):
    """Wait, idle, until a chunk is listed (True, and the thread counts as active) or no thread is active (False).

    Invariant  a thread that becomes idle has seen every list empty after putting its last task, so with none active
               there is no task left.   Races  ACTIVE is raised before a chunk is taken.   Work  as long as it takes.
    """
    atomic_add(state, ACTIVE, -1)
    while True:
        if atomic_load(state, LISTED) > 0:
            atomic_add(state, ACTIVE, 1)
            return True
        if atomic_load(state, ACTIVE) == 0 or atomic_load(state, FULL) != 0:
            return False
        give_way()
