"""Whether a device pays on this graph, at which core: predicted times for every candidate k, a choice, and its reason.

Pure: statistics, a device model and CPU rates go in, a table comes out; no clock, file or graph is touched here.

    saved(k)  the CPU's time on edges inside the core: their part of all the edges that it looks at
    merge(k)  what taking over the core's values costs the CPU, however fast the device is
    share     CPU-only - saved(k) + round(k) + merge(k); a search has nothing else to do while its core is out
              (a sweep over all edges has: there it is the longer of both)
    index     CPU-only - saved(k) + what closing by the core's index takes the CPU + merge(k); a search only
    race      CPU-only + the CPU's part of the exchange + merge(k) - saved(k) + round(k), but no gain below zero:
              both begin with the core's edges at the same moment, and the rest of them is saved if the answer is first

Invariant (no regret): race and share are only chosen where the predicted gain exceeds the margin, so an error of the
prediction smaller than the margin never costs anything; in doubt, and without figures, the choice is off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from hybrid.devices.model import USUAL_ITERATIONS, DeviceModel
from hybrid.planning.core_statistics import CoreStatistics, SearchFacts
from hybrid.terminal import count, seconds

if TYPE_CHECKING:
    from hybrid.planning.calibration import CpuRates

MARGIN_SHARE = 0.10  # the predicted gain must be above this part of the CPU-only time ...
MARGIN_S = 0.2e-3  # ... and above this: what a launch of threads may cost more or less
ROUNDS = 1  # of a search: measured 1.0 to 1.2 on Kronecker graphs, both engines
OWN_PART = 0.5  # of an exchange: the CPU writes values and reads the answer, the worker does the rest
# What merging costs, measured with the oracle on Kronecker graphs of scale 16 to 20, two threads:
HANDLE_S = 0.2e-3  # per search: rounds handed over and taken in
PARENT_S = 0.75e-9  # per vertex of the graph: parents are looked for again after a merge
MERGE_S = 70e-9  # per core vertex: compared and merged at every level
BATCH_MERGE_S = 2.8e-9  # per value of a batch or sweep: read out, copied, merged (64 searches, scale 18, the oracle)
BATCH_SAVES = 0.3  # an edge inside the core takes a batch this part of its mean time per edge: fit to the same runs
INDEX_S = 3e-9  # per value: closed by the core's index on the CPU (13 us for 4,096 values)
INDEX_DIAMETER = 2  # hubs: all pairs within 2 up to k = 8,192
SMALLEST_CORE = 64
SWEEPS = 20  # of an iteration over all edges, such as PageRank
ALGORITHMS = ("bfs", "pagerank")
NO_CORE = "no core fits the graph, the bound and the device"


@dataclass(frozen=True)
class Surroundings:
    """Where a job runs: the device and the CPU. Without a device there is nothing to predict."""

    device: DeviceModel | None
    rates: CpuRates | None  # None: not measured
    format: str = "text"  # of the files that values travel in
    taken_cpu: float = 0.0  # part of the CPU that a computing worker takes from the engine: 0 for an NPU
    simulated: bool = False


@dataclass(frozen=True)
class Candidate:
    """One core size and what it would bring."""

    k: int
    threshold: int  # smallest degree inside
    inside: int  # edges
    density: float
    part: float  # of all edges that are inside
    saved_s: float
    round_s: float
    merge_s: float
    race_s: float
    share_s: float
    index_s: float | None = None  # share with the core's index instead of rounds; None where there is no such thing
    index_made_s: float | None = None  # what making the index takes the device, once per core

    @property
    def hybrid_s(self) -> float:
        return min(self.race_s, self.share_s)


@dataclass(frozen=True)
class Prediction:
    """The table, and what follows from it."""

    device: str
    kind: str  # measured | model
    algorithm: str
    batch: int
    cpu_only_s: float
    basis: str  # what the CPU-only time is from
    candidates: tuple[Candidate, ...]
    mode: str = "off"
    k: int = 0
    hybrid_s: float | None = None  # of the choice; None where that is off
    round_s: float | None = None
    index: bool = False  # the core's index instead of rounds
    reason: str = ""

    def with_choice(self, mode: str, candidate: Candidate, reason: str, *, index: bool = False) -> Prediction:
        """The same table with this choice from it."""
        hybrid_s = candidate.index_s if index else candidate.share_s if mode == "share" else candidate.race_s
        return replace(
            self, mode=mode, k=candidate.k, hybrid_s=hybrid_s, round_s=candidate.round_s, index=index, reason=reason
        )

    def without(self, reason: str) -> Prediction:
        """The same table, and the choice to do without the device."""
        return replace(self, mode="off", k=0, hybrid_s=None, round_s=None, index=False, reason=reason)

    @property
    def seconds(self) -> float:
        """What the choice takes."""
        return self.cpu_only_s if self.hybrid_s is None else self.hybrid_s

    @property
    def gain(self) -> float:
        """Above 1: faster than the CPU alone."""
        return self.cpu_only_s / self.seconds if self.seconds > 0 else 1.0

    def as_dict(self) -> dict[str, Any]:
        """For summary.json; without the table, which ``plan`` prints."""
        told = asdict(self)
        del told["candidates"]
        return {**told, "gain": self.gain}


@dataclass(frozen=True)
class _Work:
    """An algorithm's run on the CPU alone, as far as the core is concerned."""

    seconds: float
    edges: float  # looked at
    looks: float  # edges that a vertex looks at, per sweep or pass
    sweeps: int  # each has a round of its own
    passes: int  # over the core's edges
    overlaps: bool  # the CPU has other edges to look at while it waits for a round
    edges_per_s: float  # at least; infinite where that is not known
    merge_s: tuple[float, float, float]  # in any case, per vertex of the graph, per vertex of the core and sweep
    basis: str
    saves: float = 1.0  # leaving out an edge saves this part of the mean time per edge


