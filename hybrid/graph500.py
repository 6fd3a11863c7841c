"""The Graph500 benchmark's kernels 1 and 2: generate, construct, search from 64 keys, validate, and only then figures.

Invariant: a statistic exists only when every search of the run has passed the benchmark's validation, which is made
from the input edge list, and the engine-independent certificate, which is made from the graph.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numba
import numpy as np

from cpu_engine.algorithms.bfs_many import ROOTS_PER_PASS, ManyBfs, warm_up_many
from cpu_engine.algorithms.certificate import certify
from cpu_engine.algorithms.traversal import CoreSplit, Traversal
from cpu_engine.graph.build import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.memory import require_bytes
from cpu_engine.kernels.tree_rules import check_edges_step, descend_step
from hybrid.errors import ConfigError, NotCertified
from hybrid.terminal import progress
from hybrid.traverse import traverse_alone
from hybrid.warmup import make_engine, say_if_slow, warm_up

EDGE_FACTOR, SEED, SEARCH_KEYS = 16, 2, 64  # the benchmark's own
_WARM_SCALE = 14
_COLUMN = 32  # where the values begin in the official output


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    scale: int
    edge_factor: int = EDGE_FACTOR
    seed: int = SEED
    keys: int = SEARCH_KEYS
    engine: str = "level"
    batch: bool = False


@dataclass(frozen=True)
class Checked:
    """A validated search tree: the key, the input edges among the vertices reached, and how long the proof took."""

    key: int
    edges: int
    reached: int
    depth: int
    validate_seconds: float


@dataclass(frozen=True)
class Search(Checked):
    """A search with its own clock: all of it, and the part without writing parents in the input's vertex numbers."""

    seconds: float
    internal_seconds: float


@dataclass(frozen=True)
class Batch:
    """All searches at once: the time for levels and parents together, and for levels alone, in internal numbers."""

    seconds: float
    levels_seconds: float
    searches: list[Checked]


@dataclass
class Outcome:
    """A run in which everything was validated."""

    plan: Plan
    generation_seconds: float
    construction_seconds: float
    vertices: int
    isolated: int
    edges: int
    searches: list[Search] = field(default_factory=list)
    batch: Batch | None = None

    @property
    def checked(self) -> Sequence[Checked]:
        return self.searches if self.batch is None else self.batch.searches


@dataclass(frozen=True)
class Summary:
    """The seven numbers of the official output, by its own definition of a quartile."""

    minimum: float
    firstquartile: float
    median: float
    thirdquartile: float
    maximum: float
    mean: float
    stddev: float


