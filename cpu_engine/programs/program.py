"""A vertex program as its author declares it, checked before anything is compiled.

Operators are functions whose arguments are named after what they want: a field (at the source of an arc for push and
pull, of the vertex itself for update, totals and priority), ``vertex``, ``degree`` (out-degree), ``weight``,
``source``, ``target``, ``round``, a total of the round before, or a parameter given to ``run``. They return values and
write nothing: push and pull an offer to the one field that is written along arcs, update the fields written at the
vertex.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cpu_engine.programs.field import Field
from cpu_engine.schedule.errors import OperatorError, argument_names, operator_name
from cpu_engine.schedule.fingerprint import plain_function

Operator = Callable[..., Any]
_FACTS = {
    "push": ("weight", "source", "target", "degree", "round"),
    "pull": ("weight", "source", "target", "degree", "round"),
    "update": ("vertex", "degree", "round"),
    "total": ("vertex", "degree", "round"),
    "priority": ("vertex",),
    "initial": ("vertex", "degree"),
}
FACTS = frozenset(fact for facts in _FACTS.values() for fact in facts)
_SAMPLES = 64


@dataclass(frozen=True)
class VertexProgram:
    """Fields and operators; see the module and docs/how-to/vertex-programs.md.

    ``monotone``: the author's word that a smaller (for max: larger) value never makes a worse offer, and no offer is
    better than the value it comes from. Then a pull ends at the first offer that nothing can better.
    ``rounds``: end after so many; operators then see the values of the round before, and nothing travels two arcs in
    one round. ``until``: a Python function of totals, parameters and round; the program ends when it says True.
    """

    name: str
    fields: Sequence[Field]
    push: Operator | None = None
    pull: Operator | None = None
    update: Operator | None = None
    priority: Operator | None = None
    totals: Mapping[str, Operator] = field(default_factory=dict)
    until: Operator | None = None
    rounds: int | None = None
    monotone: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        self._check_fields()
        self._check_shape()
        for role, operator in self.operators():
            _check_writes(self, operator)
            self.wishes(role, operator)
        if self.monotone:
            _sample_monotone(self)

    @cached_property
    def by_name(self) -> dict[str, Field]:
        return {one.name: one for one in self.fields}

    @cached_property
    def offered(self) -> Field:
        """The field that is written along arcs."""
        return next(one for one in self.fields if one.written != "vertex")

    @cached_property
    def assigned(self) -> tuple[Field, ...]:
        """The fields that update returns, in order."""
        return tuple(one for one in self.fields if one.written == "vertex")

    @property
    def both_ways(self) -> bool:
        """Whether offers go along arcs both ways."""
        return self.offered.written == "any"

    @property
    def synchronous(self) -> bool:
        """Whether operators see the values of the round before."""
        return self.rounds is not None or self.update is not None

    def operators(self) -> list[tuple[str, Operator]]:
        """Role and operator of each."""
        named = [("push", self.push), ("pull", self.pull), ("update", self.update), ("priority", self.priority)]
        named += [("total", one) for one in self.totals.values()]
        named += [("initial", one.initial) for one in self.fields if callable(one.initial)]
        return [(role, one) for role, one in named if one is not None]

    def wishes(self, role: str, operator: Operator) -> list[str]:
        """The operator's arguments; OperatorError if it wants a field where that is not read."""
        names = argument_names(operator, role)
        for name in names:
            one = self.by_name.get(name)
            if one is None:
                if name in FACTS and name not in _FACTS[role]:
                    raise OperatorError(
                        f"operator {operator_name(operator)}: argument {name!r} is not known to a {role} operator",
                        fix=f"it may ask for {', '.join(_FACTS[role])}, for fields, totals and parameters",
                    )
                continue
            if role == "initial":
                raise OperatorError(
                    f"operator {operator_name(operator)}: argument {name!r} is a field, and fields begin here",
                    fix="compute the initial value from vertex, degree and parameters",
                )
            if role in ("push", "pull") and one.read not in ("source", "any"):
                raise OperatorError(
                    f"operator {operator_name(operator)} reads field {name!r} at the source, where it is not read",
                    fix=f"declare field {name!r} with read='source'",
                )
        return names

    def parameters(self) -> set[str]:
        """What must be given to ``run``: arguments that are neither fields nor facts nor totals."""
        known = FACTS | set(self.by_name) | set(self.totals)
        wanted = {name for role, one in self.operators() for name in self.wishes(role, one)}
        if self.until is not None:
            wanted |= set(argument_names(self.until, "until"))
        return wanted - known

    def check_parameters(self, given: Mapping[str, Any]) -> None:
        """OperatorError unless exactly the parameters were given."""
        wanted = self.parameters()
        for name in sorted(wanted - set(given)):
            asking = next((one for role, one in self.operators() if name in self.wishes(role, one)), self.until)
            known = [*self.by_name, *self.totals, *sorted(FACTS)]
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}? else " if near else ""
            raise OperatorError(
                f"operator {operator_name(asking)}: argument {name!r} is neither a field nor given to run",
                fix=f"{hint}pass {name}=... to run",
            )
        for name in sorted(set(given) - wanted):
            near = difflib.get_close_matches(name, sorted(wanted), 1)
            raise OperatorError(
                f"program {self.name!r} has no parameter {name!r}",
                fix=f"did you mean {near[0]!r}?" if near else f"its parameters: {', '.join(sorted(wanted)) or 'none'}",
            )

    def _check_fields(self) -> None:
        names = [one.name for one in self.fields] + list(self.totals)
        for name in names:
            if names.count(name) > 1:
                raise OperatorError(f"program {self.name!r} has {name!r} twice", fix="give each field and total a name")
            if name in FACTS:
                raise OperatorError(
                    f"program {self.name!r}: {name!r} is the name of a fact that operators may ask for",
                    fix="use another name",
                )
        along = [one.name for one in self.fields if one.written != "vertex"]
        if len(along) != 1:
            raise OperatorError(
                f"program {self.name!r} writes {len(along)} fields along arcs ({', '.join(along) or 'none'})",
                fix="declare exactly one field with written='target' or 'any'; the others are written at the vertex",
            )

    def _check_shape(self) -> None:
        if self.push is None and self.pull is None:
            raise OperatorError(f"program {self.name!r} has neither push nor pull", fix="give it one of them, or both")
        if (self.update is not None) != bool(self.assigned):
            missing = "update operator" if self.update is None else "field with written='vertex'"
            raise OperatorError(f"program {self.name!r} has no {missing}", fix="give it both, or neither")
        adds = self.offered.reduction == "add"
        if adds and self.update is None:
            raise OperatorError(
                f"program {self.name!r} adds up offers and never uses the sum", fix="give it an update operator"
            )
        if self.update is None and (self.totals or self.until is not None):
            raise OperatorError(
                f"program {self.name!r} has totals or until, which are taken after an update", fix="give it an update"
            )
        if self.update is not None and self.rounds is None and self.until is None:
            raise OperatorError(f"program {self.name!r} never ends", fix="give it rounds, until, or both")
        for what, value in (("priority", self.priority), ("monotone", self.monotone)):
            if value and (self.update is not None or self.offered.reduction not in ("min", "max")):
                raise OperatorError(
                    f"program {self.name!r}: {what} is for fields reduced by min or max, without update",
                    fix=f"leave {what} out",
                )