def candidate_sizes(
    statistics: CoreStatistics, device: DeviceModel | None, batch: int = 1, most: int | None = None
) -> list[int]:
    """Doubling sizes up to what graph, bound and device allow, and the largest of all."""
    assert device is not None
    bound = min(statistics.limit, statistics.n, statistics.limit if most is None else most)
    while bound and not device.fits(bound, batch):
        bound //= 2
    sizes = []
    k = SMALLEST_CORE
    while k < bound:
        sizes.append(k)
        k *= 2
    return [*sizes, bound] if bound else []


def rule_out(statistics: CoreStatistics, here: Surroundings, sizes: Sequence[int], index_uses: int = 0) -> str:
    """Why no core can pay for one search, whatever its levels are; empty if that cannot be said without searching.

    The most that can be saved is one look at every edge inside; the least that it costs is a round of one iteration,
    or closing by the core's index and a part of making it, where there may be one (``index_uses``, as in ``predict``).
    """
    device, rates = here.device, here.rates
    assert device is not None
    assert rates is not None
    if not sizes:
        return NO_CORE
    saved = {k: float(statistics.inside[k]) / _slowest(rates) for k in sizes}
    spent = {k: ROUNDS * device.round_s(k, 1, 1, here.format) for k in sizes}
    what = "a round takes"
    if index_uses:
        what = "a round, or the core's index and a part of making it, takes"
        spent = {k: min(one, INDEX_S * k + device.index_s(k, INDEX_DIAMETER) / index_uses) for k, one in spent.items()}
    k = max(sizes, key=lambda one: saved[one] - spent[one])
    if saved[k] - spent[k] > MARGIN_S:
        return ""
    return (
        f"no core can pay: the CPU looks at all {count(statistics.inside[k])} edges inside the best one "
        f"(k = {count(k)}) in {seconds(saved[k])}, and {what} {device.describe()} {seconds(spent[k])} or more"
    )


def predict(
    statistics: CoreStatistics, here: Surroundings, sizes: Sequence[int], algorithm: str = "bfs", index_uses: int = 0
) -> Prediction:
    """The table over ``sizes``, and the choice. A search needs ``statistics.search``, a sweep needs the CPU's rates.

    ``index_uses``: how many runs share the making of a core's index; 0 = there shall be none.
    """
    device, rates = here.device, here.rates
    assert device is not None
    if algorithm != "pagerank":
        if statistics.search is None:
            raise ValueError("a search is predicted from a measured one: statistics.search is missing")
        work, batch = _search_work(statistics.search, rates), statistics.search.batch
    else:
        if rates is None:
            raise ValueError("a sweep is predicted from the CPU's rates: they are missing")
        work, batch = _sweep_work(statistics, rates), 1
    rows = tuple(_candidate(statistics, device, here, work, batch, k) for k in sizes)
    chosen, mode, reason = choose(rows, work.seconds)
    found = Prediction(device.name, device.kind, algorithm, batch, work.seconds, work.basis, rows, reason=reason)
    if chosen is not None:
        found = found.with_choice(mode, chosen, reason)
    return _prefer_index(found, index_uses) if index_uses else found


def choose(candidates: Sequence[Candidate], cpu_only_s: float) -> tuple[Candidate | None, str, str]:
    """The best candidate and its mode if it gains more than the margin, else none and ``off``; and why."""
    if not candidates:
        return None, "off", NO_CORE
    best = min(candidates, key=lambda one: one.hybrid_s)
    mode = "race" if best.race_s < best.share_s * (1 - 1e-9) else "share"
    gain, margin = cpu_only_s - best.hybrid_s, _margin(cpu_only_s)
    told = (
        f"{mode} at k = {count(best.k)} would take {seconds(best.hybrid_s)} against {seconds(cpu_only_s)} on the CPU "
        f"alone (the core's edges are {seconds(best.saved_s)} of that; a round takes {seconds(best.round_s)}, merging "
        f"its values {seconds(best.merge_s)})"
    )
    if gain > margin:
        return best, mode, f"{told}: a gain above the margin of {seconds(margin)}"
    why = "no gain" if gain <= 0 else f"a gain within the margin of {seconds(margin)}"
    return None, "off", f"the best, {told}: {why}"


