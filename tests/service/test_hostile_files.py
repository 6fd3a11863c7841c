"""Files of clients that are larger than they look, or take long: bounded, off the loop, cancelled, not opened twice."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.store.graph_store import save_store
from hybrid.client import ServiceError
from tests.conftest import eventually
from tests.service.conftest import Running, running
from tests.service.test_service import raw


def packed(line: bytes, times: int) -> bytes:
    """So many lines, packed piece by piece."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6) as file:
        piece = line * 1_000_000
        for _ in range(times // 1_000_000):
            file.write(piece)
    return out.getvalue()


SLOW = packed(b"#\n", 200_000_000)  # a gap before the first edge that takes seconds to cross


def upload(service: Running, name: str, body: bytes) -> tuple[int, dict[str, Any]]:
    status, _, text = raw(
        service, "POST", f"/v1/graphs/upload?id={name}", body, Content_Type="application/octet-stream"
    )
    return status, json.loads(text)


def state(service: Running, name: str) -> str:
    return str(service.client.graph(name)["state"])


def test_a_packed_file_is_bounded_while_it_is_read(tmp_path: Path) -> None:
    bomb = packed(b"1 2\n", 40_000_000)
    assert len(bomb) < 1 << 20
    with running(tmp_path, "service.memory_share=0.01") as service:
        assert upload(service, "bomb", bomb)[0] == 202
        eventually(lambda: state(service, "bomb") in ("failed", "ready"), 60)
        told = service.client.graph("bomb")
        assert (told["state"], told["problem"]["status"]) == ("failed", 413)
        assert "edges" in told["problem"]["detail"]


def test_a_graph_that_declares_too_many_vertices_is_refused(tmp_path: Path) -> None:
    matrix = b"%%MatrixMarket matrix coordinate pattern general\n5000 5000 1\n1 2\n"
    with running(tmp_path, "service.max_vertices=2000") as service:
        assert upload(service, "wide", matrix)[0] == 202
        eventually(lambda: state(service, "wide") in ("failed", "ready"))
        assert "vertices" in service.client.graph("wide")["problem"]["detail"]


@pytest.mark.heavy
def test_opening_is_cancelled_and_not_repeated_after_a_death(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        assert upload(service, "slow", SLOW)[0] == 202
        eventually(lambda: state(service, "slow") == "loading")
        assert raw(service, "DELETE", "/v1/graphs/slow")[0] == 204
        assert raw(service, "GET", "/v1/graphs/slow")[0] == 404
        assert service.client.generate("grid", rows=3, cols=3, id="after")  # the computing thread is free again
        assert list((tmp_path / "journal" / "uploads").iterdir()) == []
        assert upload(service, "slow", SLOW)[0] == 202
        eventually(lambda: state(service, "slow") == "loading")
        eventually(lambda: (tmp_path / "journal" / "graphs" / "slow~loading").exists())
        assert service.stop(signal.SIGKILL) == -signal.SIGKILL
    with running(tmp_path) as service:
        told = service.client.graph("slow")
        assert told["state"] == "failed"
        assert "/v1/graphs/slow/open" in told["problem"]["fix"]
        assert state(service, "after") == "ready"
        assert raw(service, "POST", "/v1/graphs/slow/open")[0] == 202
        eventually(lambda: state(service, "slow") == "loading")
        assert raw(service, "POST", "/v1/graphs/slow/open")[0] == 409
        assert raw(service, "DELETE", "/v1/graphs/slow")[0] == 204


@pytest.mark.heavy
def test_a_shutdown_while_opening_is_no_death(tmp_path: Path) -> None:
    with running(tmp_path, "service.drain_s=0") as service:
        assert upload(service, "slow", SLOW)[0] == 202
        eventually(lambda: state(service, "slow") == "loading")
        assert service.stop() == 0
    assert not list((tmp_path / "journal" / "graphs").glob("*~loading"))


def test_a_strange_line_ends_in_a_problem(tmp_path: Path) -> None:
    spaces = b"graph.x = " + b" " * 9000 + b"y" + b" " * 60_000
    with running(tmp_path, "service.memory_share=0.01") as service:
        for name, body in {"spaces": spaces, "endless": packed(b"7" * 100, 3_000_000)}.items():
            status, told = upload(service, name, body)
            if status == 202:
                eventually(lambda name=name: state(service, name) == "failed", 60)  # type: ignore[misc]
                told = service.client.graph(name)["problem"]
            assert told["status"] in (413, 422)


def test_what_reads_a_file_leaves_the_loop_free(tmp_path: Path) -> None:
    """A file that is read to its end to tell its format; the service answers while it is."""
    rows = 5_000_000
    body = gzip.compress(b"%d %d\n" % (rows, rows)) + packed(b"1 2\n", rows)
    with running(tmp_path, "service.drain_s=0") as service, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(upload, service, "long", body)
        asked = 0
        while not answer.done():
            assert raw(service, "GET", "/healthz")[0] == 200
            asked += 1
        assert answer.result()[0] in (202, 422)
        assert asked > 5


@pytest.mark.heavy
def test_an_upload_of_any_name_survives_a_restart(tmp_path: Path) -> None:
    names = ("x.part", "x.e", "x.v")
    with running(tmp_path) as service:
        for name in names:
            assert upload(service, name, b"0 1\n1 2\n")[0] == 202
        assert service.stop() == 0
    with running(tmp_path) as service:
        assert [service.client.distance(name, 0, 2) for name in names] == [2, 2, 2]


def test_a_path_that_no_file_can_have_is_not_there(service: Running) -> None:
    for path in ("a" * 300, "b/" * 400, "c\0d"):
        with pytest.raises(ServiceError) as caught:
            service.client.open(path)
        assert caught.value.status in (404, 422)


def test_names_that_no_client_can_write_are_not_listed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "inner").mkdir(parents=True)
    for name in (b"good.el", b"\xff\xfe.el", b"inner/\xed\xa0\x80.el", b".hidden"):
        (data / os.fsdecode(name)).write_text("0 1\n")
    os.mkfifo(data / "pipe.el")
    (data / "loop.el").symlink_to("loop.el")
    with running(tmp_path, f"service.data_roots=[{data}]") as service:
        status, _, text = raw(service, "GET", "/v1/files")
        assert (status, json.loads(text)["files"]) == (200, ["good.el"])
        for name in ("pipe.el", "inner", "loop.el"):
            with pytest.raises(ServiceError) as caught:
                service.client.open(name)
            assert caught.value.status in (404, 422)
    assert "Traceback" not in service.log.read_text()


@pytest.mark.parametrize(("name", "text"), [
    ("g.txt", "# no description, by its first line\n1 2\ngraph.g.edge-file = ../out/secret\n"
              "graph.g.vertex-file = g.v\n"),
    ("g.e", "1 2\n"),
])  # fmt: skip
@pytest.mark.parametrize("format", ["ldbc", "auto"])
def test_no_format_leads_out_of_the_data_roots(tmp_path: Path, name: str, text: str, format: str) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    for folder in (data, out):
        folder.mkdir()
    (out / "secret").write_text("graph.g.directed = SECRET\nSECRET\n")
    (data / name).write_text(text)
    (data / "g.v").write_text("1\n2\n")
    (data / "g.properties").symlink_to(out / "secret")
    with running(tmp_path, f"service.data_roots=[{data}]") as service:
        body = json.dumps({"path": name, "format": format, "id": "g"}).encode()
        status, _, answer = raw(service, "POST", "/v1/graphs", body, Content_Type="application/json")
        if status == 202:
            eventually(lambda: state(service, "g") in ("failed", "ready"))
            answer = json.dumps(service.client.graph("g")).encode()
        assert b"SECRET" not in answer
        assert status == 403 or (name, format) == ("g.txt", "auto")


def test_no_refusal_of_a_graph_names_a_folder_of_the_machine(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    graph = build_graph(EdgeList(np.array([1, 2]), np.array([2, 3])), directed=True)
    save_store(graph, data / "stored")
    (data / "near.properties").write_text("graph.n.edge-file = nearly.e\ngraph.n.vertex-file = nearlx.v\n")
    (data / "nearly.v").write_text("1\n2\n")
    (data / "far.properties").write_text(f"graph.n.edge-file = {'x' * 5000}/far.e\ngraph.n.vertex-file = no/far.v\n")
    (data / "long.properties").write_text(f"graph.n.edge-file = far.e\ngraph.n.directed = {'x' * 50_000}\n")
    with running(tmp_path, f"service.data_roots=[{data}]") as service:
        for name in ("stored", "near.properties", "far.properties", "long.properties"):
            body = json.dumps({"path": name, "directed": False, "id": name}).encode()
            status, _, text = raw(service, "POST", "/v1/graphs", body, Content_Type="application/json")
            problem = json.loads(text)
            if status == 202:
                eventually(lambda name=name: state(service, name) == "failed")
                problem = service.client.graph(name)["problem"]
            assert str(tmp_path) not in json.dumps(problem)
            assert len(json.dumps(problem)) < 3000
