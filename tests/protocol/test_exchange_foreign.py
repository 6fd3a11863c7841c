"""Workers written by someone else, who knows only the file table, serve our coordinator."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from exchange.codec.check import check_answer
from exchange.errors import ExchangeError
from exchange.filesystem.watch import Watcher
from exchange.mailbox import Answer, CoordinatorMailbox
from exchange.protocol.machines import (
    CoordinatorEvent,
    CoordinatorProtocol,
    DataBad,
    DataRead,
    Deliver,
    GiveUp,
    OkSeen,
    ReadData,
    Stop,
    Submit,
    Tick,
    WriteRound,
    WriteStop,
)
from tests.naive import close_core

HERE = Path(__file__).parent
COMMANDS = {
    "python": [sys.executable, "-I", str(HERE / "foreign_worker.py")],
    "shell": ["sh", str(HERE / "foreign_worker.sh")],
}
TIMEOUT_S = 30.0


class SmallCoordinator:
    """The least that a coordinator must do: carry out the actions, feed back what happened."""

    def __init__(self, directory: Path) -> None:
        self.mailbox = CoordinatorMailbox(directory)
        self.machine = CoordinatorProtocol(self.mailbox.token, TIMEOUT_S, TIMEOUT_S)
        self.values: dict[int, int] = {}
        self.k = 0
        self.answer: Answer | None = None
        self.delivered: list[str] = []

    def feed(self, event: CoordinatorEvent) -> None:
        events = [event]
        while events:
            for action in self.machine.handle(events.pop(0)):
                match action:
                    case WriteRound(round_id):
                        self.mailbox.write_round(
                            round_id, np.array(list(self.values)), np.array(list(self.values.values()))
                        )
                    case ReadData(round_id):
                        events.append(self.read(round_id))
                    case Deliver(round_id):
                        self.delivered.append(round_id)
                    case GiveUp(reason):
                        pytest.fail(reason)
                    case WriteStop():
                        self.mailbox.write_stop()

    def read(self, round_id: str) -> CoordinatorEvent:
        try:
            self.answer = self.mailbox.read_data(round_id)
        except ExchangeError as error:
            return DataBad(round_id, str(error))
        vertices, values = np.array(list(self.values)), np.array(list(self.values.values()))
        problems = check_answer(self.answer.pairs, self.k, vertices, values)
        if problems:
            return DataBad(round_id, "; ".join(problems))
        return DataRead(round_id, self.answer.header.get("round"))

    def ask(self, values: dict[int, int], watcher: Watcher) -> dict[int, int]:
        self.values = values
        self.feed(Submit(time.monotonic()))
        while (round_id := self.machine.round_id) is not None:
            if self.mailbox.ok_exists(round_id):
                self.feed(OkSeen(round_id))
            else:
                watcher.wait(1.0)
                self.feed(Tick(time.monotonic()))
        assert self.answer is not None
        return dict(zip(self.answer.vertices.tolist(), self.answer.values.tolist(), strict=True))


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def random_core(rng: np.random.Generator, k: int, edges: int) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """CSR of a random graph with more vertices than the core, and the edges inside the core."""
    n = k + 10
    pairs = sorted({(int(u), int(v)) for u, v in rng.integers(0, n, size=(edges, 2))})
    offsets = np.searchsorted([u for u, _ in pairs], np.arange(n + 1))
    targets = np.array([v for _, v in pairs], dtype=np.int32)
    return offsets, targets, [(u, v) for u, v in pairs if u < k and v < k]


@pytest.mark.parametrize("kind", list(COMMANDS))
def test_a_foreign_worker_gives_the_right_levels(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(11)
    coordinator = SmallCoordinator(tmp_path)
    with coordinator.mailbox, Watcher(tmp_path) as watcher, running([*COMMANDS[kind], str(tmp_path)]) as worker:
        for k, edges in ((1, 3), (40, 160), (200, 700)):
            offsets, targets, inside = random_core(rng, k, edges)
            coordinator.mailbox.publish_core(offsets, targets, k)
            coordinator.k = k
            for _ in range(2):
                known = rng.choice(k, size=max(1, k // 20), replace=False)
                sent = {int(v): int(rng.integers(0, 9)) for v in known}
                assert coordinator.ask(sent, watcher) == close_core(inside, sent)
        coordinator.feed(Stop())
        _, complaints = worker.communicate(timeout=TIMEOUT_S)
        assert (worker.returncode, complaints) == (0, "")
        assert len(coordinator.delivered) == 6
        assert coordinator.mailbox.cleanup() == []


@pytest.mark.parametrize("kind", list(COMMANDS))
def test_a_foreign_worker_leaves_abandoned_rounds_alone(tmp_path: Path, kind: str) -> None:
    coordinator = SmallCoordinator(tmp_path)
    with coordinator.mailbox as mailbox, Watcher(tmp_path) as watcher:
        mailbox.publish_core(np.array([0, 1, 2]), np.array([1, 0]), 2)
        coordinator.k = 2
        abandoned = "round-000099-" + mailbox.token
        mailbox.write_round(abandoned, np.array([0]), np.array([0]))
        mailbox.abandon(abandoned)
        with running([*COMMANDS[kind], str(tmp_path)]) as worker:
            assert coordinator.ask({0: 3}, watcher) == {0: 3, 1: 4}
            coordinator.feed(Stop())
            worker.communicate(timeout=TIMEOUT_S)
        assert not mailbox.ok_exists(abandoned)


def test_the_foreign_workers_know_nothing_of_tandem() -> None:
    for name in ("foreign_worker.py", "foreign_worker.sh"):
        source = (HERE / name).read_text()
        assert "exchange." not in source
        assert len(source.splitlines()) <= 50


def test_the_documented_worker_is_the_tested_one(project_root: Path) -> None:
    assert (HERE / "foreign_worker.sh").read_text() in (project_root / "docs" / "reference" / "protocol.md").read_text()
