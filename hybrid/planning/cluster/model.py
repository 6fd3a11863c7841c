"""How long a BFS would take on many ranks: a model. The volumes are counted, the times are computed, none is measured.

The level-synchronous engine, round by round: every rank computes, exchanges (fold, then spread) and agrees, and the
slowest decides. An exchange costs a rank one latency, a fixed time per message, and its bytes at its bandwidth:

    exchange    latency + message * max(messages out, in) + max(bytes out, in) / bandwidth
    agreement   2 ceil(log2 P) latency
    computing   seconds alone * share of the largest part + rounds * round

What it leaves out: contention in the network, ranks that are late for other reasons, caches that hold a smaller part
better, and that a part with fewer arcs changes direction at other moments. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import ceil, log2

import numpy as np

from cpu_engine.graph.partition.prediction import Prediction
from hybrid.planning.cluster.volume import PhaseVolume, SearchVolume


@dataclass(frozen=True)
class Network:
    """The network as one rank sees it; ranks that share a machine's card divide its bandwidth."""

    latency_s: float = 2e-6  # InfiniBand or the like; TCP: about 30e-6
    bandwidth_bytes_per_s: float = 12.5e9  # 100 Gbit/s
    message_s: float = 9e-6  # our code, to send and receive one: MPI from Python 5 us, packing and unpacking 4 us
    round_s: float = 20e-6  # our code, in every round, even when there is nothing to do


@dataclass(frozen=True)
class Modelled:
    """Seconds of one search: the slowest rank of each step, added up."""

    ranks: int
    policy: str
    rounds: int
    bytes: int
    messages: int  # that are not empty
    compute_s: float
    exchange_s: float
    agree_s: float
    parents_s: float

    @property
    def seconds(self) -> float:
        return self.compute_s + self.exchange_s + self.agree_s + self.parents_s


def model_search(prediction: Prediction, volume: SearchVolume, alone_s: float, network: Network) -> Modelled:
    """What a search of ``alone_s`` seconds on one rank takes on the predicted parts."""
    parts = prediction.parts
    largest = float(prediction.arcs.max()) / prediction.m if prediction.m else 1.0
    phases = (*volume.updating, *volume.asking)
    return Modelled(
        ranks=parts,
        policy=prediction.policy,
        rounds=volume.rounds,
        bytes=sum(phase.bytes for phase in phases),
        messages=sum(phase.messages for phase in phases),
        compute_s=alone_s * largest + (volume.rounds * network.round_s if parts > 1 else 0.0),
        exchange_s=sum(exchange_seconds(phase, network) for phase in volume.updating),
        agree_s=volume.rounds * agree_seconds(parts, network),
        parents_s=sum(exchange_seconds(phase, network) for phase in volume.asking),
    )


def exchange_seconds(phase: PhaseVolume, network: Network) -> float:
    """Seconds of all rounds of one kind of exchange."""
    messages = np.maximum(phase.receivers, phase.senders)
    if not messages.any():
        return 0.0
    moved = np.maximum(phase.bytes_out, phase.bytes_in) / network.bandwidth_bytes_per_s
    slowest = (messages * network.message_s + moved).max(axis=1)
    return float((network.latency_s + slowest).sum())


def agree_seconds(parts: int, network: Network) -> float:
    """Seconds of one all-reduce along a tree."""
    return 2 * ceil(log2(parts)) * network.latency_s if parts > 1 else 0.0


def mean_of(modelled: Iterable[Modelled]) -> Modelled:
    """The mean of searches from several vertices on the same parts."""
    searches = [asdict(one) for one in modelled]
    means = {name: float(np.mean([one[name] for one in searches])) for name in searches[0] if name != "policy"}
    whole = {name: round(means[name]) for name in ("ranks", "rounds", "bytes", "messages")}
    return Modelled(**{**searches[0], **means, **whole})
