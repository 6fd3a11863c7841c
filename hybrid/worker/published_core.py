"""The core that the worker was given: the bounds that its answers are checked against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exchange.codec.check import require_good_answer
from exchange.codec.check_rows import require_good_rows
from exchange.codec.index import CoreIndexArrays, require_index_of
from exchange.codec.text import VALUE_LIMIT
from exchange.mailbox import Answer
from exchange.protocol.programs import MIN_PLUS, ProgramFacts, program_facts


@dataclass(frozen=True)
class PublishedCore:
    """The vertices [0, size) of a CSR graph, and the program that runs on the edges among them."""

    size: int
    program: ProgramFacts
    offsets: np.ndarray
    targets: np.ndarray
    min_step: int = 1
    value_limit: int = VALUE_LIMIT
    out_weight: np.ndarray | None = None

    @classmethod
    def of(
        cls, offsets: np.ndarray, targets: np.ndarray, size: int, program: str, weight: np.ndarray | None
    ) -> PublishedCore:
        facts = program_facts(program)
        if facts.name == MIN_PLUS and weight is None:
            return cls(size, facts, offsets, targets, value_limit=max(1, offsets.size - 1))  # hops
        source, _, own = core_arcs(offsets, targets, size, weight)
        if facts.name == MIN_PLUS:
            return cls(size, facts, offsets, targets, min_step=0 if own is None or not own.size else int(own.min()))
        if facts.name == "plus-times":
            one = np.ones(source.size) if own is None else own.astype(np.float32).astype(np.float64)
            sums = [np.bincount(source, weights, minlength=size) for weights in (one, np.abs(one))]
            return cls(size, facts, offsets, targets, out_weight=np.array(sums))
        return cls(size, facts, offsets, targets)

    @property
    def has_pairs(self) -> bool:
        """Whether a single vector travels as `vertex value` pairs, as in the protocol's first form."""
        return self.program.name == MIN_PLUS

    def require_good_pairs(self, answer: Answer, sent: np.ndarray) -> None:
        """ExchangeError unless the answer may be merged into the vector that was sent."""
        vertices = np.flatnonzero(sent >= 0)
        require_good_answer(
            answer.pairs, self.size, vertices, sent[vertices], min_step=self.min_step, value_limit=self.value_limit
        )

    def require_good_rows(self, found: np.ndarray, sent: np.ndarray) -> None:
        """ExchangeError unless every row of the answer may be used."""
        require_good_rows(
            self.program, found, sent, min_step=self.min_step, value_limit=self.value_limit, out_weight=self.out_weight
        )

    def require_index(self, index: CoreIndexArrays) -> None:
        """ExchangeError unless the index is one of this core."""
        require_index_of(index.distance, self.offsets, self.targets, self.size)


def core_arcs(
    offsets: np.ndarray, targets: np.ndarray, size: int, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Source, target and weight (None: 1 each) of the arcs among the vertices [0, size)."""
    last = int(offsets[size])
    inside = targets[:last] < size
    source = np.repeat(np.arange(size), np.diff(offsets[: size + 1]))[inside]
    return source, targets[:last][inside], None if weight is None else weight[:last][inside]
