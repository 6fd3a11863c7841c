"""What the service keeps on disk stays within its bound, the oldest going first."""

from __future__ import annotations

import select
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.conftest import eventually
from tests.service.conftest import GRAPH, Running, running
from tests.service.test_service import raw
from tests.unit.job.test_result import make_sparse

LIMIT = 1 << 20


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def metric(service: Running, name: str) -> float:
    lines = raw(service, "GET", "/metrics")[2].decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"tandem_{name} ")))


@pytest.mark.heavy
def test_old_results_go_first(tmp_path: Path) -> None:
    with running(tmp_path, f"service.disk_bytes={LIMIT}", f"graph.cache_dir={tmp_path / 'cache'}") as service:
        jobs = []
        for _ in range(4):
            jobs.append(service.client.submit(GRAPH, "bfs", source=list(range(48))))
            assert service.client.wait(jobs[-1])["state"] == "done"
        assert raw(service, "GET", f"/v1/jobs/{jobs[0]}")[0] == 404
        assert service.client.result(jobs[-1])["level"].size
        assert size(tmp_path / "journal" / "jobs") < LIMIT
        assert 0 < metric(service, "disk_bytes") <= LIMIT == metric(service, "disk_limit_bytes")


def test_an_upload_that_cannot_fit_is_refused(tmp_path: Path) -> None:
    body = b"".join(b"%d %d\n" % (i, i + 1) for i in range(100_000))
    with running(tmp_path, f"service.disk_bytes={LIMIT}", f"graph.cache_dir={tmp_path / 'cache'}") as service:
        status, _, text = raw(service, "POST", "/v1/graphs/upload?id=large", body, Content_Type="text/plain")
        assert status == 507, text
        assert b"service.disk_bytes" in text
        assert list((tmp_path / "journal" / "uploads").iterdir()) == []


def test_a_removed_upload_leaves_the_cache_and_built_graphs_are_bounded(tmp_path: Path) -> None:
    stores = tmp_path / "cache" / "graphs"
    (tmp_path / "mine.el").write_text("0 1\n1 2\n")
    with running(tmp_path, f"service.disk_bytes={LIMIT}", f"graph.cache_dir={tmp_path / 'cache'}") as service:
        before = {path.name for path in stores.iterdir()}
        service.client.upload(tmp_path / "mine.el", "mine")
        eventually(lambda: {path.name for path in stores.iterdir()} > before)
        service.client.unload("mine")
        assert {path.name for path in stores.iterdir()} == before
        for seed in range(2, 8):
            service.client.generate(scale=11, edge_factor=8, seed=seed, id=f"g{seed}")
            service.client.unload(f"g{seed}")
        service.client.generate("grid", rows=2, cols=2, id="last")
        assert size(stores) <= LIMIT
        assert before <= {path.name for path in stores.iterdir()}, "the graph in memory stays"


@pytest.mark.heavy
def test_a_graph_that_was_in_the_cache_before_stays(tmp_path: Path) -> None:
    stores = tmp_path / "cache" / "graphs"
    (tmp_path / "mine.el").write_text("0 1\n1 2\n")
    cache = f"graph.cache_dir={tmp_path / 'cache'}"
    for folder in (tmp_path / "other", tmp_path / "this"):
        folder.mkdir()
    with running(tmp_path / "other", cache) as service:
        service.client.upload(tmp_path / "mine.el", "mine")
        service.stop()
    with running(tmp_path / "this", cache) as service:
        before = {path.name for path in stores.iterdir()}
        service.client.upload(tmp_path / "mine.el", "mine")
        service.client.unload("mine")
        assert {path.name for path in stores.iterdir()} == before


def test_uploads_that_are_under_way_count(tmp_path: Path) -> None:
    limit, count, body = 4 << 20, 6, b"1 2\n" * (1 << 19)
    head = "POST /v1/graphs/upload?id=u{0} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {1}\r\n\r\n"
    uploads = tmp_path / "journal" / "uploads"
    sets = (f"service.disk_bytes={limit}", f"graph.cache_dir={tmp_path / 'cache'}")
    with running(tmp_path, *sets) as service, ExitStack() as stack:
        lines = [
            stack.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=30)) for _ in range(count)
        ]
        for number, line in enumerate(lines):
            with suppress(OSError):  # refused before it has sent all
                line.sendall(head.format(number, 2 * len(body)).encode() + body)
        answered = eventually(lambda: select.select(lines, [], [], 0)[0])
        assert {line.recv(12) for line in answered} == {b"HTTP/1.1 507"}
        assert size(uploads) <= limit + (count << 20), "a piece of each at most"
        for line in lines:
            line.close()
        eventually(lambda: not list(uploads.iterdir()))
    assert "Traceback" not in service.log.read_text()


def test_a_result_that_is_sent_as_a_whole_must_fit_into_memory(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        job = service.client.submit(GRAPH, "wcc")
        service.client.wait(job)
        assert raw(service, "GET", f"/v1/jobs/{job}/result.ldbc")[0] == 200
        for name in ("vertex", "component"):
            make_sparse(tmp_path / "journal" / "jobs" / job / f"{name}.npy", "(99999999999,)", "<i8")
        for form in ("ldbc", "arrow", "parquet"):
            assert raw(service, "GET", f"/v1/jobs/{job}/result.{form}")[0] == 507
        assert raw(service, "GET", f"/v1/jobs/{job}/result?limit=2")[0] == 200
