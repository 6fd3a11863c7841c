"""The worker as a process: real MindSpore, real files, real signals."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest

from exchange.filesystem.watch import Watcher
from exchange.mailbox import Answer, CoordinatorMailbox
from exchange.protocol import layout
from tests.conftest import eventually, is_alive
from tests.npu import device_side
from tests.npu.twin import as_pairs, min_plus

PATIENCE_S = 60.0
MOST_CORES = 8  # npu_engine.resident; not imported, since MindSpore comes with it
TOKEN = "0123abcd"

Start = Callable[..., "Process"]


class Process:
    """A worker and its log file."""

    def __init__(self, root: Path, log: Path, command: list[str], environment: dict[str, str]) -> None:
        self.log_path = log
        with log.open("wb") as stream:
            self.popen = subprocess.Popen(
                [sys.executable, *command], cwd=root, stdout=stream, stderr=stream, env={**os.environ, **environment}
            )

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def wait(self) -> int:
        try:
            return self.popen.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the worker does not end:\n{self.log}")

    def until(self, condition: Callable[[], bool], what: str, directory: Path) -> None:
        """Wait for something in the directory; fail at once when the worker is gone."""
        deadline = time.monotonic() + PATIENCE_S
        with Watcher(directory) as watcher:
            while not condition():
                if self.popen.poll() is not None and not condition():
                    pytest.fail(f"the worker ended with {self.popen.returncode} before {what}:\n{self.log}")
                if time.monotonic() > deadline:
                    pytest.fail(f"no {what} within {PATIENCE_S:g} s:\n{self.log}")
                watcher.wait(0.1)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    found = tmp_path / "exchange"
    found.mkdir()
    return found


@pytest.fixture
def start(project_root: Path, directory: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts workers on the exchange directory; kills what is left of them."""
    started: list[Process] = []

    def call(*flags: str, command: list[str] | None = None, environment: dict[str, str] | None = None) -> Process:
        command = command or ["-m", "npu_engine", "--exchange", str(directory), *flags]
        environment = {"TMPDIR": str(tmp_path), **(environment or {})}
        process = Process(project_root, tmp_path / f"worker-{len(started)}.log", command, environment)
        started.append(process)
        return process

    yield call
    for process in started:
        with contextlib.suppress(OSError):
            process.popen.kill()
        process.popen.wait()


def facts(directory: Path) -> dict[str, object]:
    try:
        return json.loads((directory / layout.WORKER_FACTS).read_text())
    except FileNotFoundError:
        return {}


