"""The client's connections: kept between requests, replaced when they are gone; no POST is sent twice by itself."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from hybrid.client import Client, ServiceError


class Server(socketserver.ThreadingTCPServer):
    """Answers as a test wants, and counts connections and requests."""

    daemon_threads = False
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.connections = 0
        self.requests: list[str] = []
        self.close_after = False  # end each connection without a word, after its answer
        self.drop_next = 0  # end so many connections in place of an answer
        self.early_refusal = False  # answer an upload before its body
        self.received = 0
        self.closed = threading.Semaphore(0)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.closed.release()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_GET(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        if self.server.drop_next:
            self.server.drop_next -= 1
            self.close_connection = True
            return
        self.answer(200, {"graphs": [], "id": "g", "state": "ready"})

    def do_POST(self) -> None:
        if self.server.early_refusal:
            self.server.requests.append(f"{self.command} {self.path}")
            self.answer(413, {"detail": "too large", "fix": "send less"})
            self.close_connection = True
            return
        left = int(self.headers["Content-Length"])
        while left:
            left -= len(piece := self.rfile.read(min(left, 1 << 16)))
            self.server.received += len(piece)
        self.do_GET()

    def answer(self, status: int, content: dict[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.server.close_after

    def log_message(self, *words: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[tuple[Server, Client]]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        client = Client(f"http://127.0.0.1:{server.server_address[1]}", timeout_s=30)
        try:
            yield server, client
        finally:
            client.close()
            server.shutdown()
            thread.join()


def test_requests_share_a_connection() -> None:
    with serving() as (server, client):
        for _ in range(5):
            assert client.graphs() == []
        assert server.connections == 1


def test_a_connection_that_the_service_closed_is_replaced() -> None:
    with serving() as (server, client):
        server.close_after = True
        client.submit("g", "bfs")
        server.closed.acquire()
        client.submit("g", "bfs")
        assert len(server.requests) == server.connections == 2


def test_a_question_is_asked_again_when_its_used_connection_ends() -> None:
    with serving() as (server, client):
        client.graphs()
        server.drop_next = 1
        assert client.graphs() == []
        assert server.connections == 2
        server.drop_next = 1
        with pytest.raises(ConnectionError):
            client.submit("g", "bfs")  # which may have been accepted
        assert [request.partition(" ")[0] for request in server.requests] == ["GET", "GET", "GET", "POST"]


def test_a_file_is_sent_in_pieces(tmp_path: Path) -> None:
    file = tmp_path / "large.el"
    with file.open("wb") as stream:
        stream.truncate(20_000_000)
    with serving() as (server, client):
        assert client.upload(file, "g") == "g"
        assert server.received == 20_000_000
        assert server.requests == ["POST /v1/graphs/upload?id=g"]


def test_a_refusal_before_the_end_of_an_upload_is_read(tmp_path: Path) -> None:
    file = tmp_path / "large.el"
    with file.open("wb") as stream:
        stream.truncate(50_000_000)
    with serving() as (server, client):
        server.early_refusal = True
        with pytest.raises(ServiceError, match=r"too large\. Fix: send less") as refused:
            client.upload(file, "g")
        assert refused.value.status == 413


def test_a_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as (server, client):
        monkeypatch.setenv("http_proxy", client.address)
        monkeypatch.setenv("no_proxy", "")
        through = Client("http://far.example:8080")
        assert through.graphs() == []
        through.close()
        assert server.requests == ["GET http://far.example:8080/v1/graphs"]
