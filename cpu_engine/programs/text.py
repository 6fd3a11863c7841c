"""The source of a program's shares: what surrounds its operators, written out for its fields and wishes.

Every share is one thread's part of a step; see schedule.entry for how it is compiled and launched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import overload

from cpu_engine.intrinsics.atomics import atomic_add, atomic_claim, atomic_exchange
from cpu_engine.intrinsics.bisect import first_above
from cpu_engine.intrinsics.lines import ask_for_line
from cpu_engine.programs.field import Field
from cpu_engine.programs.program import Operator, VertexProgram
from cpu_engine.schedule.atomics import atomic_increase, atomic_lower, atomic_raise, atomic_unite

_AHEAD = 16  # entries of a pile, whose values are asked for before they are looked at
_ATOMIC = {"min": "atomic_lower", "max": "atomic_raise", "or": "atomic_unite", "add": "atomic_increase"}


def fitting(array: np.ndarray, value: Any) -> Any:
    """``value`` in the type of the array's elements; refused at compile time if that would lose its fraction."""
    return array.dtype.type(value)


@overload(fitting)
def _overload_fitting(array, value):
    wrong = not isinstance(value, (types.Integer, types.Float, types.Boolean))
    if wrong or (isinstance(value, types.Float) and not isinstance(array.dtype, types.Float)):
        raise TypingError(f"a value of type {value} does not fit into {array.dtype}")
    return lambda array, value: array.dtype.type(value)


NAMES: dict[str, Any] = {
    "ask_for_line": ask_for_line,
    "atomic_add": atomic_add, "atomic_claim": atomic_claim, "atomic_exchange": atomic_exchange,
    "atomic_increase": atomic_increase, "atomic_lower": atomic_lower, "atomic_raise": atomic_raise,
    "atomic_unite": atomic_unite, "first_above": first_above, "fitting": fitting,
}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """How a share calls an operator: what it must load of the source or vertex, and the arguments."""

    loads: list[str]  # expressions of the vertex ``at``, one per name
    arguments: str
    arrays: list[str]  # parameters of the share
    like: list[Any]


def call_of(
    program: VertexProgram, role: str, operator: Operator, suffix: str, scalars: Mapping[str, Any], weight: Any = None
) -> Call:
    """The call with fields read at vertex ``at``; arrays of fields are named after them, with ``suffix``."""
    loads, arguments, arrays, like = [], [], [], []
    for name in program.wishes(role, operator):
        one = program.by_name.get(name)
        if one is not None:
            loads.append(f"{local(name)} = {local(name)}_{suffix}[at]")
            arrays.append(f"{local(name)}_{suffix}")
            arguments.append(local(name))
            like.append(one.dtype.type(0))
        elif name == "degree":
            loads.append("f_degree = degrees[at]")
            arrays.append("degrees")
            arguments.append("f_degree")
            like.append(np.int64(0))
        elif name in ("vertex", "source"):
            loads.append(f"f_{name} = ids[at]")
            arrays.append("ids")
            arguments.append(f"f_{name}")
            like.append(np.int64(0))
        elif name == "target":
            arguments.append("ids[to]")
            arrays.append("ids")
            like.append(np.int64(0))
        elif name == "weight":
            arguments.append("weights[e]")
            arrays.append("weights")
            like.append(weight)
        else:
            arguments.append(given(name))
            arrays.append(given(name))
            like.append(scalars[name])
    return Call(loads, ", ".join(arguments), arrays, like)


def local(field: str) -> str:
    """What a share calls a field's value; arrays of it are called the same, with what they are appended."""
    return f"f_{field}"


def given(scalar: str) -> str:
    """What a share calls a scalar that operators ask for."""
    return f"given_{scalar}"


def better(reduction: str, offer: str, value: str) -> str:
    """The text of "the offer changes the value"."""
    return {
        "min": f"{offer} < {value}",
        "max": f"{offer} > {value}",
        "or": f"{offer} | {value} != {value}",
    }[reduction]


def combined(reduction: str, offer: str, value: str) -> str:
    return f"{value} | {offer}" if reduction == "or" else offer


def indented(lines: list[str], depth: int) -> str:
    """The lines as a block; ``pass`` if there are none."""
    return "\n".join(" " * depth + line for line in lines) or " " * depth + "pass"


