"""The job on ranks, all of them in this process: exact in every situation that ranks can be in, and refused where they
do not mean the same job. Over real MPI it is tested in tests/mpi."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.comm.collectives import RankInfo, all_to_all, barrier, broadcast, broadcast_facts, gather, share_facts
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.partition import partition_graph
from hybrid.config import load_config
from hybrid.config.schema import Config, GraphConfig
from hybrid.graphs.opening import Opened, open_graph
from hybrid.launch.announce import Announcer
from hybrid.planning.plan import Plan
from hybrid.ranks import part_runs
from hybrid.ranks.backend import drive_on_rank
from hybrid.ranks.parts import automatic_policy, build_part, choose_policy, open_graph_on_ranks
from hybrid.ranks.rendezvous import Agreed, fair_threads, name_ranks, rendezvous, wanted_threads
from hybrid.ranks.summary import add_statistics, against_pairs, imbalance, over_ranks
from hybrid.results.record import Finished, result_folder
from hybrid.results.trace import Trace
from tests.e2e.conftest import assert_exact

QUIET = Announcer(False)


def run_on(hosts: Sequence[str], config: Config, openers: Sequence[Callable[..., Opened]] = ()) -> Finished:
    """The whole job, one rank per entry of ``hosts``, without MPI."""
    size = len(hosts)
    met = run_loopback([rendezvous(rank, size, host, [0, 1]) for rank, host in enumerate(hosts)])
    with result_folder(config) as folder:
        jobs = [
            drive_on_rank(
                one.info, config, folder if rank == 0 else None, QUIET, openers[rank] if openers else open_graph
            )
            for rank, one in enumerate(met)
        ]
        summaries = run_loopback(jobs)
    assert summaries[1:] == [None] * (size - 1)
    return Finished(folder.final, summaries[0])


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., Config]:
    def make(*settings: str) -> Config:
        usual = ["npu.mode=off", "result.report=false", f"output={tmp_path / 'out'}"]
        return load_config(None, [*usual, *settings])

    return make


@pytest.fixture
def file_of(tmp_path: Path) -> Callable[..., str]:
    def write(pairs: Sequence[tuple[int, int]]) -> str:
        path = tmp_path / "graph.el"
        path.write_text("".join(f"{u} {v}\n" for u, v in pairs))
        return str(path)

    return write


# Deliberately awkward: two components, a chain, a hub, user ids with holes.
PAIRS = [(10, v) for v in range(20, 40)] + [(39, 50), (50, 60), (60, 70), (100, 101), (101, 102)]


@pytest.mark.parametrize("engine", ["async", "level"])
@pytest.mark.parametrize("policy", ["auto", "oec", "iec", "cvc", "uvc", "2d"])
@pytest.mark.parametrize("directed", [False, True])
def test_exact_for_every_policy_and_engine(configured, file_of, engine: str, policy: str, directed: bool) -> None:
    settings = [f"graph.path={file_of(PAIRS)}", f"graph.directed={directed}", f"engine={engine}"]
    config = configured(*settings, f"cluster.policy={policy}", "source=[10, 70, 100]", "ranks=4")
    finished = run_on("aabb", config)
    assert_exact(finished, PAIRS, directed)
    assert finished.summary["ranks"]["ranks"] == 4
    assert sum(one["arcs"] for one in finished.summary["ranks"]["per_rank"]) == len(PAIRS) * (1 if directed else 2)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_synchronous_rounds(configured, file_of, size: int) -> None:
    config = configured(f"graph.path={file_of(PAIRS)}", "graph.directed=false", "cluster.sync=bsp", "source=70")
    assert_exact(run_on("a" * size, replace(config, ranks=size)), PAIRS, directed=False)


@pytest.mark.parametrize("engine", ["async", "level"])
@pytest.mark.parametrize("policy", ["oec", "2d"])
def test_more_ranks_than_vertices_and_ranks_without_edges(configured, file_of, engine: str, policy: str) -> None:
    pairs = [(0, 1), (1, 2)]
    config = configured(f"graph.path={file_of(pairs)}", "graph.directed=false", f"engine={engine}", "source=[0, 2]")
    finished = run_on("abcdefgh", replace(config, ranks=8, cluster=replace(config.cluster, policy=policy)))
    assert_exact(finished, pairs, directed=False)
    assert any(one["masters"] == one["arcs"] == 0 for one in finished.summary["ranks"]["per_rank"])


@pytest.mark.parametrize("engine", ["async", "level"])
def test_source_owned_by_the_last_rank(configured, file_of, engine: str) -> None:
    config = configured(f"graph.path={file_of(PAIRS)}", "graph.directed=false", f"engine={engine}", "ranks=3")
    graph = open_graph(config.graph, Trace()).graph
    last = partition_graph(graph, choose_policy("auto", engine, 3), 3)[-1]
    own = [int(graph.user_ids[graph.user_position[v]]) for v in last.internal_of[: last.masters]]
    assert 102 in own
    assert_exact(run_on("aaa", replace(config, source=tuple(own))), PAIRS, directed=False)


def test_source_without_edges(configured, tmp_path: Path) -> None:
    path = tmp_path / "isolated.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n4 4 2\n2 1\n3 2\n")
    finished = run_on("ab", configured(f"graph.path={path}", "source=[4, 1]", "ranks=2"))
    assert_exact(finished, [(1, 2), (2, 3)], directed=False)


def test_parts_are_kept_and_found_again(configured, file_of) -> None:
    pairs = [*PAIRS, (3, 4)]  # nobody else's
    config = configured(f"graph.path={file_of(pairs)}", "graph.directed=false", "source=70", "ranks=3")
    first = run_on("aab", config).summary["ranks"]
    again = run_on("aab", config)
    assert (first["from_cache"], again.summary["ranks"]["from_cache"]) == (False, True)
    assert_exact(again, pairs, directed=False)
    fresh = run_on("aab", replace(config, cluster=replace(config.cluster, partition_cache=False)))
    assert fresh.summary["ranks"]["from_cache"] is False


def test_one_damaged_part_is_built_again_by_all(configured, file_of, own_cache: Path) -> None:
    config = configured(f"graph.path={file_of([*PAIRS, (1, 2)])}", "graph.directed=false", "source=70", "ranks=2")
    run_on("ab", config)
    newest = max(own_cache.glob("parts/*/00001"), key=lambda path: path.stat().st_mtime)
    (newest / "out_targets.npy").write_bytes(b"torn")
    finished = run_on("ab", config)
    assert finished.summary["ranks"]["from_cache"] is False
    assert_exact(finished, [*PAIRS, (1, 2)], directed=False)


def test_without_a_cache_the_graph_is_shared_through_a_folder_that_goes(
    configured, file_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    config = configured(f"graph.path={file_of(PAIRS)}", "graph.directed=false", "graph.cache=false", "source=70")
    assert_exact(run_on("aab", replace(config, ranks=3)), PAIRS, directed=False)
    assert list(scratch.iterdir()) == []


def test_every_rank_is_in_trace_and_summary(configured) -> None:
    config = configured("graph.generator.scale=8", "source=random:2", "ranks=3")
    finished = run_on("aab", config)
    ranks = finished.summary["ranks"]
    assert ranks["hosts"] == {"a": [0, 1], "b": [2]}
    assert [one["rank"] for one in ranks["per_rank"]] == [0, 1, 2]
    wanted = {"arcs", "masters", "mirrors", "compute_s", "pack_s", "wait_s", "bytes", "messages"}
    assert all(wanted <= set(one) for one in ranks["per_rank"])
    assert ranks["totals"]["bytes"] == sum(one["bytes"] for one in ranks["per_rank"]) > 0
    assert ranks["bytes_against_pairs"] < 1
    assert ranks["replication"] >= 1
    assert ranks["load_imbalance"] >= 1
    assert sum(one["masters"] for one in ranks["per_rank"]) + finished.summary["graph"]["isolated"] == 256
    assert finished.summary["npu"]["outcome"] == "off (as configured)"
    assert [run["ranks"]["bytes"] > 0 for run in finished.summary["runs"]] == [True, True]
    events = [json.loads(line) for line in (finished.folder / "trace.jsonl").read_text().splitlines()]
    assert {event["actor"] for event in events} >= {"coordinator", "rank 0", "rank 1", "rank 2"}
    assert [event["t1"] for event in events if event["actor"] != "coordinator"] == sorted(
        event["t1"] for event in events if event["actor"] != "coordinator"
    )
    total = finished.summary["seconds"]["total"]
    assert all(0 <= event["t0"] <= event["t1"] <= total for event in events)
    assert {event["source"] for event in events if event["actor"] == "rank 2"} == set(finished.summary["sources"])


def test_the_level_engine_leaves_the_worker_out_and_says_so(configured) -> None:
    config = configured("graph.generator.scale=6", "source=random:1", "ranks=2", "npu.mode=share", "engine=level")
    assert "level engine runs on the CPUs alone" in run_on("ab", config).summary["npu"]["outcome"]


def test_a_wrong_value_is_repaired_or_refused(configured, file_of, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = part_runs.scatter

    def lying(*given: Any) -> np.ndarray:
        values = honest(*given)
        values[values == values.max()] += 1
        return values

    monkeypatch.setattr(part_runs, "scatter", lying)
    config = configured(f"graph.path={file_of(PAIRS)}", "graph.directed=false", "source=70", "ranks=2")
    finished = run_on("ab", config)
    assert_exact(finished, PAIRS, directed=False)
    assert finished.summary["runs"][0]["repaired"] > 0


# ------------------------------------------------------------------------------------------------ refusals


def test_different_configurations_are_refused_naming_the_ranks(configured, tmp_path: Path) -> None:
    config = configured("graph.generator.scale=6", "source=random:1", "ranks=4")
    met = run_loopback([rendezvous(rank, 4, host, [0]) for rank, host in enumerate("aabb")])
    with result_folder(config) as folder, pytest.raises(Agreed, match="Fix: ") as caught:
        run_loopback(
            [
                drive_on_rank(one.info, replace(config, source_seed=int(rank > 1)), folder, QUIET)
                for rank, one in enumerate(met)
            ]
        )
    assert "same configuration: ranks 2, 3 on b differ from rank 0 on a" in str(caught.value)


def test_different_graphs_are_refused_naming_the_machine(configured) -> None:
    config = configured("graph.generator.scale=6", "source=random:1", "ranks=3")

    def other(graph: GraphConfig, trace: Trace) -> Opened:
        return open_graph(replace(graph, generator=replace(graph.generator, seed=2)), trace)

    with pytest.raises(Agreed, match=r"same graph: rank 1 on b differs from rank 0 on a.*shared file system"):
        run_on("aba", config, [open_graph, other, other])  # rank 2 maps what rank 0 has opened
    assert not (Path(str(config.output))).exists()


# ------------------------------------------------------------------------------------------------ the pieces


def drive(size: int, make: Callable[[RankInfo], Any]) -> list[Any]:
    return run_loopback([make(RankInfo(rank, size)) for rank in range(size)])


@pytest.mark.parametrize("size", [1, 2, 5])
def test_collectives(size: int) -> None:
    def payload(number: int) -> np.ndarray:
        return np.full(number, number, np.uint8)  # rank 0 has nothing to say

    gathered = drive(size, lambda info: gather(info, payload(info.rank)))
    assert [one.tolist() for one in gathered[0]] == [payload(rank).tolist() for rank in range(size)]
    assert gathered[1:] == [None] * (size - 1)
    last = size - 1
    told = drive(size, lambda info: broadcast(info, payload(7) if info.rank == last else None, last))
    assert [one.tolist() for one in told] == [payload(7).tolist()] * size
    everything = drive(size, lambda info: all_to_all(info, [payload(10 * info.rank + to) for to in range(size)]))
    for rank, received in enumerate(everything):
        assert [one.size for one in received] == [10 * sender + rank for sender in range(size)]
    assert drive(size, lambda info: share_facts(info, {"r": info.rank})) == [[{"r": r} for r in range(size)]] * size


def test_broadcast_within_a_machine() -> None:
    hosts = ("a", "b", "a", "b", "a")

    def tell(info: RankInfo) -> Any:
        return broadcast_facts(
            info, info.host if info.rank == info.first_here else None, info.first_here, info.local_ranks
        )

    assert run_loopback([tell(RankInfo(rank, 5, hosts)) for rank in range(5)]) == list(hosts)


def test_cpus_are_dealt_out_evenly() -> None:
    assert fair_threads([range(8), range(8)]) == 4
    assert fair_threads([range(4), range(4, 8)]) == 4, "ranks that were given CPUs of their own keep them"
    assert fair_threads([range(2)] * 5) == 1
    met = run_loopback([rendezvous(rank, 3, host, range(6)) for rank, host in enumerate("aab")])
    assert [one.threads for one in met] == [3, 3, 6]
    assert wanted_threads(load_config(None, ["threads=2"]), met[0]) == 2
    assert wanted_threads(load_config(None, ["threads=2", "cluster.threads_per_rank=1"]), met[0]) == 1
    assert wanted_threads(load_config(None), met[2]) == 6


def test_naming_ranks() -> None:
    info = RankInfo(0, 6, ("a", "a", "b", "c", "d", "e"))
    assert name_ranks([1], info) == "rank 1 on a differs"
    assert name_ranks([0, 1, 2], info) == "ranks 0, 1 on a and rank 2 on b differ"
    assert name_ranks(range(6), info).endswith("and 2 more machines differ")


@pytest.mark.parametrize(
    ("engine", "ranks", "policy"),
    [("async", 4, "iec"), ("async", 64, "iec"), ("level", 4, "iec"), ("level", 16, "2d"), ("level", 17, "iec")],
)
def test_automatic_policy(engine: str, ranks: int, policy: str) -> None:
    assert choose_policy("auto", engine, ranks) == policy
    assert choose_policy("cvc", engine, ranks) == "cvc"


@pytest.mark.parametrize(
    ("engine", "ranks", "why"),
    [
        ("async", 64, "engine async: iec for any number of ranks"),
        ("level", 4, "pays from 16 ranks on"),
        ("level", 16, "6 partners of a rank in a grid of 4 x 4 instead of 15"),
        ("level", 17, "17 is a prime number"),
    ],
)
def test_why_a_policy_was_taken(engine: str, ranks: int, why: str) -> None:
    assert why in automatic_policy(engine, ranks)[1]


@pytest.mark.parametrize("policy", ["oec", "cvc"])
def test_parts_built_by_exchange_equal_those_built_in_one_place(policy: str) -> None:
    from cpu_engine.graph.generators import kronecker
    from cpu_engine.graph.partition import make_layout

    graph = build_graph(kronecker(6, 4, 1), directed=True)
    layout = make_layout(graph, policy, 3)
    built = drive(3, lambda info: build_part(info, graph, layout))
    for mine, theirs in zip(built, partition_graph(graph, policy, 3), strict=True):
        for name in ("internal_of", "out_offsets", "out_targets", "in_offsets", "in_sources", "mirror_bounds"):
            assert np.array_equal(getattr(mine, name), getattr(theirs, name)), name
        assert all(np.array_equal(a, b) for a, b in zip(mine.mirrored, theirs.mirrored, strict=True))


def test_a_graph_without_edges_can_be_opened(tmp_path: Path) -> None:
    nobody = EdgeList(np.empty(0, np.int64), np.empty(0, np.int64))
    empty = Opened(build_graph(nobody, directed=False), "empty", False, 0.0, 0.0)
    infos = [RankInfo(rank, 2, ("a", "b")) for rank in range(2)]
    opened = run_loopback(
        [open_graph_on_ranks(info, GraphConfig(), Trace(), QUIET, lambda *_: empty) for info in infos]
    )
    assert [one.graph.n for one in opened] == [0, 0]


def test_statistics_add_up() -> None:
    one = {"rounds": 3, "bytes": 10, "pair_bytes": 40, "traffic": {"reduce": {"bitset": {"bytes": 10}}}}
    other = {"rounds": 5, "bytes": 30, "pair_bytes": 60, "traffic": {"broadcast": {"bitset": {"bytes": 1}}}}
    total = over_ranks([one, other])
    assert (total["rounds"], total["bytes"]) == (5, 40)
    assert total["traffic"] == {"reduce": {"bitset": {"bytes": 10}}, "broadcast": {"bitset": {"bytes": 1}}}
    assert add_statistics(one, other)["rounds"] == 8, "over the sources, rounds add up"
    assert one["traffic"] == {"reduce": {"bitset": {"bytes": 10}}}, "the parts are not touched"
    assert against_pairs(total) == 0.4
    assert against_pairs({}) is None
    assert imbalance([1.0, 3.0]) == 1.5
    assert imbalance([]) == imbalance([0.0]) == 1.0


# ------------------------------------------------------------------------------- core solvers on ranks


@pytest.mark.parametrize("sync", ["bsp", "basp"])
@pytest.mark.parametrize("mode", ["share", "race"])
def test_a_simulated_device_on_every_machine(configured, mode: str, sync: str) -> None:
    settings = ["graph.generator.scale=8", "source=random:3", "ranks=3", f"cluster.sync={sync}", "core.size=40"]
    alone = run_on("aab", configured(*settings))
    device = ["npu.device=simulated:oracle", f"npu.mode={mode}", "compare.repeats=1"]
    found = run_on("aab", configured(*settings, *device))
    assert np.array_equal(np.load(found.folder / "level.npy"), np.load(alone.folder / "level.npy"))
    npu = found.summary["npu"]
    assert (npu["mode"], npu["device"], npu["worker"]) == (mode, "simulated:oracle", "simulated")
    assert npu["outcome"].startswith("simulated: ")
    if mode == "share":
        assert npu["rounds_merged"] > 0
        assert "no real NPU was used" in found.summary["verdict"]["text"]
    events = [json.loads(line) for line in (found.folder / "trace.jsonl").read_text().splitlines()]
    rounds = [event for event in events if event["kind"] == "round"]
    assert all(event["simulated"] == "simulated:oracle" for event in rounds)


def test_an_index_answers_for_every_machine(configured, own_cache: Path) -> None:
    settings = ["graph.generator.scale=8", "source=random:4", "ranks=2", "core.size=40", "npu.mode=share"]
    config = configured(*settings, "npu.device=simulated:oracle", "npu.index=on", "compare.enabled=false")
    run_on("ab", config)
    again = run_on("ab", config)
    lines = (again.folder / "trace.jsonl").read_text().splitlines()
    rounds = [event["round"] for event in map(json.loads, lines) if event["kind"] == "round"]
    assert rounds
    assert all(name.startswith("index") for name in rounds), "what is kept is used from the first search on"
    assert again.summary["certified"]


SHARED = {"pagerank": "rank", "wcc": "component", "sssp": "distance", "bfs": "level"}


@pytest.mark.parametrize("mode", ["share", "race"])
@pytest.mark.parametrize("algorithm", ["pagerank", "wcc", "sssp"])
def test_every_algorithm_that_shares_its_core_does_so_on_ranks(configured, algorithm: str, mode: str) -> None:
    settings = ["graph.generator.scale=8", "source=random:3", "ranks=3", "core.size=40", f"algorithm={algorithm}"]
    alone = run_on("aab", configured(*settings, "npu.mode=off"))
    device = ["npu.device=simulated:oracle", f"npu.mode={mode}", "compare.repeats=1"]
    found = run_on("aab", configured(*settings, *device))
    name = f"{SHARED[algorithm]}.npy"
    values, expected = np.load(found.folder / name), np.load(alone.folder / name)
    assert np.allclose(values, expected, rtol=1e-5) if algorithm == "pagerank" else np.array_equal(values, expected)
    npu = found.summary["npu"]
    assert (npu["mode"], npu["device"]) == (mode, "simulated:oracle")
    assert found.summary["certified"] is True
    if mode == "share":
        assert npu["rounds_merged"] > 0
        assert "no real NPU was used" in found.summary["verdict"]["text"]


@pytest.mark.parametrize("engine", ["async", "level"])
@pytest.mark.parametrize("mode", ["share", "race"])
def test_batches_beside_a_solver_on_ranks(configured, mode: str, engine: str) -> None:
    settings = ["graph.generator.scale=8", "source=random:70", "ranks=3", "core.size=40", f"engine={engine}"]
    alone = run_on("aab", configured(*settings, "npu.mode=off"))
    device = ["npu.device=simulated:oracle", f"npu.mode={mode}", "npu.batch=auto", "compare.repeats=1"]
    found = run_on("aab", configured(*settings, *device))
    assert np.array_equal(np.load(found.folder / "level.npy"), np.load(alone.folder / "level.npy"))
    assert found.summary["runs"][0]["batch"]["sources"] == 64
    if mode == "share":
        assert found.summary["npu"]["rounds_merged"] > 0


def test_an_index_answers_for_batches_on_ranks(configured, own_cache: Path) -> None:
    settings = ["graph.generator.scale=8", "source=random:8", "ranks=2", "core.size=40", "npu.mode=share"]
    config = configured(
        *settings, "npu.device=simulated:oracle", "npu.index=on", "npu.batch=4", "compare.enabled=false"
    )
    run_on("ab", config)
    again = run_on("ab", config)
    lines = (again.folder / "trace.jsonl").read_text().splitlines()
    rounds = [event["round"] for event in map(json.loads, lines) if event["kind"] == "round"]
    assert rounds
    assert all(name.startswith("index") for name in rounds)


def test_edges_without_weight_keep_a_solver_out_on_ranks(configured, tmp_path: Path) -> None:
    path = tmp_path / "zero.el"
    path.write_text("1 2 0\n2 3 4\n3 1 5\n")
    config = configured(
        f"graph.path={path}", "algorithm=sssp", "source=1", "ranks=2", "npu.mode=share", "core.size=3",
        "npu.device=simulated:oracle",
    )  # fmt: skip
    summary = run_on("ab", config).summary
    assert summary["certified"] is True
    assert "some edges weigh 0" in summary["npu"]["outcome"]


@pytest.mark.parametrize("algorithm", ["pagerank", "wcc", "sssp"])
def test_mode_auto_decides_for_every_algorithm_on_ranks(configured, algorithm: str) -> None:
    summary = auto_on_ranks(configured, "source=random:3", f"algorithm={algorithm}")
    assert summary["certified"] is True
    assert summary["npu"]["mode"] in ("off", "race", "share")
    assert "auto" in summary["npu"]["outcome"] or summary["npu"]["mode"] != "off"


def auto_on_ranks(configured: Callable[..., Config], *settings: str) -> dict[str, Any]:
    usual = ["graph.generator.scale=8", "ranks=2", "npu.mode=auto", "core.size=40", "npu.device=simulated:oracle"]
    return run_on("ab", configured(*usual, *settings)).summary


def test_mode_auto_is_predicted_from_a_search_by_all_ranks(configured) -> None:
    few = auto_on_ranks(configured, "source=random:3")
    assert few["npu"]["mode"] == "off"
    assert "to measure one first would cost too much" in few["npu"]["outcome"]
    many = auto_on_ranks(configured, "source=random:90", "compare.enabled=false")
    assert many["predicted"]["searches"] == 90
    assert many["predicted"]["cpu_only_s"] > 0


def test_mode_auto_has_its_guard_on_ranks(configured, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that never answers is given up after the strikes that the plan allows; the searches are exact."""
    from hybrid.ranks import workers
    from hybrid.worker.guard import Patience
    from hybrid.worker.simulated import SimulatedSolver

    def share_at_once(graph: Any, config: Config, **_: object) -> Plan:
        return Plan(CoreSplit(graph, 40), 1, 0, "", "share", "auto: the test says so", patience=Patience(1e-3, 2))

    monkeypatch.setattr(workers, "make_plan", share_at_once)
    monkeypatch.setattr(SimulatedSolver, "poll", lambda self: None)
    monkeypatch.setattr(workers.RankCore, "rehearse", lambda self, search: barrier())
    summary = auto_on_ranks(configured, "source=random:5", "compare.enabled=false")
    assert summary["certified"]
    assert 1 <= summary["npu"]["rounds_sent"] <= 4 * 2, "then nobody is asked any more"
    assert "mode auto waits" in summary["runs"][0]["npu"]["outcome"]
    assert summary["runs"][-1]["npu"]["rounds_sent"] == 0


@pytest.mark.parametrize("engine", ["async", "level"])
def test_many_sources_share_every_pass(configured, engine: str) -> None:
    settings = ["graph.generator.scale=8", "source=random:70", "ranks=3", f"engine={engine}"]
    one_by_one = run_on("aab", configured(*settings, "npu.batch=1"))
    together = run_on("aab", configured(*settings, "npu.batch=auto"))
    assert np.array_equal(np.load(together.folder / "level.npy"), np.load(one_by_one.folder / "level.npy"))
    runs = together.summary["runs"]
    assert together.summary["certified"]
    assert [run["batch"]["sources"] for run in runs] == [64] * 64 + [6] * 6
    assert together.summary["ranks"]["totals"]["messages"] < one_by_one.summary["ranks"]["totals"]["messages"] / 4
