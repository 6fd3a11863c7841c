"""``partition``: how a graph would be cut for any number of ranks - without needing, or building for, that many."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid.cli.commands.options import add_config_options, add_graph_argument, config_from, graph_line, open_named
from hybrid.config.schema import Config
from hybrid.errors import EXIT_OK, ConfigError
from hybrid.terminal import count, plural, say, seconds, table

if TYPE_CHECKING:
    from hybrid.planning.cluster.model import Network

_POLICY_NAMES = ("oec", "iec", "cvc", "uvc", "2d", "all")
_COUNTED = ("arcs", "masters", "mirrors", "mirrors_with_in", "mirrors_with_out", "partners")  # by rank
_MODELLED, _TRIALS = 4, 5  # searches that a model is made of; times each is measured alone, of which the best counts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_graph_argument(parser)
    parser.add_argument(
        "--policy", choices=_POLICY_NAMES, default="all", help="which cut (default: all, one after the other)"
    )
    parser.add_argument(
        "--ranks", metavar="P[,P...]", action="append",
        help="numbers of ranks, for example 2,4,1024; may be repeated (default: the configured one)",
    )  # fmt: skip
    parser.add_argument("--per-rank", action="store_true", help="further tables, with a row for every rank")
    parser.add_argument("--json", metavar="FILE", help="write everything, per rank, to this file as well")
    parser.add_argument(
        "--model", action="store_true", help="tell how long a search would take: a model, from volumes counted exactly"
    )
    parser.add_argument(
        "--network", metavar="US,GBIT", default="2,100",
        help="of the model: latency in microseconds and Gbit/s of a rank (default 2,100; TCP over 10 GbE: 30,10)",
    )  # fmt: skip
    parser.add_argument(
        "--alone-ms", metavar="MS", type=_positive, help="of the model: one search by one rank (default: measured now)"
    )
    add_config_options(parser)


def execute(options: argparse.Namespace) -> int:
    from cpu_engine.graph.partition import POLICIES, predict
    from hybrid.job.warm_up import say_if_slow

    config = config_from(options)
    ranks = _numbers(options.ranks) or [config.ranks]
    network = _network(options.network)
    opened = open_named(config)
    graph = opened.graph
    say(graph_line(opened))
    described: list[dict[str, Any]] = []
    searches = _search_alone(opened, config, options.alone_ms) if options.model else []
    for parts in ranks:
        for policy in POLICIES if options.policy == "all" else [options.policy]:
            with say_if_slow(f"{policy} for {plural(parts, 'rank')}: reading every arc once"):
                prediction = predict(graph, policy, parts)
                described.append(describe(prediction))
            if options.model:
                sent = f"what {plural(len(searches), 'search')} send"
                with say_if_slow(f"{policy} for {plural(parts, 'rank')}: counting {sent}"):
                    described[-1]["model"] = _model(graph, prediction, searches, network)
    say(render(described))
    say(least_sent(described, config))
    if options.per_rank:
        say(render_ranks(described))
    elif not options.model:
        say("(--per-rank: what each rank holds and sends; --model: how long a search would take)")
    if options.model:
        say(render_model(described, searches, network))
    if options.json:
        text = json.dumps({"name": opened.name, "n": graph.n, "m": graph.m, "partitions": described}, indent=1)
        Path(options.json).write_text(text + "\n")
    return EXIT_OK


def describe(prediction: Any) -> dict[str, Any]:
    """A prediction as plain values: of the whole, and by rank."""
    from cpu_engine.graph.partition.prediction import bitset_bytes

    by_rank = {
        **{name: getattr(prediction, name) for name in _COUNTED},
        "reduce_bytes": prediction.reduce_bytes(),
        "reduce_bytes_bitset": prediction.reduce_bytes(bitset_bytes),
        "broadcast_bytes": prediction.broadcast_bytes(),
        "broadcast_bytes_bitset": prediction.broadcast_bytes(bitset_bytes),
        "memory_bytes": prediction.memory_bytes,
    }
    return {
        "policy": prediction.policy, "ranks": prediction.parts, "grid": list(prediction.grid),
        "replication": prediction.replication, "arc_imbalance": prediction.arc_imbalance,
        "messages": prediction.messages,
        "by_rank": {name: np.asarray(values).tolist() for name, values in by_rank.items()},
    }  # fmt: skip


def render(described: list[dict[str, Any]]) -> str:
    """One table: a row for every number of ranks and policy."""
    title = "\npartners and memory of the rank that has most; bytes of one synchronisation of every copy"
    return f"{title}\n{table(_SUMMARY_HEADINGS, [_summary_row(one) for one in described])}"


def least_sent(described: list[dict[str, Any]], config: Config) -> str:
    """A line for every number of ranks: the policy that sends least, what ``auto`` would take, and why."""
    from hybrid.ranks.parts import automatic_policy

    lines = []
    for parts in dict.fromkeys(one["ranks"] for one in described):
        sent = {one["policy"]: _bytes_sent(one) for one in described if one["ranks"] == parts}
        least = " and ".join(policy for policy, size in sent.items() if size == min(sent.values()))
        auto, why = automatic_policy(config.engine, parts)
        cheapest = f"least is sent by {least}, {_size(min(sent.values()))}; " if len(sent) > 1 else ""
        lines.append(f"{plural(parts, 'rank')}: {cheapest}cluster.policy auto takes {auto} ({why})")
    return "\n".join(lines)


def render_ranks(described: list[dict[str, Any]]) -> str:
    """A table for every number of ranks and policy, with a row for each rank."""
    blocks = []
    for one in described:
        blocks.append(f"\n{one['policy']}, {plural(one['ranks'], 'rank')}, by rank")
        blocks.append(table(_RANK_HEADINGS, _rank_rows(one["by_rank"])))
    return "\n".join(blocks)


def _bytes_sent(one: dict[str, Any]) -> int:
    by_rank = one["by_rank"]
    return int(sum(by_rank["reduce_bytes"]) + sum(by_rank["broadcast_bytes"]))


_SENT_HEADINGS = ("reduce", "broadcast", "both, bitset", "memory")
_SUMMARY_HEADINGS = (
    "ranks", "grid", "policy", "replication", "arc imbalance", "mirrors", "partners", "messages", *_SENT_HEADINGS,
)  # fmt: skip
_RANK_HEADINGS = (
    "rank", "arcs", "masters", "mirrors", "with in-arcs", "with out-arcs", "partners", *_SENT_HEADINGS,
)  # fmt: skip


def _summary_row(one: dict[str, Any]) -> list[str]:
    by_rank = one["by_rank"]
    rows, columns = one["grid"]
    return [
        count(one["ranks"]), f"{rows} x {columns}", one["policy"], f"{one['replication']:.3f}",
        f"{one['arc_imbalance']:.3f}", count(sum(by_rank["mirrors"])), count(max(by_rank["partners"])),
        count(one["messages"]), *_sent(by_rank, sum, max),
    ]  # fmt: skip


def _rank_rows(by_rank: dict[str, list[int]]) -> list[list[str]]:
    return [
        [str(rank), *(count(by_rank[name][rank]) for name in _COUNTED),
         *_sent(by_rank, itemgetter(rank), itemgetter(rank))]
        for rank in range(len(by_rank["arcs"]))
    ]  # fmt: skip


def _sent(by_rank: dict[str, list[int]], in_all: Callable[..., int], most: Callable[..., int]) -> list[str]:
    """Bytes of a synchronisation, and memory: of one rank, or over all of them."""
    bitset = in_all(by_rank["reduce_bytes_bitset"]) + in_all(by_rank["broadcast_bytes_bitset"])
    sizes = in_all(by_rank["reduce_bytes"]), in_all(by_rank["broadcast_bytes"]), bitset, most(by_rank["memory_bytes"])
    return [_size(size) for size in sizes]


@dataclass(frozen=True, eq=False)
class Search:
    """A search on this machine, by one rank."""

    level: np.ndarray
    seconds: float


def _search_alone(opened: Any, config: Config, alone_ms: float | None) -> list[Search]:
    """The configured searches, the first few: their levels, and how long they take; if that is not given, here on a
    rank's threads (one, unless cluster.threads_per_rank says otherwise)."""
    import numba

    from cpu_engine.bfs.level_synchronous import LevelBfs
    from cpu_engine.bfs.traversal import CoreSplit
    from hybrid.graphs.sources import resolve_sources
    from hybrid.job.warm_up import set_threads
    from hybrid.offload.traverse import traverse_alone

    sources = [one.internal for one in resolve_sources(opened.graph, config) if one.internal >= 0][:_MODELLED]
    if not sources:
        raise ConfigError("--model: no source has an edge", value=config.source, fix="choose another one")
    engine, threads = LevelBfs(CoreSplit(opened.graph)), numba.get_num_threads()
    set_threads(1 if config.cluster.threads_per_rank == "auto" else int(config.cluster.threads_per_rank))
    try:
        traverse_alone(engine, sources[0])  # compiles
        found = []
        for source in sources:
            times = []
            for _ in range(_TRIALS if alone_ms is None else 1):
                began = time.perf_counter()
                level = traverse_alone(engine, source).level
                times.append(time.perf_counter() - began)
            found.append(Search(level.copy(), min(times) if alone_ms is None else alone_ms * 1e-3))
    finally:
        numba.set_num_threads(threads)
    return found


