"""Rounds of many vectors and other programs, and the index: there and back, limits, and everything a worker may do."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from exchange.codec.index import require_index_of
from exchange.errors import ExchangeError
from exchange.mailbox import CoordinatorMailbox, WorkerMailbox
from exchange.protocol import layout
from exchange.protocol.layout import Format
from exchange.protocol.programs import PROGRAMS
from tests.protocol.faulty_disk import FaultyDisk

TOKEN = "0000abcd"
OFFSETS, TARGETS = np.array([0, 2, 3, 5]), np.array([1, 2, 2, 0, 7], dtype=np.int32)
ROUND = layout.round_id(1, TOKEN)
OTHER = layout.round_id(2, TOKEN)
QUESTIONS = {
    "min-plus": np.array([[5, -1, 9], [-1, -1, -1]], np.int32),
    "min-select": np.array([[2, 1, -1], [0, 2**31 - 1, 5]], np.int32),
    "plus-times": np.array([[0.1, 0.0, -3e-8], [0.0, 0.0, 0.0]], np.float32),
    "or-and": np.array([[0, 1, 0], [0, 0, 0]], np.int32),
}
ANSWERS = {
    "min-plus": np.array([[5, 6, 6], [-1, -1, -1]], np.int32),
    "min-select": np.array([[1, 1, 1], [0, 0, 0]], np.int32),
    "plus-times": np.array([[-3e-8, 0.1, 0.1], [0.0, 0.0, 0.0]], np.float32),
    "or-and": np.array([[0, 0, 1], [0, 0, 0]], np.int32),
}


@pytest.fixture(params=["text", "binary"])
def format(request: pytest.FixtureRequest) -> Format:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def coordinator(tmp_path: Path, format: Format) -> Iterator[CoordinatorMailbox]:
    with CoordinatorMailbox(tmp_path, token=TOKEN, format=format) as mailbox:
        yield mailbox


def ask(coordinator: CoordinatorMailbox, program: str = "min-plus") -> WorkerMailbox:
    coordinator.publish_core(OFFSETS, TARGETS, 3, program=program)
    coordinator.write_rows(ROUND, QUESTIONS[program])
    return WorkerMailbox(coordinator.directory)


@pytest.mark.parametrize("program", list(PROGRAMS))
def test_rows_there_and_back(coordinator: CoordinatorMailbox, program: str) -> None:
    worker = ask(coordinator, program)
    assert worker.pending_rounds() == [ROUND]
    question = worker.load_question(ROUND)
    assert question.program.name == program
    assert question.pairs is None
    assert question.rows is not None
    assert question.rows.dtype == QUESTIONS[program].dtype
    assert np.array_equal(question.rows, QUESTIONS[program])
    assert (question.batch, question.header["core"]) == (2, "3")
    worker.write_rows(ROUND, question.program, ANSWERS[program], {"device": "CPU"})
    assert not coordinator.ok_exists(ROUND)
    worker.create_ok(ROUND)
    found, header = coordinator.read_rows(ROUND, 2)
    assert found.dtype == ANSWERS[program].dtype
    assert np.array_equal(found, ANSWERS[program])
    assert (header["program"], header["batch"], header["round"], header["device"]) == (program, "2", ROUND, "CPU")


def test_the_first_form_is_unchanged(tmp_path: Path) -> None:
    """A single vector of unit min-plus: byte by byte what older workers read."""
    with CoordinatorMailbox(tmp_path, token=TOKEN) as coordinator:
        core = coordinator.publish_core(OFFSETS, TARGETS, 3)
        coordinator.write_round(ROUND, np.array([0, 2]), np.array([5, 9]))
    assert core.read_bytes() == b"# core 3\n0 1\n0 2\n1 2\n2 0\n"
    assert (tmp_path / ROUND / "value.txt").read_bytes() == f"# round {ROUND}\n# core 3\n0 5\n2 9\n".encode()
    assert sorted(os.listdir(tmp_path / ROUND)) == ["mind_graph.txt", "value.txt"]


def test_what_a_batch_looks_like_as_text(tmp_path: Path) -> None:
    with CoordinatorMailbox(tmp_path, token=TOKEN) as coordinator:
        core = coordinator.publish_core(OFFSETS, TARGETS, 3, program="plus-times", weight=np.array([0.5, 1, 1, 2, 9.0]))
        coordinator.write_rows(ROUND, QUESTIONS["plus-times"])
    facts = "# program plus-times\n# values float32\n"
    assert core.read_text() == f"# core 3\n{facts}# weights float32\n0 1 0.5\n0 2 1\n1 2 1\n2 0 2\n"
    expected = f"# round {ROUND}\n# core 3\n{facts}# batch 2\n0 0.100000001 0\n2 -2.99999989e-08 0\n"
    assert (tmp_path / ROUND / "value.txt").read_text() == expected


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_integer_weights(coordinator: CoordinatorMailbox, dtype: type) -> None:
    coordinator.publish_core(OFFSETS, TARGETS, 3, weight=np.array([4, 0, 2**31 - 1, 2, 9], dtype))
    coordinator.write_round(ROUND, np.array([0]), np.array([5]))
    edges = WorkerMailbox(coordinator.directory).load_core(ROUND)[0].edges
    assert edges.tolist() == [[0, 1, 4], [0, 2, 0], [1, 2, 2**31 - 1], [2, 0, 2]]


def test_float_weights(coordinator: CoordinatorMailbox) -> None:
    weight = np.array([0.1, -1e-30, 1 / 3, 2, 9])
    coordinator.publish_core(OFFSETS, TARGETS, 3, program="plus-times", weight=weight)
    coordinator.write_rows(ROUND, QUESTIONS["plus-times"])
    core = WorkerMailbox(coordinator.directory).load_core(ROUND)[0]
    assert core.edges.tolist() == [[0, 1], [0, 2], [1, 2], [2, 0]]
    assert core.weight is not None
    assert core.weight.tobytes() == weight[:4].astype(np.float32).tobytes()


@pytest.mark.parametrize(
    ("program", "weight", "words"),
    [
        ("min-plus", [1, 2, -3, 4, 5], "integers from 0"),
        ("min-plus", [1, 2, 0.5, 4, 5], "integers from 0"),
        ("min-plus", [1, 2, 2**31, 4, 5], "integers from 0"),
        ("min-plus", [1, 2], "2 weights for 5 edges"),
        ("min-select", [1, 2, 3, 4, 5], "knows no weights"),
        ("plus-times", [1, 2, np.nan, 4, 5], "finite"),
        ("plus-times", [1, 2, 1e39, 4, 5], "finite"),
        ("max-plus", None, "no such program"),
    ],
)
def test_cores_that_cannot_be_written(
    coordinator: CoordinatorMailbox, program: str, weight: list[float] | None, words: str
) -> None:
    with pytest.raises(ExchangeError, match=words) as caught:
        coordinator.publish_core(
            OFFSETS, TARGETS, 3, program=program, weight=None if weight is None else np.array(weight)
        )
    assert caught.value.fix


@pytest.mark.parametrize(
    ("program", "rows", "words"),
    [
        ("min-plus", np.zeros((2, 4), np.int32), "4 columns for a core of 3"),
        ("min-plus", np.zeros((2, 3), np.int64), "takes int32 values"),
        ("min-plus", np.full((2, 3), -2, np.int32), "below the least possible, -1"),
        ("plus-times", np.zeros((2, 3), np.int32), "takes float32 values"),
        ("plus-times", np.full((2, 3), np.nan, np.float32), "not a finite number"),
        ("or-and", np.full((2, 3), 2, np.int32), "only 0 and 1"),
    ],
)
def test_rows_that_cannot_be_sent(coordinator: CoordinatorMailbox, program: str, rows: np.ndarray, words: str) -> None:
    coordinator.publish_core(OFFSETS, TARGETS, 3, program=program)
    with pytest.raises(ExchangeError, match=words):
        coordinator.write_rows(ROUND, rows)
    assert not (coordinator.directory / ROUND).exists()


def test_a_batch_is_as_large_as_its_answer_may_be(tmp_path: Path, format: Format) -> None:
    with CoordinatorMailbox(tmp_path, token=TOKEN, format=format, max_bytes=1 << 14) as coordinator:
        k = 100
        coordinator.publish_core(np.zeros(k + 1, np.int64), np.empty(0, np.int32), k)
        most = coordinator.largest_batch
        with pytest.raises(ExchangeError, match=rf"at most {most} vectors at once, or raise exchange.max_bytes"):
            coordinator.write_rows(ROUND, np.zeros((most + 1, k), np.int32))
        coordinator.write_rows(ROUND, np.full((most, k), 2**31 - 1, np.int32))
        worker = WorkerMailbox(tmp_path)
        rows = worker.load_question(ROUND).rows
        worker.write_rows(ROUND, PROGRAMS["min-plus"], rows, {"device": "CPU", "iterations": 3})
        assert np.array_equal(coordinator.read_rows(ROUND, most)[0], rows)


# ------------------------------------------------------------------------ what a worker may do wrong


def saved(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def answered(coordinator: CoordinatorMailbox, data: bytes, meta: str | None = None) -> ExchangeError:
    folder = coordinator.directory / ROUND
    (folder / layout.data_name(coordinator.format)).write_bytes(data)
    if meta is not None:
        (folder / "data.meta").write_text(meta)
    with pytest.raises(ExchangeError) as caught:
        coordinator.read_rows(ROUND, 2)
    assert caught.value.fix
    return caught.value


HEAD = "# program min-plus\n# batch 2\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (HEAD + "0 5 -1\n1 6", "torn"),
        (HEAD + "0 5\n", "1 value per line"),
        (HEAD + "0 5 -1\n1 6\n", "2 columns where 3"),
        (HEAD + "0 5 -1\n0 5 -1\n", "two lines"),
        (HEAD + "3 5 -1\n", "unknown vertex"),
        (HEAD + "0 5 nan\n", "neither"),
        ("0 5 -1\n", "does not say so"),
        ("0 5\n", "does not say so"),
        ("# program min-plus\n# batch 3\n0 5 -1 -1\n", "does not say so"),
        ("# program or-and\n# batch 2\n0 5 -1\n", "does not say so"),
        ("", "does not say so"),
    ],
)
def test_bad_text_answers_are_refused(tmp_path: Path, data: str, words: str) -> None:
    with CoordinatorMailbox(tmp_path, token=TOKEN) as coordinator:
        ask(coordinator)
        assert words in answered(coordinator, data.encode()).reason


@pytest.mark.parametrize(
    ("array", "meta", "words"),
    [
        (ANSWERS["min-plus"], None, "does not say so"),
        (ANSWERS["min-plus"], "# program min-plus\n", "does not say so"),
        (ANSWERS["min-plus"][:1], HEAD, "shape"),
        (ANSWERS["min-plus"].T.copy(), HEAD, "shape"),
        (np.asfortranarray(ANSWERS["min-plus"]), HEAD, "C order"),
        (ANSWERS["min-plus"].astype(np.int64), HEAD, "must be int32"),
        (ANSWERS["min-plus"].astype(np.float32), HEAD, "must be int32"),
        (np.array([[0, 5], [1, 6]]), HEAD, "must be int32"),
        (np.full((2, 3), -2, np.int32), HEAD, "below the least possible"),
        (ANSWERS["min-plus"].ravel(), HEAD, "shape"),
    ],
)
def test_bad_binary_answers_are_refused(tmp_path: Path, array: np.ndarray, meta: str | None, words: str) -> None:
    with CoordinatorMailbox(tmp_path, token=TOKEN, format="binary") as coordinator:
        ask(coordinator)
        assert words in answered(coordinator, saved(array), meta).reason
        assert "torn" in answered(coordinator, saved(ANSWERS["min-plus"])[:-1], HEAD).reason


def test_a_step_answers_for_every_vertex(tmp_path: Path) -> None:
    """Else a file that was cut between two lines would look whole."""
    with CoordinatorMailbox(tmp_path, token=TOKEN) as coordinator:
        ask(coordinator, "plus-times")
        head = "# program plus-times\n# batch 2\n"
        assert "2 lines where all 3" in answered(coordinator, (head + "0 0 0\n1 0 0\n").encode()).reason
        assert "not a finite" in answered(coordinator, (head + "0 0 0\n1 0 0\n2 inf 0\n").encode()).reason


def test_an_older_worker_is_found_out(tmp_path: Path) -> None:
    """It reads a single vector of min-select as min-plus, and answers in good faith."""
    with CoordinatorMailbox(tmp_path, token=TOKEN) as coordinator:
        coordinator.publish_core(OFFSETS, TARGETS, 3, program="min-select")
        coordinator.write_rows(ROUND, QUESTIONS["min-select"][1:])
        (tmp_path / ROUND / "data.txt").write_text(f"# round {ROUND}\n0 0\n1 1\n2 1\n")
        with pytest.raises(ExchangeError, match=r"does not say so.*Fix: use a worker that knows this program"):
            coordinator.read_rows(ROUND, 1)


# ---------------------------------------------------------------------- what a coordinator may do wrong


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("# core 3\n0 5 -1\n1 6", "torn"),
        ("0 5 -1\n", "the size of the core is missing"),
        ("# core x\n0 5 -1\n", "the size of the core is missing"),
        ("# core 3\n3 5 -1\n", "unknown vertex"),
        ("# core 3\n# batch 3\n0 5 -1\n", "`# batch`"),
        ("# core 3\n# program max-plus\n0 5\n", "no such program"),
        ("# core 3\n# program or-and\n0 2\n", "only 0 and 1"),
        ("# core 999999999\n0 5 -1\n", "more than the"),
        (f"# core 3\n# round {OTHER}\n0 5 -1\n", "another round"),
    ],
)
def test_bad_text_questions_are_refused(tmp_path: Path, value: str, words: str) -> None:
    with CoordinatorMailbox(tmp_path, token=TOKEN) as coordinator:
        worker = ask(coordinator)
        (tmp_path / ROUND / "value.txt").write_text(value)
        with pytest.raises(ExchangeError, match=words):
            worker.load_question(ROUND)


def test_a_foreign_batch_needs_no_batch_line(tmp_path: Path) -> None:
    with CoordinatorMailbox(tmp_path, token=TOKEN) as coordinator:
        worker = ask(coordinator)
        (tmp_path / ROUND / "value.txt").write_bytes(b"# core 3\r\n\n2\t5   -1\r\n")
        question = worker.load_question(ROUND)
        assert question.rows is not None
        assert question.rows.tolist() == [[-1, -1, 5], [-1, -1, -1]]


@pytest.mark.parametrize(
    ("array", "meta", "words"),
    [
        (QUESTIONS["min-plus"], "# batch 3\n# core 3\n", "batch 2, its meta file does not"),
        (QUESTIONS["min-plus"], "# batch 2\n# core 4\n", "core 3, its meta file does not"),
        (QUESTIONS["min-plus"], "# batch 2\n# core 3\n# program plus-times\n", "must be float32"),
        (QUESTIONS["min-plus"], f"# batch 2\n# core 3\n# round {OTHER}\n", "another round"),
        (QUESTIONS["min-plus"], "# core 3\n", "the shape must be"),
        (QUESTIONS["plus-times"], "# core 3\n", "must be int32 or int64"),
    ],
)
def test_bad_binary_questions_are_refused(tmp_path: Path, array: np.ndarray, meta: str, words: str) -> None:
    with CoordinatorMailbox(tmp_path, token=TOKEN, format="binary") as coordinator:
        worker = ask(coordinator)
        (tmp_path / ROUND / "value.npy").write_bytes(saved(array))
        (tmp_path / ROUND / "value.meta").write_text(meta)
        with pytest.raises(ExchangeError, match=words):
            worker.load_question(ROUND)


# ------------------------------------------------------------------------------------------- the index

DISTANCE = np.array([[0, 1, 1], [2, 0, 1], [1, 2, 0]], np.uint8)
CORE = layout.core_name(1, TOKEN)


def index_asked(coordinator: CoordinatorMailbox) -> WorkerMailbox:
    worker = WorkerMailbox(coordinator.directory)
    coordinator.publish_core(OFFSETS, TARGETS, 3)
    assert worker.pending_indexes() == []
    coordinator.request_index()
    return worker


def test_an_index_there_and_back(coordinator: CoordinatorMailbox) -> None:
    worker = index_asked(coordinator)
    assert worker.pending_rounds() == []
    assert worker.pending_indexes() == [CORE]
    assert worker.indexed_size(CORE) == 3
    core, identity = worker.load_indexed_core(CORE)
    assert core.edges.tolist() == [[0, 1], [0, 2], [1, 2], [2, 0]]
    coordinator.write_round(ROUND, np.array([0]), np.array([5]))
    assert worker.core_identity(ROUND) == worker.indexed_identity(CORE) == identity, "resident for both"
    assert not coordinator.index_exists()
    worker.write_index(CORE, DISTANCE, {"core": 3, "device": "CPU"})
    assert coordinator.index_exists()
    index = coordinator.read_index()
    assert np.array_equal(index.distance, DISTANCE)
    assert (index.diameter, index.farthest, index.facts["device"]) == (2, 2, "CPU")
    require_index_of(index.distance, OFFSETS, TARGETS, 3)
    assert worker.pending_indexes() == []
    assert WorkerMailbox(coordinator.directory).pending_indexes() == []


def test_a_core_that_does_not_hang_together_has_no_diameter(coordinator: CoordinatorMailbox) -> None:
    worker = index_asked(coordinator)
    worker.write_index(CORE, np.where(DISTANCE == 2, 255, DISTANCE).astype(np.uint8), {})
    index = coordinator.read_index()
    assert (index.diameter, index.farthest) == (None, 1)


def test_an_abandoned_index_and_one_of_a_dead_job_are_nobodys_work(coordinator: CoordinatorMailbox) -> None:
    worker = index_asked(coordinator)
    stranger = coordinator.directory / layout.core_name(1, "1111abcd")
    stranger.mkdir()
    (stranger / layout.INDEX_REQUEST).write_text("# core 3\n")
    assert worker.pending_indexes() == [CORE]
    assert not worker.index_abandoned(CORE)
    coordinator.abandon_index()
    assert worker.index_abandoned(CORE)
    assert worker.pending_indexes() == []
    with pytest.raises(ValueError, match="not a core's name"):
        worker.index_abandoned("../elsewhere")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "no such file"),
        (saved(DISTANCE)[:-1], "torn"),
        (saved(DISTANCE.astype(np.int32)), "must be uint8"),
        (saved(DISTANCE[:2]), "shape"),
        (saved(np.zeros((100, 100), np.uint8)), "larger than|shape"),
        (b"0 1 1\n", "not a .npy file"),
    ],
)
def test_bad_indexes_are_refused(coordinator: CoordinatorMailbox, data: bytes | None, words: str) -> None:
    index_asked(coordinator)
    if data is not None:
        (coordinator.directory / CORE / layout.INDEX).write_bytes(data)
    (coordinator.directory / CORE / layout.OK_FLAG).touch()
    with pytest.raises(ExchangeError, match=words):
        coordinator.read_index()


@pytest.mark.parametrize(
    ("u", "v", "distance", "words"),
    [
        (0, 0, 1, "0 on its diagonal"),
        (0, 1, 0, "0 on its diagonal"),
        (0, 1, 2, "are next to"),
        (1, 0, 1, "are not next"),
    ],
)
def test_the_index_of_another_core_is_refused(u: int, v: int, distance: int, words: str) -> None:
    wrong = DISTANCE.copy()
    wrong[u, v] = distance
    with pytest.raises(ExchangeError, match=words):
        require_index_of(wrong, OFFSETS, TARGETS, 3)


def test_which_indexes_cannot_be_asked_for(tmp_path: Path) -> None:
    with CoordinatorMailbox(tmp_path, token=TOKEN, max_bytes=5000) as coordinator:
        with pytest.raises(ExchangeError, match="no core"):
            coordinator.request_index()
        coordinator.publish_core(OFFSETS, TARGETS, 3, weight=np.ones(5, np.int64))
        with pytest.raises(ExchangeError, match="an index counts edges"):
            coordinator.request_index()
        coordinator.publish_core(np.zeros(101, np.int64), np.empty(0, np.int32), 100)
        with pytest.raises(
            ExchangeError, match=r"takes 14096 bytes, and exchange.max_bytes is 5000.*Fix: choose a smaller"
        ):
            coordinator.request_index()
        assert WorkerMailbox(tmp_path).pending_indexes() == []


@pytest.mark.parametrize("what", ["rows", "index"])
def test_every_disk_operation_fails_once(tmp_path: Path, format: Format, what: str) -> None:
    """As in test_exchange_faults: a complete file or none, and an error that says how to mend it."""

    def run(directory: Path, disk: FaultyDisk) -> ExchangeError | None:
        mailbox = CoordinatorMailbox(directory, token=TOKEN, format=format, disk=disk)
        worker = WorkerMailbox(directory, disk=disk)
        try:
            mailbox.open()
            if what == "rows":
                mailbox.publish_core(OFFSETS, TARGETS, 3)
                mailbox.write_rows(ROUND, QUESTIONS["min-plus"])
                worker.write_rows(ROUND, worker.load_question(ROUND).program, ANSWERS["min-plus"], {})
                worker.create_ok(ROUND)
                assert np.array_equal(mailbox.read_rows(ROUND, 2)[0], ANSWERS["min-plus"])
            else:
                mailbox.publish_core(OFFSETS, TARGETS, 3)
                mailbox.request_index()
                for name in worker.pending_indexes():
                    worker.load_indexed_core(name)
                    worker.write_index(name, DISTANCE, {"core": worker.indexed_size(name)})
                if mailbox.index_exists():
                    assert np.array_equal(mailbox.read_index().distance, DISTANCE)
        except ExchangeError as error:
            return error
        finally:
            for flag in directory.glob(f"*/{layout.OK_FLAG}"):
                names = os.listdir(flag.parent)
                assert {"data.txt", "data.npy", "index.npy"} & set(names), "a flag without its file"
            mailbox.cleanup()
        return None

    counter = FaultyDisk()
    assert run(tmp_path / "whole", counter) is None
    errors = [run(tmp_path / str(k), FaultyDisk(k)) for k in range(1, counter.count + 1)]
    assert all(error.fix for error in errors if error is not None)
    assert sum(error is not None for error in errors) > counter.count // 2
