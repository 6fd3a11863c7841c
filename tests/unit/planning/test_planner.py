"""What the planner predicts and chooses, what mode auto makes of it, and that nobody waits in vain."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.options import add_benchmarks
from benchmarks.suites import regret
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from hybrid.algorithms.bfs import make_engine
from hybrid.cli import main
from hybrid.config import load_config
from hybrid.devices.model import DeviceModel, ExchangeCosts, FileCosts
from hybrid.devices.profiles import PROFILES, fixed_delay
from hybrid.job import driver as job_module
from hybrid.job.driver import run_job
from hybrid.offload.traverse import traverse_alone, traverse_together
from hybrid.planning import plan as plan_module
from hybrid.planning import planner
from hybrid.planning.calibration import CpuRates
from hybrid.planning.core_statistics import CoreStatistics, SearchFacts, core_statistics, measure_search
from hybrid.planning.plan import make_plan
from hybrid.planning.planner import (
    MARGIN_S,
    MARGIN_SHARE,
    SWEEPS,
    Prediction,
    Surroundings,
    best_of,
    candidate_sizes,
    choose,
    predict,
    rule_out,
)  # fmt: skip
from hybrid.planning.prediction import search_count, surroundings, typical_root, typical_search
from hybrid.report.headline import draw_prediction
from hybrid.results.record import _judge_prediction
from hybrid.results.trace import Trace
from hybrid.worker.core_solver import first_round
from hybrid.worker.guard import (
    DECIDE_S,
    REDO,
    REGRET_S,
    REGRET_SHARE,
    STRIKES,
    Guard,
    Patience,
    measuring_runs,
    patience_for,
    patience_for_sweeps,
)
from hybrid.worker.simulated import SimulatedSolver
from tests.core_solvers import ScriptedCoreSolver

ORACLE = fixed_delay("oracle", 0.0)
RATES = CpuRates(threads=2, push_edges_per_s=1e8, pull_edges_per_s=4e8, level_s=1e-6, searches=())
FORMAT = "binary"


def device(compute_s: float = 1e-3, exchange_s: float = 1e-3, memory: int = 1 << 40) -> DeviceModel:
    """A measured one whose every product takes as long, beside files that take as long."""
    files = FileCosts(exchange_s, 0.0)
    return DeviceModel(
        "stand-in", "measured", compute_s, math.inf, math.inf, memory, exchange=ExchangeCosts(files, files)
    )


def statistics(seconds: float = 1.0, edges: int = 1_000_000, batch: int = 1) -> CoreStatistics:
    """A thousand vertices, each with a thousand edges, of which a search looks at all: half of it in [0, 500)."""
    n = 1000
    inside = np.arange(n + 1, dtype=np.int64) * n
    degree = np.full(n, 1000, np.int64)
    search = SearchFacts(seconds, 5, edges, 1000.0, np.full(n + 1, 2), batch)
    return CoreStatistics(n, n * n, inside, inside, degree, degree, search)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return build_graph(kronecker(10, 8, 1), directed=False)


# ------------------------------------------------------------------------------------------------ the table


def test_sizes_double_up_to_the_bound() -> None:
    assert candidate_sizes(statistics(), ORACLE) == [64, 128, 256, 512, 1000]
    assert candidate_sizes(statistics(), ORACLE, most=64) == [64]
    assert candidate_sizes(statistics(), ORACLE, most=0) == []
    assert all(
        device(memory=4 * 300 * 300).fits(k) for k in candidate_sizes(statistics(), device(memory=4 * 300 * 300))
    )


def test_half_the_edges_are_half_the_time() -> None:
    row = predict(statistics(), Surroundings(ORACLE, None, FORMAT), [500]).candidates[0]
    assert row.saved_s == pytest.approx(0.5)
    assert row.part == pytest.approx(0.5)
    assert row.share_s == pytest.approx(0.5 + row.merge_s)
    assert row.race_s == pytest.approx(0.5 + row.merge_s)


def test_early_exits_leave_little_to_save() -> None:
    plain = statistics()
    assert plain.search is not None
    hasty = replace(plain, search=replace(plain.search, edges=1000, looks=1.0))
    row = predict(hasty, Surroundings(ORACLE, None, FORMAT), [10]).candidates[0]
    assert row.inside == 10_000
    assert row.saved_s == pytest.approx(10 / 1000)  # one look per core vertex, not each edge inside


def test_a_disturbed_search_does_not_make_edges_dear() -> None:
    row = predict(statistics(seconds=100.0), Surroundings(ORACLE, RATES, FORMAT), [500]).candidates[0]
    assert row.saved_s == pytest.approx(500_000 / 1e8)


def test_rounds_are_waited_for_in_share_only() -> None:
    slow = device(compute_s=10.0)
    row = predict(statistics(), Surroundings(slow, None, FORMAT), [500]).candidates[0]
    assert row.round_s == pytest.approx(1e-3 + 3 * 10.0)  # two hops and one that finds nothing new
    assert row.share_s == pytest.approx(0.5 + row.round_s + row.merge_s)
    assert row.race_s == pytest.approx(1.0 + 0.5e-3 + row.merge_s)


def test_a_worker_on_the_same_cores_takes_from_both() -> None:
    mild, busy = (predict(statistics(), Surroundings(device(), None, "binary", taken), [500]) for taken in (0.0, 0.5))
    assert busy.candidates[0].share_s > mild.candidates[0].share_s
    assert busy.candidates[0].race_s > mild.candidates[0].race_s


def test_a_sweep_overlaps_its_rounds() -> None:
    bare = replace(statistics(), search=None)
    found = predict(bare, Surroundings(device(compute_s=1e-6, exchange_s=0.0), RATES, FORMAT), [500], "pagerank")
    expected = found.cpu_only_s / 2 + found.candidates[0].merge_s
    assert found.cpu_only_s == pytest.approx(20 * 1_000_000 / 4e8)
    assert found.mode == "share"
    assert found.hybrid_s == pytest.approx(expected)


def test_what_is_missing_is_said() -> None:
    bare = replace(statistics(), search=None)
    with pytest.raises(ValueError, match=r"statistics\.search"):
        predict(bare, Surroundings(ORACLE, RATES, FORMAT), [10])
    with pytest.raises(ValueError, match="rates"):
        predict(bare, Surroundings(ORACLE, None, FORMAT), [10], "pagerank")


# ----------------------------------------------------------------------------------------------- the choice


def chosen(*, share_s: float, race_s: float = math.inf, cpu_only_s: float = 1.0) -> tuple[Any, str, str]:
    row = predict(statistics(), Surroundings(ORACLE, None, FORMAT), [500]).candidates[0]
    return choose([replace(row, share_s=share_s, race_s=race_s)], cpu_only_s)


def test_only_a_gain_above_the_margin_is_taken() -> None:
    inside, outside = 1 - MARGIN_SHARE + 1e-6, 1 - MARGIN_SHARE - 1e-6
    assert chosen(share_s=inside)[1] == "off"
    assert "within the margin" in chosen(share_s=inside)[2]
    assert chosen(share_s=outside)[1] == "share"
    assert chosen(share_s=1.5)[2].endswith("no gain")
    assert chosen(share_s=2.0, race_s=outside)[1] == "race"
    assert chosen(share_s=0.0, cpu_only_s=MARGIN_S)[1] == "off"  # half of nothing is nothing
    assert choose([], 1.0)[1] == "off"


def test_the_best_core_is_chosen() -> None:
    found = predict(statistics(), Surroundings(ORACLE, None, FORMAT), [64, 500, 128])
    assert (found.mode, found.k) == ("share", 500)
    assert found.hybrid_s == found.candidates[1].share_s
    assert found.seconds == found.hybrid_s
    assert found.gain == pytest.approx(1 / found.seconds)
    off = found.without("never mind")
    assert (off.mode, off.k, off.seconds, off.gain) == ("off", 0, 1.0, 1.0)


def test_the_batch_with_the_least_per_search() -> None:
    single = predict(statistics(seconds=1.0), Surroundings(device(compute_s=9.0), None, FORMAT), [500])
    many = predict(statistics(seconds=2.0, batch=64), Surroundings(device(compute_s=9.0), None, FORMAT), [500])
    assert best_of([single, many]) is many


def test_ruling_out_never_contradicts_the_table() -> None:
    """What is ruled out without a search has no gain with one, however that search goes."""
    for compute_s in (1e-7, 1e-5, 1e-3, 0.1):
        slow = device(compute_s=compute_s, exchange_s=compute_s)
        sizes = candidate_sizes(statistics(), slow)
        if rule_out(statistics(), Surroundings(slow, RATES, FORMAT), sizes):
            for seconds in (1e-3, 1.0, 100.0):
                assert predict(statistics(seconds), Surroundings(slow, RATES, FORMAT), sizes).mode == "off"
    assert rule_out(statistics(), Surroundings(device(compute_s=1.0), RATES, FORMAT), [500])
    assert not rule_out(statistics(), Surroundings(ORACLE, RATES, FORMAT), [500])
    assert rule_out(statistics(), Surroundings(ORACLE, RATES, FORMAT), [])


def test_no_shipped_profile_is_taken_for_one_search(graph: Graph) -> None:
    engine = make_engine("level", plan_module.CoreSplit(graph))
    measured = core_statistics(graph, 512, measure_search(graph, engine, typical_root(graph), 512))
    for profile in PROFILES.values():
        quick = replace(measured, search=replace(measured.search, seconds=200e-6))  # type: ignore[type-var]
        assert predict(quick, Surroundings(profile, None, "text"), candidate_sizes(quick, profile)).mode == "off"


# --------------------------------------------------------------------------------------------- mode auto


def planned(monkeypatch: pytest.MonkeyPatch, graph: Graph, here: Surroundings, *changes: str) -> plan_module.Plan:
    monkeypatch.setattr(plan_module, "surroundings", lambda config: here)
    return make_plan(graph, load_config(None, ["npu.mode=auto", "source=random:100", *changes]))


def test_without_figures_auto_says_so(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "ascend_devices", list)
    off = make_plan(graph, load_config(None, ["npu.mode=auto"]))
    assert (off.mode, off.core_size, off.predicted) == ("off", 0, None)
    assert "not calibrated" in off.mode_reason
    monkeypatch.setattr(plan_module, "ascend_devices", lambda: ["davinci0"])
    race = make_plan(graph, load_config(None, ["npu.mode=auto"]))
    assert race.mode == "race"
    assert race.core_size > 0
    assert "not calibrated" in race.mode_reason


def test_auto_rules_a_slow_device_out_without_a_search(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "typical_search", lambda *_, **__: pytest.fail("nothing needs to be searched"))
    plan = planned(monkeypatch, graph, Surroundings(device(compute_s=1.0), RATES, FORMAT))
    assert plan.mode == "off"
    assert "no core can pay" in plan.mode_reason
    assert plan.predicted is not None
    assert plan.predicted["mode"] == "off"


def search_of(seconds: float, graph: Graph) -> Any:
    return lambda *_, **__: SearchFacts(seconds, 5, graph.m, 1e9, np.full(2000, 2))


def test_auto_takes_a_device_that_pays(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "typical_search", search_of(10.0, graph))
    fast = Surroundings(device(compute_s=1e-3), None, FORMAT)
    plan = planned(monkeypatch, graph, fast)
    assert plan.mode == "share"
    assert plan.core_edges == int(core_statistics(graph).inside[plan.core_size])
    assert plan.threshold == graph.degree()[plan.core_size - 1]
    assert plan.patience == patience_for(plan.predicted["round_s"], 10.0, 100)  # type: ignore[index]
    assert plan.predicted is not None
    assert plan.predicted["gain"] > 1.1
    fixed = planned(monkeypatch, graph, fast, "core.size=100")
    assert (fixed.mode, fixed.core_size) == ("share", 100)
    assert planned(monkeypatch, graph, fast, "core.size=0").mode == "off"
    hubs = planned(monkeypatch, graph, fast, "core.threshold=50")
    assert hubs.core_size == np.count_nonzero(graph.degree() >= 50) > 0
    bounded = planned(monkeypatch, graph, fast, f"core.max_bytes={4 * 70 * 70}")
    assert bounded.core_size <= 70


def test_a_job_shorter_than_a_workers_start_goes_without(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "typical_search", search_of(0.01, graph))
    fast = Surroundings(device(compute_s=1e-6, exchange_s=1e-6), None, FORMAT)
    short = planned(monkeypatch, graph, fast)
    assert short.mode == "off"
    assert "before a worker is ready" in short.mode_reason
    assert planned(monkeypatch, graph, fast, "source=random:400").mode == "share"
    assert planned(monkeypatch, graph, fast, "npu.worker=external").mode == "share"
    assert planned(monkeypatch, graph, replace(fast, simulated=True)).mode == "share"


def test_a_configured_mode_is_predicted_too(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "surroundings", lambda config: Surroundings(device(), RATES, FORMAT))
    monkeypatch.setattr(plan_module, "typical_search", search_of(1.0, graph))
    plan = make_plan(graph, load_config(None, ["npu.mode=race", "core.size=100"]))
    assert plan.mode == "race"
    assert plan.predicted is not None
    assert (plan.predicted["mode"], plan.predicted["k"], plan.predicted["reason"]) == ("race", 100, "as configured")
    silent = make_plan(graph, load_config(None, ["npu.mode=race", "core.size=100", "compare.enabled=false"]))
    assert silent.predicted is None


def test_surroundings_of_a_simulated_device() -> None:
    here = surroundings(load_config(None, ["npu.device=simulated:910b2:direct"]))
    assert here.device is not None
    assert (here.device.name, here.device.kind, here.format, here.simulated) == (
        "910b2",
        "model",
        "direct",
        True,
    )
    assert surroundings(load_config(None)).device is None  # the tests' machine is not calibrated


@pytest.mark.parametrize(("source", "searches"), [("7", 1), ("random:5", 5), ("random:9999", 1000), ("[1, 2, 3]", 3)])
def test_searches_of_a_job(source: str, searches: int) -> None:
    assert search_count(load_config(None, [f"source={source}"]), statistics().n) == searches


def test_a_typical_search_reaches_the_hub() -> None:
    directed = build_graph(kronecker(8, 4, 2), directed=True)
    root = typical_root(directed)
    assert 0 in directed.out_targets[directed.out_offsets[root] : directed.out_offsets[root + 1]]


# --------------------------------------------------------------------------------------------- no regret


@pytest.mark.parametrize("engine_name", ["level", "async"])
def test_a_hanging_worker_is_left_after_patience(graph: Graph, engine_name: str) -> None:
    k = 64
    engine = make_engine(engine_name, plan_module.CoreSplit(graph, k))
    hanging = ScriptedCoreSolver(lambda values: values, repeat(10**9))
    guard = Guard(hanging, Patience(wait_s=1e-3))
    alone = make_engine(engine_name, plan_module.CoreSplit(graph))
    expected = traverse_alone(alone, 5).level.copy()
    for search in range(1, STRIKES + 1):
        assert guard.ready
        found = traverse_together(engine, 5, "share", guard, Trace())
        assert found.level.tolist() == expected.tolist()
        assert "mode auto waits" in found.npu.outcome
        assert hanging.abandoned == search
    assert not guard.ready  # three strikes
    assert hanging.usable  # its owner may think otherwise


def test_nobody_waits_for_the_rehearsal() -> None:
    slow = ScriptedCoreSolver(lambda values: values, iter([3, 1]))
    guard = Guard(slow, Patience(wait_s=0.0))  # the rehearsal has all the time it needs
    guard.send_first(first_round(4, 1, guard.largest_batch))
    assert [guard.ready, guard.ready, guard.ready] == [False, False, True]
    assert not guard.busy
    guard.begin()
    guard.submit(np.zeros(4, np.int32))
    answer = guard.poll()
    assert answer is not None
    assert guard.usable


def test_the_rehearsal_is_as_large_as_the_rounds_to_come() -> None:
    """Else the first round compiles something new, and is late."""
    sent: list[tuple[int, ...]] = []

    def keep(values: np.ndarray) -> np.ndarray:
        sent.append(values.shape)
        return values

    for batch in (1, 64, 4096):
        guard = Guard(ScriptedCoreSolver(keep, repeat(1)), Patience())
        guard.send_first(first_round(4, batch, guard.largest_batch))
        assert guard.ready
    assert sent == [(4,), (64, 4), (1024, 4)]


def test_a_worker_that_dies_in_the_rehearsal_is_named() -> None:
    dying = ScriptedCoreSolver(lambda values: values, repeat(10**9), lifetime=1)
    guard = Guard(dying, Patience(wait_s=1.0))
    guard.send_first(first_round(4, 1, guard.largest_batch))
    assert not guard.ready
    assert not guard.ready
    assert guard.failure == "died"


@pytest.mark.parametrize("round_s", [0.0, 1e-6, 1e-3, 0.1, 10.0])
@pytest.mark.parametrize("search_s", [0.0, 1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("searches", [1, 16, 1000])
def test_patience_stays_within_what_may_be_lost(round_s: float, search_s: float, searches: int) -> None:
    patience = patience_for(round_s, search_s, searches)
    measured_s = measuring_runs(searches) * search_s
    budget_s = REGRET_SHARE * searches * search_s + REGRET_S - DECIDE_S - measured_s
    if patience is None:
        assert 1.2 * round_s + REDO * search_s > budget_s * 0.4
        return
    assert patience.strikes >= 1
    assert patience.strikes * (patience.wait_s + REDO * search_s) <= budget_s * (1 + 1e-9)
    assert patience.wait_s >= round_s


def test_a_few_searches_are_not_worth_measuring_one(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "typical_search", lambda *_, **__: pytest.fail("it would cost too much"))
    plan = planned(monkeypatch, graph, Surroundings(device(), None, FORMAT), "source=random:8")
    assert plan.mode == "off"
    assert "too much of 8 searches" in plan.mode_reason


def test_rounds_that_cost_too_much_are_ended() -> None:
    solver = ScriptedCoreSolver(lambda values: values, repeat(1))
    guard = Guard(solver, Patience(own_s=0.0))
    assert guard.ready
    guard.submit(np.zeros(4, np.int32))
    assert not guard.usable
    assert "took the CPU more" in guard.failure


def test_auto_declines_what_one_late_answer_would_spoil(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "typical_search", search_of(0.1, graph))
    slow = Surroundings(device(compute_s=0.01), None, FORMAT, simulated=True)
    plan = planned(monkeypatch, graph, slow, "source=random:80")
    assert plan.mode == "off"
    assert "does not come" in plan.mode_reason
    assert planned(monkeypatch, graph, slow, "source=random:100").mode == "share"


def test_a_lie_ends_it() -> None:
    solver = ScriptedCoreSolver(lambda values: values, repeat(1))
    guard = Guard(solver, Patience())
    guard.distrust("liar")
    assert (guard.usable, guard.ready, guard.failure) == (False, False, "liar")


# ------------------------------------------------------------------------------------ judged afterwards


def judged(plan: Any, verdict: Any, seconds: list[float]) -> dict[str, Any] | None:
    runs = [SimpleNamespace(searched=True, seconds_run=one) for one in seconds]
    isolated = SimpleNamespace(searched=False, seconds_run=99.0)
    return _judge_prediction(SimpleNamespace(plan=plan, verdict=verdict, runs=[*runs, isolated]))  # type: ignore[arg-type]


def test_predicted_beside_measured() -> None:
    found: Prediction = predict(statistics(), Surroundings(ORACLE, None, FORMAT), [500])
    plan = SimpleNamespace(predicted=found.as_dict(), mode="share")
    told = judged(plan, SimpleNamespace(cpu_only_seconds=2.5, hybrid_seconds=1.5), [1.0, 1.0])
    assert told is not None
    assert told["cpu_only_seconds"] == 2.0
    assert told["hybrid_seconds"] == pytest.approx(2 * found.seconds)
    assert (told["measured_cpu_only_seconds"], told["measured_hybrid_seconds"]) == (2.5, 1.5)
    json.dumps(told)
    off = judged(SimpleNamespace(predicted=found.without("so").as_dict(), mode="off"), None, [1.0, 0.5])
    assert off is not None
    assert (off["measured_cpu_only_seconds"], off["hybrid_seconds"]) == (1.5, None)
    assert judged(SimpleNamespace(predicted=None, mode="off"), None, [1.0]) is None


def test_the_report_tells_both() -> None:
    told = draw_prediction(
        {"cpu_only_seconds": 0.002, "measured_cpu_only_seconds": 0.004, "hybrid_seconds": 0.001, "mode": "share",
         "measured_hybrid_seconds": 0.001, "device": "<910>", "kind": "model", "reason": "because"}
    )  # fmt: skip
    assert "CPU-only 2.00 ms, measured 4.00 ms (2.00 times as long)" in str(told).replace("\N{NO-BREAK SPACE}", " ")
    assert "a model, not measured" in str(told)
    assert "<910>" not in str(told)
    assert "Because." in str(told)
    assert "The planner: Device x" in str(draw_prediction({"reason": "no core", "device": "x"}))
    assert not str(draw_prediction({}))


@pytest.mark.parametrize("engine_name", ["level", "async"])
def test_a_job_in_mode_auto(engine_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [
        "npu.mode=auto", "npu.device=simulated:oracle", f"engine={engine_name}", "graph.generator.scale=9",
        "source=random:3",
    ]  # fmt: skip
    monkeypatch.setattr(plan_module, "measuring_runs", lambda searches: 2)  # as if there were many
    monkeypatch.setattr(plan_module, "patience_for", lambda *_: Patience())
    quick, wishful = (SearchFacts(seconds, 5, 10_000, 1e9, np.full(2000, 2)) for seconds in (1e-5, 10.0))
    monkeypatch.setattr(plan_module, "typical_search", lambda *_, **__: quick)
    honest = run_job(load_config(None, [*keys, f"output={tmp_path / 'off'}"])).summary
    assert honest["npu"]["mode"] == "off"  # microseconds: nothing to gain
    assert honest["predicted"]["measured_cpu_only_seconds"] == honest["seconds"]["traverse"]
    assert honest["verdict"] is None
    monkeypatch.setattr(plan_module, "typical_search", lambda *_, **__: wishful)
    told = run_job(load_config(None, [*keys, f"output={tmp_path / 'share'}", "compare.repeats=1"])).summary
    assert (told["npu"]["mode"], told["certified"]) == ("share", True)
    assert told["npu"]["rounds_merged"] >= 3
    assert told["predicted"]["measured_hybrid_seconds"] == told["verdict"]["hybrid_seconds"]
    assert "Predicted CPU-only" in (tmp_path / "share" / "report.html").read_text()
    assert [run["reached"] for run in told["runs"]] == [run["reached"] for run in honest["runs"]]


def auto_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan_of: Any, *changes: str) -> dict[str, Any]:
    """A job in mode auto whose plan is given."""
    monkeypatch.setattr(job_module, "make_plan", lambda graph, *_: plan_of(plan_module.CoreSplit(graph, 64)))
    keys = ["npu.mode=auto", "graph.generator.scale=9", "source=random:8", "compare.repeats=1", "engine=level"]
    return run_job(load_config(None, [*keys, f"output={tmp_path / 'out'}", "graph.cache=false", *changes])).summary


@pytest.mark.parametrize("index", [False, True])
def test_batches_of_mode_auto_say_that_the_device_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: bool
) -> None:
    def share_four(split: Any) -> plan_module.Plan:
        return plan_module.Plan(split, 0, 0, "", "share", "", patience=Patience(), batch=4, index=index)

    word = "on" if index else "off"
    told = auto_job(tmp_path, monkeypatch, share_four, "npu.device=simulated:oracle", f"npu.index={word}")
    assert (told["npu"]["rounds_merged"], told["certified"]) == (2, True)
    assert told["npu"]["simulated"]["computed_on_clock"] == 0  # they were rehearsed
    outcomes = [run["npu"]["outcome"] for run in told["runs"]]
    assert outcomes[::4] == ["simulated: merged 1 of 1 round"] * 2


@pytest.mark.parametrize("batch", [1, 4])
def test_a_job_goes_on_without_an_index_that_never_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    def by_index(split: Any) -> plan_module.Plan:
        return plan_module.Plan(split, 0, 0, "", "share", "", batch=batch, index=True)

    simulated = ("npu.device=simulated:1000s", "npu.index=on")
    told = auto_job(tmp_path, monkeypatch, by_index, *simulated)
    assert (told["npu"]["rounds_sent"], told["certified"], told["verdict"]) == (0, True, None)
    assert told["runs"][0]["npu"]["outcome"] == "mode auto did not wait for the worker to make the core's index"
    assert told["npu"]["outcome"].endswith(told["runs"][0]["npu"]["outcome"])  # not that of a batch's last source

    def dies(self: SimulatedSolver) -> None:
        self.index_failure = "the worker was killed by SIGKILL"

    monkeypatch.setattr(SimulatedSolver, "poll_index", dies)
    told = auto_job(tmp_path, monkeypatch, by_index, *simulated)
    assert (told["npu"]["rounds_sent"], told["certified"], told["verdict"]) == (0, True, None)
    assert told["runs"][0]["npu"]["outcome"] == "the worker was killed by SIGKILL"


# ------------------------------------------------------------------------------------------- the command


def test_plan_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--scale", "8", "--device", "910b2", "--batch", "1", "64"]) == 0
    text = capsys.readouterr().out
    assert "910b2 (a model, not measured)" in text
    assert text.count("choice: ") == 2
    assert "at once takes least per search" in text
    assert main(["plan", "--kind", "grid", "--rows", "5", "--cols", "6", "--device", "oracle", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["predictions"][0]
    assert told["candidates"][-1]["inside"] == 2 * (5 * 5 + 4 * 6)
    assert told["device"] == "oracle"


def test_the_command_knows_the_index_as_mode_auto_does(
    capsys: pytest.CaptureFixture[str], graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.planning.prediction.typical_search", search_of(1.0, graph))
    command = ["plan", "--scale", "9", "--device", "300ms", "--set", "source=random:400"]
    assert main(command) == 0
    assert "npu.index=on" not in capsys.readouterr().out
    assert main([*command, "--set", "npu.index=auto"]) == 0
    assert "npu.index=on" in capsys.readouterr().out


def test_plan_without_a_calibration_shows_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--scale", "7"]) == 0
    said = capsys.readouterr()
    assert "not calibrated" in said.err
    assert "ascend-910 (a model, not measured)" in said.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--device", "abacus"], "no such profile"),
        (["--batch", "0"], "not a number of searches"),
        (["some.el", "--scale", "7"], "leave out one of them"),
        (["--scale", "7", "--device", "910c", "--algorithm", "pagerank"], "run.py calibrate"),
    ],
)
def test_mistakes(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *words]) != 0
    assert told in capsys.readouterr().err


def test_a_grid_has_no_core_worth_a_round() -> None:
    flat = build_graph(grid(40, 40), directed=False)
    found = core_statistics(flat)
    assert rule_out(found, Surroundings(device(compute_s=1e-4), RATES, FORMAT), candidate_sizes(found, device()))


def test_regret_is_measured() -> None:
    words = ["--scales", "7", "--side", "6", "--rounds", "2", "--roots", "2", "--pause", "0", "--threads", "1"]
    parser = argparse.ArgumentParser()
    add_benchmarks(parser)
    report = regret.execute(parser.parse_args(["regret", *words]))
    assert [row["way"] for row in report.data["rows"]] == [regret.OFF, regret.AUTO, regret.SILENT] * 3
    assert report.data["worst_ratio"] >= max(row["ratio"] for row in report.data["rows"] if row["way"] == regret.AUTO)
    assert report.data["within"] == all(row["within"] for row in report.data["rows"])
    assert "worst ratio" in report.lines[-1]
    assert any("not calibrated" in line for line in report.lines)


@pytest.mark.parametrize(("auto_s", "within"), [(1.0519, True), (1.0521, False), (0.5, True)])
def test_the_bar(auto_s: float, within: bool) -> None:
    assert regret.within_bar(auto_s, 1.0) is within


# ----------------------------------------------------------------------------------------------- batches and index


def test_a_batch_saves_less_than_its_edges_and_may_use_an_index() -> None:
    one = predict(statistics(), Surroundings(device(compute_s=0.0), None, FORMAT), [500]).candidates[0]
    many = predict(statistics(batch=64), Surroundings(device(compute_s=0.0), None, FORMAT), [500]).candidates[0]
    assert many.saved_s == pytest.approx(planner.BATCH_SAVES * one.saved_s)
    assert one.index_s is not None
    assert many.index_s is not None
    assert one.index_s == pytest.approx(1.0 - one.saved_s + planner.INDEX_S * 500 + one.merge_s)
    assert many.index_s == pytest.approx(1.0 - many.saved_s + planner.INDEX_S * 500 * 64 + many.merge_s)
    assert one.index_made_s == device(compute_s=0.0).index_s(500, 2)


def test_plan_shows_batches_and_index(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--scale", "8", "--device", "910b2", "--batch", "64"]) == 0
    told = capsys.readouterr().out
    assert "by index" in told
    assert "64 at once" in told


def test_the_batch_of_a_job() -> None:
    wanted = {"1": 1, "8": 8, "auto": 20}
    for word, batch in wanted.items():
        config = load_config(None, ["source=random:20", f"npu.batch={word}"])
        assert plan_module.choose_batch(config, 20) == batch
    config = load_config(None, ["npu.batch=auto"])
    assert [plan_module.choose_batch(config, searches) for searches in (1, 3, 4, 1000)] == [1, 1, 4, 64]
    assert plan_module.choosable_batches(config, 300) == [64, 128, 256]
    assert plan_module.choosable_batches(config, 63) == [63]
    assert plan_module.choosable_batches(load_config(None, ["npu.batch=8"]), 300) == [8]


def batch_of(graph: Graph, seconds: float) -> Any:
    """A measured batch of 64."""
    return lambda *_, **__: SearchFacts(seconds, 5, graph.m, 1e9, np.full(2000, 2), 64)


def test_auto_picks_the_batch_that_takes_least(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "typical_search", batch_of(graph, 1.0))
    monkeypatch.setattr(plan_module, "search_count", lambda *_: 40_000)
    many = ("npu.batch=auto", "core.size=600", "npu.worker=external")

    def planned_with(delay_s: float) -> plan_module.Plan:
        """A device whose rounds take as long however much they carry."""
        return planned(monkeypatch, graph, Surroundings(replace(device(), delay_s=delay_s), None, FORMAT), *many)

    plan = planned_with(0.05)
    assert plan.mode != "off"
    assert plan.batch == 256  # more would share the round, but an answer that does not come would cost them too much
    assert plan.predicted is not None
    assert plan.predicted["batch"] == 256
    hopeless = planned_with(1e3)
    assert (hopeless.mode, hopeless.batch) == ("off", 64)


def test_auto_takes_the_index_where_rounds_do_not_pay(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "typical_search", search_of(10.0, graph))
    slow = Surroundings(device(compute_s=1e-3, exchange_s=100.0), None, FORMAT)
    assert planned(monkeypatch, graph, slow, "npu.index=off").mode == "off"
    plan = planned(monkeypatch, graph, slow, "npu.index=auto", "npu.worker=external")
    assert (plan.mode, plan.index) == ("share", True)
    assert plan.predicted is not None
    assert "the core's index" in plan.mode_reason
    assert plan.predicted["hybrid_s"] < 10.0


def test_a_slow_exchange_does_not_rule_the_index_out(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known without a search concerns rounds; the index takes none."""
    monkeypatch.setattr(plan_module, "typical_search", search_of(10.0, graph))
    crawling = CpuRates(threads=2, push_edges_per_s=1e4, pull_edges_per_s=1e4, level_s=1e-6, searches=())
    slow = Surroundings(device(compute_s=1e-3, exchange_s=100.0), crawling, FORMAT)
    plan = planned(monkeypatch, graph, slow, "npu.index=auto", "npu.worker=external")
    assert (plan.mode, plan.index) == ("share", True)
    hopeless = Surroundings(device(compute_s=1e4, exchange_s=100.0), crawling, FORMAT)
    never = planned(monkeypatch, graph, hopeless, "npu.index=auto", "npu.worker=external")
    assert never.mode == "off"
    assert "no core can pay" in never.mode_reason
    assert "the core's index" in never.mode_reason


