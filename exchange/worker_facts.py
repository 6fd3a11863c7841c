"""worker.json: what a worker says about itself. Written whole, read as numbers and words that are fit to be shown."""

from __future__ import annotations

import json
from collections.abc import Mapping

from exchange.escape import printable

FACTS_BYTES = 1 << 16
_MOST_SHOWN = 500
_WHOLE_LIMIT = 1 << 63


def encode_facts(facts: Mapping[str, object]) -> bytes:
    return json.dumps(facts, sort_keys=True).encode() + b"\n"


def parse_facts(data: bytes) -> dict[str, object] | None:
    """The facts that are a number, a truth value or a text; None when this is no JSON object."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return {printable(key, _MOST_SHOWN): _plain(fact) for key, fact in found.items() if _is_plain(fact)}


def _is_plain(fact: object) -> bool:
    if isinstance(fact, int):
        return abs(fact) < _WHOLE_LIMIT
    return isinstance(fact, float | str)


def _plain(fact: object) -> object:
    return printable(fact, _MOST_SHOWN) if isinstance(fact, str) else fact
