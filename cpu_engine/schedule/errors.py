"""What is wrong with a user's operator, said of the operator and its arguments rather than of the compiler."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numba
from numba.core.errors import NumbaError

from cpu_engine.counted import plural
from cpu_engine.errors import InputError
from cpu_engine.schedule.fingerprint import plain_function

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LINE = re.compile(r'File "([^"]+)", line (\d+)')
_NOISE = ("Failed in", "During:", "File ", "There are", "def ", "^", "<source", "- Of which", "- argument")


class OperatorError(InputError):
    """An operator that cannot be run, with its name, the argument and the fix."""


def operator_name(operator: Any) -> str:
    return getattr(plain_function(operator), "__name__", repr(operator))


def argument_names(operator: Any, role: str) -> list[str]:
    """The names of the operator's arguments; OperatorError if they cannot be given by position."""
    if not callable(operator):
        raise OperatorError(
            f"{role} must be a function, and is {operator!r}", fix="pass a function that numba compiles"
        )
    parameters = inspect.signature(plain_function(operator)).parameters.values()
    for one in parameters:
        if one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            raise OperatorError(
                f"operator {operator_name(operator)}: argument {one.name!r} is not an ordinary one",
                fix="give the operator named arguments only: no *args, **kwargs or keyword-only ones",
            )
    return [one.name for one in parameters]


def check_count(operator: Any, role: str, expected: Sequence[str]) -> None:
    """OperatorError unless the operator takes as many arguments as the loop will give it."""
    names = argument_names(operator, role)
    if len(names) == len(expected):
        return
    if len(names) < len(expected):
        missing = expected[len(names)]
        problem, fix = f"has no argument for {missing}", f"write def {operator_name(operator)}({', '.join(expected)})"
    else:
        extra = names[len(expected)]
        problem, fix = f"has an argument {extra!r} that nothing is passed for", "pass it to the loop, or leave it out"
    raise OperatorError(f"operator {operator_name(operator)} {problem}", fix=fix)


def explain(
    error: NumbaError, operators: Mapping[str, tuple[Any, Sequence[Any]]], returns: Mapping[str, Any]
) -> OperatorError:
    """What numba could not compile, as a sentence about the operator at fault.

    ``returns``: the field that an operator's value goes to, a tuple of them if it returns several.
    """
    for name, (operator, arguments) in operators.items():
        types = tuple(numba.typeof(one) for one in arguments)
        try:
            operator.get_call_template(types, {})
            problem = _misfit(operator, operator.overloads[types].signature.return_type, returns.get(name))
            if problem is not None:
                return problem
        except NumbaError as own:
            return _explained(own, operator, arguments)
        except TypeError as own:
            return OperatorError(f"operator {operator_name(operator)}: {own}", fix="correct its arguments")
    names = " or ".join(operator_name(operator) for operator, _ in operators.values())
    return OperatorError(f"operator {names} does not fit this loop: {_essence(str(error))}")


def _misfit(operator: Any, returned: Any, wanted: Any) -> OperatorError | None:
    """What is wrong with what the operator returns, if anything is."""
    name = operator_name(operator)
    if wanted is None:
        return None
    fields = wanted if isinstance(wanted, tuple) else (wanted,)
    parts = [*returned] if isinstance(returned, numba.types.BaseTuple) else [returned]  # type: ignore[misc]
    listed = ", ".join(repr(field.name) for field in fields)
    if isinstance(returned, numba.types.NoneType):
        return OperatorError(f"operator {name} returns nothing", fix=f"return the value of {listed} on every path")
    if len(parts) != len(fields):
        return OperatorError(
            f"operator {name} returns {plural(len(parts), 'value')} for {plural(len(fields), 'field')}",
            fix=f"return those of {listed}",
        )
    for field, one in zip(fields, parts, strict=True):
        lossy = isinstance(one, numba.types.Float) and field.dtype.kind != "f"
        if lossy or not isinstance(one, (numba.types.Integer, numba.types.Float, numba.types.Boolean)):
            return OperatorError(
                f"operator {name} returns {one} for field {field.name!r}, which holds {field.dtype}",
                fix=f"declare the field with another dtype, or return numpy.{field.dtype}(...)",
            )
    return None


def _explained(error: NumbaError, operator: Any, arguments: Sequence[Any]) -> OperatorError:
    names = argument_names(operator, "the operator")
    text = _COLOUR.sub("", str(error))
    lines = [int(number) for _, number in _LINE.findall(text)]
    place = f", line {lines[-1]}" if lines else ""
    essence = _essence(text)
    types = ", ".join(f"{name}: {numba.typeof(one)}" for name, one in zip(names, arguments, strict=False))
    at_fault = next((name for name in names if re.search(rf"\b{re.escape(name)}\b", essence)), None)
    said = f" (argument {at_fault!r})" if at_fault else ""
    return OperatorError(
        f"operator {operator_name(operator)}{place}{said} cannot be compiled: {essence}",
        fix=f"use what numba knows of its arguments ({types})",
    )


def _essence(text: str) -> str:
    """The first line that says something."""
    lines = [line.strip(" .>") for line in _COLOUR.sub("", text).splitlines()]
    telling = [line for line in lines if line and not line.startswith(_NOISE)]
    wanted = ("Unknown attribute", "No implementation", "NameError", "Cannot", "cannot", "not supported", "Untyped")
    chosen = next((line for line in telling if any(word in line for word in wanted)), telling[0] if telling else text)
    return chosen[:300]
