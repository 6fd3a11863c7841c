"""From the configuration to a graph: a stored one, a file, or a generator, through the cache of built graphs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cpu_engine.graph import generators
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.build.extent import Extent, generated_extent, path_extent, require_room
from cpu_engine.graph.edges import EdgeList, with_direction
from cpu_engine.graph.formats import ldbc, read_graph, sniff
from cpu_engine.graph.formats.part_files import files_of, name_of
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.store.cache import cache_path, cached_graph, checked_folder, file_digest, knows_digest
from cpu_engine.graph.store.graph_store import is_store, open_store
from hybrid.config.schema import GeneratorConfig, GraphConfig
from hybrid.errors import ConfigError
from hybrid.terminal import progress

if TYPE_CHECKING:
    from hybrid.results.trace import Trace

DIRECTED_ASSUMED = (
    "the input does not say whether edges have a direction, so directed is assumed; "
    "--set graph.directed=false reads them as undirected"
)


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
            graph = open_store(Path(config.path), checked_folder(cache_folder(config)))
        if config.directed not in ("auto", graph.directed):
            wanted = f"--set graph.directed={str(config.directed).lower()}"
            raise ConfigError(
                f"graph.directed: the stored graph is {'directed' if graph.directed else 'undirected'}",
                path=config.path,
                value=config.directed,
                fix="leave graph.directed on auto, or make another store: "
                f"python run.py convert {config.path} OTHER --to store {wanted}",
            )
        return Opened(
            graph,
            Path(config.path).name,
            True,
            span_seconds(trace),
            0.0,
            _notes(config, graph),
            Path(config.path).absolute(),
        )
    name, make = _maker(config)
    if not config.cache:
        require_room_for(config)
        with trace.span("coordinator", "build", graph=name):
            graph = make()
        return Opened(graph, name, False, 0.0, span_seconds(trace), _notes(config, graph))
    t0 = trace.now()
    folder, files = cache_folder(config), _input_files(config)
    if not _is_kept(config, files, folder):
        require_room_for(config)
    graph, info = cached_graph(_cache_key(config, files, folder), make, folder)
    if not info.hit:
        trace.add("coordinator", "build", t0, t0 + info.seconds_build, graph=name)
    trace.add("coordinator", "open", trace.now() - info.seconds_open, graph=name, hit=info.hit)
    return Opened(
        graph, name, info.hit, info.seconds_open, info.seconds_build, _notes(config, graph, info.note), info.path
    )


def _notes(config: GraphConfig, graph: Graph, *more: str | None) -> tuple[str, ...]:
    """What the user should know: how the reader understood the file, and what the cache could not do."""
    assumed = DIRECTED_ASSUMED if config.directed == "auto" and graph.meta.get("directed_assumed") else None
    return (*graph.meta.get("notes", ()), *(remark for remark in (*more, assumed) if remark))


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
    require_probabilities(config.a, config.b, config.c)
    return generators.kronecker(config.scale, config.edge_factor, config.seed, config.a, config.b, config.c)


def require_probabilities(a: float, b: float, c: float) -> None:
    """ConfigError for what a Kronecker graph cannot have."""
    if a + b + c > 1:
        raise ConfigError("graph.generator: a + b + c exceed 1", value=a + b + c, fix="Graph500 uses 0.57, 0.19, 0.19")


def generator_name(config: GeneratorConfig) -> str:
    """What people call the generated graph, and a good file name for it."""
    if config.kind == "grid":
        return f"grid-{config.rows}x{config.cols}"
    return f"{config.kind}-s{config.scale}-ef{config.edge_factor}-seed{config.seed}"


def read_edges(config: GraphConfig) -> EdgeList:
    """The configured graph as an edge list - of a generator, of a stored graph, or of a file with a progress bar."""
    if config.path is None:
        return generate_edges(config.generator)
    if is_store(config.path):
        return replace(open_store(config.path, checked_folder(cache_folder(config))).edge_list(), path=config.path)
    with progress(f"reading {name_of(Path(config.path))}", "B") as bar:
        return read_graph(config.path, format=config.format, progress=bar)


def extent_of(config: GraphConfig, *, weighted: bool = False) -> Extent | None:
    """How large the configured graph will be, without making or reading it; None for a stored one, which is mapped."""
    if config.path is None:
        made = config.generator
        sizes = {"scale": made.scale, "edge_factor": made.edge_factor, "rows": made.rows, "cols": made.cols}
        return generated_extent(made.kind, weighted=weighted, **sizes)
    return None if is_store(config.path) else path_extent(Path(config.path), config.format)


def require_room_for(config: GraphConfig, *, consume: bool = True, weighted: bool = False) -> None:
    """InputError when the configured graph, its edge list and the build will not fit into memory.

    ``consume``: the build may write over the list. ``weighted``: weights are drawn for a generated graph.
    """
    extent = extent_of(config, weighted=weighted)
    if extent is not None:
        require_room(extent, wanted_direction(config), consume=consume)


def require_room_to_open(config: GraphConfig) -> None:
    """InputError when ``open_graph`` would have to build the graph, and that will not fit into memory."""
    if config.path is not None and is_store(config.path):
        return
    if not (config.cache and _is_kept(config, _input_files(config), cache_folder(config))):
        require_room_for(config)


def wanted_direction(config: GraphConfig) -> bool | None:
    """What the configuration says of the direction; None leaves it to the input."""
    return None if config.directed == "auto" else bool(config.directed)


def span_seconds(trace: Trace) -> float:
    """How long the last recorded event took."""
    last = trace.events[-1]
    return float(last["t1"] - last["t0"])


def _maker(config: GraphConfig) -> tuple[str, Callable[[], Graph]]:
    directed = wanted_direction(config)

    def make() -> Graph:
        edges = read_edges(config)
        if directed:
            edges = with_direction(edges, True)
        with progress("building", "edge") as bar:
            return build_graph(
                edges,
                directed=directed,
                self_loops=config.self_loops,
                duplicates=config.duplicates,
                progress=bar,
                consume=True,  # the list is not needed afterwards, and it is larger than the graph
            )

    name = generator_name(config.generator) if config.path is None else name_of(Path(config.path))
    return name, make


def _input_files(config: GraphConfig) -> list[Path]:
    """Every file that the graph's content depends on: none, one, all parts, or the three of an LDBC graph."""
    if config.path is None:
        return []
    path, *more = files_of(Path(config.path))
    if more:
        return [path, *more]
    found = config.format if config.format != "auto" else sniff(path)
    described = ldbc.describe(path) if found == ldbc.NAME else None
    if described is None:
        return [path]
    parts = (described.vertex_file, described.edge_file, described.properties_file)
    return [part for part in parts if part is not None]


def _is_kept(config: GraphConfig, files: list[Path], folder: Path) -> bool:
    """Whether the cache has the graph, as far as that is known without reading a file for its digest."""
    known = all(knows_digest(path, folder) for path in files)
    return known and cache_path(_cache_key(config, files, folder), folder).exists()


def input_key(config: GraphConfig) -> dict[str, object]:
    """What a graph built by this configuration depends on; of files, their contents."""
    folder = cache_folder(config)
    return _cache_key(config, _input_files(config), folder)


def _cache_key(config: GraphConfig, files: list[Path], folder: Path) -> dict[str, object]:
    build = {"directed": config.directed, "self_loops": config.self_loops, "duplicates": config.duplicates}
    if config.path is None:
        return {**build, "generator": dataclasses.asdict(config.generator)}
    return {**build, "format": config.format, "content": [file_digest(path, folder) for path in files]}
