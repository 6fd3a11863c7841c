"""The service over real HTTP: graphs, queries, jobs, results, events, and what it refuses."""

from __future__ import annotations

import io
import itertools
import json
import signal
import socket
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import hybrid
from hybrid.client import Client, ServiceError
from tests.conftest import eventually
from tests.service.conftest import GRAPH, Running, running, start_endless_job


@pytest.fixture(scope="session")
def graph() -> hybrid.Graph:
    return hybrid.generate("kronecker", scale=10, edge_factor=8, seed=1)


def raw(service: Running, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any, Any]:
    """Status, headers and body of any request, refused or not."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(service.client.address + path, data=body, method=method, headers=names)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def test_distances_paths_and_neighbours_are_those_of_a_search(service: Running, graph: hybrid.Graph) -> None:
    found = graph.bfs(int(graph.vertices[3]))
    source, level = found.source, dict(zip(found.vertex.tolist(), found.level.tolist(), strict=True))
    for target in found.vertex.tolist()[::97]:
        far = service.client.distance(GRAPH, source, target)
        assert far == (None if level[target] < 0 else level[target])
        path = service.client.path(GRAPH, source, target)
        assert (path is None) == (far is None)
        if path is not None:
            assert (path[0], path[-1], len(path)) == (source, target, far + 1)
            assert all(service.client.distance(GRAPH, a, b) == 1 for a, b in itertools.pairwise(path))
    near = service.client.neighbours(GRAPH, source, 2)
    assert near == {vertex: far for vertex, far in level.items() if 0 <= far <= 2}
    sizes = service.client.levels(GRAPH, source)
    assert sizes == np.bincount([far for far in level.values() if far >= 0]).tolist()


def test_questions_that_come_together_share_a_pass(service: Running, graph: hybrid.Graph) -> None:
    vertices = graph.vertices.tolist()[:200]
    with ThreadPoolExecutor(32) as pool:
        told = list(pool.map(lambda vertex: service.client.levels(GRAPH, vertex), vertices))
    for vertex, sizes in zip(vertices, told, strict=True):
        level = graph.bfs(vertex).level
        assert sizes == np.bincount(level[level >= 0]).tolist()
    metrics = raw(service, "GET", "/metrics")[2].decode()
    alone = next(line for line in metrics.splitlines() if line.startswith('tandem_batch_queries_bucket{le="1"}'))
    passes = next(line for line in metrics.splitlines() if line.startswith("tandem_batch_queries_count"))
    assert float(passes.split()[1]) > float(alone.split()[1]), "no pass had more than one query"


def test_a_job_of_every_algorithm_agrees_with_the_library(service: Running, graph: hybrid.Graph) -> None:
    start = int(graph.vertices[3])
    jobs = {
        "bfs": graph.bfs(start), "wcc": graph.components(), "pagerank": graph.pagerank(iterations=4),
        "kcore": graph.k_core(),
    }  # fmt: skip
    ids = {
        "bfs": service.client.submit(GRAPH, "bfs", source=start),
        "wcc": service.client.submit(GRAPH, "wcc"),
        "pagerank": service.client.submit(GRAPH, "pagerank", pagerank__iterations=4),
        "kcore": service.client.submit(GRAPH, "kcore"),
    }
    for name, job in ids.items():
        told = service.client.wait(job)
        assert told["summary"]["certified"]
        arrays = service.client.result(job)
        assert np.array_equal(arrays.pop("vertex"), graph.vertices)
        first = next(iter(arrays))
        assert np.allclose(arrays[first], jobs[name].values)


def test_a_result_in_every_form(service: Running) -> None:
    job = service.client.submit(GRAPH, "bfs", source=[1, 5])
    service.client.wait(job)
    page = json.loads(raw(service, "GET", f"/v1/jobs/{job}/result?run=1&offset=3&limit=4")[2])
    arrays = service.client.result(job, run=1)
    assert page["vertex"] == arrays["vertex"][3:7].tolist()
    assert page["columns"]["level"] == arrays["level"][3:7].tolist()
    assert (page["total"], page["runs"]) == (1024, 2)
    text = raw(service, "GET", f"/v1/jobs/{job}/result.ldbc?run=1")[2].decode().splitlines()
    assert len(text) == 1024
    assert "5 0" in text
    pyarrow = pytest.importorskip("pyarrow")
    tables = pytest.importorskip("pyarrow.parquet")
    arrow = pyarrow.ipc.open_stream(raw(service, "GET", f"/v1/jobs/{job}/result.arrow?run=1")[2]).read_all()
    parquet = tables.read_table(io.BytesIO(raw(service, "GET", f"/v1/jobs/{job}/result.parquet?run=1")[2]))
    assert arrow["level"].to_pylist() == parquet["level"].to_pylist() == arrays["level"].tolist()
    assert raw(service, "GET", f"/v1/jobs/{job}/result?run=2")[0] == 404
    assert raw(service, "GET", f"/v1/jobs/{job}/result/nonsense.npy")[0] == 404


def test_many_sources_in_one_job(service: Running, graph: hybrid.Graph) -> None:
    sources = graph.vertices.tolist()[:70]
    job = service.client.submit(GRAPH, "bfs", source=sources)
    assert service.client.wait(job)["progress"] == {"done": 70, "total": 70}
    for run in (0, 66, 69):
        assert np.array_equal(service.client.result(job, run)["level"], graph.bfs(sources[run]).level)


def test_a_long_job_is_answered_around_and_can_be_stopped(service: Running) -> None:
    big = service.client.generate(scale=14, id="for-cancel")
    job = service.client.submit(big, "betweenness")
    assert service.client.distance(GRAPH, 1, 1) == 0  # while it runs, or before: either way at once
    assert service.client.levels(big, 1)
    service.client.cancel(job)
    with pytest.raises(ServiceError, match="cancelled"):
        service.client.wait(job)
    late = service.client.submit(big, "betweenness", deadline_s=0.05)
    with pytest.raises(ServiceError, match="deadline"):
        service.client.wait(late)
    with pytest.raises(ServiceError, match="already"):
        service.client.cancel(job)
    service.client.unload(big)


def test_graphs_come_by_path_and_upload(service: Running, tmp_path: Path) -> None:
    name = service.client.open("path.el", directed=True)
    assert service.client.distance(name, 0, 3) == 3
    assert service.client.distance(name, 3, 0) is None
    assert service.client.distance(name, 7, 0) is None
    file = tmp_path / "mine.el"
    file.write_text("0 1\n1 2\n")
    assert service.client.path(service.client.upload(file, "mine", directed=False), 2, 0) == [2, 1, 0]
    details = service.client.graph("mine")
    assert (details["vertices"], details["edges"], details["directed"]) == (3, 2, False)
    for graph in (name, "mine"):
        service.client.unload(graph)
    with pytest.raises(ServiceError, match="no graph"):
        service.client.graph("mine")


@pytest.mark.parametrize(
    "path", ["../secret.el", "link.el", "/etc/passwd", "evil.properties", "nothing.el", "a\0b", "."]
)
def test_paths_stay_below_the_data_roots(service: Running, path: str) -> None:
    with pytest.raises(ServiceError) as caught:
        service.client.open(path)
    assert caught.value.status in (403, 404, 422)


def test_a_file_that_cannot_be_read_says_why(service: Running) -> None:
    with pytest.raises(ServiceError, match="line 2") as caught:
        service.client.open("bad.el", id="bad")
    assert "/" not in caught.value.detail
    service.client.unload("bad")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v1/graphs/none/distance?source=1&target=2", None, 404),
        ("GET", f"/v1/graphs/{GRAPH}/distance?source=1", None, 422),
        ("GET", f"/v1/graphs/{GRAPH}/distance?source=1&target=99999999999999", None, 422),
        ("POST", "/v1/graphs", b'{"generator": {"scale": 28, "edge_factor": 1024}}', 507),
        ("POST", "/v1/graphs", b'{"generator": {"kind": "grid", "rows": 1048576, "cols": 1048576}}', 422),
        ("POST", "/v1/graphs", b"{}", 422),
        ("POST", "/v1/graphs", b"{not json", 422),
        ("POST", "/v1/jobs", b'{"graph": "none", "algorithm": "wcc"}', 404),
        ("POST", "/v1/jobs", b'{"graph": "%b", "algorithm": "bfs"}' % GRAPH.encode(), 422),
        ("POST", "/v1/jobs", b'{"graph": "%b", "algorithm": "wcc", "options": {"x.y": 1}}' % GRAPH.encode(), 422),
        ("POST", "/v1/jobs", b'{"graph": "%b", "algorithm": "bfs", "source": "random:9999"}' % GRAPH.encode(), 413),
        ("POST", "/v1/graphs/upload?id=large", b"0 1\n" * 5000, 413),
        ("GET", "/v1/jobs/none", None, 404),
        ("GET", "/nothing", None, 404),
        ("PUT", "/v1/jobs", None, 405),
    ],
)
def test_refusals_have_a_cause_and_a_fix(
    service: Running, method: str, path: str, body: bytes | None, status: int
) -> None:
    got, headers, text = raw(service, method, path, body, Content_Type="application/json")
    assert got == status, text
    assert headers["content-type"] == "application/problem+json"
    problem = json.loads(text)
    assert problem["status"] == status
    assert problem["detail"]
    assert problem["fix"]


def test_a_foreign_page_or_name_is_refused(service: Running) -> None:
    assert raw(service, "GET", "/v1/graphs", Host="evil.example")[0] == 403
    assert raw(service, "POST", "/v1/graphs", b"{}", Sec_Fetch_Site="cross-site")[0] == 403
    _, headers, _ = raw(service, "GET", "/")
    assert "script-src 'self'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_events_tell_of_a_job_while_it_runs(service: Running) -> None:
    seen: list[tuple[str, dict[str, Any]]] = []
    listening = threading.Event()

    def listen() -> None:
        listening.set()
        for kind, data in service.client.events():
            seen.append((kind, data))
            if kind == "job" and data["state"] == "done":
                return

    listener = threading.Thread(target=listen)
    listener.start()
    listening.wait()
    metric = b"tandem_listeners 1"
    while metric not in raw(service, "GET", "/metrics")[2]:
        pass
    job = service.client.submit(GRAPH, "bfs", source=1)
    listener.join(100)
    assert {data["state"] for kind, data in seen if kind == "job"} >= {"queued", "running", "done"}
    steps = [data for kind, data in seen if kind == "trace" and data["kind"] == "step"]
    assert [step["level"] for step in steps] == list(range(len(steps)))
    assert all(step["job"] == job for step in steps)
    kept = json.loads(raw(service, "GET", f"/v1/jobs/{job}/trace")[2])["events"]
    assert len([event for event in kept if event["kind"] == "step"]) == len(steps)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_was_accepted_survives_a_restart(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path, "service.drain_s=0") as first:
        done = first.client.submit(GRAPH, "wcc")
        first.client.wait(done)
        big = first.client.generate(scale=13, id="big")
        cut = first.client.submit(big, "betweenness", centrality__sources="random:6000")
        waiting = first.client.submit(big, "kcore")
        assert first.stop(number) == (0 if number == signal.SIGTERM else -number)
    states = {
        path.parent.name: json.loads(path.read_text())["state"] for path in tmp_path.glob("journal/jobs/*/job.json")
    }
    assert states[done] == "done"
    assert states[waiting] == states[cut] == "queued"
    with running(tmp_path) as second:
        assert second.client.wait(cut)["summary"]["certified"]
        assert second.client.wait(waiting)["summary"]["certified"]
        assert second.client.result(done)["component"].size == 1024


def test_who_waits_while_the_service_ends_is_told_the_state(tmp_path: Path) -> None:
    with running(tmp_path, "service.drain_s=0") as service, ThreadPoolExecutor(1) as pool:
        start_endless_job(service)
        waiting = service.client.submit("big", "kcore")
        answer = pool.submit(raw, service, "GET", f"/v1/jobs/{waiting}?wait_s=60")
        eventually(lambda: running_requests(service) >= 1)
        assert service.stop() == 0
        status, _, body = answer.result(100)
        assert (status, json.loads(body)["state"]) == (200, "queued")


def running_requests(service: Running) -> int:
    """Connections that somebody has to the service."""
    return sum(one.status == psutil.CONN_ESTABLISHED for one in psutil.Process(service.process.pid).net_connections())


def test_an_upload_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        with socket.create_connection(("127.0.0.1", service.port)) as line:
            head = "POST /v1/graphs/upload?id=half HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n0 1\n"
            line.sendall(head.encode())
            eventually(lambda: list(tmp_path.glob("journal/uploads/*.part")))
        eventually(lambda: not list(tmp_path.glob("journal/uploads/*")))
        eventually(lambda: "path=/v1/graphs/upload status=400" in service.log.read_text())
    assert "Traceback" not in service.log.read_text()


def test_a_token_is_asked_for_and_never_logged(tmp_path: Path) -> None:
    token = "a-token-that-nobody-guesses"
    (tmp_path / "token").write_text(token + "\n")
    with running(tmp_path, f"service.token_file={tmp_path / 'token'}", token=token) as service:
        assert service.client.graphs()
        for wrong in (None, "wrong", token + "x"):
            with pytest.raises(ServiceError, match="token"):
                Client(service.client.address, token=wrong).graphs()
        assert raw(service, "GET", "/healthz")[0] == 200
        assert raw(service, "GET", f"/v1/none?token={token}", Authorization=f"Bearer {token}")[0] == 404
    assert token not in service.log.read_text()


def test_full_queues_say_when_to_come_again(tmp_path: Path) -> None:
    with running(tmp_path, "service.job_queue=1", "service.query_queue=1", "service.drain_s=0") as service:
        big = service.client.generate(scale=13, id="big")
        hasty = Client(service.client.address, patience_s=0)
        with pytest.raises(ServiceError) as caught:
            [hasty.submit(big, "betweenness") for _ in range(4)]
        assert caught.value.status == 429
        assert caught.value.retry_after_s is not None
