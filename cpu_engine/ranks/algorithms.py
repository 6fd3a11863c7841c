"""The algorithms that run on many ranks, besides BFS: what parts each needs, and how to run it on one.

A job asks ``rank_algorithm`` for one, cuts the graph as it says, makes its side once per part and drives it.
Invariant: what cannot give the exact result - a policy, a way to synchronise - is refused here, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from cpu_engine.comm.requests import Driver
from cpu_engine.communities.check_on_ranks import check_labels_on_ranks
from cpu_engine.communities.ranks_label_propagation import POLICIES as LABEL_POLICIES
from cpu_engine.communities.ranks_label_propagation import LabelsOnRanks
from cpu_engine.components.check_on_ranks import check_components_on_ranks
from cpu_engine.components.ranks import ComponentsOnRanks
from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition.part import Part
from cpu_engine.graph.partition.policies import POLICIES
from cpu_engine.kcore.check_on_ranks import check_k_core_on_ranks
from cpu_engine.kcore.ranks import CoreNumbersOnRanks
from cpu_engine.pagerank.check_on_ranks import Asked, check_pagerank_on_ranks
from cpu_engine.pagerank.ranks import PageRankOnRanks
from cpu_engine.ranks.statistics import RankStatistics
from cpu_engine.sssp.check_on_ranks import check_sssp_on_ranks
from cpu_engine.sssp.ranks import SsspOnRanks

Options = dict[str, Any]


@dataclass(frozen=True)
class PartFinding:
    """What one run found on one part: arrays over its masters, and what is the same on all parts."""

    arrays: dict[str, np.ndarray]
    statistics: RankStatistics
    counters: dict[str, Any] = field(default_factory=dict)
    isolated: dict[str, float] = field(default_factory=dict)  # what vertices without edges share


class Check(Protocol):
    """What a check on ranks says, the same on every rank."""

    @property
    def holds(self) -> bool: ...

    def explain(self) -> str: ...


@dataclass(frozen=True)
class Checked:
    """What is to be proven of a run on one part; ``user_ids``: of the part's masters and mirrors."""

    part: Part
    finding: PartFinding
    root: int  # internal id, -1 where the algorithm has no source
    options: Options
    user_ids: np.ndarray


Drive = Generator[Any, Any, PartFinding]


@dataclass(frozen=True)
class RankAlgorithm:
    """An algorithm on many ranks. ``make(part, graph, sync, options)``, ``drive(made, root, options)``, ``check``."""

    name: str
    make: Callable[[Part, Graph, str, Options], Any]
    drive: Callable[[Any, int, Options], Drive]
    check: Callable[[Checked], Driver[Any]]  # answers with a ``Check``
    syncs: tuple[str, ...] = ("bsp",)
    only_bsp_because: str = ""
    policies: tuple[str, ...] = POLICIES
    policies_because: str = ""
    sourced: bool = False
    weighted: bool = False  # wants parts that carry weights
    symmetric: bool = False  # wants every arc both ways, if the graph is directed
    threaded: bool = True  # uses all threads of a rank, not just one

    def choose_policy(self, policy: str) -> str:
        """Resolve ``auto``; InputError for one that cannot serve."""
        if policy == "auto":
            return "iec"
        if policy not in self.policies:
            raise InputError(
                f"{self.name} on several ranks: {self.policies_because}",
                value=policy,
                fix=f"set cluster.policy to {' or '.join(self.policies)}, or to auto",
            )
        return policy

    def choose_sync(self, sync: str) -> str:
        """The way to synchronise that will be used: bsp where nothing else gives the right result."""
        return sync if sync in self.syncs else self.syncs[0]


def _make_sssp(part: Part, graph: Graph, sync: str, options: Options) -> SsspOnRanks:
    return SsspOnRanks(part, sync=sync, delta=options.get("delta"), core_size=options.get("core_size", 0))


def _drive_sssp(made: SsspOnRanks, root: int, options: Options) -> Drive:
    found = yield from made.search(root, options.get("outside"), withhold_core=bool(options.get("withhold_core")))
    counters = {"rounds": found.statistics.rounds, "delta": found.delta}
    return PartFinding({"distance": found.distance, "parent": found.parents}, found.statistics, counters)


def _drive_components(made: ComponentsOnRanks, root: int, options: Options) -> Drive:
    found = yield from made.run(options.get("outside"), withhold_core=bool(options.get("withhold_core")))
    counters = {"components": found.count}
    return PartFinding({"component": found.labels}, found.statistics, counters)


