"""The service on real ranks: the same results, whatever is killed; nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import hybrid
from hybrid.client import ServiceError
from hybrid.config import load_config
from hybrid.graphs.opening import open_graph
from hybrid.launch.shared_memory import BACKING_DIRECTORY
from hybrid.results.trace import Trace
from hybrid.service.rank_pool.folders import PREFIX
from hybrid.service.rank_pool.pool import PoolLost, RankPool
from tests.conftest import ROOT, eventually, is_alive, sweep
from tests.service.conftest import GRAPH, Running, running
from tests.service.test_service import raw

ON_RANKS = ("engine=level", "npu.mode=off")
MEMBER = "hybrid.service.rank_pool.member"


def ranks_of(process: int) -> list[psutil.Process]:
    """The ranks below a service, lowest first."""
    found = []
    for child in psutil.Process(process).children(recursive=True):
        try:
            if child.name() != "prterun" and MEMBER in child.cmdline():
                found.append((int(child.environ()["OMPI_COMM_WORLD_RANK"]), child))
        except (psutil.NoSuchProcess, KeyError):
            continue
    return [child for _, child in sorted(found, key=lambda pair: pair[0])]


def readiness(service: Running) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(raw(service, "GET", "/readyz")[2])
    return told


@pytest.fixture(autouse=True)
def own_folders(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Temporary files of the service in a folder of this test's: a socket's name must be short."""
    with tempfile.TemporaryDirectory(prefix="c-") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield Path(folder)
        assert not left_of(pools_in(Path(folder)))


def pools_in(folder: Path) -> list[Path]:
    """The folders of the pools that live there."""
    return list(folder.glob(f"{PREFIX}*"))


def left_of(pools: list[Path]) -> list[Path]:
    """What there is in the file system of these pools."""
    return [one for one in pools if one.exists()]


@pytest.mark.timeout(400)  # the first one may have to compile every kernel of the ranks
@pytest.mark.parametrize("ranks", sweep([2, 3]))
def test_every_algorithm_of_ranks_agrees_with_one_rank(tmp_path: Path, ranks: int) -> None:
    graph = hybrid.generate("kronecker", scale=10, edge_factor=8, seed=1)
    core = graph.k_core().values
    start, alone = int(graph.vertices[3]), int(graph.vertices[core == 0][0])
    here = {
        "bfs": graph.bfs(start).level, "sssp": graph.sssp(start).distance, "wcc": graph.components().values,
        "pagerank": graph.pagerank(iterations=4).values, "cdlp": graph.label_propagation().values,
        "kcore": core, "triangles": graph.triangles().values,
    }  # fmt: skip
    with running(tmp_path, f"ranks={ranks}", *ON_RANKS) as service:
        client = service.client
        assert readiness(service)["ranks"] == {
            "wanted": ranks, "alive": ranks, "restarts": 0, "state": "up", "reason": "",
        }  # fmt: skip
        options: dict[str, dict[str, Any]] = {
            "bfs": {"source": [start, alone]}, "sssp": {"source": start}, "pagerank": {"pagerank__iterations": 4},
        }  # fmt: skip
        jobs = {name: client.submit(GRAPH, name, **options.get(name, {})) for name in here}
        for name, job in jobs.items():
            summary = client.wait(job)["summary"]
            assert summary["certified"]
            if name == "triangles":
                assert "ranks" not in summary
            else:
                assert summary["ranks"]["ranks"] == ranks
            arrays = client.result(job)
            assert np.array_equal(arrays.pop("vertex"), graph.vertices)
            assert np.allclose(next(iter(arrays.values())), here[name]), name
        assert int(np.count_nonzero(client.result(jobs["bfs"], run=1)["level"] >= 0)) == 1
        actors = {event["actor"] for event in client_trace(service, jobs["bfs"])}
        assert actors >= {f"rank {rank}" for rank in range(ranks)} | {"coordinator"}
        weighted = tmp_path / "weighted.el"
        weighted.write_text("0 1 5\n1 2 3\n0 2 9\n2 3 1\n3 0 2\n")
        name = client.upload(weighted, "weighted", directed=True)
        far = client.submit(name, "sssp", source=0)
        client.wait(far)
        assert client.result(far)["distance"].tolist() == [0, 5, 8, 9]
        found = ranks_of(service.process.pid)
        assert len(found) == ranks
        assert service.stop() == 0
        assert not [rank for rank in found if rank.is_running() and is_alive(rank)]


