"""A simulated device tells the truth at the moment that its model says, and everything it touches says `simulated`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.graph import Graph
from cpu_engine.hub_core.kernels.closure import close_core_step
from cpu_engine.hub_core.kernels.rows import skip_core_step
from hybrid.algorithms.bfs import make_engine
from hybrid.config import load_config
from hybrid.config.schema import Config
from hybrid.devices.model import DeviceModel
from hybrid.devices.profiles import PROFILES, fixed_delay
from hybrid.errors import ConfigError
from hybrid.job.driver import run_job
from hybrid.offload.traverse import traverse_together
from hybrid.planning.plan import Plan
from hybrid.results.trace import Trace
from hybrid.worker import simulated
from hybrid.worker.guard import Patience
from hybrid.worker.simulated import SimulatedSolver
from tests import naive
from tests.proving import prove_or_repair

MODELS = {**PROFILES, "oracle": fixed_delay("oracle", 0.0), "slow": fixed_delay("slow", 3e-3)}
GRAPHS = {
    "wiki-Vote/wiki-Vote.txt": True,
    "email-Enron/email-Enron.txt.gz": False,
    "roads-rome/roads-rome.wel.gz": False,
}
CORES = (64, 1024)
ROOTS = 2


@cache
def opened(path: Path, directed: bool) -> Graph:
    return build_graph(read_graph(path), directed=directed)


def levels(graph: Graph, root: int) -> np.ndarray:
    """By scipy."""
    matrix = sparse.csr_matrix((np.ones(graph.m, np.int8), graph.out_targets, graph.out_offsets), (graph.n, graph.n))
    found = dijkstra(matrix, directed=True, indices=root, unweighted=True)
    return np.where(np.isinf(found), -1, found).astype(np.int32)


@pytest.mark.parametrize("name", GRAPHS)
def test_levels_are_exact_with_every_profile(name: str, shared_data: Path) -> None:
    graph = opened(shared_data / name, GRAPHS[name])
    roots = np.random.default_rng(7).permutation(graph.n)[:ROOTS].tolist()
    expected = {root: levels(graph, root) for root in roots}
    merged = 0
    deep = expected[roots[0]].max() > 50  # hundreds of rounds in mode share: fewer devices will do
    models = [MODELS["oracle"], MODELS["910c"]] if deep else list(MODELS.values())
    for k in CORES[:1] if deep else CORES:
        split = CoreSplit(graph, k)
        for engine_name in ("async", "level"):
            engine = make_engine(engine_name, split)
            for model in models:
                solver = SimulatedSolver(model, format="direct")
                solver.publish_edges(graph.out_offsets, graph.out_targets, k)
                for mode in ("share", "race"):
                    for root in roots:
                        found = traverse_together(engine, root, mode, solver, Trace())
                        assert solver.usable, solver.failure
                        assert np.array_equal(found.level, expected[root]), (k, engine_name, model.name, mode)
                        assert prove_or_repair(graph, found, root, k, Trace()) == 0
                        assert found.npu.values_rejected == 0
                        merged += found.npu.rounds_merged
                        if mode == "share":
                            reaches_core = bool((expected[root][:k] >= 0).any())
                            assert found.npu.rounds_merged == found.npu.rounds_sent
                            assert (found.npu.rounds_sent > 0) == reaches_core
    assert merged


core_graphs = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40),
        st.lists(st.integers(-1, 9), min_size=n, max_size=n),
    )
)


def rows(n: int, pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    ordered = sorted(set(pairs))
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount([u for u, _ in ordered], minlength=n), out=offsets[1:])
    return offsets, np.array([v for _, v in ordered], np.int32)


@given(core_graphs, st.integers(0, 12))
@settings(max_examples=150, deadline=None)
def test_the_closure_is_that_of_an_honest_worker(drawn: tuple, size: int) -> None:
    n, pairs, given_values = drawn
    k = min(size, n)
    offsets, targets = rows(n, pairs)
    values = np.array(given_values[:k], np.int32)
    inside = [(u, v) for u, v in pairs if u < k and v < k]
    expected = naive.close_core(inside, {v: int(values[v]) for v in range(k) if values[v] >= 0})
    end = skip_core_step(offsets[: k + 1], targets, k)
    close_core_step(offsets[:k], end, targets.view(np.uint32), values)
    assert {v: int(values[v]) for v in range(k) if values[v] >= 0} == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, -1, -1, -1], 3),
        ([0, 1, 2, 3], 2),
        ([5, 5, 5, 5], 0),
        ([-1, -1, -1, 4], 1),
        ([-1] * 4, 0),
        ([9, 0, -1, -1], 3),
    ],
)
def test_iterations_are_the_levels_a_device_would_have_to_expand(values: list[int], expected: int) -> None:
    offsets, targets = rows(4, [(0, 1), (1, 2), (2, 3)])
    assert close_core_step(offsets[:4], offsets[1:], targets.view(np.uint32), np.array(values, np.int32)) == expected


class Clock:
    """Time that passes by being looked at, and by sleeping."""

    def __init__(self, tick: float = 0.0) -> None:
        self.now, self._tick = 100.0, tick
        self.slept: list[float] = []

    def perf_counter(self) -> float:
        self.now += self._tick
        return self.now

    def sleep(self, duration: float) -> None:
        self.slept.append(duration)
        self.now += duration


PATH = rows(5, [(0, 1), (1, 2), (2, 3), (3, 4)])
MINE = np.array([0, -1, -1, -1], np.int32)


def on_a_path(model: DeviceModel, format: str = "direct") -> SimulatedSolver:
    """The core is the first four of a path of five vertices."""
    solver = SimulatedSolver(model, format=format)
    solver.publish_edges(*PATH, 4)
    return solver


@pytest.mark.parametrize("format", ["text", "binary", "direct"])
@pytest.mark.parametrize("waits", [False, True])
def test_the_answer_comes_when_the_model_says(waits: bool, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(simulated, "time", clock)
    solver = on_a_path(PROFILES["910b4"], format)
    took = PROFILES["910b4"].round_s(4, 1, 3, format)
    began = clock.now
    solver.submit(MINE)
    if waits:
        solver._close()  # what wait() does before it sleeps
    clock.now = began + took * (1 - 1e-6)
    assert solver.poll() is None
    assert solver.busy
    clock.now = began + took * (1 + 1e-6)
    answer = solver.poll()
    assert answer is not None
    assert answer.values.tolist() == [0, 1, 2, 3]
    assert answer.received == 4
    assert answer.facts["device"] == "simulated:910b4"
    assert answer.facts["iterations"] == "3"
    assert float(answer.facts["compute_s"]) == pytest.approx(3 * PROFILES["910b4"].iteration_s(4))
    assert answer.round_id.startswith("simulated-")
    assert not solver.busy
    assert solver.computed_on_clock == (0 if waits else 1)
    assert solver.poll() is None


def test_waiting_sleeps_the_long_part_and_watches_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(tick=1e-6)
    monkeypatch.setattr(simulated, "time", clock)
    solver = on_a_path(fixed_delay("slow", 10e-3))
    began = clock.now
    solver.submit(MINE)
    answer = None
    while answer is None:
        solver.wait()
        answer = solver.poll()
    assert clock.now - began == pytest.approx(10e-3, rel=0.01)
    assert sum(clock.slept) == pytest.approx(9.8e-3, rel=0.01)


def test_values_belong_to_who_asked() -> None:
    solver = on_a_path(fixed_delay("oracle", 0.0))
    mine = MINE.copy()
    solver.submit(mine)
    mine[:] = 7
    first = solver.poll()
    assert first is not None
    first.values[:] = 99
    solver.submit(MINE)
    second = solver.poll()
    assert second is not None
    assert second.values.tolist() == [0, 1, 2, 3]


def test_an_abandoned_round_and_a_new_search_leave_nothing() -> None:
    solver = on_a_path(fixed_delay("oracle", 0.0))
    for forget in (solver.abandon, solver.begin, lambda: solver.publish_edges(*PATH, 4)):
        solver.submit(MINE)
        assert solver.busy
        forget()
        assert not solver.busy
        assert solver.poll() is None


def test_a_core_that_does_not_fit() -> None:
    tiny = DeviceModel("tiny", "model", 0.0, 1e9, 1e9, memory_bytes=16)
    solver = on_a_path(tiny)
    assert not solver.usable
    assert "simulated:tiny" in solver.failure


def test_the_cpu_finishes_alone_when_the_device_is_too_small() -> None:
    graph = build_graph(EdgeList(np.arange(9), np.arange(1, 10)), directed=True)
    engine = make_engine("level", CoreSplit(graph, 4))
    solver = SimulatedSolver(DeviceModel("tiny", "model", 0.0, 1e9, 1e9, memory_bytes=16))
    solver.publish_edges(graph.out_offsets, graph.out_targets, 4)
    root = graph.internal_id(0)
    found = traverse_together(engine, root, "share", solver, Trace())
    assert np.array_equal(found.level, levels(graph, root))


@pytest.mark.parametrize("mode", ["share", "race"])
def test_after_a_rehearsal_nothing_is_computed_on_the_clock(mode: str, shared_data: Path) -> None:
    graph = opened(shared_data / "wiki-Vote/wiki-Vote.txt", True)
    engine = make_engine("level", CoreSplit(graph, 512))
    solver = SimulatedSolver(fixed_delay("oracle", 0.0))
    solver.publish_edges(graph.out_offsets, graph.out_targets, 512)
    root = graph.n // 2
    assert solver.rehearse(lambda device: traverse_together(engine, root, mode, device, Trace())) == 2
    assert (solver.rounds, solver.delivered, solver.computed_on_clock) == (0, 0, 0)
    found = traverse_together(engine, root, mode, solver, Trace())
    assert found.npu.rounds_merged == solver.delivered > 0
    assert solver.computed_on_clock == 0


def test_the_trace_is_labelled() -> None:
    trace = Trace("simulated:910c")
    trace.add("npu", "round", 0.0)
    trace.extend("cpu", "wait", 0.0)
    trace.add("cpu", "merge", 0.0)
    trace.add("cpu", "step", 0.0)
    assert [event.get("simulated") for event in trace.events] == ["simulated:910c"] * 3 + [None]


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., tuple[dict, list[dict], str]]:
    def run(*words: str) -> tuple[dict, list[dict], str]:
        common = ["graph.generator.scale=9", "source=random:2", "compare.repeats=1", f"output={tmp_path / 'out'}"]
        finished = run_job(load_config(None, [*common, *words]))
        lines = (finished.folder / "trace.jsonl").read_text().splitlines()
        return finished.summary, [json.loads(line) for line in lines], (finished.folder / "report.html").read_text()

    return run


@pytest.mark.parametrize("device", ["simulated:910b4", "simulated:oracle", "simulated:910c:direct", "simulated:300us"])
@pytest.mark.parametrize("mode", ["share", "race"])
def test_a_job_says_everywhere_that_the_device_was_simulated(device: str, mode: str, job: Callable) -> None:
    summary, events, report = job(f"npu.device={device}", f"npu.mode={mode}")
    npu = summary["npu"]
    assert summary["certified"]
    assert (npu["device"], npu["worker"], npu["start_seconds"]) == (device, "simulated", None)
    assert npu["outcome"].startswith("simulated: ")
    assert npu["simulated"]["device"] == device
    assert npu["simulated"]["figures"] == "model"
    assert all(run["npu"]["outcome"].startswith("simulated: ") for run in summary["runs"])
    assert summary["verdict"]["text"].startswith(device)
    assert "no real NPU" in summary["verdict"]["text"]
    concerned = [event for event in events if event["actor"] == "npu" or event["kind"] in ("wait", "merge")]
    assert concerned
    assert all(event["simulated"] == device for event in concerned)
    assert device in report
    if mode == "share":
        assert npu["rounds_merged"] == npu["rounds_sent"] > 0


def test_mode_auto_may_use_it_and_says_so(job: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    from hybrid.job import driver as job_module

    def share_at_once(graph: Graph, config: Config, *_: object) -> Plan:
        return Plan(CoreSplit(graph, 64), 0, 0, "the test's", "share", "auto: the test says so", patience=Patience())

    monkeypatch.setattr(job_module, "make_plan", share_at_once)
    summary, _, _ = job("npu.mode=auto", "npu.device=simulated:oracle", "engine=level")
    assert summary["npu"]["rounds_merged"] > 0
    assert summary["npu"]["outcome"].startswith("simulated: ")


def test_a_real_device_is_not_called_simulated(job: Callable) -> None:
    summary, events, _ = job("npu.mode=off")
    assert "simulated" not in summary["npu"]
    assert not any("simulated" in event for event in events)


def test_no_worker_by_hand_for_a_simulated_device(job: Callable) -> None:
    with pytest.raises(ConfigError, match=r"npu\.worker: launch"):
        job("npu.device=simulated:910b4", "npu.worker=external")
