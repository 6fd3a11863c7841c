"""The report of a job on ranks, made of what the real engines record: complete, bounded, safe, whatever is missing.

The engines run in one process (comm.loopback), so a rank's waiting is the others' work: the shapes are real, the times
are not. How it looks is for people to judge.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.bfs.ranks.engine import RankEngine
from cpu_engine.comm.collectives import RankInfo
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.partition import partition_graph
from hybrid.charts import units as u
from hybrid.charts.scale import window
from hybrid.ranks.summary import add_statistics, describe_part, describe_ranks, describe_search
from hybrid.ranks.trace import rank_actor
from hybrid.report import render_page
from hybrid.report.facts import Facts, read_events, split_by_rank
from hybrid.report.ranks.picture import (
    MAX_LANES,
    STACK,
    UNITS,
    RankLane,
    columns_of,
    hosts_of,
    machines_of,
    outlines_of,
    short_names,
)
from hybrid.report.ranks.section import say_bytes
from tests.unit.report.test_report import HOSTILE, Page, junk

Job = tuple[dict[str, Any], list[dict[str, Any]]]


@functools.cache
def recorded(ranks: int, engine: str = "async", sync: str = "basp", policy: str = "oec", sources: int = 2) -> Job:
    """Summary and trace as the job on ranks writes them; all ranks on a machine of their own, to be renamed."""
    graph = build_graph(kronecker(7, 6, 1), directed=False)
    parts = partition_graph(graph, policy, ranks)
    engines = [RankEngine(part, engine=engine, sync=sync) for part in parts]
    trace: list[dict[str, Any]] = [{"t0": 0, "t1": 0.001, "actor": "coordinator", "kind": "partition", "source": None}]
    runs: list[dict[str, Any]] = []
    totals: list[dict[str, Any]] = [{}] * ranks
    now = 0.001
    for root in range(sources):
        outcomes = run_loopback([one.search(root) for one in engines])
        events = [(rank, event) for rank, one in enumerate(outcomes) for event in one.statistics.events]
        origin = min(event[1] for _, event in events) - now
        for rank, (kind, t0, t1, details) in events:
            times = {"t0": t0 - origin, "t1": t1 - origin}
            trace.append({**times, "actor": rank_actor(rank), "kind": kind, "source": 100 + root, **details})
        by_rank = [one.statistics.as_dict() for one in outcomes]
        totals = [add_statistics(*pair) for pair in zip(totals, by_rank, strict=True)]
        reached = sum(int(np.count_nonzero(one.levels >= 0)) for one in outcomes)
        runs.append({"source": 100 + root, "certified": True, "reached": reached, "ranks": describe_search(by_rank)})
        now = max(event["t1"] for event in trace) + 0.001
    info = RankInfo(0, ranks, tuple(f"node{rank}" for rank in range(ranks)))
    shares = [describe_part(part, 1) for part in parts]
    summary = {
        "certified": True,
        "engine": engine,
        "sources": [run["source"] for run in runs],
        "reached": sum(run["reached"] for run in runs),
        "seconds": {"partition": 0.001, "total": now},
        "npu": {"mode": "off"},
        "runs": runs,
        "ranks": describe_ranks(info, parts[0], sync, False, shares, totals),
    }
    return summary, trace


def job(ranks: int, *, hosts: Sequence[str] = ("alpha",), **how: Any) -> Job:
    """A fresh copy of a recorded job, its ranks dealt to ``hosts`` in blocks."""
    summary, trace = recorded(ranks, **how)
    section = dict(summary["ranks"])
    rows = [{**row, "host": hosts[row["rank"] * len(hosts) // ranks]} for row in section["per_rank"]]
    section["per_rank"] = rows
    section["hosts"] = {host: [row["rank"] for row in rows if row["host"] == host] for host in hosts}
    return {**summary, "ranks": section}, [dict(event) for event in trace]


def page_of(summary: dict[str, Any], trace: Sequence[Any]) -> Page:
    return Page(render_page(Path("results/demo"), summary, trace, "ranks: 4\n"))


def words(page: Page) -> str:
    return page.text.replace("\N{NO-BREAK SPACE}", " ")


def areas(page: Page, style: str) -> list[dict[str, str | None]]:
    return [rect for rect in page.having("rect", class_=f"r-{style}") if "clip-path" in rect]


ENGINES = [("async", "basp", "oec"), ("async", "bsp", "cvc"), ("level", "bsp", "2d")]


@pytest.mark.parametrize(("engine", "sync", "policy"), ENGINES)
def test_every_rank_has_a_lane_a_row_and_its_numbers(engine: str, sync: str, policy: str) -> None:
    summary, trace = job(4, hosts=("alpha", "beta"), engine=engine, sync=sync, policy=policy)
    page = page_of(summary, trace)
    text = words(page)
    assert [attrs["id"] for tag, attrs in page.tags if tag == "section"][:4] == [
        "verdict",
        "timeline",
        "ranks",
        "sources",
    ]
    assert f"4 ranks on 2 machines, cut by {policy}" in text
    for host in ("alpha: 2 ranks", "beta: 2 ranks"):
        assert text.count(host) == 2, "one heading in each source's picture"
    assert len(areas(page, "wait")) == 8
    steps = {event["direction"] for event in trace if event["kind"] == "step"}
    assert all(areas(page, style) for style in steps)
    assert bool(areas(page, "pack")) == any(event["kind"] == "pack" for event in trace)
    for row in summary["ranks"]["per_rank"]:
        for name in ("arcs", "masters", "mirrors", "messages", "relaxations"):
            assert f" {u.count(row[name])} " in text
        for name in ("compute_s", "pack_s", "wait_s"):
            assert u.seconds(row[name]).replace(u.SPACE, " ") in text
        assert u.size(row["bytes"]).replace(u.SPACE, " ") in text
    assert f"Load imbalance {summary['ranks']['load_imbalance']:.2f}: rank " in text


@pytest.mark.parametrize(("engine", "sync", "policy"), ENGINES)
def test_traffic_is_told_by_phase_and_encoding(engine: str, sync: str, policy: str) -> None:
    summary, trace = job(4, engine=engine, sync=sync, policy=policy)
    totals = summary["ranks"]["totals"]
    page = page_of(summary, trace)
    text = words(page)
    for phase, forms in totals["traffic"].items():
        assert f"{phase}: " in text
        for tally in forms.values():
            assert f" {u.count(tally['messages'])} " in text
            assert u.size(tally["bytes"]).replace(u.SPACE, " ") in text
    used = [tally for forms in totals["traffic"].values() for tally in forms.values()]
    assert len(page.having("rect", class_="r-messages")) == len([tally for tally in used if tally["messages"]])
    assert len(page.having("rect", class_="r-bytes")) == len([tally for tally in used if tally["bytes"]])


def test_one_line_says_bytes_against_pairs() -> None:
    summary, trace = job(4)
    totals = summary["ranks"]["totals"]
    said = f"{totals['bytes'] / totals['pair_bytes']:.2f} of that was sent."
    assert said in words(page_of(summary, trace))
    assert "0.048 of that" in say_bytes({"bytes": 48, "pair_bytes": 1000, "messages": 3}, 4)
    assert say_bytes({}, 4) == "Nothing was sent."
    assert "not counted" in say_bytes({"bytes": 5, "pair_bytes": 0, "messages": 1}, 4)


def test_the_reader_chooses_among_sources_and_the_slowest_is_open() -> None:
    summary, trace = job(3, sources=4)
    page = page_of(summary, trace)
    tabs = [tab for tab in page.having("a", role="tab") if (tab["id"] or "").startswith("ranks-")]
    assert [tab["data-source"] for tab in tabs] == ["100", "101", "102", "103"]

    def lasted(source: int) -> float:
        own = [event for event in trace if event["source"] == source]
        return max(event["t1"] for event in own) - min(event["t0"] for event in own)

    slowest = max(summary["sources"], key=lasted)
    opened = [tab for tab in tabs if tab["aria-selected"] == "true"]
    assert [tab["data-source"] for tab in opened] == [str(slowest)]
    panels = [panel for panel in page.having("div", class_="on") if (panel["id"] or "").startswith("ranks-")]
    assert [panel["data-source"] for panel in panels] == [str(slowest)]


def test_ids_are_unique_and_references_resolve() -> None:
    text = render_page(Path("r"), *job(5, hosts=("alpha", "beta"), policy="cvc"), "")
    page = Page(text)
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in page.tags:
        for key in ("aria-labelledby", "aria-controls", "data-for"):
            assert set((attrs.get(key) or "").split()) <= set(ids)
    referred = set(re.findall(r"url\(([^)]*)\)", text))
    assert {reference[1:] for reference in referred} <= set(ids)
    assert "http" not in re.sub(r"http-equiv", "", text)


def test_a_job_without_ranks_has_none_of_it() -> None:
    page = page_of({"certified": True}, [{"t0": 0, "t1": 1, "actor": "cpu", "kind": "step", "source": 1}])
    assert not page.having("section", id="ranks")
    assert "f-r-pull" not in render_page(Path("r"), {}, [], "")


def test_a_single_rank_has_nothing_to_balance_or_send() -> None:
    text = words(page_of(*job(1)))
    assert "1 rank on alpha, cut by oec" in text
    assert "With a single rank there is nothing to balance." in text
    assert "Nothing was sent. A single rank has no other to send to." in text
    assert "largest / mean" not in text


def test_sixty_four_ranks_stay_readable_and_small() -> None:
    summary, trace = job(64, hosts=[f"node{i:02}.cluster" for i in range(8)])
    text = render_page(Path("r"), summary, trace, "")
    page = Page(text)
    drawn = len({panel["id"] for panel in page.having("div", class_="panel") if "ranks" in (panel["id"] or "")})
    lanes = [attrs for attrs in page.having("text", class_="lane") if "small" in (attrs["class"] or "")]
    assert len(lanes) == 64 * drawn
    assert len(text) < 1_000_000
    said = words(page)
    assert "64 ranks on 8 machines" in said
    assert "node07.cluster: 8 ranks" in said


def many_events(ranks: int, events: int, source: int = 100) -> list[dict[str, Any]]:
    kinds = ("step", "pack", "wait")
    return [
        {"t0": i * 1e-6, "t1": (i + 0.9) * 1e-6, "actor": f"rank {rank}", "kind": kinds[i % 3], "source": source}
        | {"direction": "async", "frontier": 5, "edges": 50, "level": -1}
        for rank in range(ranks)
        for i in range(events)
    ]


def test_many_events_become_columns_not_megabytes() -> None:
    summary, _ = job(64)
    text = render_page(Path("r"), summary, many_events(64, 2000), "")
    assert len(text) < 1_000_000
    assert len(areas(Page(text), "async")) == 64


def test_many_sources_are_drawn_as_far_as_there_is_room() -> None:
    summary, _ = job(64)
    trace = [event for source in range(40) for event in many_events(64, 60, source)]
    text = render_page(Path("r"), summary, trace, "")
    assert re.search(r"Of 40 sources the \d+ slowest sources are drawn\.", text)
    assert len(text) < 2_000_000


def test_more_ranks_than_lanes_share_them() -> None:
    hosts = {rank: f"host{rank // 64}" for rank in range(256)}
    machines = machines_of(hosts, {})
    assert [lane.title for lane in machines[0].lanes][:2] == [f"ranks 0{u.DASH}3", f"ranks 4{u.DASH}7"]
    assert sum(len(machine.lanes) for machine in machines) == MAX_LANES
    scattered = machines_of({rank: f"host{rank}" for rank in range(1024)}, {})
    assert [machine.host for machine in scattered] == ["1,024 machines"]
    assert sum(len(lane.ranks) for lane in scattered[0].lanes) == 1024
    assert len(scattered[0].lanes) == MAX_LANES


def test_a_rank_without_events_has_an_empty_lane() -> None:
    summary, trace = job(4)
    page = page_of(summary, [event for event in trace if event["actor"] != "rank 2"])
    assert words(page).count("nothing recorded") == 2 * 2, "in the lane and in the legend, for both sources"
    assert len(areas(page, "wait")) == 2 * 3
    assert ">rank 2<" in render_page(Path("r"), summary, trace, "")


def test_without_events_of_ranks_the_numbers_remain() -> None:
    summary, trace = job(4)
    text = words(page_of(summary, [event for event in trace if not event["actor"].startswith("rank")]))
    assert "The trace has no events of the ranks" in text
    assert "largest / mean" in text


def test_a_hostile_host_name_stays_text() -> None:
    other = "<img src=x onerror=alert('y')>"
    summary, trace = job(4, hosts=(HOSTILE, other))
    summary["ranks"]["policy"] = summary["ranks"]["sync"] = HOSTILE
    summary["ranks"]["totals"] = {"bytes": 5, "traffic": {HOSTILE: {HOSTILE: {"bytes": 5, "messages": 1}}}}
    for event in trace:
        event["what"] = event["direction"] = HOSTILE
    for hosts in ({HOSTILE: [0]}, {HOSTILE: [0], other: [1]}):
        summary["ranks"]["hosts"] = hosts
        text = render_page(Path("r"), summary, trace, "")
        page = Page(text)
        assert len(page.having("script")) == 2
        assert not page.having("img")
        assert "alert('x')" not in text
        assert "<img" not in text
        assert text.encode("utf-8")
        assert "alert" in page.text, "it is told, as text"


def test_workers_rounds_are_drawn_with_their_machine_and_told_as_the_npus() -> None:
    summary, trace = job(4, hosts=("alpha", "beta"))
    begin = min(event["t0"] for event in trace if event["source"] == 100)
    facts = {"outcome": "merged", "values_sent": 7, "values_received": 9, "values_adopted": 3}
    for rank, name in ((0, "round-000001-0a"), (2, "round-000001-0b")):
        trace.append(
            {"t0": begin, "t1": begin + 2e-4, "actor": f"rank {rank}", "kind": "round", "source": 100, "round": name}
            | facts
        )
    summary["npu"] = {"mode": "share", "rounds_sent": 2, "rounds_merged": 2}
    page = page_of(summary, trace)
    text = words(page)
    for host in ("alpha", "beta"):
        assert f"Worker on {host}: Round of source 100" in text
    assert "round of the machine's NPU worker" in text
    assert len([span for span in page.having("span") if (span.get("title") or "").startswith("round-")]) == 2
    assert "stand here for all ranks" in text
    machines = machines_of(hosts_of(summary["ranks"]), Facts(summary, trace).rank_events)
    assert [len(machine.rounds) for machine in machines] == [1, 1]
    assert all(event.kind != "round" for machine in machines for lane in machine.lanes for event in lane.events)


def test_rank_0_stands_for_all_in_the_other_pictures() -> None:
    summary, trace = job(3)
    story, by_rank = split_by_rank([*trace, "junk", {"actor": "rank x"}, {"actor": 7}])
    own = [event for event in trace if event["actor"] == "rank 0"]
    events = read_events(story)[0]
    assert len([event for event in events if event.actor == "cpu"]) == len(own) == len(by_rank[0])
    assert sorted(by_rank) == [0, 1, 2]
    text = words(page_of(summary, trace))
    assert "CPU, rank 0" in text
    assert "Rank 0 stands here for all ranks" in text


def lane_of(trace: Sequence[dict[str, Any]], ranks: int = 1) -> RankLane:
    return RankLane(tuple(range(ranks)), "h", read_events([{**event, "actor": "cpu"} for event in trace])[0])


spans = st.lists(
    st.tuples(st.floats(0, 2), st.floats(0, 1), st.sampled_from(["step", "pack", "wait", "odd"])), max_size=60
)


@settings(max_examples=80, deadline=None)
@given(spans, st.integers(1, 30), st.booleans())
def test_columns_keep_all_time(gaps: list[tuple[float, float, str]], most: int, overlapping: bool) -> None:
    trace, t = [], 0.0
    for gap, length, kind in gaps:
        t0 = gap if overlapping else t + gap
        trace.append({"t0": t0, "t1": t0 + length, "kind": kind, "direction": "pull"})
        t = max(t, t0 + length)
    lane = lane_of(trace)
    columns = columns_of(lane, window(0, max(t, 1.0)), most)
    assert columns.edges.size <= max(most + 1, 2)
    assert np.all(np.diff(columns.edges) > 0)
    if not gaps:
        assert not columns.shares
        return
    stacked = np.sum(list(columns.shares.values()), axis=0)
    assert np.all(stacked <= 1 + 1e-9)
    assert all(np.all((share >= 0) & (share <= 1)) for share in columns.shares.values())
    if not overlapping:
        for style, share in columns.shares.items():
            assert float(share @ np.diff(columns.edges)) == pytest.approx(lane.times[style], abs=1e-6)
        assert set(columns.shares) <= set(STACK)


def test_few_events_keep_their_edges_and_lanes_of_several_ranks_are_means() -> None:
    trace = [
        {"t0": 1, "t1": 2, "kind": "step", "direction": "push"},
        {"t0": 2, "t1": 4, "kind": "wait"},
    ]
    columns = columns_of(lane_of(trace), window(0, 5), 600)
    assert columns.edges.tolist() == [0, 1, 2, 4, 5]
    assert columns.shares["push"].tolist() == [0, 1, 0, 0]
    assert columns.shares["wait"].tolist() == [0, 0, 1, 0]
    assert columns_of(lane_of(trace, ranks=2), window(0, 5), 600).shares["push"].tolist() == [0, 0.5, 0, 0]
    outlines = outlines_of(columns, window(0, 5))
    assert list(outlines) == ["wait", "push"], "the top of the stack is drawn first"
    assert outlines["push"] == f"M0 20h{UNITS // 5}v-20h{UNITS // 5}v20z"
    assert outlines["wait"] == f"M0 20h{2 * UNITS // 5}v-20h{2 * UNITS // 5}v20z"


def test_hosts_lose_a_domain_that_all_share() -> None:
    assert short_names(["a.x.org", "b.x.org"]) == {"a.x.org": "a", "b.x.org": "b"}
    assert short_names(["a.x.org", "b.y.org"]) == {"a.x.org": "a.x.org", "b.y.org": "b.y.org"}
    assert short_names(["10.0.0.1", "11.0.0.1"]) == {"10.0.0.1": "10.0.0.1", "11.0.0.1": "11.0.0.1"}
    assert short_names([".x", "b.x"]) == {".x": ".x", "b.x": "b.x"}


def test_sizes_for_people() -> None:
    said = [u.size(value).replace(u.SPACE, " ") for value in (0, 950, 12345, 1_050_000, None)]
    assert said == ["0 B", "950 B", "12.3 kB", "1.05 MB", u.DASH]


SECTION_KEYS = ("ranks", "hosts", "policy", "grid", "sync", "replication", "load_imbalance", "totals", "per_rank")
ROW_KEYS = ("rank", "host", "arcs", "mirrors", "compute_s", "wait_s", "bytes", "rounds")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_damage_gives_a_page(data: st.DataObject) -> None:
    summary, trace = job(3, hosts=("alpha", "beta"))
    section = summary["ranks"]
    for key in data.draw(st.lists(st.sampled_from(SECTION_KEYS), max_size=3)):
        section[key] = data.draw(junk)
    if isinstance(section["per_rank"], list) and section["per_rank"]:
        row = section["per_rank"][0]
        if isinstance(row, dict):
            row[data.draw(st.sampled_from(ROW_KEYS))] = data.draw(junk)
    if data.draw(st.booleans()):
        summary["runs"] = [{**run, "ranks": data.draw(junk)} for run in summary["runs"]]
    if isinstance(section["totals"], dict):
        section["totals"] = {**section["totals"], "traffic": {"reduce": data.draw(junk), "x": {"y": data.draw(junk)}}}
    for _ in range(data.draw(st.integers(0, 6))):
        event = data.draw(st.sampled_from(trace))
        event[data.draw(st.sampled_from(("t0", "t1", "actor", "kind", "source", "direction", "what")))] = data.draw(
            junk | st.just("rank 7") | st.just("round")
        )
    summary["ranks"] = data.draw(st.just(section) | junk)
    page_of(summary, trace)
