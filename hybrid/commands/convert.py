"""``convert``: any readable graph into an edge list, .sg/.wsg, .gr, .mtx or a stored graph."""

from __future__ import annotations

import argparse
from pathlib import Path

from hybrid.commands.options import add_config_options, config_from
from hybrid.errors import EXIT_OK
from hybrid.terminal import count, note, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="IN", help="graph file, recognised by its content (or --from)")
    parser.add_argument("output", metavar="OUT", help="file to write; with --to store, a folder")
    parser.add_argument("--from", metavar="FORMAT", dest="source_format", default="auto", help="how to read IN")
    parser.add_argument("--to", metavar="FORMAT", help="how to write OUT (default: by its suffix); store = built graph")
    add_config_options(parser)


def execute(options: argparse.Namespace) -> int:
    from cpu_engine.graph.build import build_graph
    from cpu_engine.graph.formats import write_graph
    from cpu_engine.graph.store import save_store
    from hybrid.opening import read_edges

    config = config_from(options, {"graph.path": options.input, "graph.format": options.source_format}).graph
    edges = read_edges(config)
    for remark in edges.notes:
        note(remark)
    if options.to == "store":
        directed = None if config.directed == "auto" else bool(config.directed)
        graph = build_graph(edges, directed=directed, self_loops=config.self_loops, duplicates=config.duplicates)
        save_store(graph, Path(options.output))
    else:
        write_graph(options.output, edges, format=options.to)
    say(f"{options.output}: {count(edges.src.size)} edges from {edges.format}")
    return EXIT_OK
