"""Graph500 on ranks: each makes its share of the edges and holds its part of the graph; none has the whole of either.

Kernel 1 is timed on all ranks together, without the time in which edges are made; kernel 2 is the level engine on parts
by in-edges, each search as slow as its slowest rank. Validation is twofold: the proof on ranks, made from the parts
(cpu_engine/bfs/ranks/proof.py), and the benchmark's rules on the input, whose shares are made again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numba
import numpy as np

from cpu_engine.bfs.kernels.tree_rules import count_spans_step
from cpu_engine.bfs.ranks.engine import RankEngine
from cpu_engine.bfs.ranks.proof import certify_on_ranks
from cpu_engine.comm.collectives import RankInfo, all_to_all, barrier, broadcast
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.graph.distributed.build import BuiltPart, build_on_ranks, estimate_bytes
from cpu_engine.graph.distributed.shares import Share, share_of_kronecker
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.memory import require_bytes
from hybrid.errors import ConfigError
from hybrid.experiments.graph500.benchmark import Outcome, Plan, Search
from hybrid.experiments.graph500.rules import refusal
from hybrid.job.warm_up import say_if_slow
from hybrid.ranks.rendezvous import Agreed
from hybrid.terminal import progress

POLICY = "iec"  # a vertex's parent is then at its own rank
_WARM_SCALE, _WARM_KEYS = 10, 2
_LEVEL_BYTES = 1 << 28  # of all levels that a rank holds at once to look at the input
_NANO = 1e9
_COMPILING = "compiling the kernels: this happens on the first run only, and is kept for the next"


def run_on_rank(info: RankInfo, plan: Plan) -> Driver[Outcome | None]:
    """This rank's side of the whole benchmark; the outcome at rank 0. ``Agreed`` if a search fails its validation."""
    if info.rank == info.first_here:
        here = len(info.local_ranks)
        needed = here * estimate_bytes(plan.edge_factor << plan.scale, 1 << plan.scale, info.size)
        require_bytes(needed, f"{here} of {info.size} parts of scale {plan.scale}", "use more machines")
    for turn in (info.rank == info.first_here, info.rank != info.first_here):  # the first compiles for the others
        if turn:
            with say_if_slow(_COMPILING) if info.rank == 0 else nullcontext():
                small = replace(plan, scale=min(plan.scale, _WARM_SCALE), keys=_WARM_KEYS)
                run_loopback([_run(RankInfo(rank, 2, ("here",) * 2), small) for rank in range(2)])
        yield from barrier()
    outcome = yield from _run(info, plan)
    return outcome


