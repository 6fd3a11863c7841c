"""What the tests run in a process of its own, since MindSpore is loaded there: functions for a one-process pool."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np


def prepare(folder: str) -> None:
    """First thing in the process: MindSpore's environment, and a place for the folders that it leaves."""
    os.chdir(folder)
    from npu_engine.__main__ import set_environment

    set_environment(threads=1)
    from npu_engine.device import choose_device

    choose_device("cpu")


_programs: dict[tuple[bool, int | None], object] = {}
_devices: dict[tuple[bool, int], object] = {}


def program(compiled: bool, budget: int | None = None):  # type: ignore[no-untyped-def]
    """One program per form for the whole process, so that every test also follows on another one's core."""
    from npu_engine.program import CoreProgram

    if (compiled, budget) not in _programs:
        _programs[compiled, budget] = CoreProgram(compiled=compiled, memory_budget=budget)
    return _programs[compiled, budget]


def answer(
    compiled: bool, edges: np.ndarray, pairs: np.ndarray, budget: int | None = None
) -> tuple[np.ndarray, int, bool]:
    """The values, the iterations, and whether the core was worked on in pieces."""
    core = program(compiled, budget)
    core.load(edges)
    found = core.run(pairs)
    return found.pairs, found.iterations, core.in_pieces


def batch_answer(compiled: bool, edges: np.ndarray, rows: np.ndarray, budget: int | None = None) -> np.ndarray:
    core = program(compiled, budget)
    core.load(edges)
    return core.run_batch(rows)


def batch_refusal(edges: np.ndarray, rows: np.ndarray) -> str:
    from npu_engine.program import ProgramError

    try:
        batch_answer(False, edges, rows)
    except ProgramError as error:
        return str(error)
    return ""


def table_names() -> list[str]:
    from npu_engine.programs.table import PROGRAMS

    return list(PROGRAMS)


