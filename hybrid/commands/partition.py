"""``partition``: how a graph would be cut for any number of ranks - without needing, or building for, that many."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from hybrid.commands.options import add_config_options, config_from
from hybrid.errors import EXIT_OK, ConfigError
from hybrid.terminal import count, note, say, table

_POLICY_NAMES = ("oec", "iec", "cvc", "uvc", "2d", "all")
_RANKS_SHOWN = 16  # up to so many, each has its own row without being asked for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "graph", nargs="?", metavar="GRAPH", help="graph file or stored graph (default: the configured one)"
    )
    parser.add_argument(
        "--policy", choices=_POLICY_NAMES, default="all", help="which cut (default: all, one after the other)"
    )
    parser.add_argument(
        "--ranks",
        metavar="P[,P...]",
        action="append",
        help="numbers of ranks, for example 2,4,1024; may be repeated (default: the configured one)",
    )
    parser.add_argument(
        "--per-rank", action="store_true", help=f"a row for every rank even if there are more than {_RANKS_SHOWN}"
    )
    parser.add_argument("--json", metavar="FILE", help="write everything, per rank, to this file as well")
    add_config_options(parser)


def execute(options: argparse.Namespace) -> int:
    from cpu_engine.graph.partition import POLICIES, predict
    from hybrid.opening import open_graph
    from hybrid.trace import Trace
    from hybrid.warmup import say_if_slow

    config = config_from(options, {} if options.graph is None else {"graph.path": options.graph})
    ranks = _numbers(options.ranks) or [config.ranks]
    opened = open_graph(config.graph, Trace())
    for remark in opened.notes:
        note(remark)
    graph = opened.graph
    say(f"{opened.name}: {count(graph.n)} vertices with edges, {count(graph.m)} arcs")
    described: list[dict[str, Any]] = []
    for parts in ranks:
        found = []
        for policy in POLICIES if options.policy == "all" else [options.policy]:
            with say_if_slow(f"{policy} for {parts} ranks: reading every arc once"):
                found.append(describe(predict(graph, policy, parts)))
        say(render(found, options.per_rank or parts <= _RANKS_SHOWN))
        described += found
    if options.json:
        text = json.dumps({"name": opened.name, "n": graph.n, "m": graph.m, "partitions": described}, indent=1)
        Path(options.json).write_text(text + "\n")
    return EXIT_OK


def describe(prediction: Any) -> dict[str, Any]:
    """A prediction as plain values: of the whole, and by rank."""
    from cpu_engine.graph.partition.prediction import bitset_bytes

    by_rank = {
        "arcs": prediction.arcs,
        "masters": prediction.masters,
        "mirrors": prediction.mirrors,
        "mirrors_with_in": prediction.mirrors_with_in,
        "mirrors_with_out": prediction.mirrors_with_out,
        "partners": prediction.partners,
        "reduce_bytes": prediction.reduce_bytes(),
        "reduce_bytes_bitset": prediction.reduce_bytes(bitset_bytes),
        "broadcast_bytes": prediction.broadcast_bytes(),
        "broadcast_bytes_bitset": prediction.broadcast_bytes(bitset_bytes),
        "memory_bytes": prediction.memory_bytes,
    }
    return {
        "policy": prediction.policy,
        "ranks": prediction.parts,
        "grid": list(prediction.grid),
        "replication": prediction.replication,
        "arc_imbalance": prediction.arc_imbalance,
        "messages": prediction.messages,
        "by_rank": {name: np.asarray(values).tolist() for name, values in by_rank.items()},
    }


def render(described: list[dict[str, Any]], per_rank: bool) -> str:
    """One table of the policies for a number of ranks, and one per policy of its ranks."""
    first = described[0]
    rows, columns = first["grid"]
    blocks = [
        f"\n{count(first['ranks'])} ranks, grid {rows} x {columns}; partners and memory of the rank that has most, "
        "bytes of one synchronisation of every copy"
    ]
    blocks.append(table(_SUMMARY_HEADINGS, [_summary_row(one) for one in described]))
    if per_rank:
        for one in described:
            blocks.append(f"\n{one['policy']}, by rank")
            blocks.append(table(_RANK_HEADINGS, _rank_rows(one["by_rank"])))
    return "\n".join(blocks)


_SUMMARY_HEADINGS = (
    "policy", "replication", "arc imbalance", "mirrors", "partners", "messages",
    "reduce", "broadcast", "both, bitset", "memory",
)  # fmt: skip
_RANK_HEADINGS = (
    "rank", "arcs", "masters", "mirrors", "with in-arcs", "with out-arcs", "partners",
    "reduce", "broadcast", "both, bitset", "memory",
)  # fmt: skip


def _summary_row(one: dict[str, Any]) -> list[str]:
    by_rank = one["by_rank"]
    return [
        one["policy"],
        f"{one['replication']:.3f}",
        f"{one['arc_imbalance']:.3f}",
        count(sum(by_rank["mirrors"])),
        count(max(by_rank["partners"])),
        count(one["messages"]),
        _size(sum(by_rank["reduce_bytes"])),
        _size(sum(by_rank["broadcast_bytes"])),
        _size(sum(by_rank["reduce_bytes_bitset"]) + sum(by_rank["broadcast_bytes_bitset"])),
        _size(max(by_rank["memory_bytes"])),
    ]


def _rank_rows(by_rank: dict[str, list[int]]) -> list[list[str]]:
    counted = ("arcs", "masters", "mirrors", "mirrors_with_in", "mirrors_with_out", "partners")
    return [
        [
            str(rank),
            *(count(by_rank[name][rank]) for name in counted),
            _size(by_rank["reduce_bytes"][rank]),
            _size(by_rank["broadcast_bytes"][rank]),
            _size(by_rank["reduce_bytes_bitset"][rank] + by_rank["broadcast_bytes_bitset"][rank]),
            _size(by_rank["memory_bytes"][rank]),
        ]
        for rank in range(len(by_rank["arcs"]))
    ]


def _size(size_bytes: float) -> str:
    for unit, letters in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:.2f} {letters}"
    return f"{int(size_bytes)} B"


def _numbers(given: list[str] | None) -> list[int]:
    words = [word.strip() for one in given or [] for word in one.split(",")]
    for word in words:
        if not word.isdecimal() or int(word) < 1:
            raise ConfigError("--ranks: not a number of ranks", value=word, fix="give whole numbers, as in 2,4,1024")
    return [int(word) for word in words]