# ----------------------------------------------------------------------------- mode auto, other algorithms


def test_sweeps_lose_no_more_than_mode_auto_may() -> None:
    for run_s, round_s, saved_s in ((1.0, 1e-3, 0.5), (0.01, 1e-4, 0.002), (10.0, 0.1, 3.0)):
        patience = patience_for_sweeps(round_s, run_s, saved_s, SWEEPS)
        assert patience is not None
        rest_s = (run_s - saved_s) / SWEEPS
        always_just_in_time = SWEEPS * (patience.wait_s - run_s / SWEEPS)
        late_at_once = patience.strikes * (patience.wait_s - rest_s)
        for lost_s in (always_just_in_time, late_at_once):
            assert lost_s <= REGRET_SHARE * run_s + REGRET_S
    assert patience_for_sweeps(1.0, 1.0, 0.5, SWEEPS) is None, "an answer that takes as long as all sweeps"


def test_auto_bounds_pagerank(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_cpu = replace(RATES, pull_edges_per_s=1e3, push_edges_per_s=1e3)
    here = Surroundings(device(compute_s=1e-6, exchange_s=1e-6), slow_cpu, FORMAT, simulated=True)
    plan = planned(monkeypatch, graph, here, "algorithm=pagerank")
    assert plan.mode == "share"
    assert plan.patience.wait_s < np.inf
    assert plan.patience.strikes == 1
    launched = planned(monkeypatch, graph, replace(here, simulated=False, rates=RATES), "algorithm=pagerank")
    assert launched.mode == "off"


def test_auto_measures_shortest_paths(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "typical_search", search_of(10.0, graph))
    fast = Surroundings(device(compute_s=1e-3), None, FORMAT)
    plan = planned(monkeypatch, graph, fast, "algorithm=sssp")
    assert (plan.mode, plan.batch, plan.index) == ("share", 1, False)
    assert plan.patience == patience_for(plan.predicted["round_s"], 10.0, 100)  # type: ignore[index]
    assert plan.predicted["algorithm"] == "sssp"  # type: ignore[index]
    assert "would cost too much" in planned(monkeypatch, graph, fast, "algorithm=sssp", "source=0").mode_reason


def test_a_real_search_for_shortest_paths_is_measured(graph: Graph) -> None:
    facts = typical_search(graph, load_config(None, ["algorithm=sssp"]), 100)
    assert facts.seconds > 0
    assert facts.edges > 0


@pytest.mark.parametrize("algorithm", ["pagerank", "sssp"])
def test_mode_auto_does_not_wait_for_a_device_that_hangs(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound holds for every algorithm: without the guard this would wait for ever."""

    def share_at_once(graph: Graph, *_: object) -> plan_module.Plan:
        patience = Patience(1e-3, 1)
        return plan_module.Plan(plan_module.CoreSplit(graph, 40), 1, 0, "", "share", "auto: so", patience=patience)

    monkeypatch.setattr(job_module, "make_plan", share_at_once)
    monkeypatch.setattr(SimulatedSolver, "poll", lambda self: None)
    monkeypatch.setattr(SimulatedSolver, "rehearse", lambda self, run: 0)
    settings = ["graph.generator.scale=8", "npu.mode=auto", "npu.device=simulated:oracle", "source=random:3"]
    summary = run_job(load_config(None, [*settings, f"algorithm={algorithm}", f"output={tmp_path / 'out'}"])).summary
    assert summary["certified"]
    assert summary["npu"]["rounds_sent"] == 1
    assert "mode auto waits" in summary["npu"]["outcome"]
