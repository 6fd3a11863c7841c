"""What the backend computes beyond the library is checked as well: a result that fails is an error, never a number."""

from __future__ import annotations

from cpu_engine.graph.graph import Graph as Rows
from hybrid.errors import NotCertified
from hybrid.library.algorithm import Check


def require(what: str, checked: Check, rows: Rows) -> None:
    """NotCertified if the check fails."""
    if not checked.holds:
        raise NotCertified(
            f"{what}: {checked.explain(rows)}", fix="this is a defect of Tandem: please report it with the graph"
        )
