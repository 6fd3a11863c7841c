"""Phases of fields that are not reduced by minimum: sums, and values that their masters assign.

Invariants: a sum's message carries what was added at the mirror since the last one, and the mirror begins again at 0,
so nothing is added twice; an assigned value is sent whenever it differs from the last one sent. Both need rounds: a
message that is late or overtaken would be wrong here, so these are for BSP only.
"""

from __future__ import annotations

import time

import numpy as np

from cpu_engine.comm.encoding import AgreedList, Encoding, Packed
from cpu_engine.comm.errors import CommError
from cpu_engine.comm.news import pack_news, unpack_news
from cpu_engine.comm.substrate import Phase


class SumPhase(Phase):
    """Reduce by addition: unsigned values of any width; what is not 0 is sent, and is 0 afterwards."""

    def messages(self, values: np.ndarray) -> dict[int, np.ndarray]:
        begin = time.perf_counter()
        payloads = {}
        for peer, agreed in self.outgoing.items():
            here = values[place(agreed)]
            news = np.flatnonzero(here)
            packed = pack_news(news, here[news].astype(np.uint64), agreed.total)
            values[place(agreed)] = 0
            if packed.count:
                self.statistics.note_sent(packed)
                payloads[peer] = packed.payload
        self.statistics.pack_s += time.perf_counter() - begin
        return payloads

    def apply(self, peer: int, payload: np.ndarray, values: np.ndarray) -> np.ndarray:
        begin = time.perf_counter()
        agreed = self._heard_from(peer)
        positions, came = unpack_news(payload, agreed.total)
        changed = local_ids(agreed, positions)
        values[changed] += came.astype(values.dtype)
        self._note_received(payload, changed.size, begin)
        return changed


class AssignPhase(Phase):
    """Broadcast by assignment: uint32 values; those that differ from what the peer was told last."""

    def messages(self, values: np.ndarray) -> dict[int, np.ndarray]:
        begin = time.perf_counter()
        payloads = {}
        for peer, agreed in self.outgoing.items():
            here, told = values[place(agreed)], self._last_sent_to[peer]
            news = np.flatnonzero(here != told)
            packed = pack_news(news, here[news].astype(np.uint64), agreed.total)
            told[news] = here[news]
            if packed.count:
                self.statistics.note_sent(packed)
                payloads[peer] = packed.payload
        self.statistics.pack_s += time.perf_counter() - begin
        return payloads

    def knows(self, values: np.ndarray) -> None:
        """A run begins with values that every copy has already."""
        for peer, agreed in self.outgoing.items():
            self._last_sent_to[peer][:] = values[place(agreed)]

    def apply(self, peer: int, payload: np.ndarray, values: np.ndarray) -> np.ndarray:
        begin = time.perf_counter()
        agreed = self._heard_from(peer)
        positions, came = unpack_news(payload, agreed.total)
        changed = local_ids(agreed, positions)
        values[changed] = came.astype(values.dtype)
        self._note_received(payload, changed.size, begin)
        return changed


class DensePhase(Phase):
    """Every value of the list in every message, float64 as they are: where all of them change each time.

    A reduce adds what came, a broadcast assigns it. Peers are applied in the caller's order, which makes sums of
    floats the same in every run if that order is.
    """

    def messages(self, values: np.ndarray) -> dict[int, np.ndarray]:
        begin = time.perf_counter()
        payloads = {}
        for peer, agreed in self.outgoing.items():
            payload = np.ascontiguousarray(values[place(agreed)]).view(np.uint8)
            self.statistics.note_sent(Packed(payload, agreed.total, Encoding.WHOLE))
            payloads[peer] = payload
        self.statistics.pack_s += time.perf_counter() - begin
        return payloads

    def apply(self, peer: int, payload: np.ndarray, values: np.ndarray) -> np.ndarray:
        begin = time.perf_counter()
        agreed = self._heard_from(peer)
        if payload.size != agreed.total * values.itemsize:
            raise CommError(
                f"{payload.size} bytes came from rank {peer} for a list of {agreed.total} values",
                fix="partition the same graph with the same policy and number of ranks everywhere",
            )
        came = payload.view(values.dtype)
        if self.name == "reduce":
            values[place(agreed)] += came
        else:
            values[place(agreed)] = came
        self._note_received(payload, agreed.total, begin)
        return _NOBODY


_NOBODY = np.empty(0, np.int32)


def place(agreed: AgreedList) -> slice | np.ndarray:
    """Where a list's values are, as an index for numpy."""
    return slice(agreed.begin, agreed.begin + agreed.total) if agreed.indices is None else agreed.indices


def local_ids(agreed: AgreedList, positions: np.ndarray) -> np.ndarray:
    """The local ids at these positions of the list, int32."""
    if agreed.indices is None:
        return (agreed.begin + positions).astype(np.int32)
    found: np.ndarray = agreed.indices[positions]
    return found
