"""The report page: well-formed, self-contained, complete and safe for every kind of job and any broken input.

These are structure tests: what is on the page and that it is a page. How it looks is for people to judge.
"""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.charts import units as u
from hybrid.charts.markup import el, escape
from hybrid.charts.scale import LogScale, window
from hybrid.charts.units import SPACE
from hybrid.report import render_page, write_report
from hybrid.report.blocks import block_of, gather, gather_merges, join_waits
from hybrid.report.facts import Facts, read_events
from hybrid.report.frontier import bars_of
from hybrid.report.page import phases_of

VOID = {"br", "col", "hr", "meta", "link", "input"}
HOSTILE = "<script>alert('x')</script>\"&\x00\ud800"


class Page(HTMLParser):
    """Collects what tests ask about, and fails on tags that do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        assert len(attrs) == len(dict(attrs)), f"repeated attribute in <{tag}>"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in {"script", "style"}:
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))

    def having(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        """Tags with these attributes; ``class_`` asks for one class among several."""
        found = []
        for name, attrs in self.tags:
            if name == tag and all(
                value in (attrs.get("class") or "").split() if key == "class_" else attrs.get(key) == value
                for key, value in wanted.items()
            ):
                found.append(attrs)
        return found


def event(t0: float, t1: float, actor: str, kind: str, source: int | None = None, **facts: Any) -> dict[str, Any]:
    return {"t0": t0, "t1": t1, "actor": actor, "kind": kind, "source": source, **facts}


def job(
    sources: int = 2, steps: int = 6, rounds: int = 2, mode: str = "share", first: int = 10
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A job as the coordinator writes it: every source takes ``steps`` steps with ``rounds`` rounds in between."""
    trace = [event(0, 0.01, "coordinator", "open"), event(0.01, 0.02, "coordinator", "plan")]
    if mode != "off":
        trace.append(event(0.02, 3.0, "npu", "start", device="CPU"))
    t, runs, number = 3.0, [], 0
    for source in range(first, first + sources):
        for step in range(steps):
            direction = "pull" if step % 3 == 2 else "push"
            facts = {
                "engine": "level",
                "direction": direction,
                "level": step,
                "frontier": 4 ** min(step, 8),
                "edges": 9,
            }
            trace.append(event(t, t + 1e-4, "cpu", "step", source, **facts, reached=step))
            t += 1e-4
            if step < rounds and mode != "off":
                number += 1
                name = f"round-{number:06d}-0a1b2c3d"
                sent = {"values_sent": 7, "values_received": 11, "values_adopted": 5 - step, "values_rejected": 0}
                trace.append(
                    event(
                        t,
                        t + 5e-3,
                        "npu",
                        "round",
                        source,
                        round=name,
                        **sent,
                        iterations=3,
                        compute_s=2e-3,
                        outcome="merged",
                    )
                )
                trace.append(event(t, t + 5e-3, "cpu", "wait", source, why="all that is left depends on the core"))
                trace.append(event(t + 5e-3, t + 5.1e-3, "cpu", "merge", source, round=name, adopted=5 - step))
                t += 5.1e-3
        trace.append(event(t, t + 1e-3, "coordinator", "certify", source))
        t += 1e-3
        npu = {"rounds_merged": rounds, "values_adopted": rounds * 4, "outcome": "merged"} if mode != "off" else {}
        runs.append(
            {
                "source": source,
                "certified": True,
                "reached": 4321,
                "max_level": steps - 1,
                "teps": 1.5e7,
                "steps": steps,
            }
            | {"edges_looked_at": 9 * steps, "seconds": {"traverse": 0.0123, "certify": 0.001}, "npu": npu}
        )
    merged = number if mode != "off" else 0
    summary = {
        "certified": True,
        "algorithm": "bfs",
        "engine": "level",
        "graph": {"name": "kron", "vertices": 65536, "edges": 1819276, "isolated": 17, "directed": False},
        "core": {"size": 2048, "edges": 60000, "density": 0.0143, "threshold": 99, "rule": "auto"},
        "sources": [run["source"] for run in runs],
        "reached": 4321 * sources,
        "max_level": steps - 1,
        "teps": 4.2e7,
        "seconds": {"open": 0.01, "build": 0.0, "plan": 0.01, "traverse": 0.03, "certify": 0.002, "total": t},
        "npu": {"mode": mode, "device": "CPU", "worker": "managed", "rounds_sent": merged, "rounds_merged": merged}
        | {
            "values_sent": 7 * merged,
            "values_received": 11 * merged,
            "values_adopted": 4 * merged,
            "values_rejected": 0,
        }
        | {"outcome": f"{merged} rounds merged", "start_seconds": 2.98},
        "runs": runs,
        "verdict": {"cpu_only_seconds": 0.0012, "hybrid_seconds": 0.0148, "ratio": 0.081, "repeats": 5}
        | {"text": "CPU-only 1.2 ms, hybrid 14.8 ms: the NPU does not pay here (0.08x)"},
    }
    return summary, trace


