"""The backend as NetworkX loads it: conversions, rules, and a function for each one that it dispatches here."""

from __future__ import annotations

from typing import Any

from hybrid.networkx_backend import distances, groups, paths, scores
from hybrid.networkx_backend.conversion import convert_from_nx, convert_to_nx
from hybrid.networkx_backend.info import FUNCTIONS
from hybrid.networkx_backend.rules import Arguments, Verdict, refusal, should_run

_HOMES = (distances, groups, paths, scores)
_FOUND = {name: next(getattr(home, name) for home in _HOMES if hasattr(home, name)) for name in FUNCTIONS}
globals().update(_FOUND)
__all__ = ["can_run", "convert_from_nx", "convert_to_nx", "should_run", *_FOUND]


def can_run(name: str, args: tuple[Any, ...], kwargs: Arguments) -> Verdict:
    """True, or why these arguments are not for Tandem."""
    return refusal(name, _FOUND[name], args, kwargs)
