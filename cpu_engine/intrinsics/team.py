"""Threads that stay together over many steps of one launch: joining, and waiting for one another.

A launch costs microseconds, a barrier between threads that are awake a fraction of one. But a launch does not promise
that its iterations run at the same time: so a thread that is there joins, the team closes when all have come or
patience runs out, and a thread that comes later finds it closed and returns. A team of one is a team; nothing can hang.
Beside other busy programs a member may lose its processor, and each barrier then takes a time slice: a member that had
to wait so long sets that all leave after the next barrier, and the driver goes on with one thread for a while.
Invariant: ``team[0]`` is the number of members, plus CLOSED once no thread can join any more; then it does not change.
``gate[1]`` is 0, or the barrier after which all leave; then it does not change.
"""

from __future__ import annotations

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from cpu_engine.intrinsics.atomics import atomic_add, atomic_claim
from cpu_engine.intrinsics.clock import now_ns

CLOSED = 1 << 32
PATIENCE = 1 << 14  # looks, giving way in between: about as long as a sleeping thread takes to wake up
PATIENCE_NS = 200_000  # ... and no longer than this, if the thread that was given way took the processor
SLOW_NS = 1_000_000  # a longer wait at a barrier means that a member lost its processor
LOOKS_PER_YIELD = 256  # a team mate is nanoseconds away, or it lost its processor and needs ours


def atomic_load(array, index):
    """Read ``array[index]`` anew, and all that was written before what it says."""
    return array[index]


def give_way():
    """Let another thread have this processor, if one waits."""


@njit(cache=True)
def join_team(team, wanted, patience):
    """Join; return the own number and the size of the team once it is closed, or (-1, 0) if it was closed before.

    Invariant  members are numbered 0, 1, ... without gaps.
    Races      the count and the closing are one word, changed by compare-and-swap: no thread joins a closed team.
    Work       waits for ``wanted`` members, at most ``patience`` looks and PATIENCE_NS.
    """
    me, looks, began, waited = -1, 0, 0, 0
    while True:
        state = atomic_load(team, 0)
        if state >= CLOSED:
            return me, (state - CLOSED if me >= 0 else 0)
        if me < 0:
            if atomic_claim(team, 0, state, state + 1):
                me = state
        elif state >= wanted or looks > patience or waited > PATIENCE_NS:
            atomic_claim(team, 0, state, state + CLOSED)
        else:
            looks += 1
            if looks % LOOKS_PER_YIELD == 0:
                began = now_ns() if began == 0 else began
                give_way()
                waited = now_ns() - began


@njit(cache=True)
def meet_team(gate, size, barrier):
    """Wait until all ``size`` members have come to this ``barrier``, counted from 1.

    Invariant  what any member wrote before the barrier is seen by all after it.
    Races      ``gate[0]`` only grows; no member can come to the next barrier before all have come to this one.
    Work       as long as the slowest takes; if that was too long, all leave after the next barrier (gate[1]).
    """
    looks, began = 0, 0
    atomic_add(gate, 0, 1)
    while atomic_load(gate, 0) < size * barrier:
        looks += 1
        if looks % LOOKS_PER_YIELD == 0:
            began = now_ns() if began == 0 else began
            give_way()
    if began > 0 and now_ns() - began > SLOW_NS:
        atomic_claim(gate, 1, 0, barrier + 1)


@njit(cache=True)
def leave_team(gate, barrier):
    """Whether all leave now, after this ``barrier``: every member gets the same answer.

    Invariant  a member writes the number of a barrier before it comes to it, so all that have passed it read it.
    Races      written once, by compare-and-swap.   Work  one look.
    """
    last = atomic_load(gate, 1)
    return last > 0 and last <= barrier


@intrinsic
def _load(typingctx, array, index):
    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = cgutils.get_item_pointer(context, builder, signature.args[0], data, [args[1]], wraparound=False)
        return builder.load_atomic(pointer, "seq_cst", signature.args[0].dtype.bitwidth // 8)

    return array.dtype(array, types.intp), codegen


@intrinsic
def _yield(typingctx):
    def codegen(context, builder, signature, args):
        function = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, function, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), codegen


@overload(atomic_load)
def _overload_load(array, index):
    return lambda array, index: _load(array, index)  # type: ignore[call-arg]


@overload(give_way)
def _overload_give_way():
    return lambda: _yield()  # type: ignore[call-arg]
