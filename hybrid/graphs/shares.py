"""From the configuration to this rank's share of the edges, for a graph that no rank holds whole.

``cluster.build`` decides: whole = one rank of each machine opens or builds the graph; shares = every rank makes or
reads its share and holds its part only; auto = whole where that fits into the memory, as a stored graph is opened in
milliseconds, and the worker and batches need it; else shares.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cpu_engine.comm.collectives import RankInfo
from cpu_engine.comm.requests import Driver
from cpu_engine.errors import InputError
from cpu_engine.graph.distributed.build import estimate_bytes
from cpu_engine.graph.distributed.reading import share_of_path
from cpu_engine.graph.distributed.shares import Share, share_of_grid, share_of_kronecker, share_of_uniform
from cpu_engine.graph.formats.part_files import name_of
from cpu_engine.graph.memory import require_bytes
from cpu_engine.graph.store.graph_store import is_store
from hybrid.config.schema import GeneratorConfig, GraphConfig
from hybrid.graphs.opening import (
    extent_of,
    generator_name,
    require_probabilities,
    require_room_to_open,
    wanted_direction,
)


def why_not_shared(config: GraphConfig) -> str:
    """Why the configured graph cannot be made from shares; empty if it can."""
    if config.path is not None and is_store(config.path):
        return "a stored graph is mapped, not built"
    return ""


def share_of(info: RankInfo, config: GraphConfig, *, weighted: bool = False) -> Driver[Share]:
    """This rank's share of the configured graph; AgreedInputError at every rank for a file that cannot be read."""
    if config.path is not None:
        directed, path = wanted_direction(config), Path(config.path)
        return (yield from share_of_path(info, path, format=config.format, directed=directed, weighted=weighted))
    share = _generated(config.generator, info.rank, info.size)
    if not wanted_direction(config):
        return share
    return replace(share, directed=True, mirror=False)  # a pair is one arc, as it was drawn


def _generated(made: GeneratorConfig, rank: int, ranks: int) -> Share:
    if made.kind == "grid":
        return share_of_grid(rank, ranks, made.rows, made.cols)
    if made.kind == "uniform":
        return share_of_uniform(rank, ranks, made.scale, made.edge_factor, made.seed)
    probabilities = (made.a, made.b, made.c)
    require_probabilities(*probabilities)
    return share_of_kronecker(rank, ranks, made.scale, made.edge_factor, made.seed, *probabilities)


def name_of_shared(config: GraphConfig) -> str:
    """What people call it."""
    return generator_name(config.generator) if config.path is None else name_of(Path(config.path))


def fits_whole(config: GraphConfig) -> bool:
    """Whether this machine can open or build the graph whole."""
    try:
        extent = extent_of(config)
    except InputError:  # opening it says what is wrong
        return True
    if extent is None:
        return True
    try:
        require_room_to_open(config)
    except InputError:
        return False
    return True


def require_room_for_parts(config: GraphConfig, here: int, ranks: int, *, weighted: bool = False) -> None:
    """InputError, with the estimate, where ``here`` of all ``ranks`` on this machine will not fit into its memory."""
    extent = extent_of(config)
    if extent is None:
        return
    needed = estimate_bytes(extent.edges, extent.vertices, ranks, weighted=weighted)
    what = f"{here} of {ranks} parts of {name_of_shared(config)}, being built,"
    require_bytes(here * needed, what, "use more machines, with fewer ranks on each, or a smaller graph")
