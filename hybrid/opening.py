"""From the configuration to a graph: a stored one, a file, or a generator, through the cache of built graphs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cpu_engine.graph import generators
from cpu_engine.graph.build import build_graph
from cpu_engine.graph.cache import cached_graph, file_digest
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import ldbc, read_graph, sniff
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.store import is_store, open_store
from hybrid.errors import ConfigError
from hybrid.schema import GeneratorConfig, GraphConfig
from hybrid.terminal import progress
from hybrid.trace import Trace


@dataclass(frozen=True)
class Opened:
    """A graph, its name for people, and where it came from."""

    graph: Graph
    name: str
    from_store: bool
    seconds_open: float
    seconds_build: float
    notes: tuple[str, ...] = ()
    store: Path | None = None  # the folder that others can open it from, if it was kept


def open_graph(config: GraphConfig, trace: Trace) -> Opened:
    """Open the built graph if there is one, else build it and keep it."""
    if config.path is not None and is_store(Path(config.path)):
        with trace.span("coordinator", "open", path=config.path):
            graph = open_store(Path(config.path))
        if config.directed not in ("auto", graph.directed):
            raise ConfigError(
                f"graph.directed: the stored graph is {'directed' if graph.directed else 'undirected'}",
                path=config.path,
                value=config.directed,
                fix="leave graph.directed on auto, or build the store again from the original file",
            )
        return Opened(
            graph, Path(config.path).name, True, span_seconds(trace), 0.0, _notes(graph), Path(config.path).absolute()
        )
    name, make = _maker(config)
    if not config.cache:
        with trace.span("coordinator", "build", graph=name):
            graph = make()
        return Opened(graph, name, False, 0.0, span_seconds(trace), _notes(graph))
    t0 = trace.now()
    folder = cache_folder(config)
    graph, info = cached_graph(_cache_key(config, folder), make, folder)
    if not info.hit:
        trace.add("coordinator", "build", t0, t0 + info.seconds_build, graph=name)
    trace.add("coordinator", "open", trace.now() - info.seconds_open, graph=name, hit=info.hit)
    return Opened(graph, name, info.hit, info.seconds_open, info.seconds_build, _notes(graph, info.note), info.path)


def _notes(graph: Graph, *more: str | None) -> tuple[str, ...]:
    """What the user should know: how the reader understood the file, and what the cache could not do."""
    return (*graph.meta.get("notes", ()), *(remark for remark in more if remark))


def cache_folder(config: GraphConfig) -> Path:
    """Where built graphs are kept."""
    chosen = config.cache_dir or os.environ.get("TANDEM_CACHE")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "tandem"


def generate_edges(config: GeneratorConfig) -> EdgeList:
    """The configured synthetic graph as an edge list."""
    if config.kind == "grid":
        return generators.grid(config.rows, config.cols)
    if config.kind == "uniform":
        return generators.uniform(config.scale, config.edge_factor, config.seed)
    if config.a + config.b + config.c > 1:
        raise ConfigError(
            "graph.generator: a + b + c exceed 1",
            value=config.a + config.b + config.c,
            fix="Graph500 uses 0.57, 0.19, 0.19",
        )
    return generators.kronecker(config.scale, config.edge_factor, config.seed, config.a, config.b, config.c)


def generator_name(config: GeneratorConfig) -> str:
    """What people call the generated graph, and a good file name for it."""
    if config.kind == "grid":
        return f"grid-{config.rows}x{config.cols}"
    return f"{config.kind}-s{config.scale}-ef{config.edge_factor}-seed{config.seed}"


def read_edges(config: GraphConfig) -> EdgeList:
    """The configured file as an edge list, with a progress bar."""
    if config.path is None:
        return generate_edges(config.generator)
    with progress(f"reading {Path(config.path).name}", "B") as bar:
        return read_graph(config.path, format=config.format, progress=bar)


def span_seconds(trace: Trace) -> float:
    """How long the last recorded event took."""
    last = trace.events[-1]
    return float(last["t1"] - last["t0"])


def _maker(config: GraphConfig) -> tuple[str, Callable[[], Graph]]:
    directed = None if config.directed == "auto" else bool(config.directed)

    def make() -> Graph:
        edges = read_edges(config)
        with progress("building", "edge") as bar:
            return build_graph(
                edges,
                directed=directed,
                self_loops=config.self_loops,
                duplicates=config.duplicates,
                progress=bar,
                consume=True,  # nobody needs the list afterwards, and it is larger than the graph
            )

    name = generator_name(config.generator) if config.path is None else Path(config.path).name
    return name, make


def _input_files(config: GraphConfig) -> list[Path]:
    """Every file that the graph's content depends on: one, or the three of an LDBC graph."""
    path = Path(str(config.path))
    found = config.format if config.format != "auto" else sniff(path)
    described = ldbc.describe(path) if found == ldbc.NAME else None
    if described is None:
        return [path]
    parts = (described.vertex_file, described.edge_file, described.properties_file)
    return [part for part in parts if part is not None]


def _cache_key(config: GraphConfig, folder: Path) -> dict[str, object]:
    build = {"directed": config.directed, "self_loops": config.self_loops, "duplicates": config.duplicates}
    if config.path is None:
        return {**build, "generator": dataclasses.asdict(config.generator)}
    digests = [file_digest(path, folder) for path in _input_files(config)]
    return {**build, "format": config.format, "content": digests}
