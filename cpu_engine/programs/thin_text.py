"""The source of the share that runs thin rounds, one after the other, in one launch.

A launch costs more than a round of a few hundred arcs, and a road graph has thousands of such rounds. This share is one
thread's, so it needs no atomic updates. It stops before a round that is worth more threads, or a pull.
"""

from __future__ import annotations

from cpu_engine.programs.field import Field
from cpu_engine.programs.text import Call, better, combined, indented, local, opened_pile

FRONTIER, ROUNDS, LIMIT = 0, 1, 2  # places of what the share leaves behind


def _listing(field: Field, near: Call | None) -> list[str]:
    """Statements that list the vertex ``to``, whose value has changed to ``offer``."""
    find = ["mark[to] = 1", "mine[size] = to", "size += 1"]
    if near is None:
        return ["if mark[to] == 0:", *("    " + line for line in find)]
    own = local(field.name)
    return [
        *(load.replace("[at]", "[to]") for load in near.loads if not load.startswith(f"{own} =")),
        f"if priority({near.arguments.replace(own, 'changed')}) <= limit:",
        "    if mark[to] != 1:",
        *("        " + line for line in find),
        "elif mark[to] == 0:",
        "    mark[to] = 2",
        "    piles[0, sizes[0, 1]] = to",
        "    sizes[0, 1] += 1",
    ]


def _pushed(field: Field, call: Call, near: Call | None, sides: int) -> list[str]:
    """Statements that offer along the arcs of the vertex ``at``, on each side of it."""
    own, reduction = f"{local(field.name)}_now", field.reduction or ""
    lines = list(call.loads)
    for side in range(sides):
        arguments = call.arguments.replace("weights[e]", f"weights_{side}[e]")
        lines += [
            f"for e in range(np.uint64(begin_{side}[at]), np.uint64(end_{side}[at])):",
            f"    to = targets_{side}[e]",
            f"    offer = fitting({own}, push({arguments}))",
            f"    if {better(reduction, 'offer', f'{own}[to]')}:",
            f"        changed = {combined(reduction, 'offer', f'{own}[to]')}",
            f"        {own}[to] = changed",
            *("        " + line for line in _listing(field, near)),
        ]
    return lines


def _parameters(field: Field, call: Call, near: Call | None, sides: int, synchronous: bool) -> list[str]:
    """What the share takes besides its thread."""
    own, read = f"{local(field.name)}_now", f"{local(field.name)}_read"
    parameters = ["rounds", "thin", "crowd", "frontier", own, "mark", "found", "sizes", "history", "left"]
    weighted = ["weights_"] if "weights" in call.arrays else []
    for side in range(sides):
        parameters += [f"{name}{side}" for name in ["begin_", "end_", "targets_", *weighted]]
    parameters += ["piles"] if near is not None else []
    parameters += [read] if synchronous else []
    parameters += [name for name in [*call.arrays, *(near.arrays if near else [])] if name != "weights"]
    return list(dict.fromkeys(parameters))


def thin_text(field: Field, call: Call, near: Call | None, sides: int, synchronous: bool) -> tuple[str, list[str]]:
    """Push from the frontier, and from the next one, while they have few arcs; and the share's parameters.

    ``history`` has a row for each round that may be run: its frontier, and its arcs. ``left`` takes the size of the
    frontier and the limit of priority, and returns them with the number of rounds that were run.
    """
    own, read = f"{local(field.name)}_now", f"{local(field.name)}_read"
    parameters = _parameters(field, call, near, sides, synchronous)
    opening = [*opened_pile(field, near), "limit = lowest"] if near is not None else []
    remember = [f"{read}[at] = {own}[at]"] if synchronous else []
    advance = ["given_round += 1"] if "given_round" in parameters else []
    arcs = " + ".join(f"end_{side}[at] - begin_{side}[at]" for side in range(sides))
    rows = [f"ask_for_line(targets_{side}, begin_{side}[at])" for side in range(sides)]
    ends = []
    for side in range(sides):
        ends += [
            f"for e in range(np.uint64(begin_{side}[at]), np.uint64(end_{side}[at])):",
            f"    ask_for_line({own}, targets_{side}[e])",
        ]
    text = f"""
@njit(error_model="numpy")
def share(thread, {", ".join(parameters)}):
    count, limit = left[{FRONTIER}], left[{LIMIT}]
    mine = found[0]
    done = 0
    while done < rounds:
        if count == 0:
{indented(opening, 12)}
            if count == 0:
                break
        edges = 0
        for i in range(count):
            at = frontier[i]
            edges += {arcs}
{indented(rows, 12)}
        if edges > thin or count > crowd:
            break
        history[done, 0] = count
        history[done, 1] = edges
        for i in range(count):
            at = frontier[i]
{indented([*remember, *ends], 12)}
        size = 0
        for i in range(count):
            at = frontier[i]
{indented(_pushed(field, call, near, sides), 12)}
        for i in range(size):
            frontier[i] = mine[i]
            mark[mine[i]] = 0
        count = size
        done += 1
{indented(advance, 8)}
    left[{FRONTIER}], left[{ROUNDS}], left[{LIMIT}] = count, done, limit
"""
    return text, parameters
