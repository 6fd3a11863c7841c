"""How a program's fields travel between parts: news of values that spread, and whole lists of those that all change.

Invariants: a peer is told of a value only if it is better than what it was told last; what comes is reduced into what
is there, so late or repeated messages change nothing (BASP). Lists travel in rounds only.
"""

from __future__ import annotations

import time

import numpy as np

from cpu_engine.comm.encoding import AgreedList
from cpu_engine.comm.news import pack_news, unpack_news
from cpu_engine.comm.reductions import DensePhase, local_ids, place
from cpu_engine.comm.substrate import Phase
from cpu_engine.programs.field import Field

_COMBINE: dict[str, np.ufunc] = {"min": np.minimum, "max": np.maximum, "or": np.bitwise_or, "add": np.add}


class SpreadPhase(Phase):
    """Values of any type, reduced by min, max or or: those that have become better since a peer was told."""

    def __init__(
        self,
        name: str,
        tag: int,
        outgoing: dict[int, AgreedList],
        incoming: dict[int, AgreedList],
        memoised: bool = True,
        *,
        field: Field,
    ) -> None:
        self.dtype = field.dtype.type
        self._field = field
        self._combine = _COMBINE[field.reduction or ""]
        super().__init__(name, tag, outgoing, incoming, memoised)

    def start(self) -> None:
        self._last_sent.fill(self._field.neutral)

    def messages(self, values: np.ndarray) -> dict[int, np.ndarray]:
        begin = time.perf_counter()
        payloads = {}
        for peer, agreed in self.outgoing.items():
            here, told = values[place(agreed)], self._last_sent_to[peer]
            news = np.flatnonzero(self._combine(here, told) != told)
            told[news] = here[news]
            packed = pack_news(news, _as_bits(here[news]), agreed.total)
            if packed.count:
                self.statistics.note_sent(packed)
                payloads[peer] = packed.payload
        self.statistics.pack_s += time.perf_counter() - begin
        return payloads

    def apply(self, peer: int, payload: np.ndarray, values: np.ndarray) -> np.ndarray:
        begin = time.perf_counter()
        agreed = self._heard_from(peer)
        positions, bits = unpack_news(payload, agreed.total)
        places = local_ids(agreed, positions)
        before = values[places]
        after = self._combine(before, _from_bits(bits, values.dtype))
        changed = places[after != before]
        values[places] = after
        self._note_received(payload, changed.size, begin)
        return changed


class ReducedListPhase(DensePhase):
    """Every value of the list in every message: reduced at the master, assigned at mirrors."""

    def __init__(
        self,
        name: str,
        tag: int,
        outgoing: dict[int, AgreedList],
        incoming: dict[int, AgreedList],
        memoised: bool = True,
        *,
        field: Field,
    ) -> None:
        self.dtype = field.dtype.type
        self._combine = _COMBINE.get(field.reduction or "")
        super().__init__(name, tag, outgoing, incoming, memoised)

    def start(self) -> None:
        """Nothing is remembered."""

    def apply(self, peer: int, payload: np.ndarray, values: np.ndarray) -> np.ndarray:
        if self.name != "reduce" or self._combine is np.add:
            return super().apply(peer, payload, values)
        assert self._combine is not None
        begin = time.perf_counter()
        agreed = self._heard_from(peer)
        here = place(agreed)
        values[here] = self._combine(values[here], payload.view(values.dtype))
        self._note_received(payload, agreed.total, begin)
        return np.empty(0, np.int32)


def _as_bits(values: np.ndarray) -> np.ndarray:
    return values.view(np.uint32 if values.itemsize == 4 else np.uint64).astype(np.uint64)


def _from_bits(bits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return (bits.astype(np.uint32) if dtype.itemsize == 4 else bits).view(dtype)
