"""What algorithms return: arrays in the user's ids, what was established about them, and ways to look at them.

Invariant: every array is aligned with ``vertex``; what was not reached is absent from ``to_dict``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_engine.errors import InputError
from hybrid.algorithms.algorithm import check_text
from hybrid.algorithms.distribution import describe_spread
from hybrid.algorithms.field import Field, Label, Parent, UserLabel
from hybrid.api import views
from hybrid.checkout import install_packages
from hybrid.errors import EnvironmentProblem

if TYPE_CHECKING:
    from hybrid.algorithms.algorithm import Arrays, Description, Task
    from hybrid.api.graph import Graph
    from hybrid.results.run_record import Repair


@dataclass(frozen=True)
class Certificate:
    """What was established about a result, by code that shares nothing with what computed it."""

    kind: str  # proof, computed again, sample, sum of all, figure: docs/reference/algorithms.md
    claims: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.claims)


class Result:
    """An algorithm's result: one value, or several, per vertex.

    Attributes:
        graph: the graph it is about.
        vertex: its vertices, in the order of all arrays.
        facts: a few telling numbers.
        counters: what the run tells of itself: iterations and the like.
        certificate: what was checked; None if ``check=False`` was asked for.
        repair: None, or why the engine's own result failed the check, how this one was computed instead (it passed) and
            the folder that has what is needed to see it again.
    """

    def __init__(
        self,
        graph: Graph,
        description: Description,
        task: Task,
        arrays: Arrays,
        counters: dict[str, Any],
        *,
        checked: bool,
        repair: Repair | None = None,
    ) -> None:
        self.graph, self.vertex = graph, graph.vertices
        self.counters, self.repair = counters, repair
        self.certificate = Certificate(description.checked_by, description.claims) if checked else None
        self._description, self._task, self._raw = description, task, arrays
        self.arrays = {one.name: _named(graph, one, arrays[one.name]) for one in description.fields}
        self.__dict__.update(self.arrays)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """A few telling numbers."""
        facts = self._description.facts(self._task, self._raw)
        names = self.graph.names
        if names is not None and facts.get("largest_vertex") is not None:
            facts["largest_vertex"] = names[facts["largest_vertex"]]
        return facts

    @property
    def certified(self) -> bool:
        """Whether the result was checked."""
        return self.certificate is not None

    @property
    def values(self) -> np.ndarray:
        """The first array, which is what the algorithm is about."""
        return self.arrays[self._main.name]

    @property
    def reached(self) -> np.ndarray:
        """Which vertices have a value at all."""
        return self._main.reached(self._raw[self._main.name])

    def to_dict(self) -> dict[Any, Any]:
        """Vertex to value; who was not reached is absent."""
        inside = self.reached
        return dict(zip(self.vertex[inside].tolist(), self.values[inside].tolist(), strict=True))

    def top(self, count: int = 10) -> list[tuple[Any, Any]]:
        """The vertices of largest value, largest first."""
        inside = np.flatnonzero(self.reached)
        order = inside[np.argsort(-self._raw[self._main.name][inside], kind="stable")[:count]]
        return list(zip(self.vertex[order].tolist(), self.values[order].tolist(), strict=True))

    def to_arrow(self) -> Any:
        """A pyarrow table of the vertices and all arrays, which share their memory."""
        try:
            import pyarrow
        except ImportError:
            raise EnvironmentProblem("to_arrow needs pyarrow", fix=install_packages("pyarrow")) from None
        return pyarrow.table(self._columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's interface: ``polars.DataFrame(result)``, ``pandas.DataFrame.from_arrow(result)``."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def plot_distribution(self, ax: Any = None) -> Any:
        """Draw how the values, or the sizes of groups, are spread (matplotlib); the axes."""
        ax, whole = views.axes_of(ax, "plot_distribution"), self.values.dtype.kind in "iu"
        spread = describe_spread(self._main, self.graph.rows.user_ids, self._raw[self._main.name])
        return views.draw_distribution(ax, spread, self.headline, whole=whole)

    def __getitem__(self, vertex: Any) -> Any:
        """A vertex's value; KeyError if there is no such vertex, or it was not reached."""
        at = self._place(vertex)
        if not self.reached[at]:
            raise KeyError(f"{vertex!r} was not reached")
        return self.values[at].item() if isinstance(self.values[at], np.generic) else self.values[at]

    def __repr__(self) -> str:
        return views.as_text(self.headline, self._checked, self._columns)

    def _repr_html_(self) -> str:
        return views.as_html(self.headline, self._checked, str(self.certificate or ""), self._columns)

    @property
    def _columns(self) -> dict[str, np.ndarray]:
        return {"vertex": self.vertex, **self.arrays}

    @property
    def _checked(self) -> str:
        if self.certificate is None:
            return "not checked"
        certified = f"certified: {check_text(self.certificate.kind)}"
        if self.repair is None:
            return certified
        return f"{certified} (computed again by {self.repair.method}: the engine's result failed the check)"

    @property
    def _main(self) -> Field:
        return self._description.fields[0]

    @property
    def headline(self) -> str:
        """The result in a sentence."""
        start = (
            "" if self._task.source is None else f" from {self.graph.named(np.array([self._task.source.user_id]))[0]}"
        )
        unfinished = self._description.unfinished(self.counters)
        ending = f"; not converged: {unfinished}" if unfinished else ""
        return f"{self._description.title}{start}: {self._description.headline(self.facts)}{ending}"

    def _place(self, vertex: Any) -> int:
        try:
            wanted = self.graph.user_id(vertex)
            self.graph.rows.internal_id(wanted)
        except InputError as error:
            raise KeyError(str(error)) from None
        return int(np.searchsorted(self.graph.rows.user_ids, wanted))


