"""``generate``: a synthetic graph as a file."""

from __future__ import annotations

import argparse

from hybrid.config.schema import GeneratorConfig
from hybrid.errors import EXIT_OK
from hybrid.terminal import note, plural, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    default = GeneratorConfig()
    parser.add_argument("kind", nargs="?", default=default.kind, choices=("kronecker", "uniform", "grid"))
    parser.add_argument("--scale", type=int, default=default.scale, help="log2 of the vertices (default %(default)s)")
    parser.add_argument(
        "--edge-factor", type=int, default=default.edge_factor, help="edges per vertex (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=default.seed, help="same seed, same graph (default %(default)s)")
    parser.add_argument("--rows", type=int, default=default.rows, help="of a grid (default %(default)s)")
    parser.add_argument("--cols", type=int, default=default.cols, help="of a grid (default %(default)s)")
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write (default: named after the graph, .el)")
    parser.add_argument("--to", metavar="FORMAT", help="format to write (default: by the file's suffix)")


def execute(options: argparse.Namespace) -> int:
    from cpu_engine.graph.build.extent import require_room_to_write
    from cpu_engine.graph.formats import target_format, write_graph
    from hybrid.config import load_config
    from hybrid.graphs.opening import extent_of, generate_edges, generator_name

    names = ("kind", "scale", "edge_factor", "seed", "rows", "cols")
    own = {f"graph.generator.{name}": getattr(options, name) for name in names}
    graph = load_config(None, (), own).graph
    config = graph.generator
    path = options.output or f"{generator_name(config)}.el"
    extent = extent_of(graph)
    assert extent is not None
    require_room_to_write(extent, target_format(path, options.to))
    edges = generate_edges(config)
    note(f"{plural(edges.src.size, 'edge')}, undirected")
    for remark in write_graph(path, edges, format=options.to):
        note(remark)
    say(path)
    return EXIT_OK