def _run(info: RankInfo, plan: Plan) -> Driver[Outcome | None]:
    made = share_of_kronecker(info.rank, info.size, plan.scale, plan.edge_factor, plan.seed)
    making: list[float] = []  # seconds of each piece
    yield from barrier()
    begun = time.perf_counter()
    built = yield from build_on_ranks(info, replace(made, pieces=partial(_clocked, made, making)), POLICY)
    engine = RankEngine(built.part, engine="level", sync="bsp")
    whole_s, making_s = yield from _slowest(time.perf_counter() - begun, sum(making))
    n = built.part.n
    outcome = Outcome(
        plan, making_s, whole_s - making_s, built.vertices, built.vertices - n, plan.edge_factor << plan.scale,
        ranks=info.size,
    )  # fmt: skip
    keys = yield from _draw_keys(info, n, plan)
    yield from engine.search(int(keys[0]))  # untimed, as the reference code does
    at_once = max(1, _LEVEL_BYTES // max(1, built.vertices))
    with progress("searching", "key") if info.rank == 0 else nullcontext() as bar:
        for first in range(0, keys.size, at_once):
            outcome.searches += yield from _search_some(info, built, made, engine, keys[first : first + at_once])
            if bar is not None:
                bar(len(outcome.searches), keys.size)
    return outcome if info.rank == 0 else None


def _clocked(share: Share, making: list[float]) -> Iterator[EdgeList]:
    """The share's edges; the seconds in which they are made go to ``making``."""
    pieces = share.pieces()
    while True:
        begun = time.perf_counter()
        piece = next(pieces, None)
        making.append(time.perf_counter() - begun)
        if piece is None:
            return
        yield piece


def _draw_keys(info: RankInfo, n: int, plan: Plan) -> Driver[np.ndarray]:
    """The keys of one rank: different vertices that have an edge to another one, as internal ids."""
    if n == 0:
        wrong = ConfigError("the graph has no edge between two vertices to search along", fix="choose a larger scale")
        raise Agreed(wrong)
    drawn = None
    if info.rank == 0:
        drawn = np.random.default_rng(plan.seed).permutation(n)[: plan.keys].astype(np.int64).view(np.uint8)
    shared: np.ndarray = yield from broadcast(info, drawn)
    return shared.view(np.int64)


def _search_some(
    info: RankInfo, built: BuiltPart, made: Share, engine: RankEngine, keys: np.ndarray
) -> Driver[list[Search]]:
    """Search from each key, prove each on the parts, and then all of them on the input."""
    part, own = built.part, built.position_of[: built.part.masters]
    first, last = part.layout.bounds[info.rank : info.rank + 2].tolist()
    levels = np.full((keys.size, last - first), -1, np.int32)
    times, proofs, names = [], [], []
    for at, root in enumerate(keys.tolist()):
        yield from barrier(patient=False)
        begun = time.perf_counter()
        found = yield from engine.search(root)
        searched = time.perf_counter()
        parent = engine.local_parents
        np.where(parent >= 0, built.position_of[parent], -1)  # the tree in the input's vertex numbers
        ended = time.perf_counter()
        times.append((yield from _slowest(ended - begun, searched - begun)))
        certificate = yield from certify_on_ranks(part, found.levels, found.parents, root)
        mine = own[part.internal_of[: part.masters] == root]
        key = int((yield AllReduce(np.array([mine[0] if mine.size else -1], np.int64), "max"))[0])
        if not certificate.holds:
            raise Agreed(refusal(key, certificate.explain()))
        levels[at, own - first] = found.levels
        names.append(key)
        proofs.append((yield from _slowest(time.perf_counter() - ended))[0])
    begun = time.perf_counter()
    inside = yield from _check_input(info, made, levels, names)
    rules_s = (yield from _slowest(time.perf_counter() - begun))[0] / keys.size
    counts = yield AllReduce(np.count_nonzero(levels >= 0, axis=1).astype(np.int64))
    depths = yield AllReduce(levels.max(axis=1, initial=-1).astype(np.int64), "max")
    return [
        Search(names[i], int(inside[i]), int(counts[i]), int(depths[i]), proofs[i] + rules_s, *times[i])
        for i in range(keys.size)
    ]


def _check_input(info: RankInfo, made: Share, levels: np.ndarray, names: list[int]) -> Driver[np.ndarray]:
    """The rules for every input edge, on each rank's share; how many edges each tree's component has."""
    deepest = yield AllReduce(np.array([levels.max(initial=-1)], np.int64), "max")
    narrow = np.int8 if deepest[0] < np.iinfo(np.int8).max else np.int32
    mine = np.ascontiguousarray(levels.T, narrow).reshape(-1).view(np.uint8)
    came = yield from all_to_all(info, [mine] * info.size)
    whole = np.concatenate([payload.view(narrow).reshape(-1, levels.shape[0]) for payload in came])
    whole = np.ascontiguousarray(whole.T)
    inside, wrong = np.zeros((2, levels.shape[0], numba.get_num_threads()), np.int64)
    for piece in made.pieces():
        for i in range(levels.shape[0]):
            count_spans_step(piece.src, piece.dst, whole[i], inside[i], wrong[i])
    found = yield AllReduce(np.stack((inside.sum(axis=1), wrong.sum(axis=1))))
    for i, false in enumerate(found[1].tolist()):
        if false:
            raise Agreed(refusal(names[i], f"{false} input edges span more than one level, or leave the tree"))
    return np.asarray(found[0])


def _slowest(*seconds: float) -> Driver[tuple[float, ...]]:
    """The longest of each over all ranks."""
    slowest = yield AllReduce(np.array([round(one * _NANO) for one in seconds], np.int64), "max", patient=True)
    return tuple(one / _NANO for one in slowest.tolist())