def _margin(cpu_only_s: float) -> float:
    return max(MARGIN_SHARE * cpu_only_s, MARGIN_S)


def _prefer_index(found: Prediction, uses: int) -> Prediction:
    """The choice with the core's index instead, where that gains more; ``uses`` runs share the time of making it."""
    cost = {
        one: one.index_s + one.index_made_s / uses
        for one in found.candidates
        if one.index_s is not None and one.index_made_s is not None
    }
    if not cost:
        return found
    best = min(cost, key=lambda one: cost[one])
    margin = _margin(found.cpu_only_s)
    if cost[best] >= found.seconds or found.cpu_only_s - cost[best] <= margin:
        return found
    reason = (
        f"with the core's index at k = {count(best.k)} a run would take {seconds(best.index_s or 0.0)} against "
        f"{seconds(found.cpu_only_s)} on the CPU alone, and its part of making the index "
        f"{seconds((best.index_made_s or 0.0) / uses)}: a gain above the margin of {seconds(margin)}"
    )
    return found.with_choice("share", best, reason, index=True)


def best_of(predictions: Sequence[Prediction]) -> Prediction:
    """Of predictions for different batches, the one that takes least per search."""
    return min(predictions, key=lambda one: one.seconds / one.batch)


def _search_work(search: SearchFacts, rates: CpuRates | None) -> _Work:
    what = "one search" if search.batch == 1 else f"{search.batch} searches at once"
    rate = float("inf") if rates is None or search.batch > 1 else _slowest(rates)
    merge_s = (HANDLE_S, PARENT_S, MERGE_S) if search.batch == 1 else (HANDLE_S, 0.0, BATCH_MERGE_S * search.batch)
    basis = f"measured: {what} on the CPU alone"
    saves = 1.0 if search.batch == 1 else BATCH_SAVES
    return _Work(search.seconds, search.edges, search.looks, ROUNDS, search.passes, False, rate, merge_s, basis, saves)


def _sweep_work(statistics: CoreStatistics, rates: CpuRates) -> _Work:
    edges, rate = float(SWEEPS * statistics.m), rates.pull_edges_per_s
    basis = f"calculated: {SWEEPS} sweeps over all edges at the calibrated rate"
    merge_s = (SWEEPS * HANDLE_S, 0.0, BATCH_MERGE_S)
    return _Work(edges / rate, edges, float("inf"), SWEEPS, SWEEPS, True, rate, merge_s, basis)


def _slowest(rates: CpuRates) -> float:
    return min(rates.push_edges_per_s, rates.pull_edges_per_s)


def _candidate(
    statistics: CoreStatistics, device: DeviceModel, here: Surroundings, work: _Work, batch: int, k: int
) -> Candidate:
    inside, sweeps = int(statistics.inside[k]), work.sweeps
    looked = work.passes * statistics.looked_at(k, work.looks)
    saved_s = work.saves * work.seconds * min(1.0, looked / work.edges) if work.edges else 0.0
    if work.edges_per_s < float("inf"):  # a search disturbed by others took longer; its edges did not
        saved_s = min(saved_s, looked / work.edges_per_s)
    rest_s = work.seconds - saved_s
    iterations = 1 if work.overlaps else _iterations(statistics.search, k)
    round_s = device.round_s(k, batch, iterations, here.format)
    always_s, vertex_s, value_s = work.merge_s
    merge_s = always_s + vertex_s * statistics.n + sweeps * value_s * k
    waited_s = sweeps * round_s
    share_s = (max(rest_s, waited_s) if work.overlaps else rest_s + waited_s) + merge_s
    own_s = 0.0 if device.delay_s is not None else OWN_PART * device.exchange.seconds(here.format, k * batch)
    race_s = work.seconds + sweeps * own_s + merge_s - max(0.0, saved_s - waited_s)
    compute_s = sweeps * iterations * device.iteration_s(k, batch)
    part = inside / statistics.m if statistics.m else 0.0
    return Candidate(
        k, int(statistics.degree[k - 1]), inside, statistics.density(k), part, saved_s, round_s, merge_s,
        race_s + here.taken_cpu * min(compute_s, work.seconds),
        share_s + here.taken_cpu * min(compute_s, rest_s),
        None if work.overlaps else rest_s + INDEX_S * k * batch + merge_s,
        None if work.overlaps else device.index_s(k, INDEX_DIAMETER),
    )  # fmt: skip


def _iterations(search: SearchFacts | None, k: int) -> int:
    """Hops that the core's own closure takes, and one that finds nothing new; as the measured search found them."""
    if search is None or not search.spread.size:
        return USUAL_ITERATIONS
    return max(1, int(search.spread[min(k, search.spread.size - 1)])) + 1