def page_of(summary: dict[str, Any], trace: list[Any], config: str = "npu:\n  mode: share\n") -> Page:
    return Page(render_page(Path("results/demo"), summary, trace, config))


def test_write_report_leaves_one_file_and_returns_its_path(tmp_path: Path) -> None:
    summary, trace = job()
    (tmp_path / "report.html").write_text("old")
    path = write_report(tmp_path, summary, trace, "a: 1\n")
    assert path == tmp_path / "report.html"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_failed_write_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(OSError, match=r"report\.html"):
        write_report(tmp_path, *job(), "")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_sections_stand_in_the_order_of_a_readers_questions() -> None:
    page = page_of(*job())
    ids = [attrs["id"] for tag, attrs in page.tags if tag == "section"]
    assert ids == ["verdict", "timeline", "sources", "npu", "runs", "seconds", "certificate", "config"]
    for words in (
        "Certified",
        "the NPU does not pay here (0.08x)",
        "65,536",
        "1,819,276",
        "8,642",
        "42 M",
        "CPU (MindSpore)",
    ):
        assert words.replace(" M", "\N{NO-BREAK SPACE}M") in " ".join(page.words)


def test_nothing_is_loaded_from_outside() -> None:
    text = render_page(Path("r"), *job(), "")
    page = Page(text)
    for tag, attrs in page.tags:
        assert "src" not in attrs, tag
        assert not any(key.startswith("on") for key in attrs), tag
        for key in ("href", "xlink:href", "action", "data"):
            assert (attrs.get(key) or "#").startswith(("#", "data:,")), tag
    assert "http://" not in text
    assert "https://" not in text
    assert "@import" not in text
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {
        f"#f-{p}" for p in ("pull", "async", "mixed", "wait", "start", "dead")
    }
    policy = page.having("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy[0]["content"].startswith("default-src 'none'")  # type: ignore[union-attr]


def test_ids_are_unique_and_references_resolve() -> None:
    page = page_of(*job(sources=5))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in page.tags:
        for key in ("aria-labelledby", "aria-controls", "data-for"):
            assert set((attrs.get(key) or "").split()) <= set(ids)
        if (attrs.get("href") or "").startswith("#"):
            assert attrs["href"][1:] in ids  # type: ignore[index]


def test_every_picture_has_words_and_a_table_beside_it() -> None:
    page = page_of(*job())
    plots = page.having("svg", class_="plot")
    assert len(plots) >= 5
    assert all(plot["role"] == "img" and plot["aria-labelledby"] for plot in plots)
    for words in ("The same as a table", "Steps as a table", "Where the seconds went"):
        assert words in page.text


def test_every_round_source_and_merge_is_there() -> None:
    summary, trace = job(sources=8, rounds=3)
    page = page_of(summary, trace)
    rounds = {e["round"] for e in trace if e["kind"] == "round"}
    assert {attrs.get("title") for attrs in page.having("span")} >= rounds
    assert len(rounds) == 24
    assert [tab["data-source"] for tab in page.having("a", role="tab")] == [str(s) for s in range(10, 18)]
    assert len(page.having("div", class_="panel")) == 8
    assert len(page.having("div", class_="on")) == 1
    assert page.having("path", class_="gift")
    assert page.having("rect", class_="k-wait")
    assert page.having("rect", class_="k-compute")


def test_the_first_source_that_the_npu_helped_is_open() -> None:
    summary, trace = job(sources=4)
    for record in trace:
        if record["source"] in (10, 11):
            record.update({key: 0 for key in ("adopted", "values_adopted") if key in record})
    assert page_of(summary, trace).having("div", class_="on")[0]["data-source"] == "12"


def test_a_first_source_that_waited_for_the_worker_does_not_squeeze_the_others() -> None:
    summary, trace = job(sources=4)
    start, waited = 0.5, [e for e in trace if e["source"] == 10]
    waited[0]["t0"] = start
    next(e for e in waited if e["kind"] == "round")["t0"] = start
    page = page_of(summary, trace)
    assert "After the worker's start, enlarged" in page.text
    assert page.having("div", class_="on")[0]["data-source"] == "11"
    assert any(rect["height"] == "14" for rect in page.having("rect", class_="k-start"))


def test_interrupted_waits_are_one() -> None:
    waits = [event(0.1 * i, 0.1 * i + 0.09, "cpu", "wait", 1, why="core") for i in range(5)]
    step = event(0.5, 0.6, "cpu", "step", 1)
    events, _ = read_events([*waits, step, event(0.6, 0.7, "cpu", "wait", 1), event(0.7, 0.8, "cpu", "wait", 2)])
    joined = join_waits(events)
    assert [(e.kind, e.source) for e in joined] == [("wait", "1"), ("step", "1"), ("wait", "1"), ("wait", "2")]
    assert joined[0].duration == pytest.approx(0.49)


def test_one_source_has_no_buttons() -> None:
    page = page_of(*job(sources=1))
    assert not page.having("a", role="tab")
    assert len(page.having("div", class_="panel")) == 1
    assert "Source 10 in detail" in page.text


def test_off_says_so_and_has_no_npu_lane() -> None:
    summary, trace = job(mode="off")
    summary["verdict"] = None
    page = page_of(summary, trace)
    assert "CPU only: the NPU was off in this job." in page.text
    assert "there is no NPU lane" in page.text
    assert "NPU worker" not in page.text
    assert "Nothing: the NPU was off" in page.text


def test_nothing_merged_says_why() -> None:
    summary, trace = job(mode="race", rounds=0)
    summary["npu"] |= {"outcome": "the CPU converged before the worker was ready", "rounds_sent": 0}
    page = page_of(summary, trace)
    assert "Nothing was merged: the CPU converged before the worker was ready (no round was sent)." in page.text
    assert "no round exchanged" in page.text
    assert "No rounds are in the trace." in page.text


def test_a_missing_verdict_is_said() -> None:
    summary, trace = job()
    summary["verdict"] = None
    page = page_of(summary, trace)
    assert "No verdict on the NPU: CPU-only was not measured in this job." in page.text
    assert not page.having("table", class_="versus")


def test_a_verdict_without_text_gets_one() -> None:
    summary, trace = job()
    del summary["verdict"]["text"]
    text = page_of(summary, trace).text.replace("\N{NO-BREAK SPACE}", " ")
    assert "CPU-only 1.20 ms, hybrid 14.8 ms: the NPU does not pay here (0.08x)" in text


def test_death_take_back_and_repair_are_drawn_and_told() -> None:
    summary, trace = job(sources=3)
    trace += [
        event(3.012, 3.012, "npu", "death", 11, cause="killed by signal 9"),
        event(3.012, 3.013, "cpu", "take_back", 11, why="the worker is dead"),
        event(3.02, 3.021, "coordinator", "repair", 11, findings="12 levels too high", changed=12),
    ]
    page = page_of(summary, trace)
    text = page.text.replace("\N{NO-BREAK SPACE}", " ")
    assert "The worker died (source 11): killed by signal 9." in text
    assert "The CPU took the core's edges back (source 11): the worker is dead." in text
    assert "A result failed its check and was computed again (source 11): 12 levels too high." in text
    assert "12 values failed; in 1 repair the result was computed again." in text
    assert page.having("rect", class_="k-dead")
    assert len(page.having("circle", class_="badge")) >= 6


def test_an_uncertified_result_never_looks_like_a_good_one() -> None:
    summary, trace = job()
    summary["certified"] = summary["runs"][1]["certified"] = False
    page = page_of(summary, trace)
    assert "NOT certified" in page.text
    assert "Not certified: source 11." in page.text
    assert page.having("section", class_="failed")
    assert "They do NOT all hold" in page.text
    assert "answer is exact" not in page.text


@pytest.mark.parametrize("certified", ["yes", 1, None, "true"])
def test_only_true_is_certified(certified: object) -> None:
    assert not Facts({"certified": certified}, []).certified


def test_hostile_text_stays_text() -> None:
    summary, trace = job()
    summary["graph"]["name"] = summary["npu"]["outcome"] = summary["verdict"]["text"] = summary["engine"] = HOSTILE
    summary["npu"]["device"] = summary["algorithm"] = summary["npu"]["worker"] = HOSTILE
    for run in summary["runs"]:
        run["source"] = run["npu"]["outcome"] = HOSTILE
    for record in trace:
        record["source"] = HOSTILE if record["source"] else None
        for key in ("round", "outcome", "why", "direction", "engine", "level"):
            if key in record:
                record[key] = HOSTILE
    trace.append(event(3.01, 3.01, "npu", "death", None, cause=HOSTILE))
    trace.append(event(3.01, 3.02, "coordinator", HOSTILE))
    text = render_page(Path("out") / "a'b<c>", summary, trace, HOSTILE)
    page = Page(text)
    assert text.count("<script>") == len(page.having("script")) == 2
    assert "alert('x')" not in text
    assert "<c>" not in text
    assert text.encode("utf-8")
    assert "\x00" not in text


def test_the_command_quotes_the_folder() -> None:
    text = Page(render_page(Path("my results/x"), *job(), "")).text
    assert "python run.py --config 'my results/x/config.yaml'" in text


@pytest.mark.parametrize("reached", [0, 1])
def test_a_source_that_reaches_nothing(reached: int) -> None:
    summary, _ = job(sources=1)
    summary["reached"] = summary["runs"][0]["reached"] = reached
    summary["max_level"] = 0
    page = page_of(summary, [event(0, 0.1, "coordinator", "open"), event(0.1, 0.1, "coordinator", "certify", 10)])
    assert "Reached only itself" in page.text
    assert "No steps: nothing is reachable" in page.text


def test_a_source_that_reaches_one_other() -> None:
    summary, trace = job(sources=1)
    summary["runs"][0] |= {"reached": 2, "max_level": 1}
    assert "Reached 2 vertices in 1 level," in page_of(summary, trace).text.replace(SPACE, " ")


def test_an_empty_trace_is_said() -> None:
    summary, _ = job()
    page = page_of(summary, [])
    assert "The trace is empty" in page.text
    assert "The trace has nothing about this source." in page.text


def test_five_thousand_steps_stay_readable_and_small() -> None:
    summary, trace = job(sources=2, steps=5000, rounds=100)
    text = render_page(Path("r"), summary, trace, "")
    assert len(text) < 1_000_000
    page = Page(text)
    assert "5,000 steps, 84 to a bar" in page.text
    assert len(page.having("rect", class_="k-edges")) <= 2 * 61 + 2


def test_sixty_four_sources_stay_small() -> None:
    text = render_page(Path("r"), *job(sources=64, steps=9, rounds=3), "")
    assert len(text) < 1_500_000
    assert len(Page(text).having("a", role="tab")) == 64


def test_more_sources_than_panels_are_counted() -> None:
    page = page_of(*job(sources=70, steps=2, rounds=0))
    assert len(page.having("div", class_="panel")) == 64
    assert "The first 64 of 70 sources are drawn" in page.text


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
RECORD_KEYS = (
    "t0",
    "t1",
    "actor",
    "kind",
    "source",
    "frontier",
    "edges",
    "direction",
    "level",
    "compute_s",
    "adopted",
    "changed",
)
SUMMARY_KEYS = (
    "certified", "graph", "core", "npu", "seconds", "runs", "sources", "verdict", "predicted", "reached", "teps",
    "repairs",
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_summary_and_trace_give_a_page(data: st.DataObject) -> None:
    summary, trace = job(sources=2, steps=3, rounds=1)
    for key in data.draw(st.lists(st.sampled_from(SUMMARY_KEYS), max_size=4)):
        summary[key] = data.draw(junk)
    for inner in ("graph", "npu", "seconds", "verdict", "predicted"):
        if isinstance(summary.get(inner), dict) and summary[inner]:
            summary[inner][data.draw(st.sampled_from(sorted(map(str, summary[inner]))))] = data.draw(junk)
    for _ in range(data.draw(st.integers(0, 6))):
        record = data.draw(st.sampled_from(trace))
        record[data.draw(st.sampled_from(RECORD_KEYS))] = data.draw(junk)
    page_of(summary, [*trace, data.draw(junk)])


def test_records_without_a_time_are_counted_not_drawn() -> None:
    events, left_out = read_events(
        [{"t0": math.nan}, "text", {"t0": 2, "t1": 1, "actor": "cpu", "kind": "step"}, {"t0": -1}, {"t0": 1e12}]
    )
    assert left_out == 3
    assert [(e.t0, e.t1) for e in events] == [(0.0, 0.0), (2.0, 2.0)]


@given(st.lists(st.floats(1e-7, 1), min_size=1, max_size=200), st.integers(1, 30))
@settings(max_examples=50, deadline=None)
def test_gathering_keeps_all_time_within_the_budget(lengths: list[float], budget: int) -> None:
    trace, t = [], 0.0
    for length in lengths:
        trace.append(event(t, t + length, "cpu", "step", 1, direction="push"))
        t += length
    events, _ = read_events(trace)
    gathered = gather([block_of(e, by_direction=True) for e in events], window(0, t), narrow=0.2, budget=budget)
    assert len(gathered) <= budget
    assert sum(block.busy for block in gathered) == pytest.approx(t)
    assert gathered[0].t0 == 0
    assert gathered[-1].t1 == pytest.approx(t)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 50)), max_size=60), st.integers(1, 20))
