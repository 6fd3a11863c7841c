"""How a program's fields travel between parts: updates of values that spread, whole lists of those that all change.

Invariants: a peer is sent a value only if it is better than what it was sent last; what comes is reduced into what is
there, so late or repeated messages change nothing (BASP). Lists travel in rounds only.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.comm.encoding import AgreedList, Packed
from cpu_engine.comm.reductions import DensePhase, local_ids, place
from cpu_engine.comm.substrate import Phase, Route
from cpu_engine.comm.updates import pack_updates, unpack_updates
from cpu_engine.programs.field import Field

_COMBINE: dict[str, np.ufunc] = {"min": np.minimum, "max": np.maximum, "or": np.bitwise_or, "add": np.add}


class SpreadPhase(Phase):
    """Values of any type, reduced by min, max or or: those that have become better since they were last sent."""

    def __init__(self, route: Route, *, field: Field) -> None:
        self.dtype = field.dtype.type
        self._field = field
        self._combine = _COMBINE[field.reduction or ""]
        super().__init__(route)

    def start(self) -> None:
        self._last_sent.fill(self._field.neutral)

    def _pack(self, peer: int, agreed: AgreedList, values: np.ndarray) -> Packed:
        here, sent = values[place(agreed)], self._last_sent_to[peer]
        better = np.flatnonzero(self._combine(here, sent) != sent)
        sent[better] = here[better]
        return pack_updates(better, _as_bits(here[better]), agreed.total)

    def _merge(self, peer: int, agreed: AgreedList, payload: np.ndarray, values: np.ndarray) -> np.ndarray:
        positions, bits = unpack_updates(payload, agreed.total)
        places = local_ids(agreed, positions)
        before = values[places]
        after = self._combine(before, _from_bits(bits, values.dtype))
        values[places] = after
        return places[after != before]


class ReducedListPhase(DensePhase):
    """Every value of the list in every message: reduced at the master, assigned at mirrors."""

    def __init__(self, route: Route, *, field: Field) -> None:
        self.dtype = field.dtype.type
        self.combine = _COMBINE.get(field.reduction or "", np.add)
        super().__init__(route)

    def start(self) -> None:
        """There is no last sent value to reset: every message has all values."""


def _as_bits(values: np.ndarray) -> np.ndarray:
    return values.view(np.uint32 if values.itemsize == 4 else np.uint64).astype(np.uint64)


def _from_bits(bits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return (bits.astype(np.uint32) if dtype.itemsize == 4 else bits).view(dtype)
