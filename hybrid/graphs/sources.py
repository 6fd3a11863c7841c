"""From the configured ``source`` to start vertices: the user's ids, checked against the graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph
from hybrid.config.schema import Config
from hybrid.errors import ConfigError
from hybrid.terminal import note, plural


@dataclass(frozen=True)
class Source:
    """A start vertex: the user's id, and the internal one (-1: it has no edges)."""

    user_id: int
    internal: int


def resolve_sources(graph: Graph, config: Config) -> list[Source]:
    """The job's start vertices, in order. A vertex that does not exist is an error naming the nearest ones."""
    chosen = config.source
    if isinstance(chosen, str):
        return _draw(graph, int(chosen.partition(":")[2] or 1), config.source_seed, config.graph.path)
    ids = (chosen,) if isinstance(chosen, int) else chosen
    try:
        return [Source(one, graph.internal_id(one)) for one in ids]
    except InputError as error:
        raise InputError(error.reason, path=config.graph.path, fix=error.fix) from None


def _draw(graph: Graph, count: int, seed: int, path: str | None) -> list[Source]:
    """Graph500's rule: different vertices that have an edge, drawn with a seed; fewer where there are fewer."""
    if graph.n == 0:
        raise nowhere_to_start(count, path)
    if count > graph.n:
        note_fewer(count, graph.n)
    drawn = np.random.default_rng(seed).permutation(graph.n)[:count]
    return [Source(int(graph.user_ids[graph.user_position[v]]), int(v)) for v in drawn]


def nowhere_to_start(count: int, path: str | None) -> ConfigError:
    """The error for a graph without edges."""
    return ConfigError(
        "the graph has no vertex with an edge to start from",
        path=path,
        value=f"random:{count}",
        fix="set source to a vertex id",
    )


def note_fewer(count: int, n: int) -> None:
    """Say that there are not as many start vertices as were asked for."""
    there, used = plural(n, "vertex has", "vertices have"), plural(n, "source is", "sources are")
    note(f"source: only {there} an edge, so {used} used instead of {count}")