@settings(max_examples=50, deadline=None)
def test_gathering_merges_loses_no_value(merges: list[tuple[float, int]], budget: int) -> None:
    events, _ = read_events([event(t, t, "cpu", "merge", 1, adopted=adopted) for t, adopted in merges])
    arrows = gather_merges(events, window(0, 1), apart=0.8, budget=budget)
    assert len(arrows) <= budget
    assert sum(arrow.adopted for arrow in arrows) == sum(adopted for _, adopted in merges)


@pytest.mark.parametrize(("steps", "most"), [(1, 60), (60, 60), (61, 60), (5000, 60), (7, 3)])
def test_bars_hold_every_step_once(steps: int, most: int) -> None:
    summary, trace = job(sources=1, steps=steps, rounds=min(steps, 4))
    run = Facts(summary, trace).runs[0]
    bars = bars_of(run, most)
    assert len(bars) <= most
    assert [bar.first for bar in bars[1:]] == [bar.last + 1 for bar in bars[:-1]]
    assert (bars[0].first, bars[-1].last) == (1, steps)
    assert sum(bar.adopted for bar in bars) == sum(e.count("adopted") for e in run.merges)


def test_phases_add_up_and_waiting_for_the_worker_is_named() -> None:
    summary, trace = job()
    summary["seconds"]["traverse"] = 0.01
    facts = Facts(summary, trace)
    phases, total = phases_of(facts.seconds, facts.traced_phases)
    named = dict(phases)
    assert sum(named.values()) == pytest.approx(total)
    assert named["start"] == pytest.approx(2.98)
    assert phases_of({}, {}) == ([], 0.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (4e-7, "0.40 µs"),
        (3.1e-4, "310 µs"),
        (0.0148, "14.8 ms"),
        (0.99999, "1.00 s"),
        (4.206, "4.21 s"),
        (125, "2 min 5 s"),
        (11040, "3 h 4 min"),
        (None, u.DASH),
        ("soon", u.DASH),
        (math.inf, u.DASH),
    ],
)
def test_seconds_for_people(value: object, text: str) -> None:
    assert u.seconds(value).replace(u.SPACE, " ") == text


