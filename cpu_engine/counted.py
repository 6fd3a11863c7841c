"""Numbers in sentences: how many of what."""

from __future__ import annotations

_IRREGULAR = {"vertex": "vertices", "search": "searches", "match": "matches", "mismatch": "mismatches"}


def count(value: float) -> str:
    """A number with thousands separators."""
    return f"{int(value):,}"


def plural(value: float, noun: str, many: str | None = None) -> str:
    """A number and what is counted: 1 edge, 2 edges, 1 vertex, 2,000 vertices; ``many``: a clause that changes, too."""
    return f"{count(value)} {noun if int(value) == 1 else many or plural_of(noun)}"


def plural_of(noun: str) -> str:
    """The noun for any number but one; its last word changes."""
    rest, _, last = noun.rpartition(" ")
    return f"{rest} {_IRREGULAR.get(last, last + 's')}".lstrip()
