"""Both ends of a directory: whole rounds, leftovers, strangers and everything a worker may do wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from exchange.errors import ExchangeError, RoundGone
from exchange.mailbox import CoordinatorMailbox, WorkerMailbox
from exchange.protocol import layout
from exchange.protocol.layout import Format
from tests.protocol.faulty_disk import DiskWithoutLinks

TOKEN = "0000abcd"
OFFSETS, TARGETS = np.array([0, 2, 3, 5]), np.array([1, 2, 2, 0, 7], dtype=np.int32)
FIRST, SECOND = layout.round_id(1, TOKEN), layout.round_id(2, TOKEN)
ANSWER = np.array([[0, 5], [1, 6], [2, 6]])


@pytest.fixture(params=["text", "binary"])
def format(request: pytest.FixtureRequest) -> Format:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[CoordinatorMailbox]:
    with CoordinatorMailbox(tmp_path, token=TOKEN) as mailbox:
        mailbox.publish_core(OFFSETS, TARGETS, 3)
        mailbox.write_round(FIRST, np.array([0]), np.array([5]))
        yield mailbox


def test_a_round_there_and_back(tmp_path: Path, format: Format) -> None:
    worker = WorkerMailbox(tmp_path)
    with CoordinatorMailbox(tmp_path / ".", format=format) as coordinator:
        first, second = (layout.round_id(seq, coordinator.token) for seq in (1, 2))
        assert coordinator.worker_facts() is None
        worker.announce(state="starting", device="CPU")
        worker.announce(state="ready")
        facts = coordinator.worker_facts()
        assert facts is not None
        assert (facts["state"], facts["device"], facts["pid"]) == ("ready", "CPU", os.getpid())
        coordinator.publish_core(OFFSETS, TARGETS, 3)
        coordinator.write_round(first, np.array([0, 2], dtype=np.int32), np.array([5, 9], dtype=np.int32))
        assert worker.pending_rounds() == [first]
        core, identity = worker.load_core(first)
        assert core.edges.tolist() == [[0, 1], [0, 2], [1, 2], [2, 0]]
        question = worker.load_question(first)
        assert question.pairs is not None
        assert question.pairs.tolist() == [[0, 5], [2, 9]]
        assert question.header == ({"round": first, "core": "3"} if format == "text" else {})
        assert not coordinator.ok_exists(first)
        worker.write_data(first, ANSWER, {"device": "CPU", "iterations": 2})
        assert not coordinator.ok_exists(first)
        worker.create_ok(first)
        assert coordinator.ok_exists(first)
        answer = coordinator.read_data(first)
        assert answer.vertices.tolist() == [0, 1, 2]
        assert answer.values.tolist() == [5, 6, 6]
        assert answer.pairs.dtype == np.int64
        assert answer.header == {"round": first, "device": "CPU", "iterations": "2"}
        assert worker.pending_rounds() == []
        coordinator.write_round(second, np.array([0]), np.array([1]))
        assert worker.core_identity(second) == identity, "the same file under another name"
        assert worker.pending_rounds() == [second]
        coordinator.publish_core(OFFSETS, TARGETS, 2)
        third = layout.round_id(3, coordinator.token)
        coordinator.write_round(third, np.array([0]), np.array([1]))
        assert worker.core_identity(third) != identity
        assert worker.load_core(third)[0].edges.tolist() == [[0, 1]]


def test_copies_serve_where_links_are_impossible(tmp_path: Path, format: Format) -> None:
    with CoordinatorMailbox(tmp_path, token=TOKEN, format=format, disk=DiskWithoutLinks()) as coordinator:
        coordinator.publish_core(OFFSETS, TARGETS, 3)
        coordinator.write_round(FIRST, np.array([0]), np.array([5]))
        assert len(WorkerMailbox(tmp_path).load_core(FIRST)[0].edges) == 4


def test_an_empty_core_and_no_values(tmp_path: Path, format: Format) -> None:
    none = np.array([], dtype=np.int64)
    with CoordinatorMailbox(tmp_path, token=TOKEN, format=format) as coordinator:
        coordinator.publish_core(np.array([0, 0]), none, 1)
        coordinator.write_round(FIRST, none, none)
        worker = WorkerMailbox(tmp_path)
        assert worker.load_core(FIRST)[0].edges.shape == (0, 2)
        question = worker.load_question(FIRST)
        assert question.pairs is not None
        assert question.pairs.shape == (0, 2)
        worker.write_data(FIRST, none.reshape(0, 2), {})
        assert coordinator.read_data(FIRST).pairs.shape == (0, 2)


def test_cleanup_takes_only_its_own(tmp_path: Path) -> None:
    stranger = layout.round_id(1, "1111abcd")
    (tmp_path / stranger).mkdir()
    (tmp_path / "core-1111abcd-0001").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    mailbox = CoordinatorMailbox(tmp_path, token=TOKEN)
    mailbox.open()
    mailbox.open()
    mailbox.publish_core(OFFSETS, TARGETS, 3)
    mailbox.write_round(FIRST, np.array([0]), np.array([5]))
    mailbox.write_stop()
    assert mailbox.cleanup() == []
    assert sorted(os.listdir(tmp_path)) == ["core-1111abcd-0001", "notes.txt", stranger, "stop.flag"]
    assert mailbox.cleanup() == []
    with pytest.raises(ExchangeError, match="not open"):
        mailbox.write_round(SECOND, np.array([0]), np.array([5]))


def test_cleanup_may_keep_everything(tmp_path: Path, coordinator: CoordinatorMailbox) -> None:
    before = sorted(os.listdir(tmp_path))
    assert coordinator.cleanup(keep=True) == []
    assert sorted(os.listdir(tmp_path)) == before
    CoordinatorMailbox(tmp_path).open()


def test_two_jobs_on_one_directory(tmp_path: Path, coordinator: CoordinatorMailbox) -> None:
    other = CoordinatorMailbox(tmp_path)
    with pytest.raises(ExchangeError, match=rf"in use by another job \(pid {os.getpid()} on .*Fix"):
        other.open()
    assert other.cleanup() == []
    assert coordinator.worker_facts() is None
    assert (tmp_path / FIRST / "value.txt").exists()


def test_leftovers_of_a_dead_job_are_nobodys_work(tmp_path: Path) -> None:
    dead = CoordinatorMailbox(tmp_path, token="1111abcd")
    dead.open()
    dead.publish_core(OFFSETS, TARGETS, 3)
    leftover = layout.round_id(1, dead.token)
    dead.write_round(leftover, np.array([0]), np.array([0]))
    dead.close()
    worker = WorkerMailbox(tmp_path)
    assert worker.pending_rounds() == [leftover], "the last owner's rounds are served"
    with CoordinatorMailbox(tmp_path, token=TOKEN) as coordinator:
        assert worker.pending_rounds() == []
        coordinator.publish_core(OFFSETS, TARGETS, 3)
        coordinator.write_round(FIRST, np.array([0]), np.array([5]))
        assert worker.pending_rounds() == [FIRST]
        worker.write_data(leftover, ANSWER, {})
        worker.create_ok(leftover)
        assert not coordinator.ok_exists(FIRST)
        coordinator.cleanup()
    (tmp_path / leftover / "ok.flag").unlink()
    assert WorkerMailbox(tmp_path).pending_rounds() == [leftover], "without an owner all rounds are served"


def test_which_rounds_are_pending(tmp_path: Path, coordinator: CoordinatorMailbox) -> None:
    worker = WorkerMailbox(tmp_path)
    (tmp_path / layout.round_id(7, TOKEN)).mkdir()  # not announced
    (tmp_path / layout.round_id(8, TOKEN)).write_text("")  # not even a directory
    for seq in (4, 3, 2):
        coordinator.write_round(layout.round_id(seq, TOKEN), np.array([0]), np.array([seq]))
    coordinator.abandon(layout.round_id(3, TOKEN))
    (tmp_path / layout.round_id(8, TOKEN)).unlink()
    assert worker.pending_rounds() == [layout.round_id(seq, TOKEN) for seq in (1, 2, 4)]
    coordinator.remove_round(layout.round_id(2, TOKEN))
    worker.write_data(FIRST, ANSWER, {})
    worker.create_ok(FIRST)
    assert worker.pending_rounds() == [layout.round_id(4, TOKEN)]
    assert worker.round_abandoned(layout.round_id(3, TOKEN))
    assert worker.round_abandoned(layout.round_id(2, TOKEN))
    assert not worker.round_abandoned(layout.round_id(4, TOKEN))
    coordinator.abandon(layout.round_id(2, TOKEN))  # a round that is gone needs no flag


def test_an_answer_to_a_removed_round(tmp_path: Path, coordinator: CoordinatorMailbox) -> None:
    worker = WorkerMailbox(tmp_path)
    coordinator.remove_round(FIRST)
    for attempt in (
        lambda: worker.load_core(FIRST),
        lambda: worker.load_question(FIRST),
        lambda: worker.write_data(FIRST, ANSWER, {}),
        lambda: worker.create_ok(FIRST),
    ):
        with pytest.raises(RoundGone):
            attempt()
    assert not (tmp_path / FIRST).exists()


def test_stop(tmp_path: Path, coordinator: CoordinatorMailbox) -> None:
    worker = WorkerMailbox(tmp_path)
    assert not worker.stop_requested()
    coordinator.write_stop()
    coordinator.write_stop()
    assert worker.stop_requested()
    assert WorkerMailbox(tmp_path).stop_requested()
    by_hand = WorkerMailbox(tmp_path, ignore_old_stop=True)
    assert not by_hand.stop_requested(), "that flag was meant for an earlier worker"
    coordinator.close()
    with CoordinatorMailbox(tmp_path) as second:
        assert not worker.stop_requested(), "a new job takes the old flag away"
        second.write_stop()
        assert by_hand.stop_requested()


def test_a_directory_that_is_gone_means_stop(tmp_path: Path) -> None:
    worker = WorkerMailbox(tmp_path / "missing")
    assert worker.stop_requested()
    with pytest.raises(ExchangeError, match="create the exchange directory"):
        worker.announce(state="starting")
    with pytest.raises(ExchangeError, match="create the exchange directory"):
        worker.pending_rounds()


def test_a_job_needs_its_core_first(tmp_path: Path) -> None:
    with CoordinatorMailbox(tmp_path) as mailbox, pytest.raises(ExchangeError, match="no core"):
        mailbox.write_round(layout.round_id(1, mailbox.token), np.array([0]), np.array([0]))
    with pytest.raises(ValueError, match="not a round id"):
        mailbox.ok_exists("../elsewhere")
    with pytest.raises(ValueError, match="token"):
        CoordinatorMailbox(tmp_path, token="x")
    with pytest.raises(ValueError, match="format"):
        CoordinatorMailbox(tmp_path, format="xml")  # type: ignore[arg-type]


# ------------------------------------------------------------------------ what a worker may do wrong


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        (b"0 5\n1 6", "torn"),
        (b"0 5\n1 nan\n", r"data\.txt:2: not a finite number"),
        (b"0 -1\n", "negative"),
        (b"0 5.5\n", "not an integer"),
        (b"0 99999999999\n", "too large"),
        (b"0 5 6\n", "3 columns"),
        (b"\x7fELF\x02\x01\n", "not a number"),
        (b"# c\n" * 600_000, "larger than"),
    ],
)
def test_bad_answers_are_refused(
    tmp_path: Path, coordinator: CoordinatorMailbox, content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / FIRST / "data.txt").write_bytes(content)
    (tmp_path / FIRST / "ok.flag").touch()
    with pytest.raises(ExchangeError, match=words) as caught:
        coordinator.read_data(FIRST)
    assert caught.value.fix


def test_the_round_named_in_an_answer_is_handed_on(tmp_path: Path, coordinator: CoordinatorMailbox) -> None:
    (tmp_path / FIRST / "data.txt").write_bytes(f"# round {SECOND}\n0 5\n".encode())
    assert coordinator.read_data(FIRST).header["round"] == SECOND


def test_a_bad_binary_meta_file_is_refused(tmp_path: Path) -> None:
    with CoordinatorMailbox(tmp_path, token=TOKEN, format="binary") as coordinator:
        coordinator.publish_core(OFFSETS, TARGETS, 3)
        coordinator.write_round(FIRST, np.array([0]), np.array([5]))
        WorkerMailbox(tmp_path).write_data(FIRST, ANSWER, {})
        (tmp_path / FIRST / "data.meta").unlink()
        assert coordinator.read_data(FIRST).header == {}, "the meta file is optional"
        (tmp_path / FIRST / "data.meta").write_bytes(b"hello\n")
        with pytest.raises(ExchangeError, match=r"data\.meta:1"):
            coordinator.read_data(FIRST)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"1", b"[" * 60_000, b" " * 100_000])
def test_unreadable_worker_facts_are_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "worker.json").write_bytes(content)
    assert CoordinatorMailbox(tmp_path).worker_facts() is None


def test_values_of_another_round_are_not_served(tmp_path: Path, coordinator: CoordinatorMailbox) -> None:
    (tmp_path / FIRST / "value.txt").write_bytes(f"# round {SECOND}\n0 5\n".encode())
    with pytest.raises(ExchangeError, match="another round"):
        WorkerMailbox(tmp_path).load_question(FIRST)


def test_a_huge_question_is_not_read_by_the_worker(tmp_path: Path, coordinator: CoordinatorMailbox) -> None:
    worker = WorkerMailbox(tmp_path, max_bytes=4)
    with pytest.raises(ExchangeError, match="larger than the 4 bytes"):
        worker.load_core(FIRST)
