"""``bench strategies``: every strategy on the same start vertices, level by level: time, frontier, edges looked at.

The strategies are whatever ``cpu_engine.bfs.strategies.names`` lists; a new one appears here by itself.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any

from benchmarks.contest.bfs_contest import own_process, play_as_asked
from benchmarks.contest.process import Seat
from benchmarks.contest.rounds import Finding, Record, Root, Turn
from benchmarks.contest.summary import figures, ranking, times_slower
from benchmarks.contest.workload import config_of, open_workload, references, set_threads
from benchmarks.output import Report, ratio_text
from benchmarks.plot import Bar, Series, draw_bars, draw_lines
from benchmarks.suites.bfs import describe_graph
from cpu_engine.graph.graph import Graph
from hybrid.errors import ConfigError
from hybrid.terminal import count, seconds, table

DEFAULT = "auto"
Step = dict[str, Any]


class StrategyContestant:
    """One strategy; keeps the steps of its fastest run from each root, each step with its own fastest time."""

    def __init__(self, name: str, seat: Seat, expected: dict[Root, Finding]) -> None:
        self.name, self.ours = name, True
        self._seat, self._expected = seat, expected
        self.steps: dict[Root, list[Step]] = {}

    def turn(self, root: Root, trials: int) -> Turn:
        spent = []
        for _ in range(trials):
            found = self._seat.ask("levels", variant=f"level:{self.name}", root=root.internal)
            spent.append(float(found["seconds"]))
            self.steps[root] = fastest_steps(self.steps.get(root), found["steps"])
        return Turn(tuple(spent), Finding(found["reached"], found["depth"], found["digest"]))

    def expected(self, root: Root) -> Finding:
        return self._expected[root]


def fastest_steps(known: list[Step] | None, new: list[Step]) -> list[Step]:
    """Each step's fastest time; where two runs took different steps, the faster run."""
    if known is None:
        return new
    if [(one["level"], one["direction"]) for one in known] != [(one["level"], one["direction"]) for one in new]:
        return min(known, new, key=lambda steps: sum(step["seconds"] for step in steps))
    return [min(pair, key=lambda step: float(step["seconds"])) for pair in zip(known, new, strict=True)]


def execute(options: argparse.Namespace) -> Report:
    set_threads(options.threads)
    names = chosen_strategies(options.only)
    workload = open_workload(config_of(options))
    expected = references(workload)["internal"]
    with ExitStack() as open_things:
        seat = own_process(workload, options, open_things)
        contestants = [StrategyContestant(name, seat, expected) for name in names]
        records = play_as_asked(contestants, workload.roots, options)
    root = deepest_root(contestants[0].steps)
    graph = workload.as_dict()
    rows = [_row(record, records, contestants) for record in ranking(records)]
    levels = {one.name: one.steps.get(root, []) for one in contestants if _ranked(records, one.name)}
    report = Report(
        "strategies",
        {
            "graph": graph, "threads": options.threads, "strategies": rows,
            "levels": {
                one.name: {str(start.user_id): steps for start, steps in one.steps.items()} for one in contestants
            },
        },
    )  # fmt: skip
    report.lines += [describe_graph(graph), "", _totals(rows)]
    report.lines += [f"{row['name']} is not ranked: {row['problem']}" for row in rows if row["problem"]]
    report.data["balance"] = balance = measure_balances(workload.graph, root.internal, options.shares)
    report.lines += ["", f"busiest of {options.shares} simulated threads, edges over the mean, from {root.user_id}:"]
    report.lines += [f"  {name:<12} {ratio:.3f}" for name, ratio in balance.items()]
    for what, title in (("seconds", "time"), ("edges", "edges looked at")):
        report.lines += ["", f"{title} per level, from {root.user_id}", level_table(levels, what, options.levels)]
    report.charts += _charts(graph["name"], rows, levels, root)
    return report


def chosen_strategies(only: list[str]) -> list[str]:
    """The names to measure, the default first."""
    from cpu_engine.bfs.strategies.names import STRATEGIES

    unknown = [name for name in only if name not in STRATEGIES]
    if unknown:
        raise ConfigError("there is no such strategy", value=unknown[0], fix=f"choose from {', '.join(STRATEGIES)}")
    names = list(only or STRATEGIES)
    return sorted(names, key=lambda name: name != DEFAULT)


