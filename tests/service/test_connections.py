"""What holds before a token is looked at: sizes, times and numbers of requests and connections."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.schema import ServiceConfig
from hybrid.service.http import connections
from hybrid.service.http.access import STRANGER, Gate
from hybrid.service.http.connections import FEWEST, MOST_HEAD_BYTES, MOST_WAITING, RESERVED, Connections
from hybrid.service.metrics import Metrics
from tests.service.conftest import GRAPH, Running, running, start_endless_job
from tests.service.test_service import raw

HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that waits a second for a request, and may have few files."""
    folder = tmp_path_factory.mktemp("impatient")
    with running(folder, "service.request_s=1", files=512) as found:
        yield found


@contextmanager
def line(service: Running) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as found:
        yield found


def rest(connection: socket.socket) -> bytes:
    """All that comes until the service closes the connection."""
    found = b""
    try:
        while piece := connection.recv(1 << 16):
            found += piece
    except ConnectionResetError:
        pass  # it had not read all that was sent
    return found


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def problem(answer: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return found


@pytest.mark.parametrize(
    "start",
    [
        HEAD + b"X: " + b"a" * (2 * MOST_HEAD_BYTES),
        HEAD + b"".join(b"X-%d: 1\r\n" % i for i in range(150)) + b"\r\n",
        HEAD + b"X: " + b"a" * (MOST_HEAD_BYTES + 1) + b"\r\n\r\n",
        b"GET /" + b"a" * (2 * MOST_HEAD_BYTES),
    ],
    ids=["endless header", "many headers", "one large header", "endless address"],
)
def test_a_head_is_bounded(impatient: Running, start: bytes) -> None:
    with line(impatient) as connection:
        connection.sendall(start)
        answer = rest(connection)
    assert status(answer) == 431
    assert problem(answer)["fix"]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (b"", None),
        (HEAD, 408),
        (b"POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
         b"Content-Length: 100\r\n\r\n{", 408),
        (b"POST /v1/graphs/upload?id=slow HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\n"
         b"Content-Length: 100\r\n\r\n0 1\n", 408),
    ],
    ids=["nothing", "half a head", "half a job", "half an upload"],
)  # fmt: skip
def test_a_request_that_does_not_arrive_is_given_up(impatient: Running, start: bytes, expected: int | None) -> None:
    with line(impatient) as connection:
        connection.sendall(start)
        answer = rest(connection)
    assert (status(answer) if answer else None) == expected


def test_an_endless_trailer_is_bounded(impatient: Running) -> None:
    with line(impatient) as connection:
        connection.sendall(
            b"POST /v1/graphs/upload?id=t HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
            b"Content-Type: application/octet-stream\r\n\r\n4\r\n0 1\n\r\n0\r\nX: "
        )
        with suppress(OSError):  # it may be closed before all is sent
            for _ in range(64):
                connection.sendall(b"a" * MOST_HEAD_BYTES)
        answer = rest(connection)
    assert (status(answer) if answer else 431) == 431, "without the bound it is given up later, with 408"


def test_what_is_no_http_is_a_problem_document(impatient: Running) -> None:
    with line(impatient) as connection:
        connection.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
        answer = rest(connection)
    assert status(answer) == problem(answer)["status"] == 400


def test_few_requests_wait_behind_another(impatient: Running) -> None:
    """Each that waits takes memory, and the end of each would let in more."""
    with line(impatient) as connection:
        with suppress(OSError):  # it may be closed before all is sent
            connection.sendall((HEAD + b"\r\n") * 2000 + HEAD + b"Connection: close\r\n\r\n")
        assert rest(connection).count(b"HTTP/1.1 ") <= MOST_WAITING + 1


def test_a_few_requests_in_one_piece_are_answered(impatient: Running) -> None:
    with line(impatient) as connection:
        connection.sendall((HEAD + b"\r\n") * (MOST_WAITING - 1) + HEAD + b"Connection: close\r\n\r\n")
        assert rest(connection).count(b"HTTP/1.1 200") == MOST_WAITING


