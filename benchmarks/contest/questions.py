"""What a contest on an algorithm other than BFS asks, and how an answer is compared in a few bytes.

Vertices are the positions of the user's ids, isolated ones included. Invariant: two right answers have findings that
agree, whatever labels are called and in whichever order reals were added up.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from benchmarks.contest.rounds import Finding

_HEAVIEST = 255  # weights are 1..255, as GAP's


@dataclass(frozen=True)
class Question:
    """One algorithm's contest. ``form``: labels, whole or real numbers per vertex, or one ``total``."""

    name: str
    form: str
    rooted: bool = False  # from each start vertex
    batched: bool = False  # from all start vertices in one run
    weighted: bool = False
    tolerance: float = 1e-6  # relative, of reals
    gap: str = ""  # GAP's program
    gap_arguments: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()  # of our job


QUESTIONS = {
    one.name: one
    for one in (
        Question("sssp", "whole", rooted=True, weighted=True, gap="sssp", gap_arguments=("-d", "2")),
        Question("wcc", "labels", gap="cc"),
        Question("scc", "labels"),
        Question("pagerank", "real", tolerance=0.02, gap="pr", settings=("pagerank.definition=gap",)),
        Question("kcore", "whole"),
        Question("triangles", "total", gap="tc"),
        Question("lcc", "real"),
        Question("betweenness", "real", batched=True, gap="bc", settings=("centrality.normalised=false",)),
    )
}


def question_of(variant: str) -> tuple[Question | None, list[int]]:
    """``betweenness:3,7`` is the question and its start vertices; any other variant is BFS's."""
    name, _, listed = variant.partition(":")
    if name not in QUESTIONS:
        return None, []
    return QUESTIONS[name], [int(word) for word in listed.split(",") if word]


def edge_weights(one_end: np.ndarray, other_end: np.ndarray) -> np.ndarray:
    """A weight for each edge, int64 in 1..255, the same from both ends: a hash of the two positions."""
    low = np.minimum(one_end, other_end).astype(np.uint64)
    high = np.maximum(one_end, other_end).astype(np.uint64)
    mixed = (low * np.uint64(0x9E3779B97F4A7C15)) ^ (high * np.uint64(0xC2B2AE3D27D4EB4F))
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (1 + (mixed >> np.uint64(33)) % np.uint64(_HEAVIEST)).astype(np.int64)


def value_finding(question: Question, values: np.ndarray) -> Finding:
    """The answer in a few bytes; unreached is negative or infinite."""
    if question.form == "total":
        return Finding(int(values.sum()))
    if question.form == "real":
        weight = np.random.default_rng(7).uniform(0.5, 1.5, values.size)
        shape = values / max(values.sum(), 1e-300)  # definitions differ by a factor: what is lost, pairs met twice
        return Finding(values.size, total=float(shape @ weight), tolerance=question.tolerance)
    if question.form == "labels":
        _, first, group = np.unique(values, return_index=True, return_inverse=True)
        return Finding(first.size, digest=_digest(first[group]))
    whole = np.where(np.isfinite(values) & (values >= 0) & (values < 2**62), values, -1).astype(np.int64)
    return Finding(int(np.count_nonzero(whole >= 0)), digest=_digest(whole))


def _digest(values: np.ndarray) -> str:
    return hashlib.blake2b(np.ascontiguousarray(values, np.int64).data, digest_size=16).hexdigest()