def client_trace(service: Running, job: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(raw(service, "GET", f"/v1/jobs/{job}/trace")[2])["events"]
    return events


@pytest.mark.heavy
def test_a_killed_rank_costs_time_and_nothing_else(tmp_path: Path) -> None:
    """The job is computed again, the ranks are others; cancelled jobs stop and the next ones are answered."""
    with running(tmp_path, "ranks=2", "service.max_sources=5000", *ON_RANKS) as service:
        client = service.client
        job = client.submit(GRAPH, "bfs", source=list(range(60)))
        behind = client.submit(GRAPH, "wcc")
        eventually(lambda: client.job(job)["progress"]["done"] >= 3)
        victim = ranks_of(service.process.pid)[1]
        victim.kill()
        told = eventually(lambda: (now := readiness(service))["ranks"]["state"] == "restarting" and now)
        assert told["ready"]
        assert "rank 1" in told["ranks"]["reason"]
        assert client.distance(GRAPH, 1, 1) == 0
        summary = client.wait(job, 60)["summary"]
        assert (summary["losses"], summary["certified"]) == (1, True)
        graph = hybrid.generate("kronecker", scale=10, edge_factor=8, seed=1)
        for run in (0, 59):
            assert np.array_equal(client.result(job, run)["level"], graph.bfs(run).level)
        assert client.wait(behind)["summary"]["losses"] == 0
        told = readiness(service)["ranks"]
        assert (told["state"], told["alive"], told["restarts"]) == ("up", 2, 1)
        assert "SIGKILL" in told["reason"]
        assert b"tandem_crew_restarts_total 1" in raw(service, "GET", "/metrics")[2]

        long = client.submit(GRAPH, "bfs", source=[1] * 5000)
        eventually(lambda: client.job(long)["progress"]["done"] >= 1)
        client.cancel(long)
        with pytest.raises(ServiceError, match="cancelled"):
            client.wait(long, 30)
        late = client.submit(GRAPH, "bfs", source=[1] * 5000, deadline_s=0.3)
        with pytest.raises(ServiceError, match="deadline"):
            client.wait(late, 30)
        assert client.wait(client.submit(GRAPH, "kcore"))["summary"]["certified"]
        assert readiness(service)["ranks"]["restarts"] == 1, "stopping a job has ended the ranks"


@pytest.mark.heavy
def test_a_killed_service_leaves_no_rank_and_loses_no_job(tmp_path: Path, own_folders: Path) -> None:
    with running(tmp_path, "ranks=2", "service.max_sources=5000", *ON_RANKS) as service:
        job = service.client.submit(GRAPH, "bfs", source=list(range(60)))
        eventually(lambda: service.client.job(job)["progress"]["done"] >= 1)
        below = psutil.Process(service.process.pid).children(recursive=True)
        assert len(below) >= 3
        segments = ranks_of(service.process.pid)[0].environ()[BACKING_DIRECTORY]
        pools = [*pools_in(own_folders), Path(segments)]
        assert left_of(pools) == pools
        service.stop(signal.SIGKILL)
        eventually(lambda: not [one for one in below if one.is_running() and is_alive(one)], 20)
    with running(tmp_path, "ranks=2", *ON_RANKS) as second:
        assert not left_of(pools)
        assert second.client.wait(job, 60)["summary"]["certified"]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("sets", "code", "said"),
    [
        (["ranks=2", "cluster.mpirun=/nowhere/mpirun"], 2, "cluster.mpirun: no such program"),
        (["ranks=2", "cluster.mpirun=/bin/false"], 4, "before the ranks had met"),
        (["ranks=3", "cluster.hosts=['localhost:1']"], 4, "fewer slots"),
    ],
)
def test_ranks_that_cannot_be_started_are_told_at_once(tmp_path: Path, sets: list[str], code: int, said: str) -> None:
    command = [sys.executable, "run.py", "serve", "--port", "0"]
    for one in ("service.preload=false", "npu.mode=off", f"service.journal_dir={tmp_path / 'journal'}", *sets):
        command += ["--set", one]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("tandem: error: ")]
    assert said in line
    assert "Fix: " in line
    assert "serves on" not in done.stdout


@pytest.mark.heavy
def test_a_rank_that_stands_still_is_noticed() -> None:
    """Without HTTP. An order that cannot be stopped ends the pool, one that nobody works on is given up."""
    config = load_config(None, options={"ranks": 2, "npu.mode": "off", "graph.generator.scale": 8})
    store = str(open_graph(config.graph, Trace()).store)
    order = {
        "graph": "g", "store": store, "keep": [store], "algorithm": "bfs", "options": {"npu.mode": "off"},
        "roots": [[0, 0]] * 1000,
    }  # fmt: skip
    rank_pool = RankPool(config, hang_s=2.0, stop_s=0.2)
    try:
        rank_pool.open()
        frames = rank_pool.carry_out(order)
        next(frames)
        ranks_of(os.getpid())[1].suspend()
        frames.close()
        eventually(lambda: rank_pool.state.restarts == 1 and rank_pool.state.state == "up")
        assert "did not" in rank_pool.state.reason
        ranks_of(os.getpid())[1].suspend()
        with pytest.raises(PoolLost, match="rank 1 stood still"):
            next(rank_pool.carry_out(order))
        with contextlib.closing(rank_pool.carry_out(order)) as frames:
            assert next(frames).arrays["level"].size
        assert rank_pool.state.restarts == 2
        ranks_of(os.getpid())[1].parent().suspend()
        eventually(lambda: rank_pool.state.restarts == 3 and rank_pool.state.state == "up")
        assert rank_pool.state.reason == "mpirun was stopped for 2 s"
    finally:
        rank_pool.close()
