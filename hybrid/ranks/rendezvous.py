"""How ranks begin: who sits where, how many threads each gets, and whether all of them mean the same job."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from cpu_engine.comm.collectives import RankInfo, share_facts
from cpu_engine.comm.requests import Driver
from cpu_engine.errors import ExplainedError
from hybrid.config.schema import Config
from hybrid.errors import ConfigError, EnvironmentProblem
from hybrid.terminal import plural


class Agreed(Exception):
    """An error that every rank has come to at the same point: rank 0 tells it, all of them end with its code."""

    def __init__(self, error: ExplainedError) -> None:
        self.error = error
        super().__init__(str(error))


@dataclass(frozen=True)
class Rendezvous:
    """A rank that knows the others."""

    info: RankInfo
    threads: int  # this rank's fair share of its machine
    pids: tuple[int, ...] = ()  # by rank, each on its machine


def rendezvous(rank: int, size: int, host: str | None = None, cpus: Sequence[int] | None = None) -> Driver[Rendezvous]:
    """Exchange on which machine each rank is, and on which CPUs it may run."""
    mine = {
        "host": socket.gethostname() if host is None else host,
        "pid": os.getpid(),
        "cpus": sorted(os.sched_getaffinity(0) if cpus is None else cpus),
    }
    facts = yield from share_facts(RankInfo(rank, size), mine)
    info = RankInfo(rank, size, tuple(str(one["host"]) for one in facts))
    threads = fair_threads([facts[one]["cpus"] for one in info.local_ranks])
    return Rendezvous(info, threads, tuple(int(one["pid"]) for one in facts))


def fair_threads(cpus_by_rank: Sequence[Sequence[int]]) -> int:
    """What each rank of a machine may use when its CPUs are dealt out evenly; each names those it may run on."""
    return max(1, len(set().union(*cpus_by_rank)) // len(cpus_by_rank))


def wanted_threads(config: Config, met: Rendezvous) -> int:
    """As configured for each rank, else its fair share."""
    for wanted in (config.cluster.threads_per_rank, config.threads):
        if wanted != "auto":
            return int(wanted)
    return met.threads


def require_same(info: RankInfo, what: str, fingerprint: str, fix: str) -> Driver[None]:
    """All ranks must have come with the same fingerprint, else all of them end (``Agreed``), naming the odd ones."""
    fingerprints = yield from share_facts(info, fingerprint)
    odd = [rank for rank, one in enumerate(fingerprints) if one != fingerprints[0]]
    if not odd:
        return
    kind = ConfigError if what == "configuration" else EnvironmentProblem
    raise Agreed(
        kind(f"not every rank has the same {what}: {name_ranks(odd, info)} from rank 0 on {info.hosts[0]}", fix=fix)
    )


def name_ranks(ranks: Sequence[int], info: RankInfo) -> str:
    """``rank 2 on b differs`` or ``ranks 2, 3 on b and rank 5 on c differ``, the first few machines."""
    by_host: dict[str, list[int]] = {}
    for rank in ranks:
        by_host.setdefault(info.hosts[rank], []).append(rank)
    named = [f"rank{'s' if len(own) > 1 else ''} {', '.join(map(str, own))} on {host}" for host, own in by_host.items()]
    shown = " and ".join(named[:3]) + (f" and {plural(len(named) - 3, 'more machine')}" if len(named) > 3 else "")
    return f"{shown} differ{'s' if len(ranks) == 1 else ''}"
