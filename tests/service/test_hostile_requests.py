"""Requests that other sites' pages, strangers or a full disk bring about."""

from __future__ import annotations

import json
import resource
import socket
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import eventually
from tests.service.conftest import GRAPH, Running, running
from tests.service.test_service import raw

JOB = b'{"graph": "%b", "algorithm": "wcc"}' % GRAPH.encode()


def send(service: Running, method: str, path: str, *headers: str, body: bytes = b"", version: str = "1.1") -> int:
    """The status of a request with exactly these headers."""
    lines = [f"{method} {path} HTTP/{version}", *headers, "Connection: close", f"Content-Length: {len(body)}", "", ""]
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        connection.sendall("\r\n".join(lines).encode() + body)
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 ")
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (["Host: 127.0.0.1"], 200), (["Host: LOCALHOST:80"], 200), (["Host: [::1]"], 200), (["Host: [::1]:8080"], 200),
        (["Host: [::1]evil.example"], 400), (["Host: [::1]:80.evil.example"], 400), (["Host: 127.0.0.1:80:90"], 400),
        (["Host: 127.0.0.1@evil.example"], 400), (["Host: evil.example/127.0.0.1"], 400), (["Host:"], 400), ([], 400),
        (["Host: 127.0.0.1", "Host: evil.example"], 400), (["Host: evil.example", "Host: 127.0.0.1"], 400),
        (["Host: evil.example"], 403), (["Host: 127.0.0.1.evil.example"], 403),
        (["Host: 127.0.0.1", "Sec-Fetch-Site: cross-site"], 403),
        (["Host: 127.0.0.1", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: document"], 200),
        (["Host: 127.0.0.1", "Origin: http://evil.example"], 200),  # its page cannot read the answer
    ],
)  # fmt: skip
def test_names_under_which_it_may_be_called(service: Running, headers: list[str], status: int) -> None:
    assert send(service, "GET", "/v1/graphs", *headers) == status


def test_an_old_client_needs_no_host(service: Running) -> None:
    assert send(service, "GET", "/v1/graphs", version="1.0") == 200


OCTETS, FORM, TEXT = "application/octet-stream", "application/x-www-form-urlencoded", "text/plain"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/jobs", ["Content-Type: application/json", "Origin: http://evil.example"], 403),
        ("/v1/jobs", ["Content-Type: application/json", "Origin: null"], 403),
        ("/v1/jobs", ["Content-Type: application/json", "Origin: http://127.0.0.1.evil.example"], 403),
        ("/v1/jobs", ["Content-Type: application/json", "Origin: http://127.0.0.1", "Origin: null"], 400),
        ("/v1/jobs", ["Content-Type: application/json", "Origin: http://127.0.0.1"], 202),
        ("/v1/jobs", ["Content-Type: application/json; charset=utf-8", "Sec-Fetch-Site: same-origin"], 202),
        ("/v1/jobs", ["Content-Type: application/json", "Sec-Fetch-Site: same-site"], 403),
        ("/v1/jobs", [f"Content-Type: {TEXT}"], 415), ("/v1/jobs", [], 415), ("/v1/graphs", [], 415),
        ("/v1/graphs/upload?id=foreign", [f"Content-Type: {OCTETS}", "Origin: http://evil.example"], 403),
        ("/v1/graphs/upload?id=foreign", [f"Content-Type: {TEXT}", "Origin: null"], 403),
        ("/v1/graphs/upload?id=foreign", [f"Content-Type: {TEXT}", "Origin: http://127.0.0.1"], 415),
        ("/v1/graphs/upload?id=foreign", ["Sec-Fetch-Site: same-origin"], 415),
        ("/v1/graphs/upload?id=ours", [f"Content-Type: {FORM}"], 202),  # curl --data-binary
    ],
)  # fmt: skip
def test_what_a_page_may_send(service: Running, path: str, headers: list[str], status: int) -> None:
    body = b"0 1\n" if "upload" in path else JOB
    assert send(service, "POST", path, "Host: 127.0.0.1", *headers, body=body) == status


