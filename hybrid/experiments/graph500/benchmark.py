"""The Graph500 benchmark's kernels 1 to 3: generate, construct, search from 64 keys, validate, and only then figures.

Kernel 2 is a breadth-first search, kernel 3 the shortest paths over real weights. Invariant: a statistic exists only
when every search of the run has passed the benchmark's validation, which is made from the input edge list
(graph500_rules), and the engine-independent certificate, which is made from the graph.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numba
import numpy as np

from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.many.engine import ROOTS_PER_PASS, ManyBfs, warm_up_many
from cpu_engine.bfs.traversal import CoreSplit, Traversal
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.build.extent import generated_extent, require_room
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.kernels.restore import restore_values_step
from cpu_engine.graph.memory import require_bytes
from cpu_engine.sssp.check import check_sssp
from cpu_engine.sssp.engine import SsspEngine, SsspResult
from hybrid.algorithms.bfs import make_engine
from hybrid.errors import ConfigError
from hybrid.experiments.graph500.rules import check_paths, check_tree, refusal
from hybrid.job.warm_up import say_if_slow, warm_up
from hybrid.offload.traverse import traverse_alone
from hybrid.terminal import progress

EDGE_FACTOR, SEED, SEARCH_KEYS = 16, 2, 64  # the benchmark's own
_WEIGHT_STREAM = 3  # of random numbers: others than those that the keys are drawn with
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
    kernel: str = "bfs"


@dataclass(frozen=True)
class Search:
    """A validated search tree: the key, the input edges among the vertices reached, and how long the proof took."""

    key: int
    edges: int
    reached: int
    depth: int
    validate_seconds: float
    # By its own clock, which a search in a batch has not; then without writing results in the input's vertex numbers.
    seconds: float = 0.0
    internal_seconds: float = 0.0


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
    batch: tuple[float, float] | None = None  # seconds of all at once: levels and parents, in internal numbers; levels
    ranks: int = 1


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
    first, median, third = (
        (ordered[low] + ordered[high]) / 2
        for low, high in (((n - 1) // 4, n // 4), ((n - 1) // 2, n // 2), (n - 1 - (n - 1) // 4, n - 1 - n // 4))
    )
    return Summary(ordered[0], first, median, third, ordered[-1], mean, math.sqrt(variance))


def teps_summary(seconds: Sequence[float], edges: Sequence[int]) -> dict[str, float]:
    """Statistics of the rates, from those of seconds per edge: so the mean is the harmonic one, and quartiles swap."""
    costs = summarise([time_s / count for time_s, count in zip(seconds, edges, strict=True)])
    swapped = ("maximum", "thirdquartile", "median", "firstquartile", "minimum", "mean")
    named = ("min", "firstquartile", "median", "thirdquartile", "max", "harmonic_mean")
    spread = costs.stddev / (costs.mean**2 * math.sqrt(len(seconds) - 1)) if len(seconds) > 1 else 0.0
    rates = {f"{name}_TEPS": 1 / getattr(costs, cost) for name, cost in zip(named, swapped, strict=True)}
    return rates | {"harmonic_stddev_TEPS": spread}


def run_benchmark(plan: Plan) -> Outcome:
    """Kernel 1, the search keys, kernel 2 or 3 for each (or 2 for all), validation. NotCertified if that fails."""
    size = generated_extent("kronecker", scale=plan.scale, edge_factor=plan.edge_factor, weighted=plan.kernel == "sssp")
    require_room(size, False, consume=False)  # validation reads the list
    with say_if_slow("compiling the kernels: this happens on the first run only, and is kept for the next"):
        _warm_up(plan)
    begun = time.perf_counter()
    with say_if_slow("generating the edges"):
        edges = generate(plan, plan.scale)
    generated = time.perf_counter()
    with progress("constructing", "step") as bar:
        graph = build_graph(edges, directed=False, progress=bar)
    engine = _engine_for(plan, graph)
    built = time.perf_counter()
    isolated = int(graph.user_ids.size) - graph.n
    outcome = Outcome(plan, generated - begun, built - generated, graph.user_ids.size, isolated, edges.src.size)
    keys = draw_keys(graph, plan.keys, plan.seed)
    if isinstance(engine, ManyBfs):
        outcome.batch, outcome.searches = search_at_once(graph, edges, engine, keys)
    else:
        outcome.searches = search_each(graph, edges, engine, keys)
    return outcome


def generate(plan: Plan, scale: int) -> EdgeList:
    """The input: edges in the order of the generator, for kernel 3 each with a weight in [0, 1) of its own."""
    edges = kronecker(scale, plan.edge_factor, plan.seed)
    if plan.kernel != "sssp":
        return edges
    return replace(edges, weight=np.random.default_rng((plan.seed, _WEIGHT_STREAM)).random(edges.src.size))


def draw_keys(graph: Graph, count: int, seed: int) -> np.ndarray:
    """Different vertices that have an edge to another one (internal ids); fewer where there are fewer."""
    if graph.n == 0:
        raise ConfigError("the graph has no edge between two vertices to search along", fix="choose a larger scale")
    return np.random.default_rng(seed).permutation(graph.n)[:count]


def search_each(graph: Graph, edges: EdgeList, engine: SsspEngine | Traversal, keys: np.ndarray) -> list[Search]:
    """Kernel 2 or 3 as the benchmark wants it: from one key after the other, each with its own clock."""
    paths = isinstance(engine, SsspEngine)
    search = engine.run if isinstance(engine, SsspEngine) else partial(traverse_alone, engine)
    search(int(keys[0]))  # as the reference code does, untimed
    searches = []
    with progress("measuring paths" if paths else "searching", "key") as bar:
        for done, root in enumerate(keys.tolist(), start=1):
            begun, distance = time.perf_counter(), None
            found = search(root)
            searched = time.perf_counter()
            parent = graph.to_user_parents(found.parent)
            if isinstance(found, SsspResult):
                distance = np.empty(graph.user_ids.size, np.float64)
                restore_values_step(graph.internal_of_position, found.distance, np.inf, distance)
            ended = time.perf_counter()
            value = found.distance if isinstance(found, SsspResult) else found.level
            checked = validate(graph, edges, root, value, found.parent, parent, distance)
            searches.append(replace(checked, seconds=ended - begun, internal_seconds=searched - begun))
            bar(done, keys.size)
    return searches


def search_at_once(
    graph: Graph, edges: EdgeList, engine: ManyBfs, keys: np.ndarray
) -> tuple[tuple[float, float], list[Search]]:
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
        raise refusal("all keys", "two runs of the same searches gave different levels")
    searches = []
    with progress("validating", "key") as bar:
        for i, root in enumerate(keys.tolist()):
            level, parent = found.of(i)
            assert parent is not None
            searches.append(validate(graph, edges, root, level, parent, graph.to_user_parents(parent)))
            bar(i + 1, keys.size)
    return (whole_s, levels_s), searches


def validate(
    graph: Graph, edges: EdgeList, root: int, value: np.ndarray, parent: np.ndarray, user_parent: np.ndarray,
    user_distance: np.ndarray | None = None,
) -> Search:  # fmt: skip
    """The search as a result that may be counted, or NotCertified with the key and the reason.

    ``value`` and ``parent`` are in internal numbers, ``user_`` in the input's; kernel 3 has distances in the place of
    levels.
    """
    begun = time.perf_counter()
    key = int(graph.user_ids[graph.user_position[root]])
    if user_distance is None:
        depth, inside = check_tree(edges, user_parent, key)
        certificate = certify(graph, value, parent, root)
        reason = "" if certificate.holds else certificate.explain()
        if not reason and not np.array_equal(depth, graph.to_user_levels(value)):
            reason = "the levels are not the depths in the tree"
    else:
        depth, inside = check_paths(edges, user_parent, user_distance, key)
        lengths = check_sssp(graph, root, value, parent)
        reason = "" if lengths.holds else lengths.explain(graph)
    if reason:
        raise refusal(key, reason)
    return Search(key, inside, int(np.count_nonzero(depth >= 0)), int(depth.max()), time.perf_counter() - begun)


def statistics(outcome: Outcome) -> dict[str, float]:
    """The official output's keys and values, in its order; for a batch, what can be said of it."""
    plan, searches, about = outcome.plan, outcome.searches, f"{outcome.plan.kernel} "
    edges = [search.edges for search in searches]
    values: dict[str, float] = {
        "SCALE": plan.scale,
        "edgefactor": plan.edge_factor,
        "NBFS": len(searches),
        "graph_generation": outcome.generation_seconds,
        "num_mpi_processes": outcome.ranks,
        "construction_time": outcome.construction_seconds,
    }
    if outcome.batch is None:
        seconds = [search.seconds for search in searches]
        values |= _named(about, "_time", summarise(seconds))
        values |= _named("", "_nedge", summarise(edges))
        values |= {about + name: value for name, value in teps_summary(seconds, edges).items()}
        internal = [search.internal_seconds for search in searches]
        values[about + "internal_mean_time"] = summarise(internal).mean
        values[about + "internal_harmonic_TEPS"] = teps_summary(internal, edges)["harmonic_mean_TEPS"]
    else:
        (whole_s, levels_s), total = outcome.batch, sum(edges)
        values |= _named("", "_nedge", summarise(edges))
        values |= {"batch time": whole_s, "batch nedge": total, "batch TEPS": total / whole_s}
        values |= {"batch levels_time": levels_s, "batch levels_TEPS": total / levels_s}
    return values | _named(about, "_validate", summarise([search.validate_seconds for search in searches]))


