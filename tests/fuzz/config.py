"""Hostile configurations: the shipped files, damaged, with values of every kind, aliases and nesting; and overrides.

One case is one file and some overrides. It is a valid configuration whose every number is finite, which survives a
round trip through YAML, or a ConfigError with one printable line.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hybrid.config import describe_keys, dump_config, load_config
from hybrid.errors import ConfigError
from tests.fuzz import require_one_line
from tests.fuzz.readers import damaged

SHIPPED = Path(__file__).parent.parent.parent / "configs"
VALUES = [
    "null", "~", "true", "off", "-1", "0", "1", "1.5", "1e-3", ".inf", "-.inf", ".nan", "9" * 30, "9" * 400, "9" * 5000,
    "0x7f", "0b1", "1:30", "2020-01-01", "2020-99-99", "random:8", "random:" + "9" * 30, "random:0", "[1, 2]", "[]",
    "[[1]]", "{a: 1}", "{}", "'text'", '"\\0"', '"\\e[2J"', '"\\ud800"', "!!python/object:os.system ls", "!x y",
    "!!binary aGVsbG8=", "&a [*a]", "*nope", "[" * 40 + "]" * 40, "[" * 2000 + "]" * 2000, "'" + "x" * 5000 + "'",
    "simulated:910b",
    "simulated:", "|\n  text", "? a", "- 1", "share", "bfs", "<<: {source: 1}",
]  # fmt: skip
_file = Path()
_shipped: list[bytes] = []
_keys: list[str] = []


@contextlib.contextmanager
def opened() -> Iterator[None]:
    global _file
    _shipped[:] = [path.read_bytes() for path in sorted(SHIPPED.glob("*.yaml"))]
    _keys[:] = [name for name, *_ in describe_keys()]
    with tempfile.TemporaryDirectory(prefix="tandem-fuzz-") as folder:
        _file = Path(folder) / "hostile.yaml"
        yield


def written(rng: random.Random) -> bytes:
    """A file: a shipped one with damage, or keys with values of any kind."""
    if rng.random() < 0.1:
        return damaged(rng, rng.choice(_shipped))
    lines = []
    for name in rng.sample(_keys, rng.randrange(5)):
        *groups, last = name.split(".")
        indent = ""
        for group in groups:
            lines.append(f"{indent}{group}:")
            indent += "  "
        lines.append(f"{indent}{last}: {rng.choice(VALUES)}")
    if rng.random() < 0.2:
        lines.append(f"{rng.choice(['source', 'graph', 'x', '&a b', '?'])}: {rng.choice(VALUES)}")
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def case(rng: random.Random) -> None:
    """Load one hostile configuration."""
    _file.write_bytes(written(rng))
    overrides = [f"{rng.choice([*_keys, 'x', ''])}={rng.choice(VALUES)}" for _ in range(rng.choice([0, 0, 1, 2]))]
    try:
        config = load_config(_file if rng.random() < 0.8 else None, overrides)
    except ConfigError as error:
        require_one_line(error)
        return
    assert all(math.isfinite(value) for value in numbers(dataclasses.asdict(config)))
    if rng.random() < 0.1:
        _file.write_text(dump_config(config))
        assert load_config(_file) == config


def numbers(value: Any) -> Iterator[float]:
    """Every number in a configuration."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from numbers(inner)
    elif isinstance(value, int | float):
        yield value
