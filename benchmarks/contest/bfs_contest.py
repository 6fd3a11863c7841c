"""A BFS contest on one workload: seats the contestants, lets them play, and gathers one row per contestant.

Invariant: a contestant that is missing, failed or was wrong is in the result with the reason, and without a time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.contest.gap import GapContestant, find_program
from benchmarks.contest.process import Seat, SeatedContestant
from benchmarks.contest.questions import Question
from benchmarks.contest.rounds import Contestant, ContestantFailed, Finding, Record, Root, Turn, play
from benchmarks.contest.summary import figures, interval, ranking, times_slower
from benchmarks.contest.workload import Workload, hand_out, references, work_folder
from benchmarks.peers import OURS, PEERS, Peer
from hybrid.errors import ConfigError
from hybrid.terminal import note, progress

BASELINE = "tandem level"
VARIANT_NAMES = {
    "level": BASELINE,
    "level+user": "tandem level, user ids",
    "async": "tandem async",
    "async+user": "tandem async, user ids",
}


@dataclass
class Entry:
    """What is known of a contestant besides its times."""

    version: str = ""
    threads: int | None = None
    ids: str = ""
    prepare_seconds: float | None = None
    peak_bytes: int | None = None


@dataclass
class Contest:
    """A finished contest."""

    workload: Workload
    records: list[Record]
    entries: dict[str, Entry]
    absent: list[Peer] = field(default_factory=list)
    baseline: str = BASELINE
    unfinished: str = ""  # of our own runs: how far from convergence they ended at their limit

    def record(self, name: str) -> Record | None:
        return next((one for one in self.records if one.name == name), None)

    def rows(self) -> list[dict[str, Any]]:
        """One mapping per contestant, fastest first; the same figures for terminal, JSON and plot."""
        baseline, mapped = self.record(self.baseline), self.record(VARIANT_NAMES["level+user"])
        roots = [root.user_id for root in self.workload.roots]
        rows = []
        for record in ranking(self.records):
            entry, found = self.entries.get(record.name, Entry()), figures(record)
            row: dict[str, Any] = {"name": record.name, "problem": record.problem, **vars(entry)}
            if found is not None:
                row.update(
                    best_seconds=found.best, mean_seconds=found.mean, fastest_seconds=found.fastest,
                    slowest_seconds=found.slowest, noise=found.noise, runs=found.runs,
                    times_baseline=None if baseline is None else times_slower(record, baseline),
                    times_interval=None if baseline is None else interval(record, baseline),
                    times_mapped=None if mapped is None else times_slower(record, mapped),
                    seconds={str(roots[index]): runs for index, runs in record.seconds.items()},
                )  # fmt: skip
            rows.append(row)
        return rows


def chosen_peers(options: argparse.Namespace) -> tuple[list[Peer], list[Peer]]:
    """(present, absent) among those that the user wants; an unknown name is an error."""
    known = {peer.name: peer for peer in PEERS}
    wanted = list(known) if options.peers is None else options.peers
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ConfigError("there is no such peer", value=unknown[0], fix=f"choose from {', '.join(known)}")
    peers = [known[name] for name in wanted]
    return [peer for peer in peers if peer.present], [peer for peer in peers if not peer.present]


def run_contest(workload: Workload, options: argparse.Namespace) -> Contest:
    """Let all contestants traverse ``workload`` in turns."""
    present, absent = chosen_peers(options)
    numberings = {"user", "internal"} if options.ids == "both" else {options.ids}
    program = find_program(options.gap) if options.gap else None
    expected = references(workload)
    contest = Contest(workload, [], {}, absent)
    with ExitStack() as open_things:
        folder = open_things.enter_context(work_folder(options))
        hand_out(workload.graph, folder, numberings, gap=program is not None)
        hall = Hall(options, folder, expected, contest, open_things)
        hall.seat_ourselves()
        for peer in present:
            for ids in sorted(numberings, reverse=True):
                hall.seat_peer(peer, ids, suffix=f", {ids} ids" if len(numberings) > 1 else "")
        if program is not None:
            for ids in sorted(numberings, reverse=True):
                hall.seat_gap(program, ids, suffix=f", {ids} ids" if len(numberings) > 1 else "")
        contest.records += play_as_asked(hall.contestants, workload.roots, options)
        hall.note_memory()
    return contest


def play_as_asked(
    contestants: Sequence[Contestant], roots: Sequence[Root], options: argparse.Namespace
) -> list[Record]:
    """Play with the rounds, trials and pauses of the command line."""
    with progress("measuring", "turn") as bar:
        return play(
            contestants, roots, rounds=options.rounds, trials=options.trials,
            between=lambda: time.sleep(options.pause), report=bar,
        )  # fmt: skip


def own_process(workload: Workload, options: argparse.Namespace, open_things: ExitStack) -> Seat:
    """A process of ours with the graph in internal ids; it ends with ``open_things``."""
    folder = open_things.enter_context(work_folder(options))
    hand_out(workload.graph, folder, set(), gap=False)
    seat = Seat(OURS, options.threads, folder / "tandem.log", options.time_limit)
    open_things.callback(seat.close)
    seat.ask("introduce")
    seat.ask("open", folder=str(folder), ids="internal")
    return seat


class Hall:
    """The seats of one contest."""

    def __init__(
        self, options: argparse.Namespace, folder: Path, expected: dict[str, dict[Root, Finding]], contest: Contest,
        open_things: ExitStack,
    ) -> None:  # fmt: skip
        self.options, self.folder, self.expected = options, folder, expected
        self.contest, self.open_things = contest, open_things
        self.contestants: list[Contestant] = []

    def seat_ourselves(self) -> None:
        """One process for all our variants: they share the graph."""
        seat, entry = self._open(OURS, "internal", OURS)
        if seat is None:
            return
        for variant, name in VARIANT_NAMES.items():
            ids = "user" if variant.endswith("+user") else "internal"
            seconds = self.contest.workload.seconds_build
            self.contest.entries[name] = Entry(entry.version, entry.threads, ids, seconds)
            self.contestants.append(_Ours(name, seat, variant, ids, self.expected[ids]))

    def seat_peer(self, peer: Peer, ids: str, suffix: str) -> None:
        name = peer.name + suffix
        seat, entry = self._open(peer.name, ids, name)
        if seat is not None:
            self.contest.entries[name] = entry
            self.contestants.append(SeatedContestant(name, seat, "", ids, self.expected[ids]))

    def seat_gap(self, program: Path, ids: str, suffix: str) -> None:
        name, options = f"gap{suffix}", self.options
        self.contest.entries[name] = Entry("", options.threads, ids)
        graph = self.folder / f"{ids}.sg"
        self.contestants.append(
            GapContestant(name, program, graph, ids, options.threads, self.expected[ids], options.time_limit)
        )

    def note_memory(self) -> None:
        """Ask all that are still there what they held."""
        for contestant in self.contestants:
            entry = self.contest.entries[contestant.name]
            if isinstance(contestant, GapContestant):
                entry.prepare_seconds, entry.peak_bytes = contestant.load_seconds, contestant.peak_bytes
            elif isinstance(contestant, SeatedContestant):
                with suppress(ContestantFailed):
                    entry.peak_bytes = contestant.memory_bytes()

    def seat_for(self, question: Question, adapter: str, name: str, roots: list[Root]) -> bool:
        """A contestant for an algorithm other than BFS, in the user's ids; False if it does not have it."""
        seat, entry = self._open(adapter, "user", name, question)
        if seat is None:
            return bool(self.contest.record(name))
        ours = adapter == OURS
        listed = [str(root.internal if ours else root.position) for root in roots] if question.batched else []
        variant = question.name + (":" + ",".join(listed) if listed else "")
        entry.prepare_seconds = self.contest.workload.seconds_build if ours else entry.prepare_seconds
        self.contest.entries[name] = entry
        kind = _Ours if ours else SeatedContestant
        self.contestants.append(kind(name, seat, variant, "user", self.expected["user"]))
        return True

    def _open(self, adapter: str, ids: str, name: str, question: Question | None = None) -> tuple[Seat | None, Entry]:
        """Start a process and let it make its graph; one that cannot is on record with the reason."""
        log = self.folder / f"{adapter}-{ids}.log"
        seat = Seat(adapter, self.options.threads, log, self.options.time_limit)
        self.open_things.callback(seat.close)
        try:
            facts = seat.ask("introduce")
            if question is not None and question.name not in facts["answers"]:
                return None, Entry()
            weighted = question is not None and question.weighted
            made = seat.ask("open", folder=str(self.folder), ids=ids, weighted=weighted)
        except ContestantFailed as failure:
            note(f"{name} is out: {failure}")
            self.contest.records.append(Record(name, problem=str(failure)))
            return None, Entry()
        threads = facts["threads"] if question is None else facts["answers"][question.name]
        return seat, Entry(facts["version"], threads, ids, made["seconds"])


class _Ours(SeatedContestant):
    """Our roots are always internal; the numbering is that of the answer."""

    def turn(self, root: Root, trials: int) -> Turn:
        return self.turn_at(root.internal, trials)
