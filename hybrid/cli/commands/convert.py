"""``convert``: any readable graph, a stored one included, into an edge list, .sg/.wsg, .gr, .mtx or a stored graph."""

from __future__ import annotations

import argparse
from pathlib import Path

from hybrid.cli.commands.options import add_config_options, config_from
from hybrid.errors import EXIT_OK
from hybrid.terminal import note, plural, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="IN", help="graph file, known by its content (or --from), or stored graph")
    parser.add_argument("output", metavar="OUT", help="file to write; with --to store, a folder")
    parser.add_argument("--from", metavar="FORMAT", dest="source_format", default="auto", help="how to read IN")
    parser.add_argument("--to", metavar="FORMAT", help="how to write OUT (default: by its suffix); store = built graph")
    add_config_options(parser)


def execute(options: argparse.Namespace) -> int:
    from cpu_engine.graph.build.builder import build_graph
    from cpu_engine.graph.build.extent import require_room_to_write
    from cpu_engine.graph.edges import with_direction
    from cpu_engine.graph.formats import target_format, write_graph
    from cpu_engine.graph.store.graph_store import save_store
    from hybrid.graphs.opening import DIRECTED_ASSUMED, extent_of, read_edges, require_room_for, wanted_direction

    config = config_from(options, {"graph.path": options.input, "graph.format": options.source_format}).graph
    extent = extent_of(config)
    if options.to == "store":
        require_room_for(config, consume=False)
    else:
        form = target_format(options.output, options.to)
        if extent is not None:
            require_room_to_write(extent, form)
    read = read_edges(config)
    for remark in read.notes:
        note(remark)
    directed = wanted_direction(config)
    edges = with_direction(read, directed, merge=config.duplicates == "drop")
    if options.to == "store":
        graph = build_graph(edges, directed=directed, self_loops=config.self_loops, duplicates=config.duplicates)
        save_store(graph, Path(options.output))
        assumed, written = graph.meta["directed_assumed"], graph.meta["edges"]
    else:
        for remark in write_graph(options.output, edges, format=options.to):
            note(remark)
        assumed, written = edges.directed is None, edges.src.size
    kind = "undirected" if edges.directed is False else "directed"
    if assumed:
        note(f"{options.input}: {DIRECTED_ASSUMED}")
    say(f"{options.output}: {plural(written, 'edge')}, {kind}, from {read.format}")
    return EXIT_OK