def csr(edges: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    return np.concatenate(([0], np.cumsum(np.bincount(edges[:, 0], minlength=k)))), edges[:, 1].astype(np.int32)


def write_by_hand(directory: Path, seq: int, graph: str, value: str, *also: str) -> str:
    """A round as somebody else's coordinator would write it: only the names and line formats."""
    round_id = layout.round_id(seq, TOKEN)
    folder = directory / f".{round_id}"
    folder.mkdir()
    (folder / "mind_graph.txt").write_text(graph)
    (folder / "value.txt").write_text(value)
    for name in also:
        (folder / name).touch()
    folder.rename(directory / round_id)
    return round_id


def answer_of(directory: Path, round_id: str) -> list[str]:
    lines = (directory / round_id / "data.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def serve_job(worker: Process, directory: Path, format: layout.Format, cores: list[np.ndarray], k: int) -> list[Answer]:
    """A coordinator's job: two rounds on each core, every answer compared with the twin."""
    draw = np.random.default_rng(len(cores))
    answers = []
    with CoordinatorMailbox(directory, format=format) as box:
        for number, edges in enumerate(cores):
            box.publish_core(*csr(edges, k), k)
            for seq in (2 * number + 1, 2 * number + 2):
                vertices = np.sort(draw.choice(k, seq, replace=False))
                values = draw.integers(3, 6, seq)
                round_id = layout.round_id(seq, box.token)
                box.write_round(round_id, vertices, values)
                worker.until(lambda at=round_id: box.ok_exists(at), f"answer to {round_id}", directory)  # type: ignore[misc]
                answers.append(box.read_data(round_id))
                expected = as_pairs(min_plus(edges, np.column_stack((vertices, values))))
                assert np.array_equal(answers[-1].pairs, expected)
    return answers


def test_a_worker_serves_jobs_and_bad_rounds_until_stop(start: Start, directory: Path) -> None:
    """One worker for all of it, since each start costs seconds: the point is that it goes on."""
    (directory / layout.STOP_FLAG).touch()  # of yesterday's job: this worker is started by hand after it
    worker = start("--device", "cpu")
    draw = np.random.default_rng(5)
    cores = [draw.integers(0, 40, (edges, 2)) for edges in (90, 200)]

    # What a dead job left: broken in every way, and one round that nobody waits for.
    torn = write_by_hand(directory, 1, "0 1\n", "0 0\n1")
    unknown = write_by_hand(directory, 2, "0 1\n", "# core 2\n0 0\n9 0\n")
    negative = write_by_hand(directory, 3, "0 1\n", "0 -1\n")
    no_graph = write_by_hand(directory, 4, "nan 1\n", "0 0\n")
    too_far = write_by_hand(directory, 5, "0 1\n", f"0 0\n1 {2**24}\n")
    abandoned = write_by_hand(directory, 6, "0 1\n", "0 0\n", layout.STOP_FLAG)
    foreign = write_by_hand(directory, 7, f"# any\n7 {2**40}\n{2**40} 7\n\n", "7 4\n")
    worker.until(lambda: (directory / foreign / layout.OK_FLAG).exists(), f"answer to {foreign}", directory)
    assert answer_of(directory, foreign) == ["7 4", f"{2**40} 5"]
    for round_id, why in [
        (torn, "value.txt:2"),
        (unknown, "unknown vertex 9"),
        (negative, "value.txt:1"),
        (no_graph, "mind_graph.txt:1"),
        (too_far, "values span"),
    ]:
        assert any(round_id in line and "skipped" in line and why in line for line in worker.log.splitlines())
    assert facts(directory)["skipped_round"] == too_far
    for round_id in (torn, unknown, negative, no_graph, too_far, abandoned):
        assert not (directory / round_id / layout.OK_FLAG).exists()

    weighted = write_by_hand(directory, 8, "1 2 5\n2 3 5\n1 3 11\n", "1 0\n")
    worker.until(lambda: (directory / weighted / layout.OK_FLAG).exists(), f"answer to {weighted}", directory)
    assert answer_of(directory, weighted) == ["1 0", "2 5", "3 10"]

    cores_before = worker.log.count("core of round-")
    text = serve_job(worker, directory, "text", cores, 40)
    binary = serve_job(worker, directory, "binary", cores, 40)
    for answer in text + binary:
        assert answer.header["device"] == "CPU"
        assert int(answer.header["iterations"]) >= 1
        assert float(answer.header["read_s"]) > 0
        assert float(answer.header["compute_s"]) > 0
    assert worker.log.count("core of round-") - cores_before == 4  # two per job: resident from round to round

    worker.until(lambda: facts(directory)["state"] == "ready", "rest", directory)
    ready = facts(directory)
    assert ready["rounds"] == 10
    assert ready["resident_cores"] == MOST_CORES
    assert int(str(ready["resident_bytes"])) > 0
    assert ready["device"] == "CPU"
    assert ready["pid"] == worker.popen.pid
    with CoordinatorMailbox(directory) as box:
        box.write_stop()
    assert worker.wait() == 0
    assert facts(directory)["state"] == "stopped"
    assert worker.log.splitlines()[-1].endswith("stopped: stop.flag")


def test_the_heart_beats_at_rest_and_at_work(start: Start, directory: Path) -> None:
    """A path of thousands of vertices takes seconds; the coordinator hears of the worker all the while."""
    worker = start("--device", "cpu")
    worker.until(lambda: facts(directory).get("state") == "ready", "worker.json", directory)
    heard = facts(directory)["heartbeat"]
    worker.until(lambda: facts(directory)["heartbeat"] != heard, "second heartbeat at rest", directory)
    graph = "".join(f"{vertex} {vertex + 1}\n" for vertex in range(6000))
    round_id = write_by_hand(directory, 1, graph, "0 0\n")
    beats: set[object] = set()

    def beaten() -> bool:
        told = facts(directory)
        beats.update([told["heartbeat"]] if told["state"] in ("loading", "busy") else [])
        return len(beats) >= 2

    worker.until(beaten, "two heartbeats at work", directory)
    assert not (directory / round_id / layout.OK_FLAG).exists()
    (directory / layout.STOP_FLAG).touch()
    assert worker.wait() == 0


def test_on_a_terminal_one_line_tells_the_rounds(project_root: Path, directory: Path) -> None:
    graph, value = "0 1\n", "0 0\n"
    round_id = write_by_hand(directory, 1, graph, value)
    leader, follower = os.openpty()
    command = [sys.executable, "run.py", "worker", "--exchange", str(directory), "--device", "cpu"]
    worker = subprocess.Popen(command, cwd=project_root, stdout=subprocess.DEVNULL, stderr=follower)
    os.close(follower)
    shown = ""
    try:
        while "1 round served" not in shown:
            shown += os.read(leader, 4096).decode()
        worker.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # EIO: the worker has closed its end
            while True:
                shown += os.read(leader, 4096).decode()
    finally:
        os.close(leader)
        worker.kill()
        worker.wait()
    assert "\r\x1b[KCPU ready: 0 rounds served" in shown
    assert "1 round served, the last in" in shown
    assert "core of round-000001" in shown
    assert f"{round_id}: core 2" not in shown, "rounds are in the status line"
    assert "stopped: SIGINT" in shown


def test_a_signal_stops_a_worker_in_the_middle_of_a_long_round(start: Start, directory: Path) -> None:
    """A path of thousands of vertices takes thousands of iterations; nobody waits for it after SIGTERM."""
    worker = start("--device", "cpu", "--watch", "poll", "--poll-interval", "0.01")
    graph = "".join(f"{vertex} {vertex + 1}\n" for vertex in range(3000))
    round_id = write_by_hand(directory, 1, graph, "0 0\n")
    worker.until(lambda: f"core of {round_id}" in worker.log, "core in the log", directory)
    worker.popen.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert facts(directory)["state"] == "stopped"
    assert facts(directory)["reason"] == "SIGTERM"
    assert not (directory / round_id / layout.OK_FLAG).exists()


def test_a_signal_stops_a_starting_worker(start: Start, directory: Path) -> None:
    worker = start("--device", "cpu")
    worker.until(lambda: facts(directory).get("state") == "starting", "worker.json", directory)
    worker.popen.send_signal(signal.SIGINT)
    assert worker.wait() == 0
    assert facts(directory)["state"] == "stopped"


def test_a_program_that_raises_costs_one_round_only(device_process: ProcessPoolExecutor, directory: Path) -> None:
    lost, served, after = (write_by_hand(directory, seq, "0 1\n", "0 0\n") for seq in (1, 2, 3))
    log, answered = device_process.submit(device_side.serve_with_a_faulty_program, str(directory)).result(PATIENCE_S)
    assert answered == 1
    assert answer_of(directory, served) == ["0 0", "1 1"]
    assert not (directory / lost / layout.OK_FLAG).exists()
    assert not (directory / after / layout.OK_FLAG).exists()
    assert "Traceback" in log
    assert f"{lost}: skipped: ZeroDivisionError: the device is on fire" in log


# ------------------------------------------------------------------------------------------- the parent


def test_a_worker_whose_parent_is_gone_leaves_at_once(start: Start, directory: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    worker = start("--parent", str(gone.pid))
    assert worker.wait() == 0
    assert "not the parent any more" in worker.log
    assert not facts(directory)


def test_killing_the_parent_kills_the_worker(start: Start, directory: Path, without_mindspore: dict[str, str]) -> None:
    script = (
        "import os, subprocess, sys, time\n"
        "worker = subprocess.Popen([sys.executable, '-m', 'npu_engine', '--exchange', sys.argv[1], '--device', 'cpu',"
        " '--parent', str(os.getpid())])\n"
        "worker.wait()\n"
    )
    parent = start(command=["-c", script, str(directory)])
    parent.until(lambda: facts(directory).get("state") == "ready", "worker.json", directory)
    worker = psutil.Process(int(str(facts(directory)["pid"])))
    assert worker.ppid() == parent.popen.pid
    parent.popen.kill()
    eventually(lambda: not is_alive(worker), PATIENCE_S)
    (scratch,) = directory.glob(".worker-*")
    assert scratch.name.startswith(layout.worker_scratch_prefix(worker.pid))
    assert scratch.stat().st_mode & 0o077 == 0, "its owner's alone"


# ----------------------------------------------------------------------------------- what goes wrong at the start


def test_an_explicit_device_that_is_missing_is_an_error(start: Start, directory: Path) -> None:
    worker = start("--device", "ascend")
    assert worker.wait() == 4
    last = worker.log.splitlines()[-1]
    assert last.startswith("tandem-worker: error: no Ascend device: ")
    assert "found: CPU" in last
    assert ". Fix: check `npu-smi info`" in last
    assert "no Ascend device" in str(facts(directory)["error"])


def test_an_ascend_device_that_fails_in_auto_mode_leads_to_the_cpu(start: Start, directory: Path) -> None:
    """MindSpore is made to believe in a device; its own failure to start it is real, and so is the second start."""
    script = (
        "import os, sys\n"
        "os.environ['GLOG_v'] = '3'\n"
        "import npu_engine.device\n"
        "npu_engine.device.count_ascend = lambda: (1, '')\n"
        "from npu_engine.__main__ import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    round_id = write_by_hand(directory, 1, "0 1\n", "0 0\n")
    worker = start(command=["-c", script, "--exchange", str(directory), "--once"])
    assert worker.wait() == 0, worker.log
    assert not list(directory.glob(".worker-*"))  # neither start leaves its scratch directory
    assert answer_of(directory, round_id) == ["0 0", "1 1"]
    assert "Ascend device 0 does not start: " in worker.log
    assert "starting again on the CPU" in worker.log
    assert facts(directory)["device"] == "CPU"
    assert facts(directory)["pid"] == worker.popen.pid
    assert "does not start" in str(facts(directory)["why"])


@pytest.fixture
def without_mindspore(tmp_path: Path) -> dict[str, str]:
    """An environment in which importing MindSpore fails, as with a missing library."""
    package = tmp_path / "shim" / "mindspore"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('libmindspore_core.so: no such file')\n")
    return {"PYTHONPATH": str(package.parent)}


def test_a_missing_mindspore_is_an_error(start: Start, directory: Path, without_mindspore: dict[str, str]) -> None:
    worker = start(environment=without_mindspore)
    assert worker.wait() == 3
    last = worker.log.splitlines()[-1]
    assert last.startswith(
        "tandem-worker: error: MindSpore cannot be imported: libmindspore_core.so: no such file. Fix: "
    )
    assert facts(directory)["state"] == "stopped"


def test_help_needs_no_mindspore(start: Start, without_mindspore: dict[str, str]) -> None:
    worker = start("--help", environment=without_mindspore)
    assert worker.wait() == 0
    assert "Exit codes: 0 stopped" in worker.log


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--device", "gpu"], "invalid choice: 'gpu'"),
        (["--threads", "0"], "must be a whole number from 1 on, not '0'"),
        (["--memory-budget", "1MiB"], "must be a whole number from 4096 on, not '1MiB'"),
        (["--poll-interval", "soon"], "must be a number above 0 and up to 60, not 'soon'"),
    ],
)
def test_wrong_flags_are_an_error(start: Start, flags: list[str], why: str) -> None:
    worker = start(*flags)
    assert worker.wait() == 2
    assert why in worker.log


@pytest.mark.parametrize("path", ["no/where", "worker-0.log"], ids=["missing", "a file"])
def test_a_missing_exchange_directory_is_an_error(start: Start, tmp_path: Path, path: str) -> None:
    worker = start(command=["-m", "npu_engine", "--exchange", str(tmp_path / path)])
    assert worker.wait() == 5
    assert f"{path}: there is no such directory. Fix: create it" in worker.log.splitlines()[-1]


def test_a_worker_started_by_hand_creates_the_directory(
    start: Start, directory: Path, without_mindspore: dict[str, str]
) -> None:
    directory.rmdir()
    assert start("--parent", str(os.getpid()), environment=without_mindspore).wait() == 5
    assert start(environment=without_mindspore).wait() == 3
    assert facts(directory)["state"] == "stopped"


def test_an_exchange_directory_that_cannot_be_written_is_an_error(start: Start, directory: Path) -> None:
    (directory / layout.WORKER_FACTS).mkdir()  # works as root too, unlike taking permissions away
    worker = start()
    assert worker.wait() == 5
    assert "worker.json: cannot write the file" in worker.log.splitlines()[-1]