def _drive_pagerank(made: PageRankOnRanks, root: int, options: Options) -> Drive:
    found = yield from made.run(**{name: value for name, value in options.items() if name != "withhold_core"})
    counters = {"iterations": found.iterations, "change": found.change, "converged": found.converged}
    return PartFinding({"rank": found.ranks}, found.statistics, counters, {"rank": found.isolated_rank})


def _make_labels(part: Part, graph: Graph, sync: str, options: Options) -> LabelsOnRanks:
    """``options``: positions and a driver of names, of a graph that no rank has whole."""
    if "positions" in options:
        return LabelsOnRanks(part, options["positions"], options["names_at"])

    def name(positions: np.ndarray) -> Driver[np.ndarray]:
        yield from ()
        return graph.user_ids[positions]

    return LabelsOnRanks(part, graph.user_position[part.internal_of], name)


def _drive_labels(made: LabelsOnRanks, root: int, options: Options) -> Drive:
    found = yield from made.run(iterations=options.get("iterations", 10))
    return PartFinding({"community": found.labels}, found.statistics, {"iterations": found.iterations})


def _drive_cores(made: CoreNumbersOnRanks, root: int, options: Options) -> Drive:
    found = yield from made.run()
    return PartFinding({"core": found.cores}, found.statistics, {"iterations": found.levels})


def _check_paths(checked: Checked) -> Driver[Check]:
    arrays = checked.finding.arrays
    return check_sssp_on_ranks(checked.part, checked.root, arrays["distance"], arrays["parent"])


def _check_components(checked: Checked) -> Driver[Check]:
    return check_components_on_ranks(checked.part, checked.finding.arrays["component"])


def _check_ranks(checked: Checked) -> Driver[Check]:
    finding, defaults = checked.finding, Asked()
    given = {name: checked.options.get(name) for name in ("definition", "damping", "iterations", "tolerance")}
    asked = replace(defaults, **{name: value for name, value in given.items() if value is not None})
    if finding.counters.get("converged") is False:
        asked = replace(asked, change=finding.counters["change"])
    return check_pagerank_on_ranks(checked.part, finding.arrays["rank"], finding.isolated["rank"], asked)


def _check_labels(checked: Checked) -> Driver[Check]:
    own, iterations = checked.user_ids[: checked.part.masters], checked.options.get("iterations", 10)
    return check_labels_on_ranks(checked.part, checked.finding.arrays["community"], own, iterations=iterations)


def _check_cores(checked: Checked) -> Driver[Check]:
    return check_k_core_on_ranks(checked.part, checked.finding.arrays["core"])


_ALGORITHMS = {
    one.name: one
    for one in (
        RankAlgorithm(
            "sssp",
            _make_sssp,
            _drive_sssp,
            _check_paths,
            syncs=("bsp", "basp"),
            sourced=True,
            weighted=True,
            threaded=False,
        ),
        RankAlgorithm(
            "wcc",
            lambda part, graph, sync, options: ComponentsOnRanks(
                part, sync=sync, core_size=options.get("core_size", 0)
            ),
            _drive_components,
            _check_components,
            syncs=("bsp", "basp"),
        ),
        RankAlgorithm(
            "pagerank",
            lambda part, graph, sync, options: PageRankOnRanks(part, options.get("core_size", 0)),
            _drive_pagerank,
            _check_ranks,
            only_bsp_because="an iteration reads all ranks of the one before; a stale one would stay in the sum",
        ),
        RankAlgorithm(
            "cdlp",
            _make_labels,
            _drive_labels,
            _check_labels,
            only_bsp_because="all vertices change their labels at once, by definition",
            policies=LABEL_POLICIES,
            policies_because="the most frequent label of all neighbours is wanted, so they must be at one place",
            symmetric=True,
        ),
        RankAlgorithm(
            "kcore",
            lambda part, graph, sync, options: CoreNumbersOnRanks(part),
            _drive_cores,
            _check_cores,
            only_bsp_because="a level begins when the one before is over everywhere",
            symmetric=True,
            threaded=False,
        ),
    )
}
NAMES = tuple(_ALGORITHMS)


def rank_algorithm(name: str) -> RankAlgorithm:
    """The algorithm of this name; InputError if it runs on one rank only."""
    if name not in _ALGORITHMS:
        raise InputError(
            f"{name} does not run on several ranks",
            value=name,
            fix=f"set ranks to 1, or use one of bfs, {', '.join(NAMES)}",
        )
    return _ALGORITHMS[name]