def _check_writes(program: VertexProgram, operator: Operator) -> None:
    """OperatorError if the operator assigns to one of its arguments, or into one."""
    function = plain_function(operator)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # no source, or part of a larger expression
        return
    arguments = set(argument_names(operator, "operator"))
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For)):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for base in target.elts if isinstance(target, ast.Tuple) else [target]:
                while isinstance(base, (ast.Subscript, ast.Attribute)):
                    base = base.value
                if isinstance(base, ast.Name) and base.id in arguments:
                    line = function.__code__.co_firstlineno + node.lineno - 1
                    raise OperatorError(
                        f"operator {operator_name(operator)}, line {line}, writes to its argument {base.id!r}, "
                        "which it may only read",
                        fix=f"return the value: the runtime writes field {program.offered.name!r} where it is declared"
                        " to be written",
                    )


def _sample_monotone(program: VertexProgram) -> None:
    """OperatorError if a sample shows that the author's word on monotone offers does not hold."""
    offered, better = program.offered, np.less if program.offered.reduction == "min" else np.greater
    for operator in (program.push, program.pull):
        if operator is None or argument_names(operator, "operator") != [offered.name]:
            continue
        values = np.sort(np.random.default_rng(0).integers(0, 1 << 20, _SAMPLES)).astype(offered.dtype)
        values = values if offered.reduction == "min" else values[::-1]
        offers = np.array([plain_function(operator)(value) for value in values]).astype(offered.dtype)
        if better(offers, values).any() or better(offers[1:], offers[:-1]).any():
            raise OperatorError(
                f"operator {operator_name(operator)} is not monotone in {offered.name!r}",
                fix="leave monotone out: pulls then look at every arc",
            )
