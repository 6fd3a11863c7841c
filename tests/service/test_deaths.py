"""The journal: a job that the process dies of is not started for ever, and the event loop never waits for the disk."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hybrid.service.events import EventBus
from hybrid.service.queue.jobs import FAILED, QUEUED, Job, JobBook
from hybrid.service.queue.journal import Journal
from tests.conftest import eventually
from tests.service.conftest import GRAPH, running, start_endless_job
from tests.service.test_service import raw


@pytest.mark.heavy
def test_a_job_that_the_process_dies_of_is_started_twice_and_no_more(tmp_path: Path) -> None:
    with running(tmp_path, "service.drain_s=0") as service:
        deadly = start_endless_job(service)
        behind = service.client.submit("big", "kcore")
        eventually(lambda: service.client.job(deadly)["state"] == "running")
        assert service.stop(signal.SIGKILL) == -signal.SIGKILL
    with running(tmp_path, "service.drain_s=0") as service:
        eventually(lambda: service.client.job(deadly)["state"] == "running")
        assert service.client.job(behind)["state"] == "queued"
        assert service.stop(signal.SIGKILL) == -signal.SIGKILL
    with running(tmp_path, "service.drain_s=0") as service:
        told = service.client.job(deadly)
        assert (told["state"], told["problem"]["status"]) == ("failed", 503)
        assert "ended 2 times in a row while it ran this job" in told["problem"]["detail"]
        assert "POST the same request to /v1/jobs again" in told["problem"]["fix"]
        assert service.client.wait(behind)["summary"]["certified"], "it only waited"
        again = service.client.submit("big", "betweenness", centrality__sources="random:20000")
        eventually(lambda: service.client.job(again)["state"] == "running")
        assert service.stop() == 0
    assert not list((tmp_path / "journal" / "jobs").glob("*/start-*")), "a shutdown is no death"
    assert "Traceback" not in service.log.read_text()


def restored(folder: Path) -> tuple[JobBook, Job]:
    """The one job of a journal, as the next process finds it."""
    journal = Journal(folder)
    nothing: Any = None  # to compute with
    book = JobBook(journal, nothing, EventBus(1), 10)
    return book, book.restore(journal.jobs()[0], None)


def test_only_deaths_in_a_row_while_it_ran_are_counted(tmp_path: Path) -> None:
    job = Job("g", "wcc", {}, None)
    journal = Journal(tmp_path)
    journal.open()
    journal.write_job(job.id, job.to_dict())
    journal.close()
    for _ in range(3):  # it waits while processes die
        assert restored(tmp_path)[1].state == QUEUED
    for end in (JobBook.take_back, JobBook.excuse):  # after a shutdown, in order or not, it starts anew
        restored(tmp_path)[0].begin(job)
        book, found = restored(tmp_path)
        assert found.state == QUEUED
        book.begin(job)
        end(book, found)
    for _ in range(2):
        book, found = restored(tmp_path)
        assert found.state == QUEUED
        book.begin(found)
    assert restored(tmp_path)[1].state == FAILED
    assert restored(tmp_path)[1].problem is not None, "it stays so"


def test_the_loop_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    waits = tmp_path / "hold.waits"
    program = ("-m", "tests.service.slow_disk_service", str(hold))
    body = json.dumps({"graph": "big", "algorithm": "kcore"}).encode()
    with running(tmp_path, "service.drain_s=0", program=program) as service, ThreadPoolExecutor(3) as pool:
        first = start_endless_job(service)
        waiting = service.client.submit("big", "kcore")
        eventually(lambda: service.client.job(first)["state"] == "running")
        asked = [("POST", "/v1/jobs", body), ("POST", f"/v1/jobs/{waiting}/cancel", b"")]
        hold.touch()
        answers = [pool.submit(raw, service, *one, Content_Type="application/json") for one in asked]
        eventually(waits.exists)
        for _ in range(5):
            assert raw(service, "GET", "/healthz")[0] == 200
            assert raw(service, "GET", f"/v1/graphs/{GRAPH}/levels?source=1")[0] == 200
        assert waits.exists(), "the disk stood still all the time"
        assert not any(answer.done() for answer in answers)
        hold.unlink()
        found = [answer.result(100) for answer in answers]
        assert [status for status, _, _ in found] == [202, 202]
        accepted = json.loads(found[0][2])["id"]
        assert json.loads(found[1][2])["state"] == "cancelled"
        assert service.stop(signal.SIGKILL) == -signal.SIGKILL
    documents = [json.loads(path.read_text()) for path in tmp_path.glob("journal/jobs/*/job.json")]
    states = {document["id"]: document["state"] for document in documents}
    assert (states[accepted], states[waiting]) == ("queued", "cancelled")


FALSE: list[dict[str, Any]] = [  # each is JSON of the right types to Python, and nothing that a client can be told
    {"created": 10**400}, {"created": float("nan")}, {"finished": float("inf")}, {"deadline_s": 10**400},
    {"progress": {}}, {"progress": {"done": "x", "total": []}}, {"state": "undone"}, {"phase": "\ud800"},
    {"problem": {}}, {"algorithm": "none"}, {"options": {"a": float("nan")}}, {"started": True},
]  # fmt: skip


@pytest.mark.heavy
def test_a_damaged_journal_keeps_no_service_from_starting(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "path.el").write_text("0 1\n")
    with running(tmp_path, f"service.data_roots=[{data}]") as service:
        graph = service.client.open("path.el", id="gone")
        done = service.client.submit(graph, "wcc")
        service.client.wait(done)
        service.client.generate("grid", rows=2, cols=2, id="kept")
        assert service.stop() == 0
    (data / "path.el").write_bytes(b"PK\x03\x04 not a graph any more")
    good = (tmp_path / "journal" / "jobs" / done / "job.json").read_text()
    damaged = [
        "",
        "{}",
        "[]",
        "[" * 100_000,
        "7",
        '{"created": "x"}',
        good,
        good.replace('"options": {}', '"options": 5'),
        *(json.dumps({**json.loads(good), "id": f"damaged{number}", **wrong}) for number, wrong in enumerate(FALSE, 8)),
    ]
    for number, text in enumerate(damaged):
        folder = tmp_path / "journal" / "jobs" / f"damaged{number}"
        folder.mkdir()
        (folder / "job.json").write_text(text)
        (tmp_path / "journal" / "graphs" / f"damaged{number}.json").write_text(text)
    origins: list[Any] = [{}, {"generator": {"kind": 5, "x": 1}}, {"generator": None}, {"path": 7}, {"upload": True}]
    for number, origin in enumerate(origins):
        document = {"id": f"false{number}", "origin": origin, "created": 1.0}
        (tmp_path / "journal" / "graphs" / f"false{number}.json").write_text(json.dumps(document))
    (tmp_path / "journal" / "jobs" / done / "trace.jsonl").write_text("[" * 100_000)
    (tmp_path / "journal" / "jobs" / done / "vertex.npy").write_bytes(b"no array")
    (tmp_path / "journal" / "uploads" / "no.part").mkdir()
    with running(tmp_path, f"service.data_roots=[{data}]") as service:
        assert json.loads(raw(service, "GET", f"/v1/jobs/{done}/trace")[2])["events"] == []
        for path in ("result", "result.ldbc", "result/vertex.npy"):
            assert json.loads(raw(service, "GET", f"/v1/jobs/{done}/{path}")[2])["fix"] == "submit the job again", path
        states = {one["id"]: one["state"] for one in service.client.graphs()}
        assert states.pop("false4") == "failed", "its upload is not there"
        assert states == {GRAPH: "ready", "kept": "ready"}
        assert [job["id"] for job in json.loads(raw(service, "GET", "/v1/jobs")[2])["jobs"]] == [done]
    assert "Traceback" not in service.log.read_text()
