"""Numbers in sentences: how many of what."""

from __future__ import annotations


def plural(value: int, noun: str, many: str | None = None) -> str:
    """1 row, 2 rows, 2,000 vertices; ``many``: the words for any number but one, if they are not ``noun`` and an s."""
    return f"{value:,} {noun if value == 1 else many or noun + 's'}"
