"""Fuzzers: random hostile input without end. ``python -m tests.fuzz NAME --cases N --seed S``; one module per name.

A module has ``case(rng)``, which makes one case from ``rng`` alone and raises when the program under test misbehaves.
It may have ``MEMORY_MB`` (what all cases together may add to the process) and ``opened()``, a context around all cases.
"""

from __future__ import annotations

from cpu_engine.errors import LONGEST, InputError


def require_one_line(error: InputError) -> None:
    """A refusal is one printable line of bounded length that ends with the fix."""
    told = str(error)
    assert told.isprintable(), repr(told)
    assert len(told) <= LONGEST, told
    assert "Fix: " in told, told
