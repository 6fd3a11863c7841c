"""``bench build``: from an edge list to a traversable graph, ours and the peers'; with ``--edges`` from a text file.

In memory all end with the same simple graph: loops and duplicates gone, both directions stored. GAP is measured
twice: its printed build time, which leaves out its removal of duplicates, and the whole of it by the clock on the wall.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest.bfs_contest import chosen_peers
from benchmarks.contest.gap import find_program, run_gap
from benchmarks.contest.process import Seat
from benchmarks.contest.rounds import FIX, ContestantFailed, schedule
from benchmarks.contest.workload import config_of, load_edges, set_threads, work_folder
from benchmarks.output import Report, memory_text, ratio_text
from benchmarks.peers import OURS
from benchmarks.peers.adapter import Pairs
from benchmarks.plot import Bar, draw_bars
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.build.extent import generated_extent, require_room
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import write_graph
from cpu_engine.graph.generators import kronecker
from hybrid.errors import ConfigError, NotCertified
from hybrid.terminal import count, progress, seconds, table

EDGES_PER_VERTEX = 16


@dataclass
class Builder:
    """A contestant of the build: ``build`` does it once and returns seconds, edges and memory."""

    name: str
    build: Callable[[], dict[str, Any]]
    accept: tuple[int, ...] | None  # numbers of edges that a right graph may have; None: we cannot know
    digest: str = ""  # of a right graph's arcs, where the contestant shows its own
    runs: list[float] = field(default_factory=list)
    fastest: dict[str, Any] = field(default_factory=dict)
    peak_bytes: int | None = None  # the highest of all runs: later ones may reuse memory of earlier ones
    problem: str = ""

    def take_turn(self) -> None:
        """Build once more, unless an earlier build was wrong."""
        if self.problem:
            return
        try:
            found = self.build()
        except ContestantFailed as failure:
            self.problem = str(failure)
            return
        if self.accept is not None and found["edges"] not in self.accept:
            self.problem = f"its graph has {found['edges']} edges, not {' or '.join(map(str, self.accept))}"
        elif self.digest and found.get("digest") not in (None, self.digest):
            self.problem = "its graph has other edges than the edge list"
        if self.problem and self.name == OURS:
            raise NotCertified(f"{self.name}: {self.problem}", fix=FIX)
        if self.problem:
            return
        if not self.runs or found["seconds"] < min(self.runs):
            self.fastest = found
        self.runs.append(found["seconds"])
        self.peak_bytes = max(self.peak_bytes or 0, found["peak_bytes"] or 0) or None


def execute(options: argparse.Namespace) -> Report:
    set_threads(options.threads)
    return measure_reading(options) if options.edges else measure_building(options)


def measure_building(options: argparse.Namespace) -> Report:
    """Edge list in memory -> graph."""
    config = config_of(options)
    edges = load_edges(config)
    pairs = _dense_pairs(edges, directed=edges.directed is not False and config.graph.directed is not False)
    graph = build_graph(edges, directed=pairs.directed)
    simple, digest = graph.m if graph.directed else graph.m // 2, pairs.digest()
    present, absent = chosen_peers(options)
    with ExitStack() as open_things:
        folder = open_things.enter_context(work_folder(options))
        pairs.save(folder / "pairs")
        builders = [
            _seated(name, options, folder, open_things, (simple,), digest, "build", {"folder": str(folder / "pairs")})
            for name in (OURS, *(peer.name for peer in present))
        ]
        if options.gap:
            text = folder / "edges.el"
            write_graph(text, edges)
            builders += _gap_builders(options, text, (simple,), symmetrize=not pairs.directed)
            if edges.format == "generator" and options.kind != "grid":
                builders += _gap_generators(options)
        name = Path(options.graph).name if options.graph else edges.path
        input_bytes = pairs.src.nbytes + pairs.dst.nbytes
        del edges, pairs, graph
        _play(builders, options.rounds)
    title = f"{name}: {count(simple)} edges once loops and duplicates are gone; {options.threads} threads"
    report = _report("build", title, builders, absent, {"graph": name, "edges": simple, "input_bytes": input_bytes})
    peak, held = builders[0].peak_bytes, builders[0].fastest.get("held_bytes")
    if peak and held:
        report.lines.append(
            f"tandem: peak {peak / held:.2f} times the finished graph, not counting the edge list it was handed; "
            f"{(peak + input_bytes) / held:.2f} times with it ({memory_text(input_bytes)})"
        )
    return report


def measure_reading(options: argparse.Namespace) -> Report:
    """Text edge list -> stored graph. The file has just been written, so it is in the page cache for all."""
    scale = max(1, (max(1, options.edges // EDGES_PER_VERTEX) - 1).bit_length())
    edge_factor = -(-options.edges >> scale) or 1
    require_room(generated_extent("kronecker", scale=scale, edge_factor=edge_factor), False, consume=False)
    edges = _cut(kronecker(scale, edge_factor, options.seed), options.edges)
    graph = build_graph(edges)
    simple, raw = graph.m // 2, options.edges
    loops = np.unique(edges.src[edges.src == edges.dst]).size
    accept = (simple, simple + loops, raw)  # some readers keep loops, some duplicates as well
    digest = _dense_pairs(edges, directed=False).digest()
    present, absent = chosen_peers(options)
    with ExitStack() as open_things:
        folder = open_things.enter_context(work_folder(options))
        text = folder / "edges.el"
        write_graph(text, edges)
        size = text.stat().st_size
        del edges, graph
        builders = []
        for name in (OURS, *(peer.name for peer in present if peer.name in ("networkit", "igraph"))):
            scratch = folder / f"{name}-scratch"
            scratch.mkdir()
            details = {"path": str(text), "scratch": str(scratch)}
            builders.append(_seated(name, options, folder, open_things, accept, digest, "read", details))
        if options.gap:
            builders += _gap_builders(options, text, (simple,), symmetrize=True, reading=True)
        _play(builders, options.rounds)
    title = f"a text edge list of {count(raw)} edges ({memory_text(size)}); {options.threads} threads"
    data = {"edges": raw, "distinct_edges": simple, "file_bytes": size}
    return _report("read", title, builders, absent, data)


def _seated(
    adapter: str, options: argparse.Namespace, folder: Path, open_things: ExitStack, accept: tuple[int, ...],
    digest: str, request: str, details: dict[str, str],
) -> Builder:  # fmt: skip
    seat = Seat(adapter, options.threads, folder / f"{adapter}.log", options.time_limit)
    open_things.callback(seat.close)
    introduced: list[bool] = []

    def build() -> dict[str, Any]:
        if not introduced:
            seat.ask("introduce")
            introduced.append(True)
        return seat.ask(request, **details)

    return Builder(adapter, build, accept, digest)


def _gap_builders(
    options: argparse.Namespace, text: Path, accept: tuple[int, ...], *, symmetrize: bool, reading: bool = False
) -> list[Builder]:
    program = find_program(options.gap)
    arguments = ["-f", str(text), "-n", "0", *(["-s"] if symmetrize else [])]
    return _printed_and_whole("gap", options, program, arguments, accept, reading=reading)


def _gap_generators(options: argparse.Namespace) -> list[Builder]:
    """GAP's own generator, same size and degree: other edges, so that only the time is comparable."""
    program = find_program(options.gap)
    flag = "-u" if options.kind == "uniform" else "-g"
    arguments = [flag, str(options.scale), "-k", str(options.edge_factor), "-n", "0"]
    return _printed_and_whole("gap -g", options, program, arguments, None)