class PathsResult(Result):
    """A tree of shortest paths from a source."""

    parent: np.ndarray
    """The vertex before each on such a path; the source's is itself, -1 (None among names) = not reached."""

    @property
    def source(self) -> Any:
        """Where all paths begin."""
        assert self._task.source is not None
        return self.graph.named(np.array([self._task.source.user_id])).tolist()[0]

    def path(self, target: Any) -> list[Any]:
        """The vertices of a shortest path to ``target``, both ends included; KeyError if there is none."""
        at = self._place(target)
        if not self.reached[at]:
            raise KeyError(f"{target!r} was not reached from {self.source!r}")
        assert self._task.source is not None
        ids, parent, start = self.graph.rows.user_ids, self._raw["parent"], self._task.source.user_id
        found = [int(ids[at])]
        while found[-1] != start:
            found.append(int(parent[np.searchsorted(ids, found[-1])]))
        return list(self.graph.named(np.array(found[::-1])).tolist())

    def plot_reach(self, ax: Any = None) -> Any:
        """Draw how many vertices are within each distance (matplotlib); the axes."""
        ax, label = views.axes_of(ax, "plot_reach"), f"{self._main.name} from {self.source}"
        return views.draw_reach(ax, self.values[self.reached], label, self.headline)


class BfsResult(PathsResult):
    """Of `hybrid.bfs`."""

    level: np.ndarray
    """Edges from the source, -1 = not reached."""


class SsspResult(PathsResult):
    """Of `hybrid.sssp`."""

    distance: np.ndarray
    """Length of a shortest path; not reached = -1 where weights are whole, infinity where they are real."""


class GroupsResult(Result):
    """Every vertex is in one group, which is called after one vertex."""

    @cached_property
    def _groups(self) -> tuple[np.ndarray, np.ndarray]:
        label = self._raw[self._main.name]
        order = np.argsort(label, kind="stable")
        return order, np.flatnonzero(np.diff(label[order], prepend=label[order][:1] - 1))

    @property
    def count(self) -> int:
        """How many groups there are."""
        return int(self._groups[1].size)

    def sizes(self) -> dict[Any, int]:
        """Group to number of vertices, largest first."""
        names, sizes = np.unique(self._raw[self._main.name], return_counts=True)
        order = np.argsort(-sizes, kind="stable")
        return dict(zip(self.graph.named(names[order]).tolist(), sizes[order].tolist(), strict=True))

    def groups(self) -> list[list[Any]]:
        """The vertices of each group, by the group's name."""
        order, begin = self._groups
        return [part.tolist() for part in np.split(self.vertex[order], begin[1:])] if order.size else []


class ComponentsResult(GroupsResult):
    """Of `hybrid.components` and `hybrid.strong_components`."""

    component: np.ndarray
    """The first vertex of its component."""

    @property
    def component_ids(self) -> np.ndarray:
        """The same as whole numbers, also where vertices have names."""
        return self._raw[self._main.name]


class CommunityResult(GroupsResult):
    """Of `hybrid.label_propagation` and `hybrid.louvain`."""

    community: np.ndarray
    """The vertex that its community is called after."""


class RankResult(Result):
    """Of `hybrid.pagerank` and `hybrid.personalised_pagerank`."""

    rank: np.ndarray
    """Its share of all rank."""

    @property
    def converged(self) -> bool:
        """Whether the ranks settled within the tolerance, and not only until the limit of iterations."""
        return bool(self.counters.get("converged", True))


class CoreResult(Result):
    """Of `hybrid.k_core`."""

    core: np.ndarray
    """The largest k whose k-core it is in."""


class TrianglesResult(Result):
    """Of `hybrid.triangles`."""

    triangles: np.ndarray
    """Triangles that it is a corner of."""

    @property
    def total(self) -> int:
        """Triangles in the graph."""
        return int(self.triangles.sum()) // 3


class ClusteringResult(Result):
    """Of `hybrid.clustering`."""

    coefficient: np.ndarray
    """Share of its neighbour pairs that are joined."""

    @property
    def average(self) -> float:
        """Over all vertices, those without edges included."""
        return float(self.coefficient.mean()) if self.coefficient.size else 0.0


class ClosenessResult(Result):
    """Of `hybrid.closeness`."""

    closeness: np.ndarray
    """How near it is to those that reach it, -1 = not asked for."""


class BetweennessResult(Result):
    """Of `hybrid.betweenness`."""

    betweenness: np.ndarray
    """Shortest paths that lead through it."""


def _named(graph: Graph, field: Field, array: np.ndarray) -> np.ndarray:
    return graph.named(array) if isinstance(field, Parent | Label | UserLabel) else array


__all__: Sequence[str] = [
    "BetweennessResult", "BfsResult", "Certificate", "ClosenessResult", "ClusteringResult", "CommunityResult",
    "ComponentsResult", "CoreResult", "GroupsResult", "PathsResult", "RankResult", "Result", "SsspResult",
    "TrianglesResult",
]  # fmt: skip
