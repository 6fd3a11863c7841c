"""Phases of fields that are not reduced by minimum: sums, and values that their masters assign.

Invariants: a sum's message carries what was added at the mirror since the last one, and the mirror begins again at 0,
so nothing is added twice; an assigned value is sent whenever it differs from the last one sent. Both need rounds: a
message that is late or overtaken would be wrong here, so these are for BSP only.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.comm.encoding import AgreedList, Encoding, Packed
from cpu_engine.comm.errors import CommError
from cpu_engine.comm.substrate import Phase
from cpu_engine.comm.updates import pack_updates, unpack_updates


class SumPhase(Phase):
    """Reduce by addition: unsigned values of any width; what is not 0 is sent, and is 0 afterwards."""

    def _pack(self, peer: int, agreed: AgreedList, values: np.ndarray) -> Packed:
        here = values[place(agreed)]
        added = np.flatnonzero(here)
        packed = pack_updates(added, here[added].astype(np.uint64), agreed.total)
        values[place(agreed)] = 0
        return packed

    def _merge(self, peer: int, agreed: AgreedList, payload: np.ndarray, values: np.ndarray) -> np.ndarray:
        positions, came = unpack_updates(payload, agreed.total)
        changed = local_ids(agreed, positions)
        values[changed] += came.astype(values.dtype)
        return changed


class AssignPhase(Phase):
    """Broadcast by assignment: uint32 values; those that differ from what the peer was last sent."""

    def knows(self, values: np.ndarray) -> None:
        """A run begins with values that every copy has already."""
        for peer, agreed in self.outgoing.items():
            self._last_sent_to[peer][:] = values[place(agreed)]

    def _pack(self, peer: int, agreed: AgreedList, values: np.ndarray) -> Packed:
        here, sent = values[place(agreed)], self._last_sent_to[peer]
        changed = np.flatnonzero(here != sent)
        sent[changed] = here[changed]
        return pack_updates(changed, here[changed].astype(np.uint64), agreed.total)

    def _merge(self, peer: int, agreed: AgreedList, payload: np.ndarray, values: np.ndarray) -> np.ndarray:
        positions, came = unpack_updates(payload, agreed.total)
        changed = local_ids(agreed, positions)
        values[changed] = came.astype(values.dtype)
        return changed


class DensePhase(Phase):
    """Every value of the list in every message, as it is: where all of them change each time.

    A reduce adds what came, a broadcast assigns it. Peers are applied in the caller's order, which makes sums of
    floats the same in every run if that order is.
    """

    combine: np.ufunc = np.add

    def _pack(self, peer: int, agreed: AgreedList, values: np.ndarray) -> Packed:
        return Packed(np.ascontiguousarray(values[place(agreed)]).view(np.uint8), agreed.total, Encoding.WHOLE)

    def _merge(self, peer: int, agreed: AgreedList, payload: np.ndarray, values: np.ndarray) -> np.ndarray:
        if payload.size != agreed.total * values.itemsize:
            raise CommError(
                f"{payload.size} bytes came from rank {peer} for a list of {agreed.total} values",
                fix="partition the same graph with the same policy and number of ranks everywhere",
            )
        here, came = place(agreed), payload.view(values.dtype)
        values[here] = self.combine(values[here], came) if self.name == "reduce" else came
        return agreed.local_ids()


def place(agreed: AgreedList) -> slice | np.ndarray:
    """Where a list's values are, as an index for numpy."""
    return slice(agreed.begin, agreed.begin + agreed.total) if agreed.indices is None else agreed.indices


def local_ids(agreed: AgreedList, positions: np.ndarray) -> np.ndarray:
    """The local ids at these positions of the list, int32."""
    if agreed.indices is None:
        return (agreed.begin + positions).astype(np.int32)
    found: np.ndarray = agreed.indices[positions]
    return found