def _model(graph: Any, prediction: Any, searches: list[Search], network: Network) -> dict[str, Any]:
    from hybrid.planning.cluster.model import mean_of, model_search
    from hybrid.planning.cluster.volume import search_volume

    modelled = mean_of(
        model_search(prediction, search_volume(graph, prediction, one.level), one.seconds, network) for one in searches
    )
    return {**asdict(modelled), "seconds": modelled.seconds}


def render_model(described: list[dict[str, Any]], searches: list[Search], network: Network) -> str:
    """One table: a row for every number of ranks and policy."""
    alone = float(np.mean([one.seconds for one in searches]))
    rows = []
    for one in described:
        model = one["model"]
        parts = ("compute_s", "exchange_s", "agree_s", "parents_s", "seconds")
        rows.append(
            [count(one["ranks"]), one["policy"], str(model["rounds"]), _size(model["bytes"]), count(model["messages"]),
             *(seconds(model[name]) for name in parts), f"{alone / model['seconds']:.2f}"]
        )  # fmt: skip
    title = (
        "\nMODEL of a level-synchronous search, not a measurement: bytes and messages are counted\n"
        f"(mean of {plural(len(searches), 'search')}), times follow from {seconds(alone)} on one rank, "
        f"latency {seconds(network.latency_s)}, {network.bandwidth_bytes_per_s * 8e-9:g} Gbit/s per rank, "
        f"{seconds(network.message_s)} per message"
    )
    return f"{title}\n{table(_MODEL_HEADINGS, rows)}"


_MODEL_HEADINGS = (
    "ranks", "policy", "rounds", "bytes", "messages", "compute", "exchange", "agree", "parents", "together", "speed-up",
)  # fmt: skip


def _network(given: str) -> Network:
    from hybrid.planning.cluster.model import Network

    try:
        latency_us, gbit = (float(word) for word in given.split(","))
    except ValueError:
        latency_us = gbit = 0.0
    if not (0 < latency_us < 1e9 and 0 < gbit < 1e9):
        raise ConfigError("--network: not a latency and a bandwidth", value=given, fix="give two numbers, as in 2,100")
    return Network(latency_s=latency_us * 1e-6, bandwidth_bytes_per_s=gbit * 1e9 / 8)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e12:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


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
