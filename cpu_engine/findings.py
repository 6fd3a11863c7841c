"""What a checker found wrong with a result, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from cpu_engine.counted import plural
from cpu_engine.graph.graph import Graph

Claims = tuple[tuple[str, str], ...]  # one per kind of finding: the words for one, and for several


@dataclass(frozen=True)
class Findings:
    """How often each claim is broken; ``holds`` when none is. A checker's subclass has the words."""

    findings: tuple[int, ...]
    examples: tuple[int, ...]  # one internal vertex per kind of finding, -1 where there is none

    claims: ClassVar[Claims]
    sound: ClassVar[str]  # what is said of a result without findings

    @classmethod
    def start(cls, *lanes: int) -> tuple[np.ndarray, np.ndarray]:
        """Counts and examples for a kernel to write to, [*lanes, kind]: no finding yet."""
        shape = (*lanes, len(cls.claims))
        return np.zeros(shape, np.int64), np.full(shape, -1, np.int64)

    @classmethod
    def of(cls, findings: np.ndarray, examples: np.ndarray) -> Self:
        """What a kernel has written, all lanes together."""
        kinds = len(cls.claims)
        total, one = findings.reshape(-1, kinds).sum(axis=0), examples.reshape(-1, kinds).max(axis=0)
        return cls(tuple(total.tolist()), tuple(one.tolist()))

    @property
    def holds(self) -> bool:
        return not any(self.findings)

    def explain(self, graph: Graph | None = None) -> str:
        """One sentence on what is wrong; with the graph, one vertex of each kind is named by the user's id."""
        return explain_counts(self.claims, self.findings, self.examples, graph) or self.sound


def explain_counts(claims: Claims, findings: Iterable[int], examples: Iterable[int], graph: Graph | None) -> str:
    """The broken claims, with their counts and examples; empty if all hold."""
    return "; ".join(
        plural(count, *claim) + for_one(graph, int(example))
        for count, claim, example in zip(findings, claims, examples, strict=True)
        if count
    )


def for_one(graph: Graph | None, vertex: int) -> str:
    """An example in brackets, by the user's id; empty without a graph or an example."""
    if graph is None or vertex < 0:
        return ""
    return f" (vertex {int(graph.user_ids[graph.user_position[vertex]])} for one)"