def _named(before: str, after: str, summary: Summary) -> dict[str, float]:
    short = {"minimum": "min", "maximum": "max"}
    return {f"{before}{short.get(name, name)}{after}": value for name, value in vars(summary).items()}


def render(values: dict[str, float]) -> str:
    """The block as the reference code prints it."""
    lines = []
    for name, value in values.items():
        printed = name.replace("bfs ", "bfs  ") + ":"
        if name.endswith(" harmonic_mean_TEPS"):
            printed = printed.ljust(_COLUMN - 3) + "!"
        lines.append(f"{printed.ljust(_COLUMN)}{value:{'.11g' if name.endswith('nedge') else 'g'}}")
    return "\n".join(lines)


def document(outcome: Outcome) -> dict[str, Any]:
    """Everything of a run for a file: the plan, the statistics, each search."""
    plan, searches = outcome.plan, [asdict(search) for search in outcome.searches]
    for search in searches if plan.batch else ():
        del search["seconds"], search["internal_seconds"]
    return {
        "benchmark": "graph500",
        "mode": "batch" if plan.batch else "single",
        "plan": asdict(plan) | {"engine": "sssp" if plan.kernel == "sssp" else "many" if plan.batch else plan.engine},
        "threads": numba.get_num_threads(),
        "vertices": outcome.vertices,
        "isolated": outcome.isolated,
        "input_edges": outcome.edges,
        "validated": True,
        "statistics": statistics(outcome),
        "searches": searches,
    }


def _engine_for(plan: Plan, graph: Graph) -> ManyBfs | SsspEngine | Traversal:
    """What searches, with its buffers."""
    if plan.kernel == "sssp":
        return SsspEngine(graph)
    return ManyBfs(graph) if plan.batch else make_engine(plan.engine, CoreSplit(graph))


def _warm_up(plan: Plan) -> None:
    """Compile, or load, everything that will be timed, on a graph just large enough for all of it to be used."""
    edges = generate(plan, _WARM_SCALE)
    graph = build_graph(edges, directed=False)
    if graph.n == 0:
        return
    keys, engine = draw_keys(graph, ROOTS_PER_PASS, plan.seed), _engine_for(plan, graph)
    if isinstance(engine, ManyBfs):
        warm_up_many()
        search_at_once(graph, edges, engine, keys[:1])
    elif isinstance(engine, SsspEngine):
        search_each(graph, edges, engine, keys[:4])
    else:
        warm_up(plan.engine)
        for key in keys.tolist():
            traverse_alone(engine, key)
        search_each(graph, edges, engine, keys[:1])
