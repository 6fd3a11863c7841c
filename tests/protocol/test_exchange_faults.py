"""The k-th disk operation fails, for every k: a complete state or a clean error, and never half a file."""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from exchange.codec import binary, text
from exchange.errors import ExchangeError
from exchange.filesystem.folder import Folder
from exchange.filesystem.owner_lock import lock_directory
from exchange.mailbox import CoordinatorMailbox, WorkerMailbox
from exchange.protocol import layout
from exchange.protocol.layout import Format
from tests.protocol.faulty_disk import OPERATIONS, FaultyDisk

TOKEN = "0000abcd"
OFFSETS, TARGETS = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0], dtype=np.int32)
EDGES = [[0, 1], [0, 2], [1, 2], [2, 0]]
VALUES, ANSWER = [[0, 5]], [[0, 5], [1, 6], [2, 6]]
FIRST, SECOND = layout.round_id(1, TOKEN), layout.round_id(2, TOKEN)


class Job:
    """One whole exchange, both sides, on one disk; each step is a call that may raise ExchangeError only."""

    def __init__(self, directory: Path, format: Format, durable: bool, disk: FaultyDisk) -> None:
        self.coordinator = CoordinatorMailbox(directory, format=format, token=TOKEN, durable=durable, disk=disk)
        self.worker = WorkerMailbox(directory, durable=durable, disk=disk)

    def steps(self) -> list[Callable[[], object]]:
        vertices, values = np.array(VALUES).T
        return [
            self.coordinator.open,
            self.open_again,
            lambda: self.coordinator.publish_core(OFFSETS, TARGETS, 3),
            lambda: self.worker.announce(state="ready"),
            lambda: self.coordinator.write_round(FIRST, vertices, values),
            self.serve,
            self.receive,
            lambda: self.coordinator.remove_round(FIRST),
            lambda: self.coordinator.write_round(SECOND, vertices, values),
            lambda: self.worker.write_data(SECOND, np.array(ANSWER), {}),
            lambda: self.coordinator.abandon(SECOND),
            self.coordinator.write_stop,
        ]

    def open_again(self) -> None:
        self.coordinator.close()
        self.coordinator.open()

    def serve(self) -> None:
        assert self.worker.pending_rounds() == [FIRST]
        core, identity = self.worker.load_core(FIRST)
        assert core.edges.tolist() == EDGES
        assert identity == self.worker.core_identity(FIRST)
        question = self.worker.load_question(FIRST)
        assert question.pairs is not None
        assert question.pairs.tolist() == VALUES
        assert not self.worker.stop_requested()
        assert not self.worker.round_abandoned(FIRST)
        self.worker.write_data(FIRST, np.array(ANSWER), {"iterations": 2})
        self.worker.create_ok(FIRST)

    def receive(self) -> None:
        assert self.coordinator.ok_exists(FIRST)
        answer = self.coordinator.read_data(FIRST)
        assert answer.pairs.tolist() == ANSWER
        assert answer.header["round"] == FIRST
        facts = self.coordinator.worker_facts()
        assert facts is None or facts["state"] == "ready"


def run(directory: Path, format: Format, durable: bool, disk: FaultyDisk) -> tuple[list[ExchangeError], list[str]]:
    """Take every step until one fails; then clean up, as a coordinator does. What both complained about."""
    errors: list[ExchangeError] = []
    job = Job(directory, format, durable, disk)
    for step in job.steps():
        try:
            step()
        except ExchangeError as error:
            errors.append(error)
            break
    require_no_half_file(directory)
    job.worker.close()
    problems = job.coordinator.cleanup()
    require_no_half_file(directory)
    return errors, problems


def require_no_half_file(directory: Path) -> None:
    for folder in visible_folders(directory):
        names = set(os.listdir(folder))
        for format, parse_pairs, parse_edges in (
            ("text", lambda d, p: text.parse_pairs(d, p)[0], lambda d, p: text.parse_edges(d, p)[0]),
            ("binary", binary.parse_pairs, binary.parse_edges),
        ):
            graph, value, data = (
                name(format) for name in (layout.mind_graph_name, layout.value_name, layout.data_name)
            )
            if graph in names:
                assert parse_edges((folder / graph).read_bytes(), graph).tolist() == EDGES
            if value in names:
                assert parse_pairs((folder / value).read_bytes(), value).tolist() == VALUES
            if data in names:
                assert parse_pairs((folder / data).read_bytes(), data).tolist() == ANSWER
        assert not names & {"ok.flag"} or names & {"data.txt", "data.npy"}, "a flag without its file"
    if (directory / layout.WORKER_FACTS).exists():
        assert (directory / layout.WORKER_FACTS).read_text().endswith("}\n")


def visible_folders(directory: Path) -> list[Path]:
    if not directory.exists():
        return []
    return [path for path in directory.iterdir() if path.is_dir() and not path.name.startswith(".")]


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("format", ["text", "binary"])
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("broken", [False, True], ids=["once", "from-then-on"])
def test_every_operation_fails_once(tmp_path: Path, format: Format, durable: bool, broken: bool) -> None:
    counter = FaultyDisk()
    assert run(tmp_path / "whole", format, durable, counter) == ([], [])
    assert sorted(os.listdir(tmp_path / "whole")) == ["stop.flag", "worker.json"]
    gc.collect()  # what other tests have left open is closed now, not while this one counts
    before = open_descriptors()
    failed: set[str] = set()
    for k in range(1, counter.count + 1):
        directory = tmp_path / str(k)
        disk = FaultyDisk(k, broken=broken, code=errno.ENOSPC if k % 2 else errno.EIO)
        errors, problems = run(directory, format, durable, disk)
        failed.add(disk.failed[0])
        assert all(error.fix for error in errors)
        hidden = list(directory.rglob(".*")) if directory.exists() else []
        assert broken or problems or not hidden, "a temporary file is removed when its writing fails"
        assert open_descriptors() == before, "no descriptor leaks"
        if directory.exists():
            with Folder.open(directory) as folder:
                lock_directory(folder, TOKEN).release(remove=True)  # the directory is free again
    reached = set(OPERATIONS) if durable else set(OPERATIONS) - {"sync"}
    assert failed == reached, "the scenario uses every operation"


def test_cleanup_tells_what_it_could_not_remove(tmp_path: Path) -> None:
    class Stubborn(FaultyDisk):
        def rmdir(self, name: str, at: int) -> None:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    mailbox = CoordinatorMailbox(tmp_path, token=TOKEN, disk=Stubborn())
    mailbox.open()
    mailbox.publish_core(OFFSETS, TARGETS, 3)
    problems = mailbox.cleanup()
    assert len(problems) == 1
    assert "removed: cannot remove the directory: permission denied" in problems[0]
    assert mailbox.cleanup() == []


def test_a_round_that_cannot_be_announced_leaves_no_directory(tmp_path: Path) -> None:
    class NoValues(FaultyDisk):
        def rename(self, source: str, source_at: int, target: str, target_at: int) -> None:
            if target == "value.txt":
                raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
            super().rename(source, source_at, target, target_at)

    with CoordinatorMailbox(tmp_path, token=TOKEN, disk=NoValues()) as mailbox:
        mailbox.publish_core(OFFSETS, TARGETS, 3)
        with pytest.raises(ExchangeError, match="quota"):
            mailbox.write_round(FIRST, np.array([0]), np.array([5]))
        assert sorted(os.listdir(tmp_path)) == ["core-0000abcd-0001", "owner.lock"]
