"""The service beside a real worker: the same answers as without, also when it is killed; nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import hybrid
from hybrid.client import ServiceError
from hybrid.config.schema import Config
from hybrid.service.worker.pool import Workers
from tests.conftest import eventually
from tests.service.conftest import Running, running

pytest.importorskip("mindspore", reason="the worker needs MindSpore")
SIZE = "graph.generator={scale: 12, edge_factor: 8, seed: 1}"
GRAPH = "kronecker-s12-ef8-seed1"


@pytest.fixture(autouse=True)
def nothing_left_behind() -> None:
    """Another worker may stay than was there before a test; the tests at the end look for themselves."""


def readiness(service: Running) -> dict[str, Any]:
    with urllib.request.urlopen(service.client.address + "/readyz", timeout=30) as answer:
        told: dict[str, Any] = json.load(answer)
    return told


def worker(service: Running) -> dict[str, Any]:
    found: dict[str, Any] = readiness(service)["workers"][0]
    return found


def metric(service: Running, name: str) -> float:
    with urllib.request.urlopen(service.client.address + "/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"tandem_{name} ")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("worker")


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Running]:
    with running(folder, SIZE, "npu.mode=share", "compare.repeats=1") as found:
        told = readiness(found)  # ready, whatever the worker does
        assert told["worker"] in ("starting", "ready")
        eventually(lambda: worker(found)["state"] == "ready", 60)
        yield found


@pytest.fixture(scope="module")
def graph() -> hybrid.Graph:
    return hybrid.generate("kronecker", scale=12, edge_factor=8, seed=1)


@pytest.mark.parametrize(
    ("algorithm", "source"), [("bfs", 5), ("bfs", "random:70"), ("pagerank", None), ("wcc", None), ("sssp", 5)]
)
def test_a_shared_job_equals_one_of_the_cpu(service: Running, algorithm: str, source: Any) -> None:
    client = service.client
    eventually(lambda: worker(service)["state"] == "ready")
    shared = client.submit(GRAPH, algorithm, source=source)
    alone = client.submit(GRAPH, algorithm, source=source, npu__mode="off")
    summary = client.wait(shared)["summary"]
    assert summary["npu"]["mode"] == "share"
    assert summary["npu"]["rounds_merged"] == summary["npu"]["rounds_sent"] >= 1, summary["npu"]
    assert summary["verdict"]["cpu_only_seconds"] > 0
    told = client.wait(alone)["summary"]
    assert (told["npu"]["rounds_sent"], told["verdict"]) == (0, None)
    for run in {0, len(summary["runs"]) - 1}:
        found, expected = client.result(shared, run), client.result(alone, run)
        for name in expected:
            if name != "parent":
                assert np.allclose(found[name], expected[name], rtol=1e-5)
    with urllib.request.urlopen(f"{client.address}/v1/jobs/{shared}/trace") as answer:
        events = json.load(answer)["events"]
    assert any(event["actor"] == "npu" and event["kind"] == "round" for event in events)


def ask_all(service: Running, vertices: list[int]) -> list[list[int]]:
    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(lambda vertex: service.client.levels(GRAPH, vertex), vertices))


def test_batches_of_questions_go_through_the_worker(service: Running, graph: hybrid.Graph) -> None:
    vertices = graph.vertices.tolist()[:100]

    def asked() -> bool:
        before = worker(service)["rounds"]
        told = ask_all(service, vertices)
        for vertex, sizes in zip(vertices[::9], told[::9], strict=True):
            level = graph.bfs(vertex).level
            assert sizes == np.bincount(level[level >= 0]).tolist()
        return bool(worker(service)["rounds"] > before)

    eventually(asked)  # the first ones may find it with the core of an earlier job


def test_a_killed_worker_costs_nothing_and_comes_back(service: Running, graph: hybrid.Graph) -> None:
    eventually(lambda: worker(service)["state"] == "ready")
    vertices = graph.vertices.tolist()[:60]
    expected = ask_all(service, vertices)
    pid, restarts = worker(service)["pid"], worker(service)["restarts"]
    job = service.client.submit(GRAPH, "bfs", source="random:200")
    os.kill(pid, signal.SIGKILL)
    assert ask_all(service, vertices) == expected
    summary = service.client.wait(job)["summary"]
    assert summary["certified"]
    assert eventually(lambda: worker(service)["deaths"]) == 1
    again = eventually(lambda: (told := worker(service))["state"] == "ready" and told, 60)
    assert again["restarts"] == restarts + 1
    assert again["pid"] != pid
    assert "SIGKILL" in again["last_death"]
    assert metric(service, "worker_deaths_total") == 1
    assert ask_all(service, vertices) == expected


def test_what_does_not_share_its_core_has_no_such_option(service: Running) -> None:
    with pytest.raises(ServiceError, match=r"npu\.mode"):
        service.client.submit(GRAPH, "kcore", npu__mode="share")
    with pytest.raises(ServiceError, match="sideways"):
        service.client.submit(GRAPH, "bfs", source=5, npu__mode="sideways")


def test_a_shutdown_leaves_nothing(service: Running, folder: Path) -> None:
    pid = eventually(lambda: worker(service)["pid"])
    directory = Path((folder / "journal" / "worker-0.directory").read_text())
    assert directory.is_dir()
    assert service.stop() == 0
    assert not psutil.pid_exists(pid)
    assert not directory.exists()
    assert not list((folder / "journal").glob("*.directory"))


@pytest.mark.heavy
def test_asked_for_by_a_job_and_killed_with_the_service(tmp_path: Path) -> None:
    with running(tmp_path, SIZE, "npu.mode=auto") as service:
        assert worker(service)["state"] == "off"
        job = service.client.submit(GRAPH, "bfs", source=5, npu__mode="share")
        summary = service.client.wait(job)["summary"]
        assert summary["certified"]  # at once, without the worker that starts now
        assert summary["npu"]["rounds_sent"] == 0
        assert "nobody waits" in summary["npu"]["outcome"]
        started = psutil.Process(eventually(lambda: worker(service)["pid"]))
        service.stop(signal.SIGKILL)
    eventually(lambda: not started.is_running() or started.status() == psutil.STATUS_ZOMBIE)
    directory = Path((tmp_path / "journal" / "worker-0.directory").read_text())
    assert directory.is_dir()
    Workers(Config(), tmp_path / "journal", lambda: None).sweep()
    assert not directory.exists()


@pytest.mark.parametrize("content", [b"\xff\xfe", b"/dev/shm/tandem-exchange-\0", b"", None])
def test_a_damaged_note_of_a_directory_is_passed_over(tmp_path: Path, content: bytes | None) -> None:
    note = tmp_path / "worker-0.directory"
    if content is None:
        os.mkfifo(note)  # nor is it waited for
    else:
        note.write_bytes(content)
    Workers(Config(), tmp_path, lambda: None).sweep()
