"""The graph and its parts on every rank.

One rank per machine opens or builds the graph, rank 0 first; the others of that machine map the same store. Then every
rank reads its slice of the arcs, they exchange what they dealt, and each assembles its part - or all of them map the
parts that an earlier job has kept. Invariant: all ranks of a job hold parts of one graph under one layout.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cpu_engine.comm.collectives import RankInfo, all_to_all, barrier, broadcast_facts
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import MirrorList, assemble, link, make_layout, mirror_lists, slice_arcs, slice_weights
from cpu_engine.graph.partition.layout import Layout
from cpu_engine.graph.partition.part import Part
from cpu_engine.graph.partition.policies import choose_grid
from cpu_engine.graph.partition.store import PartStore, graph_fingerprint
from cpu_engine.graph.store.graph_store import map_store, save_store
from exchange.errors import ExchangeError
from exchange.filesystem.scratch import own_leftovers, private_folder, remove_folder
from hybrid.config.schema import Config, GraphConfig
from hybrid.graphs.opening import Opened, cache_folder, open_graph
from hybrid.launch.announce import Announcer
from hybrid.ranks.rendezvous import require_same
from hybrid.results.trace import Trace
from hybrid.terminal import note

_STALE_S = 24 * 3600.0
GRID_RANKS = 16  # from so many on, messages to all ranks in every level cost more than folding
Opener = Callable[[GraphConfig, Trace], Opened]
_log = logging.getLogger(__name__)


def open_graph_on_ranks(
    info: RankInfo, config: GraphConfig, trace: Trace, announcer: Announcer, opener: Opener = open_graph
) -> Driver[Opened]:
    """The same graph at every rank; ``Agreed`` if machines have come to different ones."""
    opened, scratch = None, None
    if info.rank == 0:
        opened, scratch = _shareable(opener(config, trace), announcer)
    yield from barrier()  # with a shared cache, the other machines now find what rank 0 has built
    if info.rank == info.first_here != 0:
        opened, scratch = _shareable(opener(config, trace), announcer)
    if info.rank == info.first_here:
        assert opened is not None
        facts = {"store": str(opened.store), "name": opened.name}
        yield from broadcast_facts(info, facts, info.first_here, info.local_ranks)
    else:
        facts = yield from broadcast_facts(info, None, info.first_here, info.local_ranks)
        opened = Opened(map_store(facts["store"]), facts["name"], True, 0.0, 0.0, (), Path(facts["store"]))
    fix = "give every machine the same file, or one on a shared file system"
    yield from require_same(info, "graph", graph_fingerprint(opened.graph, opened.store), fix)
    if scratch is not None:  # every rank has mapped it, which keeps it alive without a name
        remove_folder(scratch)
    return opened


def _shareable(opened: Opened, announcer: Announcer) -> tuple[Opened, Path | None]:
    """The graph as a store that others on this machine can map, and the folder to remove once they have."""
    if opened.store is not None:
        return opened, None
    scratch = scratch_folder("tandem-graph-")
    announcer.made(scratch)
    store = scratch / "graph"
    save_store(opened.graph, store)
    return replace(opened, graph=map_store(store), store=store), scratch


def scratch_folder(prefix: str) -> Path:
    """A fresh folder for a job's lifetime; those that killed jobs left a day ago or more are removed."""
    made = private_folder(prefix)
    for left in own_leftovers(made.parent, prefix, _STALE_S):
        with contextlib.suppress(ExchangeError):
            left.discard()
    return made


def choose_policy(policy: str, engine: str, ranks: int) -> str:
    """Resolve ``auto``. Both engines are fastest when masters find themselves (iec: nothing to fold, every parent is
    known where it is needed); the level engine on many ranks needs the few partners of a grid."""
    return automatic_policy(engine, ranks)[0] if policy == "auto" else policy


def automatic_policy(engine: str, ranks: int) -> tuple[str, str]:
    """What ``auto`` takes, and why: the engine and the number of ranks decide, not the bytes."""
    rows, columns = choose_grid(ranks)
    if engine != "level":
        return "iec", f"engine {engine}: iec for any number of ranks, it reduces nothing"
    if ranks < GRID_RANKS:
        return "iec", f"engine level: a grid, 2d, pays from {GRID_RANKS} ranks on; iec reduces nothing"
    if rows == 1:
        return "iec", f"engine level: {ranks:,} is a prime number, so the ranks form no grid for 2d"
    few = f"{rows + columns - 2:,} partners of a rank in a grid of {rows} x {columns} instead of {ranks - 1:,}"
    return "2d", f"engine level, {GRID_RANKS} ranks or more: {few}"


@dataclass(frozen=True)
class OpenedPart:
    part: Part
    from_cache: bool


def open_part_on_ranks(
    info: RankInfo, config: Config, opened: Opened, layout: Layout | None = None
) -> Driver[OpenedPart]:
    """This rank's part, linked with the others'; under the layout that BFS uses unless another is given."""
    graph = opened.graph
    if layout is None:
        layout = make_layout(graph, choose_policy(config.cluster.policy, config.engine, info.size), info.size)
    store = None
    if config.cluster.partition_cache and config.graph.cache:
        store = PartStore(cache_folder(config.graph), graph_fingerprint(graph, opened.store), layout)
        kept, remark = store.open(info.rank)
        _tell(remark)
        by_all = yield AllReduce(np.array([kept is not None], np.int64), "min")
        if kept is not None and by_all[0]:
            return OpenedPart(kept, True)
    part = yield from build_part(info, graph, layout)
    if store is not None:
        _tell(store.keep(part))
    return OpenedPart(part, False)


def build_part(info: RankInfo, graph: Graph, layout: Layout) -> Driver[Part]:
    """Read a slice, deal it, assemble what was dealt here, tell each other the mirrors."""
    dealt: list[np.ndarray] = slice_arcs(graph, layout, info.rank)
    received = yield from all_to_all(info, [_flat(one) for one in dealt])
    weights = None
    if layout.weighted:
        assert graph.weight is not None
        dealt = slice_weights(graph, layout, info.rank)
        weights = yield from all_to_all(info, [_flat(one) for one in dealt])
        weights = [one.view(graph.weight.dtype) for one in weights]
    part = assemble(layout, info.rank, [one.view(np.int32).reshape(-1, 2) for one in received], weights)
    del dealt, received, weights
    told: Sequence[MirrorList] = mirror_lists(part)
    lists = yield from all_to_all(info, [one.to_bytes() for one in told])
    return link(part, [MirrorList.from_bytes(one) for one in lists])


def _flat(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _tell(remark: str | None) -> None:
    if remark:
        note(remark)
        _log.info("%s", remark)