@pytest.mark.parametrize("options", [
    ("louvain", '{"louvain.resolution": 1e308}'), ("louvain", '{"louvain.resolution": Infinity}'),
    ("pagerank", '{"pagerank.iterations": 1%s}' % ("0" * 400)), ("cdlp", '{"cdlp.iterations": 1%s}' % ("0" * 22)),
    ("pagerank", '{"pagerank.iterations": 1%s}' % ("0" * 5000)),
])  # fmt: skip
def test_jobs_without_end_are_refused(service: Running, options: tuple[str, str]) -> None:
    body = f'{{"graph": "{GRAPH}", "algorithm": "{options[0]}", "options": {options[1]}}}'
    status, headers, _ = raw(service, "POST", "/v1/jobs", body.encode(), Content_Type="application/json")
    assert status in (400, 422)
    assert headers["content-type"] == "application/problem+json"


def test_a_source_of_thousands_of_digits_is_a_problem(service: Running) -> None:
    body = b'{"graph": "%b", "algorithm": "bfs", "source": 1%b}' % (GRAPH.encode(), b"0" * 5000)
    assert raw(service, "POST", "/v1/jobs", body, Content_Type="application/json")[0] in (400, 422)
    assert raw(service, "GET", f"/v1/graphs/{GRAPH}/levels?source=1" + "0" * 5000)[0] == 422


def test_a_job_without_a_deadline_has_the_services(tmp_path: Path) -> None:
    with running(tmp_path, "service.job_deadline_s=0.2", "service.drain_s=0") as service:
        big = service.client.generate(scale=13, id="big")
        job = service.client.submit(big, "betweenness", centrality__sources="random:8000")
        eventually(lambda: service.client.job(job)["state"] == "failed", 60)
        assert "service.job_deadline_s" in service.client.job(job)["problem"]["fix"]


def test_a_part_of_the_page_with_an_impossible_name_is_not_there(service: Running) -> None:
    for name in ("a" * 300 + ".js", "%00.js", "..%2fscript.js"):
        assert raw(service, "GET", f"/page/{name}")[0] == 404


def test_event_streams_are_counted_when_they_are_asked_for(tmp_path: Path) -> None:
    with running(tmp_path, "service.max_listeners=4") as service, ExitStack() as stack:
        lines = [
            stack.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=30)) for _ in range(64)
        ]
        ready = threading.Barrier(8)

        def ask(some: list[socket.socket]) -> None:
            ready.wait()
            for connection in some:
                connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

        askers = [threading.Thread(target=ask, args=(lines[at::8],)) for at in range(8)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        got = [int(connection.recv(12).split()[1]) for connection in lines]
        assert (got.count(200), got.count(429)) == (4, 60)
        for connection in lines:
            connection.close()
        eventually(lambda: b"tandem_listeners 0" in raw(service, "GET", "/metrics")[2])


def test_a_full_disk_is_a_problem_and_passes(tmp_path: Path) -> None:
    """The service may write nothing for a while, as on a full disk."""
    with running(tmp_path) as service:
        pid, everything = service.process.pid, resource.RLIM_INFINITY
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, everything))
        asked: list[tuple[str, bytes, str]] = [
            ("/v1/jobs", JOB, "application/json"),
            ("/v1/graphs", b'{"generator": {"kind": "grid", "rows": 3, "cols": 3}, "id": "late"}', "application/json"),
            ("/v1/graphs/upload?id=late", b"0 1\n", "application/octet-stream"),
        ]
        for path, body, kind in asked:
            status, headers, text = raw(service, "POST", path, body, Content_Type=kind)
            told: dict[str, Any] = json.loads(text)
            assert (status, headers["content-type"]) == (507, "application/problem+json"), told
            assert "disk" in told["fix"]
        assert raw(service, "GET", "/healthz")[0] == 200
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (everything, everything))
        assert raw(service, "GET", "/v1/graphs/late")[0] == 404
        assert raw(service, "GET", "/v1/jobs")[2].endswith(b'"total":0}')
        assert service.client.generate("grid", rows=3, cols=3, id="late")
        assert service.client.wait(service.client.submit("late", "wcc"))["state"] == "done"
    assert not list((tmp_path / "journal" / "uploads").iterdir())


def test_strangers_learn_only_whether_it_is_ready(tmp_path: Path) -> None:
    token = "a-token-that-nobody-guesses"
    with running(tmp_path, f"service.token={token}", token=token) as service:
        told = json.loads(raw(service, "GET", "/readyz")[2])
        assert (told["ready"], told["graphs"], told["workers"], told["ranks"]) == (True, {}, [], None)
        known = json.loads(raw(service, "GET", "/readyz", Authorization=f"Bearer {token}")[2])
        assert GRAPH in known["graphs"]