@pytest.mark.parametrize(("token", "rests"), [(b"", 1), (b"Bearer wrong", 1), (b"Bearer of good news, and long", 0)])
def test_a_stranger_is_never_busy(token: bytes, rests: int) -> None:
    """Who takes slowly what needs no token does not keep clients out."""
    connections: Any = Connections(ServiceConfig(max_connections=FEWEST))
    slow = [Fake("127.0.0.1") for _ in range(FEWEST)]
    gate = Gate(never_answers, ServiceConfig(), "of good news, and long", Metrics())
    for one in slow:
        assert connections.admit(one)
        connections.begin(one)
        scope = {
            "type": "http", "http_version": "1.1", "method": "GET", "path": "/page/script.js",
            "headers": [(b"host", b"127.0.0.1"), (b"authorization", token)], STRANGER: partial(connections.rest, one),
        }  # fmt: skip
        asyncio.run(gate(scope, never_answers, never_answers))
    assert connections.admit(Fake("127.0.0.1"))
    assert sum(one.closed for one in slow) == rests


async def never_answers(*arguments: Any) -> Any:
    pass


def test_a_wrong_range_of_the_page_is_no_page_of_its_own(impatient: Running) -> None:
    for wrong in ("bytes=-1-2", "bytes=9-1", "words=1-2", "bytes=0-" + "9" * 5000):
        found = raw(impatient, "GET", "/page/script.js", Range=wrong)
        assert (found[0], found[1]["Content-Type"]) == (200, "text/javascript; charset=utf-8")


def test_half_open_connections_do_not_keep_others_out(impatient: Running) -> None:
    """More of them than the process may have files; each is closed for the next, or after its time."""
    with ExitStack() as stack:
        for count in range(700):
            stack.enter_context(line(impatient)).sendall(HEAD)
            if count % 50 == 0:
                assert raw(impatient, "GET", "/healthz")[0] == 200
        assert raw(impatient, "GET", f"/v1/graphs/{GRAPH}")[0] == 200
    assert impatient.process.poll() is None


def test_whether_it_lives_is_told_while_all_connections_are_busy(tmp_path: Path) -> None:
    with running(tmp_path, f"service.max_connections={FEWEST}", "service.drain_s=0") as service, ExitStack() as stack:
        job = start_endless_job(service)
        for _ in range(FEWEST + 4):
            connection = stack.enter_context(line(service))
            connection.sendall(b"GET /v1/jobs/%s?wait_s=60 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % job.encode())
            assert raw(service, "GET", "/healthz")[0] == 200  # by then the one before is a request under way
        assert raw(service, "GET", "/v1/graphs")[0] == 503
    assert "Traceback" not in service.log.read_text()


class Fake:
    """A connection that only can be closed."""

    def __init__(self, address: str) -> None:
        self.address, self.closed, self.transport = address, False, self

    def abort(self) -> None:
        self.closed = True


def test_one_client_of_many_has_half(tmp_path: Path) -> None:
    connections: Any = Connections(ServiceConfig(max_connections=100))
    greedy = [Fake("192.0.2.1") for _ in range(60)]
    assert [connections.admit(one) for one in greedy] == [True] * 50 + [False] * 10
    assert connections.admit(Fake("192.0.2.2"))
    own = [Fake("127.0.0.1") for _ in range(49)]
    assert all(map(connections.admit, own))
    assert connections.admit(last := Fake("127.0.0.1"))  # the hundred and first: the oldest goes
    assert [one for one in (*greedy, *own, last) if one.closed] == [greedy[0]]


def test_busy_connections_are_not_closed_for_others() -> None:
    connections: Any = Connections(ServiceConfig(max_connections=FEWEST))
    busy = [Fake("127.0.0.1") for _ in range(FEWEST + RESERVED)]
    for one in busy:
        assert connections.admit(one)
        connections.begin(one)
    assert connections.crowded
    assert not connections.admit(Fake("127.0.0.1"))
    connections.rest(busy[5])
    assert connections.admit(Fake("127.0.0.1"))
    assert [one for one in busy if one.closed] == [busy[5]]


def test_connections_stay_below_the_files_that_may_be_open() -> None:
    assert Connections(ServiceConfig(max_connections=5000), files=1024).most == 1024 - 256 - RESERVED
    assert Connections(ServiceConfig(max_connections=50), files=1024).most == 50


def test_bursts_that_are_not_looked_at_yet_stay_below_the_file_limit() -> None:
    """2,500 connections at once under ``ulimit -n 1024``: with 128 to a turn, accept() failed for a second."""
    turns = 4  # accepted, its task, connection_made, and the closing of the one that goes for it
    assert turns * connections.BURST + 64 <= connections.OTHER_FILES
