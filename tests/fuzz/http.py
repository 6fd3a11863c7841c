"""Hostile requests to a real service: broken HTTP, strange headers, addresses, bodies and files, cut off anywhere.

One case is one connection. The service answers each whole request with a status below 500, or 503 or 507, and with a
problem document where it refuses; it closes the connection, or waits, where there is no whole request. Its process
lives, has no traceback in its log, and stays within MEMORY_MB of what it had.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import re
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.fuzz.readers import damaged
from tests.service.conftest import GRAPH, Running, running

SERVICE_MB = 512
WAIT_S = 20.0
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [ -~]*\r\n")
_service: Running
_first_mb = 0.0

METHODS = [*["GET", "POST"] * 9, "DELETE", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "get", "\x00", "A" * 50]
NAMES = [GRAPH, "none", "a.part", "x~", "..", "%2e%2e%2f", "%00", "%ff", "%d8%00", "a" * 300, "", "A", "1"]
PATHS = [
    "/", "/healthz", "/readyz", "/metrics", "/docs", "/page/script.js", "/page/{name}", "/v1/openapi.json",
    "/v1/algorithms",
    "/v1/graphs", "/v1/files", "/v1/graphs/{name}", "/v1/graphs/{name}/open", "/v1/graphs/{name}/levels?source={value}",
    "/v1/graphs/{name}/distance?source={value}&target={value}", "/v1/graphs/{name}/path?source=1&target={value}",
    "/v1/graphs/{name}/neighbours?source={value}&hops={value}&limit={value}", "/v1/graphs/upload?id={name}",
    "/v1/jobs", "/v1/jobs?offset={value}&limit={value}", "/v1/jobs/{name}", "/v1/jobs/{name}/cancel",
    "/v1/jobs/{name}/result?run={value}", "/v1/jobs/{name}/result/{name}.npy", "/v1/jobs/{name}/result.{name}",
    "/v1/events?job={name}", "http://evil.example/v1/graphs", "*", "//", "/%", "/\xff", "?", "/v1/" + "a/" * 500,
]  # fmt: skip
VALUES = [
    "0", "1", "-1", "1.5", "1e308", "Infinity", "NaN", "null", "true", "9" * 19, "9" * 400, "9" * 5000, '"random:8"',
    '"random:999999"', '"\\u0000"', '"\\ud800"', "[]", "[1, 2]", "[" * 5000, "{}", '"x"', '"' + "x" * 2000 + '"',
]  # fmt: skip
KEYS = [
    "graph", "algorithm", "source", "options", "deadline_s", "path", "generator", "id", "format", "directed", "x",
]  # fmt: skip
HEADERS = [
    "Host: 127.0.0.1", "Host: evil.example", "Host: [::1]x", "Host:", "Origin: null", "Origin: http://127.0.0.1",
    "Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-origin",
    "Authorization: Bearer x",
    "Content-Type: text/plain", "Content-Type: application/json", "Content-Length: 5", "Content-Length: -1",
    "Content-Length: 99999999999999999999", "Transfer-Encoding: chunked", "Transfer-Encoding: x, chunked",
    "Expect: 100-continue", "Upgrade: websocket", "Connection: upgrade", "Connection: close", "Range: bytes=0-",
    "X-Forwarded-For: evil", "Cookie: " + "a" * 9000, "X: " + "b" * 40_000, "X:\x00", ": x", "no colon", " folded",
    "Accept: */*;q=" + "9" * 400, "Accept-Encoding: gzip", "If-None-Match: *",
]  # fmt: skip
FILES = [
    b"0 1\n1 2\n", b"%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n", b"3 2\n2\n1 3\n2\n",
    b"p sp 3 1\na 1 2 5\n", b"graph.x.vertex-file = ../../a\ngraph.x.edge-file = ../../a\n", b"", b"\x00" * 64,
    b"7" * 5000,
    b"999999999999 1\n", b"%%MatrixMarket matrix coordinate pattern general\n9999999999 9999999999 1\n1 2\n",
]  # fmt: skip


@contextlib.contextmanager
def opened() -> Iterator[None]:
    global _service, _first_mb
    with tempfile.TemporaryDirectory(prefix="tandem-fuzz-") as folder:
        (Path(folder) / "data").mkdir()
        (Path(folder) / "data" / "path.el").write_text("0 1\n1 2\n")
        sets = (
            f"service.data_roots=[{folder}/data]", "service.request_s=0.2", "service.drain_s=0",
            "service.job_deadline_s=5",
            "service.max_graphs=8", f"service.disk_bytes={64 << 20}", f"graph.cache_dir={folder}/cache",
        )  # fmt: skip
        with running(Path(folder), *sets) as _service:
            _first_mb = _resident_mb()
            yield
            require_health(traceback=True)


def _resident_mb() -> float:
    return float(psutil.Process(_service.process.pid).memory_info().rss) / 2**20


def require_health(*, traceback: bool = False) -> None:
    """The process lives, answers, and is not larger than it may be."""
    assert _service.process.poll() is None, _service.log.read_text()[-5000:]
    answer = exchange([b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"])
    assert answer.startswith(b"HTTP/1.1 200"), answer
    assert _resident_mb() - _first_mb < SERVICE_MB
    if traceback:
        assert "Traceback" not in _service.log.read_text(), _service.log.read_text()[-8000:]


def body_of(rng: random.Random) -> bytes:
    """A job or a graph with wrong parts, or no JSON at all."""
    if rng.random() < 0.2:
        return rng.choice(
            [b"", b"{", b"[" * 20_000, b"\xff\xfe", b"nul", b'{"graph": 1, "graph": 2}', rng.randbytes(50)]
        )
    parts = {rng.choice(KEYS): rng.choice(VALUES) for _ in range(rng.randrange(4))}
    if rng.random() < 0.5:
        algorithm, option = rng.choice(
            [("bfs", "source_seed"), ("pagerank", "pagerank.iterations"), ("louvain", "louvain.resolution"),
             ("cdlp", "cdlp.iterations"), ("betweenness", "centrality.sources"), ("sssp", "npu.mode")]
        )  # fmt: skip
        parts |= {
            "graph": f'"{GRAPH}"',
            "algorithm": f'"{algorithm}"',
            "options": f'{{"{option}": {rng.choice(VALUES)}}}',
        }
    elif rng.random() < 0.5:
        parts |= {"path": rng.choice(['"path.el"', '"../log.txt"', '"data"', '"' + "a" * 300 + '"', '"\\u0000"'])}
    text = "{" + ", ".join(f'"{name}": {value}' for name, value in parts.items()) + "}"
    return damaged(rng, text.encode()) if rng.random() < 0.2 else text.encode()


def file_of(rng: random.Random) -> bytes:
    """A graph file, damaged or packed or both."""
    content = rng.choice(FILES)
    if rng.random() < 0.3:
        content = damaged(rng, content)
    if rng.random() < 0.3:
        content = gzip.compress(content * rng.choice([1, 1, 10_000]))
        content = damaged(rng, content) if rng.random() < 0.3 else content
    return content


def request_of(rng: random.Random) -> bytes:
    """One request, whole or not."""
    path = rng.choice(PATHS if rng.random() < 0.6 else ["/v1/jobs", "/v1/graphs", "/v1/graphs/upload?id=mine"])
    while "{name}" in path or "{value}" in path:
        path = path.replace("{name}", rng.choice(NAMES), 1).replace("{value}", rng.choice(VALUES).replace(" ", ""), 1)
    takes_body = path in ("/v1/graphs", "/v1/jobs") or path.startswith("/v1/graphs/upload")
    method = "POST" if takes_body and rng.random() < 0.9 else rng.choice(METHODS)
    if path.startswith("/v1/graphs/upload"):
        body, kind = file_of(rng), "application/octet-stream"
    else:
        body, kind = (body_of(rng) if method == "POST" else b""), "application/json"
    headers = ["Host: 127.0.0.1", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close"]
    if rng.random() < 0.2:
        headers[rng.randrange(len(headers))] = rng.choice(HEADERS)
        headers += rng.sample(HEADERS, rng.randrange(4))
    if rng.random() < 0.02:
        headers += [f"X-{i}: 1" for i in range(200)]
    lines = [f"{method} {path} HTTP/{rng.choice(['1.1'] * 30 + ['1.0', '2.0', '9', ''])}", *headers, "", ""]
    whole = "\r\n".join(lines).encode("latin-1", "replace") + body
    return damaged(rng, whole) if rng.random() < 0.08 else whole


def exchange(pieces: list[bytes]) -> bytes:
    """What is answered to these pieces until the service closes the connection, or its first answer is whole."""
    answer = b""
    with socket.create_connection(("127.0.0.1", _service.port), timeout=WAIT_S) as connection:
        with contextlib.suppress(OSError):  # it may refuse before it has all
            for piece in pieces:
                connection.sendall(piece)
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(1 << 16):
                answer += piece
                if is_whole(answer, b"".join(pieces)[:4] == b"HEAD"):
                    break
    return answer


def is_whole(answer: bytes, head_only: bool) -> bool:
    """Whether the first answer is all there, as far as that can be told; a stream of events never ends."""
    head, end, body = answer.removeprefix(CONTINUE).partition(b"\r\n\r\n")
    if not end or head_only:
        return bool(end)
    length = re.search(rb"content-length: (\d+)", head)
    if length is None:
        return b"text/event-stream" in head or b" 204 " in head[:13] or body.endswith(b"0\r\n\r\n")
    return len(body) >= int(length[1])


def case(rng: random.Random) -> None:
    """Send one hostile request and look at the answer."""
    request = request_of(rng)
    cut = rng.randrange(len(request) + 1)
    pieces = [request[:cut], request[cut:]] if rng.random() < 0.3 else [request]
    answer = exchange(pieces)
    if answer:
        check(answer, request)
    if rng.random() < 0.02:
        require_health(traceback=True)
        for graph in _service.client.graphs():
            if graph["id"] != GRAPH:
                exchange([f"DELETE /v1/graphs/{graph['id']} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()])


def check(answer: bytes, request: bytes) -> None:
    """The first answer is HTTP, and a refusal is a problem document."""
    answer = answer.removeprefix(CONTINUE)
    match = _STATUS.match(answer)
    assert match is not None, (request[:500], answer[:500])
    status = int(match[1])
    assert status < 500 or status in (503, 504, 507), (request[:500], answer[:1000])
    head, _, body = answer.partition(b"\r\n\r\n")
    if status >= 400 and b"application/problem+json" in head and not request.startswith(b"HEAD"):
        length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
        problem = json.loads(body[:length])
        assert problem["status"] == status, problem
        assert problem["detail"], problem
        assert problem["fix"], problem
    elif status >= 400:
        assert request.startswith(b"HEAD") or b"/readyz" in request, (request[:500], answer[:1000])
