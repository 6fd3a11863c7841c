"""``info``: what is in a graph, how skewed it is, and what a core of each size would hold."""

from __future__ import annotations

import argparse
import json
from typing import Any

from hybrid.cli.commands.options import add_config_options, add_graph_argument, config_from, open_named
from hybrid.errors import EXIT_OK
from hybrid.terminal import count, plural, say, table

_CORE_SIZES = (64, 256, 1024, 4096, 16384, 65536)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_graph_argument(parser)
    parser.add_argument("--json", action="store_true", help="machine-readable")
    add_config_options(parser)


def execute(options: argparse.Namespace) -> int:
    opened = open_named(config_from(options))
    facts = describe(opened.graph)
    say(json.dumps({"name": opened.name, **facts}, indent=2) if options.json else render(opened.name, facts))
    return EXIT_OK


def describe(graph: Any) -> dict[str, Any]:
    """Counts, degrees and core densities of a built graph."""
    import numpy as np

    from cpu_engine.bfs.traversal import CoreSplit
    from hybrid.planning.plan import count_core_edges

    degree = graph.degree()
    cores = []
    for k in [size for size in _CORE_SIZES if size < graph.n]:
        edges = count_core_edges(CoreSplit(graph, k))
        cores.append({
            "size": k, "threshold": int(degree[k - 1]), "edges": edges, "density": edges / (k * (k - 1)),
            "share": edges / graph.m if graph.m else 0.0,
        })  # fmt: skip
    quantiles = (0.5, 0.9, 0.99)
    return {
        "vertices": int(graph.user_ids.size),
        "isolated": int(graph.user_ids.size - graph.n),
        "edges": graph.m if graph.directed else graph.m // 2,
        "directed": graph.directed,
        "weighted": graph.weight is not None,
        "ids": [int(graph.user_ids[0]), int(graph.user_ids[-1])] if graph.user_ids.size else [],
        "degree": {
            "max": int(degree.max(initial=0)),
            "mean": float(degree.mean()) if graph.n else 0.0,
            **{f"p{round(100 * q)}": float(np.quantile(degree, q)) if graph.n else 0.0 for q in quantiles},
        },
        "cores": cores,
        "meta": graph.meta,
    }


def render(name: str, facts: dict[str, Any]) -> str:
    degree = facts["degree"]
    ids = "" if not facts["ids"] else f", ids {facts['ids'][0]}..{facts['ids'][1]}"
    direction = "directed" if facts["directed"] else "undirected"
    weighted = ", weighted" if facts["weighted"] else ""
    vertices = f"{plural(facts['vertices'], 'vertex')} ({count(facts['isolated'])} isolated)"
    lines = [
        f"{name}: {vertices}{ids}, {plural(facts['edges'], f'{direction} edge')}{weighted}",
        f"degree: max {count(degree['max'])}, mean {degree['mean']:.1f}, median {degree['p50']:.0f}, "
        f"90 % {degree['p90']:.0f}, 99 % {degree['p99']:.0f}",
    ]
    if facts["cores"]:
        rows = [
            [*(count(core[name]) for name in ("size", "threshold", "edges")),
             f"{core['density']:.2%}", f"{core['share']:.1%}"]
            for core in facts["cores"]
        ]  # fmt: skip
        lines += ["", table(["core size", "degree from", "edges inside", "density", "of all edges"], rows)]
    return "\n".join(lines)
