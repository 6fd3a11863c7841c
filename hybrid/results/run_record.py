"""What a job keeps of each source: the certified arrays and the numbers that the summary tells."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from cpu_engine.graph.graph import Graph
from hybrid.algorithms.algorithm import Arrays, Found, Task
from hybrid.algorithms.bfs import Bfs
from hybrid.algorithms.proof import restore
from hybrid.config.schema import Config
from hybrid.job.failed_proof import Repair
from hybrid.job.sources import Source
from hybrid.offload.traverse import NpuTally

BFS = Bfs()


@dataclass
class Run:
    """One source's certified traversal, in internal ids (empty arrays of -1 when the source has no edges)."""

    source: Source
    level: np.ndarray
    parent: np.ndarray
    npu: NpuTally
    steps: int
    edges_looked_at: int
    seconds_traverse: float
    seconds_waited: float  # part of seconds_traverse in which the CPU had nothing to do but wait for the worker
    seconds_certify: float
    repaired: int  # values that the certificate refused and the CPU set right
    teps: float
    further: dict[str, Any] = field(default_factory=dict)  # what only some jobs know, JSON-able
    repair: Repair | None = None  # given: the search's own result failed its certificate

    @property
    def speaks(self) -> bool:
        """Whether its account is of a search of its own, or of the whole batch that it is the first of."""
        batch = self.further.get("batch")
        return self.source.internal >= 0 and (batch is None or batch["first"] == self.source.user_id)

    def in_user_ids(self, graph: Graph, config: Config) -> Arrays:
        """Level and parent aligned with graph.user_ids."""
        found = Found({"level": self.level, "parent": self.parent})
        return restore(BFS, Task(graph, config, self.source), found)

    def as_dict(self) -> dict[str, Any]:
        return {
            "source": self.source.user_id,
            "certified": True,
            "reached": max(1, int(np.count_nonzero(self.level >= 0))),
            "max_level": max(0, int(self.level.max(initial=0))),
            "teps": self.teps,
            "seconds": {
                "traverse": self.seconds_traverse,
                "waited": self.seconds_waited,
                "certify": self.seconds_certify,
            },
            "npu": asdict(self.npu),
            "steps": self.steps,
            "edges_looked_at": self.edges_looked_at,
            "repaired": self.repaired,
            **self.further,
        }


def run_without_edges(graph: Graph, source: Source) -> Run:
    """A source that has no edges reaches itself, and nobody need search."""
    nothing = np.full(graph.n, -1, np.int32)
    tally = NpuTally(outcome="not needed: the source has no edges")
    return Run(source, nothing, nothing, tally, 0, 0, 0.0, 0.0, 0.0, 0, 0.0)


def edges_reached(graph: Graph, level: np.ndarray) -> int:
    """The input edges among reached vertices, once each: what TEPS counts."""
    return int(np.diff(graph.out_offsets)[level >= 0].sum()) // (1 if graph.directed else 2)