def _printed_and_whole(
    name: str,
    options: argparse.Namespace,
    program: Path,
    arguments: list[str],
    accept: tuple[int, ...] | None,
    *,
    reading: bool = False,
) -> list[Builder]:
    """Two rows from one run of the program: what it prints, and the wall clock less what precedes the build."""
    seen: dict[str, Any] = {}

    def whole() -> dict[str, Any]:
        began = time.perf_counter()
        run = run_gap(program, arguments, options.threads, options.time_limit, watch=True)
        wall = time.perf_counter() - began
        found = run.report
        if found.build is None or found.edges is None:
            raise ContestantFailed("its output is not what GAP prints")
        before = (found.read or 0.0) + (found.generate or 0.0)
        seen.update(build=found.build, before=before, edges=found.edges, peak=run.peak_bytes)
        counted = wall if reading else wall - before
        phases = {"read": before, "build": found.build, "rest": wall - before - found.build} if reading else {}
        return {"seconds": counted, "edges": found.edges, "peak_bytes": run.peak_bytes, "phases": phases}

    def printed() -> dict[str, Any]:
        if not seen:
            whole()
        found = dict(seen)
        spent = found["build"] + (found["before"] if reading else 0.0)
        seen.clear()
        return {"seconds": spent, "edges": found["edges"], "peak_bytes": found["peak"], "phases": {}}

    return [Builder(f"{name} whole", whole, accept), Builder(f"{name} printed", printed, accept)]


