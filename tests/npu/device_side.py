"""What the tests run in a process of its own, since MindSpore is loaded there: functions for a one-process pool."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np


def prepare(folder: str) -> None:
    """First thing in the process: MindSpore's environment, and a place for the folders that it leaves."""
    os.chdir(folder)
    from npu_engine.__main__ import set_environment

    set_environment(threads=1)
    from npu_engine.device import choose_device

    choose_device("cpu")


_programs: dict[bool, object] = {}


def program(compiled: bool):  # type: ignore[no-untyped-def]
    """One program per form for the whole process, so that every test also follows on another one's core."""
    from npu_engine.program import CoreProgram

    if compiled not in _programs:
        _programs[compiled] = CoreProgram(compiled=compiled)
    return _programs[compiled]


def answer(compiled: bool, edges: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, int]:
    core = program(compiled)
    core.load(edges)
    found = core.run(pairs)
    return found.pairs, found.iterations


def refusal(compiled: bool, edges: np.ndarray, pairs: np.ndarray) -> str:
    """The text of the ProgramError that this input raises."""
    from npu_engine.program import ProgramError

    try:
        answer(compiled, edges, pairs)
    except ProgramError as error:
        return str(error)
    return ""


def interruption(compiled: bool, edges: np.ndarray, pairs: np.ndarray, looks: int) -> int:
    """How often ``keep_going`` was asked when it says no at the given look."""
    from npu_engine.program import Interrupted

    core = program(compiled)
    core.load(edges)
    asked = 0

    def keep_going() -> bool:
        nonlocal asked
        asked += 1
        return asked < looks

    try:
        core.run(pairs, keep_going)
    except Interrupted:
        return asked
    return -1


def serve_with_a_faulty_program(directory: str) -> tuple[str, int]:
    """Serve until one round is answered, with a program that fails on its first run; what the log says."""
    from exchange.mailbox import WorkerMailbox
    from exchange.watch import Watcher
    from npu_engine.program import Answer, CoreProgram
    from npu_engine.worker import Worker

    class Faulty(CoreProgram):
        runs = 0

        def run(self, *arguments: object) -> Answer:  # type: ignore[override]
            self.runs += 1
            if self.runs == 1:
                raise ZeroDivisionError("the device is on fire")
            return super().run(*arguments)  # type: ignore[arg-type]

    record = Path(directory).with_suffix(".log")
    log = logging.Logger("faulty")
    log.addHandler(handler := logging.FileHandler(record))
    with Watcher(directory, "poll") as watcher:
        worker = Worker(WorkerMailbox(directory), watcher, Faulty(compiled=False), device="CPU", log=log, once=True)
        worker.serve()
    handler.close()
    return record.read_text(), worker.answered
