"""A JSON value against the part of JSON Schema that hybrid/results/schema.py uses; shares no code with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMA = Path(__file__).parents[1] / "docs" / "reference" / "results.schema.json"
_TYPES: dict[str, Any] = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}
_KNOWN = {
    "$ref", "anyOf", "enum", "type", "pattern", "items", "properties", "required", "additionalProperties",
    "description",
}  # fmt: skip


def problems(value: Any, schema: dict[str, Any], defs: dict[str, Any], at: str = "$") -> Iterator[str]:
    """What is wrong with ``value``, each with its place; nothing if it fits."""
    assert set(schema) <= _KNOWN, set(schema) - _KNOWN
    if "$ref" in schema:
        yield from problems(value, defs[schema["$ref"].removeprefix("#/$defs/")], defs, at)
    if "anyOf" in schema:
        found = [list(problems(value, one, defs, at)) for one in schema["anyOf"]]
        if all(found):
            yield from min(found, key=len)
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    if "type" in schema and not _is_a(value, schema["type"]):
        yield f"{at}: {value!r} is no {schema['type']}"
        return
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{at}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, list):
        for i, one in enumerate(value):
            yield from problems(one, schema.get("items", {}), defs, f"{at}[{i}]")
    if isinstance(value, dict):
        yield from (f"{at}: {name} is missing" for name in schema.get("required", ()) if name not in value)
        others = schema.get("additionalProperties", {})
        for name, one in value.items():
            if name in schema.get("properties", {}):
                yield from problems(one, schema["properties"][name], defs, f"{at}.{name}")
            elif others is False:
                yield f"{at}: {name} is not known"
            else:
                yield from problems(one, others, defs, f"{at}.{name}")


def _is_a(value: Any, kind: str) -> bool:
    if kind in ("integer", "number"):
        return isinstance(value, int if kind == "integer" else int | float) and not isinstance(value, bool)
    return isinstance(value, _TYPES[kind])


def assert_records_fit(folder: Path) -> None:
    """The summary and every event of a result folder are as docs/reference/results.schema.json says."""
    defs = json.loads(SCHEMA.read_text())["$defs"]
    assert not list(problems(json.loads((folder / "summary.json").read_text()), defs["Summary"], defs))
    for line in (folder / "trace.jsonl").read_text().splitlines():
        assert not list(problems(json.loads(line), defs["TraceEvent"], defs)), line