def table_answer(
    name: str, compiled: bool, budget: int, size: int, ends: np.ndarray, weight: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A program of the table: the batch, and its rows as vectors, one after another."""
    from npu_engine.programs.table import PROGRAMS, CoreEdges, Device, vector

    if (compiled, budget) not in _devices:
        _devices[compiled, budget] = Device(compiled=compiled, budget=budget, threads=2)
    placed = PROGRAMS[name].place(CoreEdges(size, ends, weight.astype(np.float32)), _devices[compiled, budget])
    return placed.batch(rows), np.array([vector(placed, row) for row in rows])


def tiles(
    budget: int,
    padded: bool,
    threads: int,
    size: int,
    ends: np.ndarray,
    active: np.ndarray,
    wanted: np.ndarray,
    rows: int,
) -> tuple[list[tuple[int, int]], int]:
    """The edges that the tiles hold together, and the most bytes that any of them takes with its vectors."""
    from npu_engine.programs.compaction import CompactedCore, largest_side
    from npu_engine.programs.cores import CoreEdges

    found: list[tuple[int, int]] = []
    most = 0
    core = CompactedCore(CoreEdges(size, ends), largest_side(budget), padded=padded, threads=threads)
    for tile in core.tiles(active, wanted, rows):
        matrix = tile.matrix.asnumpy()
        target, source = np.nonzero(matrix)
        found += zip(tile.sources[source].tolist(), tile.targets[target].tolist(), strict=True)
        most = max(most, 4 * (matrix.size + rows * sum(matrix.shape)))
    return found, most


def index_answer(
    compiled: bool, edges: np.ndarray, rows: np.ndarray, pairs: np.ndarray, budget: int | None = None
) -> tuple[np.ndarray, np.ndarray, int | None, np.ndarray, np.ndarray, int]:
    """Vertices, distances, diameter; rows closed by the index; pairs closed by the program afterwards, iterations."""
    from npu_engine.index import IndexBuilding

    core = program(compiled, budget)
    core.load(edges)
    building = IndexBuilding(core)
    while not building.advance():
        pass
    index = building.finish()
    after = core.run(pairs)
    return index.vertices, index.distance, index.diameter, index.close(rows), after.pairs, after.iterations


def index_refusal(edges: np.ndarray) -> str:
    from npu_engine.index import IndexBuilding
    from npu_engine.program import ProgramError

    core = program(False)
    core.load(edges)
    try:
        building = IndexBuilding(core)
        while not building.advance():
            pass
    except ProgramError as error:
        return str(error)
    return ""


def refusal(compiled: bool, edges: np.ndarray, pairs: np.ndarray) -> str:
    """The text of the ProgramError that this input raises."""
    from npu_engine.program import ProgramError

    try:
        answer(compiled, edges, pairs)
    except ProgramError as error:
        return str(error)
    return ""


def interruption(compiled: bool, edges: np.ndarray, pairs: np.ndarray, looks: int, budget: int | None = None) -> int:
    """How often ``keep_going`` was asked when it says no at the given look."""
    core = program(compiled, budget)
    core.load(edges)
    return _looks(lambda keep_going: core.run(pairs, keep_going), looks)


def batch_interruption(compiled: bool, edges: np.ndarray, rows: np.ndarray, looks: int) -> int:
    core = program(compiled)
    core.load(edges)
    return _looks(lambda keep_going: core.run_batch(rows, keep_going), looks)


def _looks(work: Callable[[Callable[[], bool]], object], looks: int) -> int:
    from npu_engine.program import Interrupted

    asked = 0

    def keep_going() -> bool:
        nonlocal asked
        asked += 1
        return asked < looks

    try:
        work(keep_going)
    except Interrupted:
        return asked
    return -1


def serve_with_a_faulty_program(directory: str) -> tuple[str, int]:
    """Serve until one round is answered, with a program that fails on its first run; what the log says."""
    from exchange.filesystem.watch import Watcher
    from exchange.mailbox import WorkerMailbox
    from npu_engine.program import Answer, CoreProgram
    from npu_engine.resident import ResidentCores
    from npu_engine.worker import Worker

    class Faulty(CoreProgram):
        runs = 0

        def run(self, *arguments: object) -> Answer:  # type: ignore[override]
            Faulty.runs += 1
            if self.runs == 1:
                raise ZeroDivisionError("the device is on fire")
            return super().run(*arguments)  # type: ignore[arg-type]

    record = Path(directory).with_suffix(".log")
    log = logging.Logger("faulty")
    log.addHandler(handler := logging.FileHandler(record))
    with Watcher(directory, "poll") as watcher:
        cores = ResidentCores(compiled=False, kind=Faulty)
        worker = Worker(WorkerMailbox(directory), watcher, cores, device="CPU", log=log, once=True)
        worker.serve()
    handler.close()
    return record.read_text(), worker.answered


def resident_answers(
    compiled: bool, budget: int, cores: list[np.ndarray], asked: list[int], rows: np.ndarray
) -> tuple[list[np.ndarray], list[int], list[int], int]:
    """Answers in the order asked; after each, the bytes and the cores that are kept; how many were placed in all."""
    from npu_engine.resident import ResidentCores

    kept = ResidentCores(compiled=compiled, memory_budget=budget)
    answers, sizes, counts, placed = [], [], [], 0
    for number in asked:
        core = kept.find((number, "min-plus"), len(rows))
        if core is None:
            core = kept.place((number, "min-plus"), cores[number])
            placed += 1
        answers.append(core.run_batch(rows))
        sizes.append(kept.nbytes)
        counts.append(len(kept))
    return answers, sizes, counts, placed


def two_programs(compiled: bool, edges: np.ndarray, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Two programs on one core, in turns, twice."""
    from npu_engine.resident import ResidentCores

    kept = ResidentCores(compiled=compiled)
    found = {}
    for _ in range(2):
        for name in ("min-plus", "min-select"):
            core = kept.find((0, name)) or kept.place((0, name), edges)
            found[name] = core.run_rows(rows)[0]
    assert len(kept) == 2
    return found


def abandoned_index(directory: str) -> tuple[list[bool], list[str], str]:
    """An index given up after its first block, then one that is built: busy or not after each step, files, reason."""
    from exchange.mailbox import CoordinatorMailbox, WorkerMailbox
    from npu_engine.index_service import EAGER_ROWS, IndexService
    from npu_engine.pulse import Pulse
    from npu_engine.resident import ResidentCores

    cores = ResidentCores(compiled=False)
    worker = WorkerMailbox(directory)
    log = logging.Logger("index")
    log.addHandler(logging.NullHandler())
    pulse = Pulse(worker, cores, device="CPU")
    service = IndexService(worker, cores, device="CPU", log=log, why_stop=lambda: None, pulse=pulse)
    size = 2 * EAGER_ROWS
    offsets, targets = np.arange(size + 1), (np.arange(size, dtype=np.int32) + 1) % 200
    steps = []
    with CoordinatorMailbox(directory) as coordinator:
        coordinator.publish_core(offsets, targets, size)
        coordinator.request_index()
        for step in range(3):
            if step == 1:
                coordinator.abandon_index()
            assert service.serve()
            steps.append(service.busy)
        reason = str((coordinator.worker_facts() or {}).get("skipped_why"))
        coordinator.publish_core(offsets, targets, size)
        coordinator.request_index()
        for _ in range(3):
            assert service.serve()
            steps.append(service.busy)
        names = [path.parent.name[-4:] for path in Path(directory).glob("core-*/ok.flag")]
        assert (coordinator.read_index().distance.diagonal() == 0).all()
    return steps, names, reason
