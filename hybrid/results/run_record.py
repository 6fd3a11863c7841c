"""What a job keeps of each run: the proven arrays in the user's ids, and its numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hybrid.algorithms.algorithm import Arrays
from hybrid.graphs.sources import Source
from hybrid.results.schema import AlgorithmRun, RunFurther, Search
from hybrid.results.schema import Repair as Repair
from hybrid.results.schema import Verdict as Verdict
from hybrid.results.tally import Tally


@dataclass(frozen=True)
class Run:
    """One proven run."""

    source: Source | None
    arrays: Arrays
    facts: dict[str, Any]
    counters: dict[str, Any]
    seconds_run: float
    seconds_check: float
    repair: Repair | None = None  # given: the run's own result failed its check
    npu: Tally = field(default_factory=Tally)
    seconds_waited: float = 0.0  # part of seconds_run in which the CPU had nothing to do but wait for the worker
    edges: int = 0  # input edges among the vertices that a search has reached
    further: RunFurther = field(default_factory=RunFurther)

    @property
    def label(self) -> str:
        return "" if self.source is None else str(self.source.user_id)

    @property
    def searched(self) -> bool:
        """Whether there was anything to compute: a source without edges reaches itself."""
        return self.source is None or self.source.internal >= 0

    @property
    def speaks(self) -> bool:
        """Whether its account is of a search of its own, or of the whole batch that it is the first of."""
        batch = self.further.get("batch")
        return self.searched and (batch is None or self.label == str(batch["first"]))

    @property
    def teps(self) -> float:
        return self.edges / self.seconds_run if self.seconds_run else 0.0

    def as_dict(self) -> AlgorithmRun:
        """For the summary of every algorithm but BFS, and for the service."""
        told: AlgorithmRun = {
            "certified": True,
            "facts": self.facts,
            "counters": self.counters,
            "seconds": {"run": self.seconds_run, "certify": self.seconds_check},
            "repaired": 0 if self.repair is None else self.repair.changed,
        }
        return told if self.source is None else {"source": self.source.user_id, **told}

    def as_search(self) -> Search:
        """For the summary of a BFS."""
        assert self.source is not None
        return {
            "source": self.source.user_id,
            "certified": True,
            "reached": self.facts["reached"],
            "max_level": self.facts["max_level"],
            "teps": self.teps,
            "seconds": {"traverse": self.seconds_run, "waited": self.seconds_waited, "certify": self.seconds_check},
            "npu": self.npu.to_dict(),
            "steps": self.counters.get("steps", 0),
            "edges_looked_at": self.counters.get("edges_looked_at", 0),
            "repaired": 0 if self.repair is None else max(1, self.repair.changed),
            **self.further,
        }
