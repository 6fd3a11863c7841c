"""What a job needs to know of an algorithm: what it computes, how that is proven, and how it is told to people.

``Description`` is enough to write, describe and prove a result; hybrid/job/driver.py runs an ``Algorithm``.
Invariant: ``facts`` are made from the arrays in the user's ids and the graph alone, so a proof can make them again.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cpu_engine.graph.graph import Graph
from hybrid.algorithms.field import Field
from hybrid.config.schema import Config
from hybrid.graphs.sources import Source

Arrays = dict[str, np.ndarray]

# How far a check goes: conditions that only the right answer satisfies; the same computed again in another way; what is
# true of every right answer and a sample computed again; a sum over all values, or a figure of them, computed again.
PROOF, AGAIN, SAMPLE, SUM, FIGURE = "proof", "computed again", "sample", "sum of all", "figure"


def check_text(kind: str) -> str:
    """How far the check went, for a reader; "computed again" would sound like a result that failed and was replaced."""
    return "a second computation agrees" if kind == AGAIN else kind


@dataclass(frozen=True)
class Task:
    """What is asked: on which graph, with which options, from where (None: the algorithm has no source)."""

    graph: Graph
    config: Config
    source: Source | None = None
    thorough: bool = False  # check everything again, however long it takes

    def sample(self, usual: int) -> int | None:
        """How many values a check that takes samples should look at; None = all."""
        return None if self.thorough else usual

    @property
    def root(self) -> int:
        """The source's internal id, -1 if it has no edges."""
        assert self.source is not None
        return self.source.internal


@dataclass(frozen=True)
class Found:
    """What one run found: arrays in internal ids, counters, and what isolated vertices share if it varies."""

    arrays: Arrays
    counters: dict[str, Any] = dataclasses.field(default_factory=dict)
    isolated: dict[str, float] = dataclasses.field(default_factory=dict)


class Check(Protocol):
    """What an independent checker says."""

    @property
    def holds(self) -> bool: ...

    def explain(self, graph: Graph, /) -> str: ...


@dataclass(frozen=True)
class PlainCheck:
    """A check with one sentence for the case that it fails."""

    holds: bool
    reason: str

    def explain(self, graph: Graph) -> str:
        return self.reason


class Description:
    """The shape and meaning of a result."""

    name: str
    title: str
    fields: tuple[Field, ...]  # the first one is drawn, ranked and written in LDBC's form
    claims: tuple[str, ...]  # what the check has established, one sentence each
    checked_by: str = PROOF
    sourced: bool = False

    weighted: bool = False  # looks at weights; where there are none, every edge counts as 1
    plain: str  # how ``recompute`` goes about it, in words

    def check(self, task: Task, found: Found) -> Check:
        """Prove arrays in internal ids right, without the code that made them."""
        raise NotImplementedError

    def to_user(self, task: Task, found: Found) -> Arrays:
        """The arrays in the user's ids, aligned with graph.user_ids."""
        source = None if task.source is None else task.source.user_id
        return {
            one.name: one.settled(found.isolated).to_user(task.graph, found.arrays[one.name], source)
            for one in self.fields
        }

    def recompute(self, task: Task) -> Found:
        """The result by a plain path that shares nothing with the engines: for when theirs failed its check."""
        raise NotImplementedError

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        """A few telling numbers, from arrays in the user's ids."""
        raise NotImplementedError

    def over_runs(self, facts: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The facts of all sources together."""
        return facts[0]

    def headline(self, facts: dict[str, Any]) -> str:
        """The result in a sentence."""
        raise NotImplementedError

    def unfinished(self, counters: dict[str, Any]) -> str:
        """How far a run that ended at its limit is from convergence; empty for one that converged."""
        return ""


class Algorithm(Description):
    """A description that can be run."""

    doing = ""  # what the progress bar says; empty: the name
    listens: tuple[str, ...] = ()  # the keys of the configuration that are its own

    def options(self, config: Config) -> dict[str, Any]:
        """What those keys are set to."""
        return {key: operator.attrgetter(key)(config) for key in self.listens}

    def for_warm_up(self, config: Config) -> Config:
        """The configuration without what would not fit another, tiny graph."""
        return config

    def prepare(self, task: Task) -> None:
        """Say what the user should know before a run."""

    def run(self, task: Task) -> Found:
        raise NotImplementedError

    def edges_reached(self, task: Task, found: Found) -> int:
        """The input edges among the vertices that a search has reached, for its rate; 0 where that means nothing."""
        return 0