def measure_balances(graph: Graph, root: int, shares: int) -> dict[str, float]:
    """How evenly the strategies that deal edges out do so: the busiest thread's edges over the mean."""
    from cpu_engine.bfs.balance import measure_balance
    from cpu_engine.bfs.strategies.push import PrivatePushExpander
    from cpu_engine.bfs.strategies.push_edge import EdgePushExpander
    from cpu_engine.bfs.traversal import CoreSplit

    split = CoreSplit(graph)
    return {
        "push-edge": measure_balance(split, root, shares, EdgePushExpander).busiest_over_mean,
        "push-private": measure_balance(split, root, shares, PrivatePushExpander).busiest_over_mean,
    }


def deepest_root(steps: dict[Root, list[Step]]) -> Root:
    """The start vertex whose levels are printed: the one with most steps, the first of equals."""
    return max(steps, key=lambda root: len(steps[root]))


def level_table(levels: dict[str, list[Step]], what: str, most: int) -> str:
    """Rows are levels, columns strategies; ``what`` is ``seconds`` or ``edges`` (looked at)."""
    write = seconds if what == "seconds" else count
    depths = sorted({step["level"] for steps in levels.values() for step in steps})
    frontier = {step["level"]: step["frontier"] for step in next(iter(levels.values()), [])}
    rows = []
    for depth in depths[:most]:
        row = [str(depth), count(frontier[depth]) if depth in frontier else ""]
        for steps in levels.values():
            found = [step[what] for step in steps if step["level"] == depth]
            row.append(write(sum(found)) if found else "")
        rows.append(row)
    sums = [write(sum(step[what] for step in steps)) for steps in levels.values()]
    text = table(["level", "frontier", *levels], [*rows, ["all", "", *sums]])
    hidden = len(depths) - most
    return text + (f"\n... and {hidden} more levels (--levels, or --json)" if hidden > 0 else "")


def _ranked(records: list[Record], name: str) -> bool:
    return any(record.name == name and record.ranked for record in records)


def _row(record: Record, records: list[Record], contestants: list[StrategyContestant]) -> dict[str, Any]:
    found = figures(record)
    row: dict[str, Any] = {"name": record.name, "problem": record.problem}
    if found is None:
        return row
    default = next((one for one in records if one.name == DEFAULT), record)
    runs = list(next(one for one in contestants if one.name == record.name).steps.values())
    return {
        **row,
        "best_seconds": found.best,
        "mean_seconds": found.mean,
        "noise": found.noise,
        "times_default": times_slower(record, default),
        "edges_looked_at": sum(step["edges"] for steps in runs for step in steps) / len(runs),
        "steps": sum(len(steps) for steps in runs) / len(runs),
    }


def _totals(rows: list[dict[str, Any]]) -> str:
    cells = [
        [
            row["name"], seconds(row["best_seconds"]), seconds(row["mean_seconds"]), f"{row['noise']:.2f}",
            ratio_text(row["times_default"]), count(row["edges_looked_at"]), f"{row['steps']:.1f}",
        ]
        for row in rows
        if "best_seconds" in row
    ]  # fmt: skip
    return table(["strategy", "best", "mean", "noise", "x auto", "edges looked at", "steps"], cells)


def _charts(name: str, rows: list[dict[str, Any]], levels: dict[str, list[Step]], root: Root) -> list[Any]:
    bars = [
        Bar(row["name"], row["best_seconds"], f"{seconds(row['best_seconds'])} ({ratio_text(row['times_default'])})",
            ours=row["name"] == DEFAULT)
        for row in rows
        if "best_seconds" in row
    ]  # fmt: skip
    times = [Series(one, [(step["level"], step["seconds"]) for step in steps]) for one, steps in levels.items()]
    edges = [Series(one, [(step["level"], max(1, step["edges"])) for step in steps]) for one, steps in levels.items()]
    subtitle = "best seconds per traversal; x = times as long as auto"
    return [
        draw_bars(f"BFS strategies on {name}", subtitle, bars),
        draw_lines(f"Time per level from {root.user_id}", "logarithmic", times, x_label="level of the frontier"),
        draw_lines(
            f"Edges looked at per level from {root.user_id}", "logarithmic; 0 drawn as 1", edges,
            x_label="level of the frontier", unit="",
        ),
    ]  # fmt: skip