def push_text(field: Field, call: Call, near: Call | None) -> tuple[str, list[str]]:
    """Offers along the arcs of listed vertices, in equal shares of arcs; and the share's parameters."""
    own, reduction = f"{local(field.name)}_now", field.reduction or ""
    if near is None:
        listing = [
            "if mark[to] == 0 and atomic_exchange(mark, to, 1) == 0:",
            "    mine[size] = to",
            "    size += 1",
        ]
    else:
        listing = [
            *(load.replace("[at]", "[to]") for load in near.loads if not load.startswith(f"{local(field.name)} =")),
            f"if priority({near.arguments.replace(local(field.name), 'offer')}) <= limit:",
            "    if atomic_exchange(mark, to, 1) != 1:",
            "        mine[size] = to",
            "        size += 1",
            "elif atomic_claim(mark, to, 0, 2):",
            "    piles[thread, pile] = to",
            "    pile += 1",
        ]
    parameters = ["threads", "count", "frontier", "starts", "begin", "targets", own, "mark", "found", "sizes"]
    parameters += ["limit", "piles"] if near is not None else []
    parameters += [name for name in [*call.arrays, *(near.arrays if near else [])] if name not in parameters]
    text = f"""
@njit(error_model="numpy")
def share(thread, {", ".join(dict.fromkeys(parameters))}):
    total = starts[count]
    edge, last = total * thread // threads, total * (thread + 1) // threads
    i = first_above(starts[: count + 1], edge) - 1
    size, pile = sizes[thread, 0], sizes[thread, 1]
    mine = found[thread]
    while edge < last:
        at = frontier[i]
        stop = min(last, starts[i + 1])
        first = np.uint64(begin[at] + edge - starts[i])
{indented(call.loads, 8)}
        for e in range(first, first + np.uint64(stop - edge)):
            to = targets[e]
            offer = fitting({own}, push({call.arguments}))
            if {better(reduction, "offer", f"{own}[to]")} and {_ATOMIC[reduction]}({own}, to, offer):
{indented(listing, 16)}
        edge = stop
        i += 1
    sizes[thread, 0], sizes[thread, 1] = size, pile
"""
    return text, list(dict.fromkeys(parameters))


def pull_text(field: Field, call: Call, bounded: bool, read: str) -> tuple[str, list[str]]:
    """Every vertex that can still gain looks at its in-arcs; and the share's parameters.

    ``bounded``: no offer of this round is better than ``bound``, so a vertex that has that much need not look.
    """
    own, reduction = f"{local(field.name)}_now", field.reduction or ""
    skip = [f"if not ({better(reduction, 'bound', 'best')}):", "    continue"] if bounded else []
    stop = [f"if not ({better(reduction, 'bound', 'best')}):", "    break"] if bounded else []
    parameters = ["block", "ticket", "begin", "end", "sources", own, read, "mark", "bound", "neutral", "found", "sizes"]
    parameters = list(dict.fromkeys([*parameters, *call.arrays]))
    loads = [load for load in call.loads if not load.startswith(f"{local(field.name)} =")]
    text = f"""
@njit(error_model="numpy")
def share(thread, {", ".join(parameters)}):
    n = begin.size
    size, looked = sizes[thread, 0], 0
    mine = found[thread]
    while True:
        first = atomic_add(ticket, 0, 1) * block
        if first >= n:
            break
        for v in range(np.uint64(first), np.uint64(min(first + block, n))):
            best = {own}[v]
{indented(skip, 12)}
            old, to = best, v
            for e in range(np.uint64(begin[v]), np.uint64(end[v])):
                at = sources[e]
                {local(field.name)} = {read}[at]
                looked += 1
                if {local(field.name)} == neutral:
                    continue
{indented(loads, 16)}
                offer = fitting({own}, pull({call.arguments}))
                if {better(reduction, "offer", "best")}:
                    best = {combined(reduction, "offer", "best")}
{indented(stop, 20)}
            if best != old:
                {own}[v] = best
                if mark[v] == 0:
                    mark[v] = 1
                    mine[size] = v
                    size += 1
    sizes[thread, 0] = size
    sizes[thread, 2] += looked
"""
    return text, parameters


def opened_pile(field: Field, near: Call) -> list[str]:
    """Statements: of the vertices in the piles, the ``count`` of priority ``lowest`` become the frontier."""
    own = f"{local(field.name)}_now"
    return f"""lowest = np.int64(2**63 - 1)
for t in range(piles.shape[0]):
    kept = 0
    for i in range(sizes[t, 1]):
        if i + {_AHEAD} < sizes[t, 1]:
            ask_for_line(mark, piles[t, i + {_AHEAD}])
            ask_for_line({own}, piles[t, i + {_AHEAD}])
        at = piles[t, i]
        if mark[at] == 2:
{indented(near.loads, 12)}
            lowest = min(lowest, np.int64(priority({near.arguments})))
            piles[t, kept] = at
            kept += 1
    sizes[t, 1] = kept
count = 0
for t in range(piles.shape[0]):
    kept = 0
    for i in range(sizes[t, 1]):
        at = piles[t, i]
        if mark[at] != 2:
            continue
{indented(near.loads, 8)}
        if np.int64(priority({near.arguments})) <= lowest:
            mark[at] = 0
            frontier[count] = at
            count += 1
        else:
            piles[t, kept] = at
            kept += 1
    sizes[t, 1] = kept""".splitlines()


def pile_text(field: Field, near: Call) -> tuple[str, list[str]]:
    """Of the vertices in the piles, those of least priority become the frontier; serial."""
    own = f"{local(field.name)}_now"
    parameters = list(dict.fromkeys(["mark", "piles", "sizes", "frontier", "least", own, *near.arrays]))
    text = f"""
@njit(error_model="numpy")
def share(thread, {", ".join(parameters)}):
{indented(opened_pile(field, near), 4)}
    least[0], least[1] = lowest, count
"""
    return text, parameters


def initial_text(call: Call) -> tuple[str, list[str]]:
    """The initial value of each vertex."""
    parameters = list(dict.fromkeys(["threads", "values", *call.arrays]))
    text = f"""
@njit(error_model="numpy")
def share(thread, {", ".join(parameters)}):
    n = values.size
    for at in range(n * thread // threads, n * (thread + 1) // threads):
{indented(call.loads, 8)}
        values[at] = fitting(values, initial({call.arguments}))
"""
    return text, parameters
