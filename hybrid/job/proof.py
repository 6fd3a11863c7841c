"""Prove a result, or compute it again by a plain path and prove that: for every algorithm and every interface.

Invariant: what leaves here has passed the algorithm's check, or NotCertified is raised. A result that fails is replaced
by one from code that shares nothing with the engines (cpu_engine/repair/engine.py), checked in the same way; what is
needed to see the failure again is kept (hybrid/job/failure_records.py).
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from cpu_engine.graph.graph import Graph
from cpu_engine.repair.engine import plain_bfs
from hybrid.algorithms.algorithm import Arrays, Check, Description, Found, PlainCheck, Task
from hybrid.algorithms.bfs import Bfs
from hybrid.config.schema import Config
from hybrid.errors import NotCertified
from hybrid.graphs.sources import Source
from hybrid.job.failure_records import add_to_record, keep_failure
from hybrid.results.run_record import Repair
from hybrid.results.trace import Trace

if TYPE_CHECKING:
    from cpu_engine.bfs.many.check import LevelsCertificate
    from cpu_engine.bfs.many.engine import ManyResult
    from hybrid.offload.many_sources import ManyTraversed

_log = logging.getLogger(__name__)
_BFS, _DEFAULTS = Bfs(), Config()
T = TypeVar("T")


@dataclass(frozen=True)
class Claim(Generic[T]):
    """A result's algorithm and graph, how the result is checked, and how it can be computed in another way."""

    name: str  # of the algorithm
    graph: Graph
    check: Callable[[T], Check]
    recompute: Callable[[Any], T]  # from the check that failed
    method: str  # of recomputing, in words
    arrays: Callable[[T], Arrays]  # the first one is the result proper
    config: Config = _DEFAULTS
    source: Source | None = None


def prove_claim(claim: Claim[T], found: T, trace: Trace, *, repair: bool = True) -> tuple[T, Repair | None]:
    """The result - or one computed again that passed the check, and the account of that; else NotCertified.

    ``repair=False``: the caller has a better way to compute it again.
    """
    graph = claim.graph
    with trace.span("coordinator", "certify"):
        check = claim.check(found)
    if check.holds:
        return found, None
    reason, before = check.explain(graph), claim.arrays(found)
    record = keep_failure(claim.name, graph, claim.config, claim.source, reason, before)
    nothing = "nothing could be kept of it"
    about = claim.name if claim.source is None else f"{claim.name} from {claim.source.user_id}"
    again_from = nothing if record is None else f"{record} has what is needed to see it again"
    _log.warning("%s failed its check: %s; %s", about, reason, again_from)
    if not repair:
        raise NotCertified(f"{claim.name}: {reason}", path=record, fix="compute it again")
    with trace.span("coordinator", "repair", findings=reason) as learned:
        again = claim.recompute(check)
        second = claim.check(again)
        changed = _differences(before, claim.arrays(again))
        learned.update(method=claim.method, changed=changed)
    if not second.holds:
        why, kept = second.explain(graph), nothing if record is None else f"kept as {record.name}"
        add_to_record(record, repaired=False, method=claim.method, reason_again=why)
        raise NotCertified(
            f"{claim.name}: the result failed its check ({reason}), and so did the one computed again by "
            f"{claim.method} ({why}): no number is given; {kept}",
            path=record,
            fix="run it again: if it passes, test this machine's memory; if it fails alike, check and engines disagree "
            "on this graph, which the kept record shows to the developers",
        )
    add_to_record(record, repaired=True, method=claim.method, changed=changed)
    source = None if claim.source is None else claim.source.user_id
    done = Repair(claim.name, source, reason, claim.method, changed, record)
    _log.warning("%s was computed again by %s and passed its check", about, claim.method)
    return again, done


def _differences(before: Arrays, after: Arrays) -> int:
    """How many values of the result proper were wrong."""
    name, right = next(iter(after.items()))
    wrong = before.get(name)
    return int(right.size if wrong is None or wrong.shape != right.shape else np.count_nonzero(wrong != right))


# --------------------------------------------------------------------------------- algorithms of the library


def prove_found(
    description: Description, task: Task, found: Found, trace: Trace, *, repair: bool = True
) -> tuple[Found, Repair | None]:
    """What an algorithm found, proven or replaced; the counters stay those of the first run."""

    def recompute(_: Check) -> Found:
        again = description.recompute(task)
        return dataclasses.replace(again, counters={**found.counters, **again.counters})

    claim = Claim(
        description.name, task.graph, lambda one: _check(description, task, one), recompute, description.plain,
        lambda one: one.arrays, task.config, task.source,
    )  # fmt: skip
    return prove_claim(claim, found, trace, repair=repair)


def _check(description: Description, task: Task, found: Found) -> Check:
    """The algorithm's own check, after the one that every array has a number for each vertex."""
    for one in description.fields:
        array = found.arrays.get(one.name)
        if array is None or array.shape != (task.graph.n,) or array.dtype.kind not in "iuf":
            return PlainCheck(False, f"{one.name} is no array of numbers over the vertices")
    return description.check(task, found)


# --------------------------------------------------------------------------------------------- searches


def prove_levels(
    graph: Graph, roots: np.ndarray, found: ManyResult, trace: Trace, config: Config | None = None
) -> tuple[ManyResult, Repair | None]:
    """The levels of many searches, proven or replaced search by search; parents go with them."""
    # Here, not at the top: one search has no use for the engine of many.
    from cpu_engine.bfs.many.check import check_levels

    def recompute(certificate: LevelsCertificate) -> ManyResult:
        level = found.level.astype(np.int32)
        parent = None if found.parent is None else np.array(found.parent)
        for i in certificate.wrong.tolist():
            level[i], tree = plain_bfs(graph, int(roots[i]))
            if parent is not None:
                parent[i] = tree
        return dataclasses.replace(found, level=level, parent=parent)

    claim = Claim(
        _BFS.name, graph, lambda one: check_levels(graph, roots, one.level), recompute, _BFS.plain,
        lambda one: {"level": one.level, "root": np.asarray(roots)}, config or _DEFAULTS,
    )  # fmt: skip
    return prove_claim(claim, found, trace)


def prove_or_repair_many(
    graph: Graph, done: ManyTraversed, core_size: int, trace: Trace, config: Config | None = None
) -> np.ndarray:
    """Make the levels certified in place; how many values of each search had to change (0: right as they came).

    Parents, where there are any, belong to the levels: those of a repaired search are replaced with them.
    """
    before = done.found
    done.found, done.repair = prove_levels(graph, done.roots, before, trace, config)
    if done.repair is None:
        return np.zeros(done.roots.size, np.int64)
    if done.npu.rounds_merged:
        done.npu.values_rejected += count_false_values(before.level, done.found.level, core_size)
    changed: np.ndarray = np.count_nonzero(before.level != done.found.level, axis=1)
    return changed


def count_false_values(before: np.ndarray, right: np.ndarray, core_size: int) -> int:
    """Core values, of one search or of several, that were given and wrong."""
    given, core = before[..., :core_size], right[..., :core_size]
    return int(np.count_nonzero((given >= 0) & (given != core)))