def _play(builders: list[Builder], rounds: int) -> None:
    """One round that is not timed (it compiles, and fills caches), then the timed ones, in rotation."""
    with progress("building", "build") as bar:
        total = (rounds + 1) * len(builders)
        for done, (round_number, _, seat) in enumerate(schedule(rounds + 1, 1, len(builders))):
            bar(done, total)
            builders[seat].take_turn()
            if round_number == 0:
                builders[seat].runs.clear()


def _report(name: str, title: str, builders: list[Builder], absent: list[Any], data: dict[str, Any]) -> Report:
    rows = []
    ours = min(builders[0].runs, default=None)
    for one in sorted(builders, key=lambda one: min(one.runs, default=float("inf"))):
        row: dict[str, Any] = {"name": one.name, "problem": one.problem}
        if one.runs and not one.problem:
            best = min(one.runs)
            row.update(
                best_seconds=best, mean_seconds=sum(one.runs) / len(one.runs), seconds=one.runs,
                times_ours=best / ours if ours else None, peak_bytes=one.peak_bytes,
                **{key: one.fastest.get(key) for key in ("edges", "held_bytes", "phases")},
            )  # fmt: skip
        rows.append(row)
    ranked = [row for row in rows if "best_seconds" in row]
    headings = ["contestant", "best", "mean", "x ours", "peak memory", "of it graph", "parts"]
    cells = [
        [
            row["name"], seconds(row["best_seconds"]), seconds(row["mean_seconds"]), ratio_text(row["times_ours"]),
            memory_text(row["peak_bytes"]), memory_text(row["held_bytes"]),
            ", ".join(f"{part} {seconds(spent)}" for part, spent in (row["phases"] or {}).items()),
        ]
        for row in ranked
    ]  # fmt: skip
    report = Report(name, {**data, "contestants": rows}, [title, "", table(headings, cells)], absent=absent)
    report.lines += [f"{row['name']} is not ranked: {row['problem']}" for row in rows if row["problem"]]
    report.lines += ["", "peak memory: beyond the input that each was handed (GAP: its whole process)"]
    if any(row["name"].startswith("gap") for row in rows):
        report.lines.append(
            "gap printed: the build time that it prints, before it removes loops and duplicates; gap whole: by the "
            "clock on the wall, these included; gap -g: from its own generator's edges, as many"
        )
    bars = [
        Bar(row["name"], row["best_seconds"], f"{seconds(row['best_seconds'])} ({ratio_text(row['times_ours'])})",
            ours=row["name"] == OURS)
        for row in ranked
    ]  # fmt: skip
    what = "Building a graph" if name == "build" else "From a text file to a graph"
    report.charts.append(draw_bars(what, f"{title}; best seconds", bars))
    return report


def _dense_pairs(edges: EdgeList, *, directed: bool) -> Pairs:
    """The edge list over 0..count-1; a file with other ids cannot be given to all as it is."""
    first, declared = edges.id_range or (0, 0)
    count_ids = max(declared, int(max(edges.src.max(initial=-1), edges.dst.max(initial=-1))) + 1)
    if first or edges.vertices is not None or count_ids > 64 * max(1, edges.src.size):
        raise ConfigError(
            "the file's ids are not consecutive from 0, which not every peer can build from",
            fix="use a generated graph, or `bench bfs --graph FILE`, which shows build times as well",
        )
    return Pairs(edges.src, edges.dst, count_ids, directed)


def _cut(edges: EdgeList, size: int) -> EdgeList:
    return EdgeList(edges.src[:size].copy(), edges.dst[:size].copy(), id_range=edges.id_range, directed=False)
