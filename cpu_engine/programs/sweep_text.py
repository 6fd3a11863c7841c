"""The source of the shares of programs that update every vertex in every round; see text.py and sweep.py."""

from __future__ import annotations

from collections.abc import Mapping

from cpu_engine.programs.field import Field
from cpu_engine.programs.program import VertexProgram
from cpu_engine.programs.text import _ATOMIC, Call, better, combined, indented, local

_HEAD = """
@njit(error_model="numpy", fastmath=ANY_ORDER)
def share(thread, {parameters}):
    blocks = cuts.size - 1
    while True:
        b = blocks - 1 - atomic_add(ticket, 0, 1)
        if b < 0:
            break
"""


def accumulated(field: Field, offer: str) -> list[str]:
    """Statements that take an offer into ``total``."""
    if field.reduction == "add":
        return [f"total += {offer}"]
    reduction = field.reduction or ""
    return [
        f"offer = {offer}",
        f"if {better(reduction, 'offer', 'total')}:",
        f"    total = {combined(reduction, 'offer', 'total')}",
    ]


def _gathered(field: Field, call: Call, begin_with: str) -> list[str]:
    """Statements that leave in ``total`` what the in-arcs of v bring."""
    own = f"{local(field.name)}_now"
    offer = f"fitting({own}, pull({call.arguments}))"
    weights = ["weight_row = weights[np.uint64(begin[v]) : np.uint64(end[v])]"] if "weights" in call.arrays else []
    body = [*call.loads, *accumulated(field, offer.replace("weights[e]", "weight_row[i]"))]
    return [
        f"total = {begin_with}",
        "to = v",
        "row = sources[np.uint64(begin[v]) : np.uint64(end[v])]",
        *weights,
        "for i in range(row.size):",
        "    at = row[i]",
        *("    " + line for line in body),
    ]


def _updated(program: VertexProgram, call: Call, totals: Mapping[str, Call]) -> list[str]:
    """Statements that give v its new values, from ``total`` and its old ones, and add to the totals."""
    field = program.offered
    lines = [load for load in call.loads if not load.startswith(f"{local(field.name)} =")]
    names = [f"new_{i}" for i in range(len(program.assigned))]
    lines += [f"{local(field.name)} = total", f"{', '.join(names)} = update({call.arguments})"]
    for name, one in zip(names, program.assigned, strict=True):
        lines.append(f"{local(one.name)} = fitting({local(one.name)}_next, {name})")
        lines.append(f"{local(one.name)}_next[v] = {local(one.name)}")
    return lines + _totalled(program, totals, fresh=True)


def _totalled(program: VertexProgram, totals: Mapping[str, Call], *, fresh: bool) -> list[str]:
    known = {f"{local(one.name)} =" for one in program.fields} if fresh else set()
    lines = []
    for i, call in enumerate(totals.values()):
        lines += [load for load in call.loads if not load.startswith(tuple(known))]
        lines.append(f"sum_{i} += total_{i}({call.arguments})")
    return lines


def _parameters(names: list[str]) -> list[str]:
    return list(dict.fromkeys(["cuts", "ticket", *names]))


def _over_blocks(body: list[str], totals: int, parameters: list[str]) -> str:
    begin = [f"sum_{i} = 0.0" for i in range(totals)]
    end = [f"tally[b, {i}] = sum_{i}" for i in range(totals)]
    lines = [
        *begin,
        "for v in range(np.uint64(cuts[b]), np.uint64(cuts[b + 1])):",
        *("    " + one for one in body),
        *end,
    ]
    return _HEAD.format(parameters=", ".join(parameters)) + indented(lines, 8) + "\n"


def sweep_text(
    program: VertexProgram, pull: Call | None, update: Call | None, totals: Mapping[str, Call]
) -> tuple[str, list[str]]:
    """Gather what in-arcs bring (if ``pull``) and update (if ``update``): both in one pass, or either alone."""
    field = program.offered
    own = f"{local(field.name)}_now"
    names, body = [own], []
    if pull is not None:
        names += ["begin", "end", "sources", "neutral", *pull.arrays]
        body += _gathered(field, pull, "neutral" if update is not None else f"{own}[v]")
        body.append(f"{own}[v] = total")
    else:
        body.append(f"total = {own}[v]")
    if update is not None:
        body += ["at = v", *_updated(program, update, totals)]
        names += [*update.arrays, *(f"{local(one.name)}_next" for one in program.assigned), "tally"]
        names += [array for call in totals.values() for array in call.arrays]
    parameters = _parameters([name for name in names if name != f"{local(field.name)}_read"])
    return _over_blocks(body, len(totals) if update is not None else 0, parameters), parameters


def totals_text(program: VertexProgram, totals: Mapping[str, Call]) -> tuple[str, list[str]]:
    """The totals of values as they are."""
    parameters = _parameters(["tally", *(array for call in totals.values() for array in call.arrays)])
    body = ["at = v", *_totalled(program, totals, fresh=False)]
    return _over_blocks(body, len(totals), parameters), parameters


def scatter_text(program: VertexProgram, call: Call) -> tuple[str, list[str]]:
    """Every vertex offers along its out-arcs."""
    own = f"{local(program.offered.name)}_now"
    weights = ["weight_row = weights[np.uint64(begin[v]) : np.uint64(end[v])]"] if "weights" in call.arrays else []
    offer = f"fitting({own}, push({call.arguments.replace('weights[e]', 'weight_row[i]')}))"
    body = [
        "at = v", *call.loads, "row = targets[np.uint64(begin[v]) : np.uint64(end[v])]", *weights,
        "for i in range(row.size):", "    to = row[i]",
        f"    {_ATOMIC[program.offered.reduction or '']}({own}, to, {offer})",
    ]  # fmt: skip
    parameters = _parameters([own, "begin", "end", "targets", *call.arrays])
    return _over_blocks(body, 0, parameters), parameters
