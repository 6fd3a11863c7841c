"""``bench sssp``, ``bench wcc``, ...: an algorithm and its peers on one graph, in turns."""

from __future__ import annotations

import argparse
import dataclasses
from contextlib import ExitStack
from typing import Any

from benchmarks.contest.bfs_contest import Contest, Entry, Hall, chosen_peers, play_as_asked
from benchmarks.contest.gap import GapContestant, find_program
from benchmarks.contest.questions import QUESTIONS, Question, edge_weights, value_finding
from benchmarks.contest.rounds import Finding, Root
from benchmarks.contest.workload import Workload, config_of, hand_out, open_workload, set_threads, work_folder
from benchmarks.output import Report, interval_text, memory_text, ratio_text
from benchmarks.peers import OURS
from benchmarks.peers.tandem import job_settings
from benchmarks.suites.bfs import contest_chart, describe_graph
from hybrid.algorithms import algorithm_named
from hybrid.algorithms.algorithm import Task
from hybrid.graphs.sources import Source
from hybrid.job.units import run_once
from hybrid.results.trace import Trace
from hybrid.terminal import seconds, table


def execute(options: argparse.Namespace) -> Report:
    question = QUESTIONS[options.benchmark]
    set_threads(options.threads)
    workload = open_workload(config_of(options))
    own = question.weighted and has_own_weights(workload)
    if question.weighted and not own:
        workload = with_weights(workload)
    contest, silent = run_contest(workload, question, options, own_weights=own)
    return report_of(contest, question, silent, options)


def has_own_weights(workload: Workload) -> bool:
    """Whether the graph has weights that every contestant can take: whole ones of 31 bits."""
    weight = workload.graph.weight
    return (
        weight is not None and weight.dtype.kind == "i" and weight.min(initial=0) >= 0 and weight.max(initial=0) < 2**31
    )


def with_weights(workload: Workload) -> Workload:
    """The same graph with weights that every contestant can make for itself."""
    graph = workload.graph
    position = graph.user_position
    ends = position.repeat(graph.out_offsets[1:] - graph.out_offsets[:-1]), position[graph.out_targets]
    return dataclasses.replace(workload, graph=dataclasses.replace(graph, weight=edge_weights(*ends)))


def checked_answers(workload: Workload, question: Question, roots: list[Root]) -> tuple[dict[Root, Finding], str]:
    """Our own answers, each of which has passed its check; and how far from convergence one ended at its limit."""
    algorithm = algorithm_named(question.name)
    config = job_settings(question, [root.user_id for root in workload.roots])
    found, unfinished = {}, ""
    for root in roots:
        source = Source(root.user_id, root.internal) if question.rooted else None
        run = run_once(algorithm, Task(workload.graph, config, source), Trace())
        unfinished = unfinished or algorithm.unfinished(run.counters)
        found[root] = value_finding(question, run.arrays[algorithm.fields[0].name])
        if question.form == "total":  # every triangle has three corners
            found[root] = dataclasses.replace(found[root], reached=found[root].reached // 3)
    return found, unfinished


def run_contest(
    workload: Workload, question: Question, options: argparse.Namespace, *, own_weights: bool = False
) -> tuple[Contest, list[str]]:
    """Let all that have the algorithm run it in turns; and which have not."""
    present, absent = chosen_peers(options)
    roots = workload.roots if question.rooted else workload.roots[:1]
    program = find_program(options.gap, question.gap) if options.gap and question.gap else None
    expected, unfinished = checked_answers(workload, question, roots)
    contest = Contest(workload, [], {}, absent, baseline=OURS, unfinished=unfinished)
    with ExitStack() as open_things:
        folder = open_things.enter_context(work_folder(options))
        hand_out(
            workload.graph, folder, {"user"}, gap=program is not None, weighted=question.weighted,
            own_weights=own_weights,
        )  # fmt: skip
        hall = Hall(options, folder, {"user": expected}, contest, open_things)
        hall.seat_for(question, OURS, OURS, workload.roots)
        silent = [peer.name for peer in present if not hall.seat_for(question, peer.name, peer.name, workload.roots)]
        if program is not None:
            contest.entries["gap"] = Entry("", options.threads, "user")
            own = ("-i", str(len(workload.roots))) if question.batched else question.gap_arguments
            if question.weighted and options.gap_delta is not None:
                own = ("-d", str(options.gap_delta))
            hall.contestants.append(
                GapContestant(
                    "gap", program, folder / f"user.{'wsg' if question.weighted else 'sg'}", "user", options.threads,
                    expected, options.time_limit, own=own, rooted=question.rooted, reports=question.form != "real",
                )
            )  # fmt: skip
        contest.records += play_as_asked(hall.contestants, roots, options)
        hall.note_memory()
    return contest, silent


def report_of(contest: Contest, question: Question, silent: list[str], options: argparse.Namespace) -> Report:
    """The contest as text, data and picture."""
    rows, graph = contest.rows(), contest.workload.as_dict()
    report = Report(
        question.name,
        {
            "graph": graph,
            "threads": options.threads,
            "baseline": OURS,
            "contestants": rows,
            "without": silent,
            "unfinished": contest.unfinished,
        },
        absent=contest.absent,
    )
    report.lines += [describe_graph(graph), "", _table(rows)]
    report.lines += [f"{row['name']} is not ranked: {row['problem']}" for row in rows if row["problem"]]
    if contest.unfinished:
        report.lines.append(f"{OURS} did not converge: {contest.unfinished}; peers without a limit went on")
    report.lines += [f"{name} does not have {question.name}, or not in the form asked for" for name in silent]
    title = f"{algorithm_named(question.name).title} on {graph['name']}, {options.threads} threads"
    report.charts.append(contest_chart(title, "run", "tandem", rows))
    return report


def _table(rows: list[dict[str, Any]]) -> str:
    cells = [
        [
            row["name"], str(row["threads"] or ""), seconds(row["best_seconds"]), seconds(row["mean_seconds"]),
            f"{row['noise']:.2f}", ratio_text(row["times_baseline"]), interval_text(row["times_interval"]),
            memory_text(row["peak_bytes"]),
        ]
        for row in rows
        if "best_seconds" in row
    ]  # fmt: skip
    return table(["contestant", "threads", "best", "mean", "noise", "x tandem", "interval", "memory"], cells)