def test_counts_for_people() -> None:
    said = [u.compact(v).replace(u.SPACE, " ") for v in (0, 950, 12345, 1_050_000, 3.2e9, 999_600, None)]
    assert said == ["0", "950", "12.3 k", "1.05 M", "3.2 G", "1 M", u.DASH]
    assert [u.count(v) for v in (1048576, 2**60, True, 10**400)] == ["1,048,576", f"{2**60:,}", u.DASH, u.DASH]
    assert [u.share(v, 100).replace(u.SPACE, " ") for v in (0, 0.01, 4.1, 100)] == ["0 %", "< 0.1 %", "4.1 %", "100 %"]
    assert u.share(1, 0) == u.DASH
    assert [u.ratio(v) for v in (0.081, 1.9, 12.3)] == ["0.08x", "1.90x", "12x"]
    assert u.plural(1, "round") + u.plural(2, "round") == f"1{u.SPACE}round2{u.SPACE}rounds"
    assert [u.tick(v).replace(u.SPACE, " ") for v in (0, 0.005, 2.5)] == ["0 s", "5 ms", "2.5 s"]


def test_scales_stay_inside() -> None:
    assert window(2.0**60, 2.0**60).span > 0
    scale = window(5, 5)
    assert (scale.at(0), scale.at(9)) == (0.0, 100.0)
    assert scale.ticks()[0] == 0.0
    assert len(window(0, 3.7).ticks()) <= 9
    log = LogScale(1e6, 100)
    assert log.of(0) == 0
    assert 0 < log.of(1) < log.of(10) < log.of(1e6) <= 100


def test_elements_escape_what_is_not_markup() -> None:
    assert el("b", "<i>", title='"', hidden=None, open=True) == '<b title="&quot;" open>&lt;i&gt;</b>'
    assert el("rect", width=1.25) == '<rect width="1.2"/>'
    assert escape(escape("&")) == "&amp;"
