"""Collective operations that a job needs around its searches, as drivers: gather, broadcast, all-to-all, barrier.

Built from ``Exchange`` and ``AllReduce`` alone, so that they run over MPI and in one process alike. All ranks
call the same ones in the same order. They are patient: one rank may build a graph while the others wait.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpu_engine.comm.requests import AllReduce, Driver, Exchange

TAG_JOB = 32  # between the substrate's tags and the hybrid hook's


@dataclass(frozen=True)
class RankInfo:
    """A rank's place: its number, how many there are, and every rank's machine once they have met."""

    rank: int
    size: int
    hosts: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        return self.hosts[self.rank]

    @property
    def first_here(self) -> int:
        """The lowest rank on this machine."""
        return self.hosts.index(self.host)

    @property
    def local_ranks(self) -> tuple[int, ...]:
        """The ranks on this machine, ascending."""
        return tuple(rank for rank, host in enumerate(self.hosts) if host == self.host)

    @property
    def others(self) -> tuple[int, ...]:
        return tuple(rank for rank in range(self.size) if rank != self.rank)


def barrier(patient: bool = True) -> Driver[None]:
    """Return when every rank has called."""
    yield AllReduce(np.zeros(1, np.int64), patient=patient)


def gather(info: RankInfo, payload: np.ndarray) -> Driver[list[np.ndarray] | None]:
    """Every rank's bytes, by rank, at rank 0; None elsewhere."""
    if info.rank != 0:
        yield Exchange(TAG_JOB, {0: payload}, (), patient=True)
        return None
    answer = yield Exchange(TAG_JOB, {}, info.others, patient=True)
    return [payload, *(answer[rank].copy() for rank in info.others)]


def broadcast(
    info: RankInfo, payload: np.ndarray | None, root: int = 0, among: Sequence[int] | None = None
) -> Driver[Any]:
    """The root's bytes at every rank, or at those of ``among``, which call; others' ``payload`` is not looked at."""
    members = range(info.size) if among is None else among
    if info.rank == root:
        assert payload is not None
        yield Exchange(TAG_JOB, {rank: payload for rank in members if rank != root}, (), patient=True)
        return payload
    answer = yield Exchange(TAG_JOB, {}, (root,), patient=True)
    return answer[root].copy()


def all_to_all(info: RankInfo, payloads: Sequence[np.ndarray]) -> Driver[list[np.ndarray]]:
    """``payloads[q]`` goes to rank q; what every rank had for this one comes back, by rank."""
    outgoing = {rank: payloads[rank] for rank in info.others}
    answer = yield Exchange(TAG_JOB, outgoing, info.others, patient=True)
    return [payloads[rank] if rank == info.rank else answer[rank].copy() for rank in range(info.size)]


def gather_facts(info: RankInfo, facts: Any) -> Driver[list[Any] | None]:
    """Every rank's JSON-able facts, by rank, at rank 0; None elsewhere."""
    gathered = yield from gather(info, to_bytes(facts))
    return None if gathered is None else [from_bytes(one) for one in gathered]


def broadcast_facts(info: RankInfo, facts: Any, root: int = 0, among: Sequence[int] | None = None) -> Driver[Any]:
    """The root's JSON-able facts at every rank of ``among``, all of which call."""
    payload = yield from broadcast(info, to_bytes(facts) if info.rank == root else None, root, among)
    return from_bytes(payload)


def share_facts(info: RankInfo, facts: Any) -> Driver[list[Any]]:
    """Every rank's JSON-able facts, by rank, at every rank: through rank 0, as P messages are better than P squared."""
    gathered = yield from gather_facts(info, facts)
    shared = yield from broadcast_facts(info, gathered)
    return list(shared)


def to_bytes(facts: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(facts, default=_plain).encode(), np.uint8)


def _plain(value: Any) -> Any:
    """What a number of numpy is to JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"not JSON: {type(value).__name__}")


def from_bytes(payload: np.ndarray) -> Any:
    return json.loads(payload.tobytes())
