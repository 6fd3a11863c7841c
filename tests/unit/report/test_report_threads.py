"""The page of loops: a lane for each thread, and how even the load was."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import kronecker
from cpu_engine.programs import run
from cpu_engine.schedule import add_task, do_all, for_each
from hybrid.report.threads import kinds_of, render_threads_page, threads_of, write_threads_report
from hybrid.results.trace import Trace
from tests.property.test_vertex_programs import BFS, PAGERANK


def cost(task, costs):
    return costs[task]


def count_down(task, tasks):
    if task > 0:
        add_task(tasks, task - 1)


@pytest.mark.jitless
def test_a_loop_tells_what_each_thread_did():
    trace = Trace()
    report = do_all(cost, 4, np.array([9, 1, 1, 1]), threads=2)
    report.trace(trace)
    busy = [event for event in trace.events if event["kind"] == "do_all"]
    assert [event["actor"] for event in busy] == ["thread 0", "thread 1"]
    assert [event["work"] for event in busy] == [10, 2]
    assert all(event["operator"].startswith("cost") and event["t0"] <= event["t1"] <= trace.now() for event in busy)
    last = max(event["t1"] for event in trace.events)
    for thread in ("thread 0", "thread 1"):  # nobody's lane ends before the loop does
        assert max(event["t1"] for event in trace.events if event["actor"] == thread) == pytest.approx(last)
    (kind,) = kinds_of(threads_of(trace.events))
    assert kind.busiest_over_mean == report.busiest_over_mean == pytest.approx(10 / 6)


@pytest.mark.jitless
def test_simulated_threads_are_drawn_by_their_work():
    trace = Trace()
    do_all(cost, 3, np.array([8, 2, 2]), threads=2, steal=True, chunk=1, simulate=True).trace(trace)
    length = {e["actor"]: e["t1"] - e["t0"] for e in trace.events if e["kind"] == "do_all"}
    assert length["thread 1"] == pytest.approx(length["thread 0"] / 2, rel=1e-3)
    assert all(event["simulated"] for event in trace.events if event["kind"] == "do_all")


@pytest.mark.jitless
def test_the_page_has_a_lane_for_each_thread(tmp_path):
    trace = Trace()
    for_each(count_down, [5], threads=3).trace(trace)
    graph = build_graph(kronecker(6), directed=False)
    run(BFS, graph, start=0, threads=2).trace(trace)
    run(PAGERANK, graph, vertices=64, isolated=64 - graph.n, threads=2).trace(trace)
    page = write_threads_report(tmp_path / "loops.html", trace, "Mine & <yours>").read_text()
    assert "Mine &amp; &lt;yours&gt;" in page
    assert re.findall(r"Thread \d(?=</text>)", page) == ["Thread 0", "Thread 1", "Thread 2"]
    assert "for_each count_down" in page
    assert "bfs pu" in page
    assert "pagerank pull" in page
    assert not re.search(r'(src|href)="(https?:)?//', page)


def test_an_empty_trace_says_how_to_fill_it():
    foreign = [{"actor": "cpu", "kind": "step", "t0": 0, "t1": 1}, {"actor": "thread 1"}, "nonsense"]
    for trace in ([], foreign):
        assert "call report.trace(trace)" in render_threads_page(trace, "Nothing")
