"""Loops for operators that users write: do_all, for_each, on_each, and what operators need inside them."""

from cpu_engine.intrinsics.atomics import atomic_add, atomic_claim, atomic_exchange, atomic_min
from cpu_engine.schedule.atomics import atomic_increase, atomic_lower, atomic_raise, atomic_unite
from cpu_engine.schedule.bags import add_task
from cpu_engine.schedule.errors import OperatorError
from cpu_engine.schedule.for_each import for_each
from cpu_engine.schedule.loops import do_all, on_each
from cpu_engine.schedule.report import LoopReport
from cpu_engine.schedule.storage import Bitset, PerThread, Reduction, set_bit, test_bit

__all__ = [
    "Bitset",
    "LoopReport",
    "OperatorError",
    "PerThread",
    "Reduction",
    "add_task",
    "atomic_add",
    "atomic_claim",
    "atomic_exchange",
    "atomic_increase",
    "atomic_lower",
    "atomic_min",
    "atomic_raise",
    "atomic_unite",
    "do_all",
    "for_each",
    "on_each",
    "set_bit",
    "test_bit",
]
