"""Which exit code and which status an error has: by its nearest class, in whatever order the classes are listed."""

from __future__ import annotations

import itertools

import pytest

from cpu_engine.comm.errors import CommError
from cpu_engine.errors import ExplainedError, InputError
from cpu_engine.graph.formats.bounds import TooLarge
from exchange.errors import ExchangeError
from hybrid.errors import ConfigError, EnvironmentProblem, NotCertified, explain_failure
from hybrid.service.http.problems import problem_of

FIX = "mend it"


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (ConfigError("a", fix=FIX), 2, 422),
        (InputError("a", fix=FIX), 3, 422),
        (TooLarge("a", fix=FIX), 3, 413),
        (EnvironmentProblem("a", fix=FIX), 4, 507),
        (ExchangeError("a", fix=FIX), 4, 500),
        (CommError("a", fix=FIX), 4, 500),
        (PermissionError(13, "Permission denied", "a"), 4, 500),
        (MemoryError(), 4, 507),
        (NotCertified("a", fix=FIX), 5, 500),
        (KeyboardInterrupt(), 130, 500),
        (ZeroDivisionError(), 1, 500),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_codes_and_statuses(error: BaseException, code: int, status: int) -> None:
    told, found = explain_failure(error)
    assert found == code
    assert code == 130 or "Fix: " in told
    assert problem_of(error).status == status


def test_what_has_another_exit_code_is_no_wrong_input() -> None:
    siblings = (InputError, EnvironmentProblem, NotCertified)
    assert all(issubclass(kind, ExplainedError) for kind in siblings)
    assert not any(issubclass(one, other) for one, other in itertools.permutations(siblings, 2))