def summarise(values: Sequence[float]) -> Summary:
    """Order statistics as means of two elements, standard deviation with n - 1 (0 for a single value)."""
    ordered, n = sorted(values), len(values)
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1) if n > 1 else 0.0
    return Summary(
        minimum=ordered[0],
        firstquartile=(ordered[(n - 1) // 4] + ordered[n // 4]) / 2,
        median=(ordered[(n - 1) // 2] + ordered[n // 2]) / 2,
        thirdquartile=(ordered[n - 1 - (n - 1) // 4] + ordered[n - 1 - n // 4]) / 2,
        maximum=ordered[-1],
        mean=mean,
        stddev=math.sqrt(variance),
    )


def teps_summary(seconds: Sequence[float], edges: Sequence[int]) -> dict[str, float]:
    """Statistics of the rates, from those of seconds per edge: so the mean is the harmonic one, and quartiles swap."""
    costs = summarise([time_s / count for time_s, count in zip(seconds, edges, strict=True)])
    spread = costs.stddev / (costs.mean**2 * math.sqrt(len(seconds) - 1)) if len(seconds) > 1 else 0.0
    return {
        "min_TEPS": 1 / costs.maximum,
        "firstquartile_TEPS": 1 / costs.thirdquartile,
        "median_TEPS": 1 / costs.median,
        "thirdquartile_TEPS": 1 / costs.firstquartile,
        "max_TEPS": 1 / costs.minimum,
        "harmonic_mean_TEPS": 1 / costs.mean,
        "harmonic_stddev_TEPS": spread,
    }


def run_benchmark(plan: Plan) -> Outcome:
    """Kernel 1, the search keys, kernel 2 for each (or all at once), validation. NotCertified if that fails."""
    with say_if_slow("compiling the kernels: this happens on the first run only, and is kept for the next"):
        _warm_up(plan)
    begun = time.perf_counter()
    with say_if_slow("generating the edges"):
        edges = kronecker(plan.scale, plan.edge_factor, plan.seed)
    generated = time.perf_counter()
    with progress("constructing", "step") as bar:
        graph = build_graph(edges, directed=False, progress=bar)
    engine = ManyBfs(graph) if plan.batch else make_engine(plan.engine, CoreSplit(graph))
    built = time.perf_counter()
    isolated = int(graph.user_ids.size) - graph.n
    outcome = Outcome(plan, generated - begun, built - generated, graph.user_ids.size, isolated, edges.src.size)
    keys = draw_keys(graph, plan.keys, plan.seed)
    if isinstance(engine, ManyBfs):
        outcome.batch = search_at_once(graph, edges, engine, keys)
    else:
        outcome.searches = search_each(graph, edges, engine, keys)
    return outcome


def draw_keys(graph: Graph, count: int, seed: int) -> np.ndarray:
    """Different vertices that have an edge to another one (internal ids); fewer where there are fewer."""
    if graph.n == 0:
        raise ConfigError("the graph has no edge between two vertices to search along", fix="choose a larger scale")
    return np.random.default_rng(seed).permutation(graph.n)[:count]


def search_each(graph: Graph, edges: EdgeList, engine: Traversal, keys: np.ndarray) -> list[Search]:
    """Kernel 2 as the benchmark wants it: one search after the other, each with its own clock."""
    traverse_alone(engine, int(keys[0]))  # as the reference code does, untimed
    searches = []
    with progress("searching", "key") as bar:
        for done, root in enumerate(keys.tolist(), start=1):
            begun = time.perf_counter()
            found = traverse_alone(engine, root)
            searched = time.perf_counter()
            parent = graph.to_user_parents(found.parent)
            ended = time.perf_counter()
            checked = validate(graph, edges, root, found.level, found.parent, parent)
            searches.append(Search(**vars(checked), seconds=ended - begun, internal_seconds=searched - begun))
            bar(done, keys.size)
    return searches


def search_at_once(graph: Graph, edges: EdgeList, engine: ManyBfs, keys: np.ndarray) -> Batch:
    """All searches in one go. The benchmark's rules do not allow that: its time is one time, and called a batch's."""
    require_bytes(
        graph.n * keys.size * 8, f"the levels and parents of {keys.size} searches", "search from fewer keys (--roots)"
    )
    engine.run(keys[:1], parents=True)
    begun = time.perf_counter()
    alone = engine.run(keys)
    levels_s = time.perf_counter() - begun
    kept = alone.level.copy()  # the next run writes into the same array
    begun = time.perf_counter()
    found = engine.run(keys, parents=True)
    whole_s = time.perf_counter() - begun
    if not np.array_equal(kept, found.level):
        raise _refusal("all keys", "two runs of the same searches gave different levels")
    searches: list[Checked] = []
    with progress("validating", "key") as bar:
        for i, root in enumerate(keys.tolist()):
            level, parent = found.of(i)
            assert parent is not None
            searches.append(validate(graph, edges, root, level, parent, graph.to_user_parents(parent)))
            bar(i + 1, keys.size)
    return Batch(whole_s, levels_s, searches)


def validate(
    graph: Graph, edges: EdgeList, root: int, level: np.ndarray, parent: np.ndarray, user_parent: np.ndarray
) -> Checked:
    """The search as a result that may be counted, or NotCertified with the key and the reason."""
    begun = time.perf_counter()
    key = int(graph.user_ids[graph.user_position[root]])
    depth, inside = check_tree(edges, user_parent, key)
    certificate = certify(graph, level, parent, root)
    if not certificate.holds:
        raise _refusal(key, certificate.explain())
    if not np.array_equal(depth, graph.to_user_levels(level)):
        raise _refusal(key, "the levels are not the depths in the tree")
    reached = int(np.count_nonzero(depth >= 0))
    return Checked(key, inside, reached, int(depth.max()), time.perf_counter() - begun)


def check_tree(edges: EdgeList, parent: np.ndarray, key: int) -> tuple[np.ndarray, int]:
    """Graph500's five rules, on the input list; returns each vertex's depth, and how many edges the component has."""
    n, threads = parent.size, numba.get_num_threads()
    if not -1 <= int(parent.min()) <= int(parent.max()) < n:
        raise _refusal(key, "a parent is not a vertex")
    if parent[key] != key:
        raise _refusal(key, f"the parent of the search key is {parent[key]}, not itself")
    parent = parent.astype(np.int32)
    depth = np.full(n, -1, np.int32)
    depth[key] = 0
    found = np.ones(threads, np.int64)
    last = 0
    while found.any():
        descend_step(parent, depth, last, found)
        last += 1
    lost = np.flatnonzero((parent != -1) & (depth == -1))
    if lost.size:
        raise _refusal(key, f"{lost.size} vertices do not hang from the key, for example {lost[0]}: a cycle")
    confirmed = np.zeros(n, np.uint8)
    confirmed[key] = 1
    inside, wrong = np.zeros(threads, np.int64), np.zeros((threads, 2), np.int64)
    example = np.full((threads, 2), -1, np.int64)
    narrow = depth.astype(np.int8) if last <= np.iinfo(np.int8).max else depth  # a quarter of the cache
    check_edges_step(edges.src, edges.dst, parent, narrow, confirmed, inside, wrong, example)
    _refuse_edges(edges, key, depth, wrong.sum(axis=0), example.max(axis=0))
    made_up = np.flatnonzero((parent != -1) & (confirmed == 0))
    if made_up.size:
        v = int(made_up[0])
        reason = f"{made_up.size} tree edges are not in the input, for example {parent[v]} - {v}"
        raise _refusal(key, reason)
    return depth, int(inside.sum())


def _refuse_edges(edges: EdgeList, key: int, depth: np.ndarray, wrong: np.ndarray, example: np.ndarray) -> None:
    claims = ("lead out of the tree, which therefore does not span the component", "span more than one level")
    for count, at, claim in zip(wrong.tolist(), example.tolist(), claims, strict=True):
        if count:
            u, v = int(edges.src[at]), int(edges.dst[at])
            ends = f"{u} (level {depth[u]}) - {v} (level {depth[v]})"
            raise _refusal(key, f"{count} input edges {claim}, for example {ends}")


def _refusal(key: int | str, reason: str) -> NotCertified:
    return NotCertified(
        f"search key {key}: {reason}; no figures are given for an invalid run",
        fix="this is a defect of Tandem: please report it with the scale and the seed",
    )


def statistics(outcome: Outcome) -> dict[str, float]:
    """The official output's keys and values, in its order; for a batch, what can be said of it."""
    plan = outcome.plan
    checked = outcome.checked
    edges = [search.edges for search in checked]
    values: dict[str, float] = {
        "SCALE": plan.scale,
        "edgefactor": plan.edge_factor,
        "NBFS": len(checked),
        "graph_generation": outcome.generation_seconds,
        "num_mpi_processes": 1,
        "construction_time": outcome.construction_seconds,
    }
    if outcome.batch is None:
        seconds = [search.seconds for search in outcome.searches]
        values |= _named("bfs ", "_time", summarise(seconds))
        values |= _named("", "_nedge", summarise(edges))
        values |= {f"bfs {name}": value for name, value in teps_summary(seconds, edges).items()}
        internal = [search.internal_seconds for search in outcome.searches]
        values["bfs internal_mean_time"] = summarise(internal).mean
        values["bfs internal_harmonic_TEPS"] = teps_summary(internal, edges)["harmonic_mean_TEPS"]
    else:
        batch, total = outcome.batch, sum(edges)
        values |= _named("", "_nedge", summarise(edges))
        values |= {"batch time": batch.seconds, "batch nedge": total, "batch TEPS": total / batch.seconds}
        values |= {"batch levels_time": batch.levels_seconds, "batch levels_TEPS": total / batch.levels_seconds}
    return values | _named("bfs ", "_validate", summarise([search.validate_seconds for search in checked]))


def _named(before: str, after: str, summary: Summary) -> dict[str, float]:
    short = {"minimum": "min", "maximum": "max"}
    return {f"{before}{short.get(name, name)}{after}": value for name, value in vars(summary).items()}


def render(values: dict[str, float]) -> str:
    """The block as the reference code prints it."""
    lines = []
    for name, value in values.items():
        printed = name.replace("bfs ", "bfs  ") + ":"
        if name == "bfs harmonic_mean_TEPS":
            printed = printed.ljust(_COLUMN - 3) + "!"
        lines.append(f"{printed.ljust(_COLUMN)}{value:{'.11g' if name.endswith('nedge') else 'g'}}")
    return "\n".join(lines)


def document(outcome: Outcome) -> dict[str, Any]:
    """Everything of a run for a file: the plan, the statistics, each search."""
    return {
        "benchmark": "graph500",
        "mode": "batch" if outcome.plan.batch else "single",
        "plan": asdict(outcome.plan) | ({"engine": "many"} if outcome.plan.batch else {}),
        "threads": numba.get_num_threads(),
        "vertices": outcome.vertices,
        "isolated": outcome.isolated,
        "input_edges": outcome.edges,
        "validated": True,
        "statistics": statistics(outcome),
        "searches": [asdict(search) for search in outcome.checked],
    }


def _warm_up(plan: Plan) -> None:
    """Compile, or load, everything that will be timed, on a graph just large enough for all of it to be used."""
    edges = kronecker(_WARM_SCALE, plan.edge_factor, plan.seed)
    graph = build_graph(edges, directed=False)
    if graph.n == 0:
        return
    keys = draw_keys(graph, ROOTS_PER_PASS, plan.seed)
    if plan.batch:
        warm_up_many()
        search_at_once(graph, edges, ManyBfs(graph), keys[:1])
    else:
        warm_up(plan.engine)
        engine = make_engine(plan.engine, CoreSplit(graph))
        for key in keys.tolist():
            traverse_alone(engine, key)
        search_each(graph, edges, engine, keys[:1])
