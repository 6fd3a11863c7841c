"""Hostile exchange directories: anything under every name that the protocol knows, changed between any two calls.

One case is a short job, coordinator and worker. Nothing but an ExchangeError may leave a mailbox, and nothing at all a
solver; no file outside of the directory changes, nothing of it is shown, and what is said is fit for a terminal.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import logging
import os
import random
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from exchange.codec.binary import encode_array
from exchange.errors import DirectoryRefused, ExchangeError
from exchange.filesystem.disk import Disk
from exchange.mailbox import CoordinatorMailbox, WorkerMailbox
from hybrid.config import load_config
from hybrid.results.trace import Trace
from hybrid.worker.solver import WorkerSolver

K = 8
OFFSETS = np.arange(0, 2 * K + 1, 2)
TARGETS = np.array([(v + step) % K for v in range(K) for step in (1, 3)], np.int32)
SECRET = b"SECRET WORDS\n"
TOP = ["owner.lock", "worker.json", "stop.flag", ".x", "core-0000abcd-0001", "round-000001-0000abcd"]
INSIDE = [
    "mind_graph.txt", "mind_graph.npy", "value.txt", "value.npy", "value.meta", "data.txt", "data.npy", "data.meta",
    "ok.flag", "stop.flag", "index_request.txt", "index.npy", "index.meta", ".data.txt.tmp",
]  # fmt: skip
WORDS = [
    "0", "1", "7", "8", "-1", "nan", "1e999", "9" * 30, "\x1b[2J", "# round x", "# core 8", "# batch 2",
    "# values int32", "# program min-plus", "# program or-and", "# device \x9b31m", "\x00", "\n", " ", "\t", "0 0\n",
]  # fmt: skip
_base = Path()


@contextlib.contextmanager
def opened() -> Iterator[None]:
    """A folder for all cases, in memory where there is one."""
    global _base
    memory = Path("/dev/shm")
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="tandem-fuzz-", dir=memory if memory.is_dir() else None) as folder:
        _base = Path(folder)
        yield
    logging.disable(logging.NOTSET)


def case(rng: random.Random) -> None:
    """One job on a directory of its own."""
    directory, private = _base / "exchange", _base / "private"
    for made in (directory, private):
        made.mkdir()
    (private / "secret").write_bytes(SECRET)
    try:
        _Job(rng, directory, private).run()
        assert os.listdir(private) == ["secret"], os.listdir(private)
        assert (private / "secret").read_bytes() == SECRET
    finally:
        shutil.rmtree(_base / "exchange", ignore_errors=True)
        with contextlib.suppress(OSError):
            os.unlink(_base / "exchange")
        shutil.rmtree(private)


class _Meddling(Disk):
    """A disk on which somebody else is busy: now and then, just before a call, something changes."""


def _meddling(name: str) -> Any:
    real = getattr(Disk, name)

    def method(self: Any, *arguments: Any) -> Any:
        self.meddle()
        return real(self, *arguments)

    return method


for _name in [name for name in vars(Disk) if not name.startswith("_")]:
    setattr(_Meddling, _name, _meddling(_name))


@functools.cache
def _config(format: str) -> Any:
    options = ["npu.worker=external", "exchange.watch=poll", f"exchange.format={format}", "exchange.max_bytes=65536"]
    return load_config(None, [*options, "npu.round_timeout_s=600", "npu.start_timeout_s=600"])


class _Job:
    def __init__(self, rng: random.Random, directory: Path, private: Path) -> None:
        self.rng, self.directory, self.private = rng, directory, private
        self.often = rng.choice([0.0, 0.0, 0.02, 0.1])
        self.busy = False
        disk: Any = _Meddling()
        disk.meddle = self.meddle
        config = _config(rng.choice(["text", "binary"]))
        config = dataclasses.replace(config, exchange=dataclasses.replace(config.exchange, dir=str(directory)))
        self.solver = WorkerSolver(config, private / "worker.log", Trace())
        self.solver._mailbox = CoordinatorMailbox(
            directory,
            format=self.solver._mailbox.format,
            max_bytes=65536,
            token=self.solver._mailbox.token,
            own_worker=rng.random() < 0.3,
            disk=disk,
        )
        self.worker = WorkerMailbox(directory, max_bytes=65536, disk=disk)
        self.token = self.solver._mailbox.token

    def run(self) -> None:
        rng, solver = self.rng, self.solver
        for _ in range(rng.choice([0, 0, 1, 3])):
            self.spoil()
        try:
            with contextlib.suppress(DirectoryRefused):
                solver.start()
                self.rounds()
        finally:
            solver.close()
            self.worker.close()
        for text in (solver.failure, solver.index_failure, solver.device):
            assert text.isprintable(), text
            assert "SECRET" not in text, text

    def rounds(self) -> None:
        rng, solver = self.rng, self.solver
        program = rng.choice(["min-plus", "min-plus", "min-select", "or-and", "plus-times"])
        solver.publish_edges(OFFSETS, TARGETS, K, program=program)
        if program == "min-plus" and rng.random() < 0.3 and solver.usable:
            solver.request_index()
        for _ in range(rng.randint(1, 3)):
            if not solver.usable:
                break
            kind = np.float32 if program == "plus-times" else np.int32
            values = np.zeros((K,) if rng.random() < 0.5 else (2, K), kind)
            solver.submit(values)
            for _ in range(rng.randint(0, 4)):
                rng.choice([self.spoil, self.spoil, self.serve, self.look])()
            for _ in range(2):
                answer = solver.poll()
                if answer is not None:
                    assert answer.values.shape == values.shape
                    assert all(fact.isprintable() for fact in answer.facts.values())
            solver.poll_index()
            solver._look_for_worker_facts()
            solver.abandon()

    # ------------------------------------------------------------------------------- an honest worker

    def serve(self) -> None:
        with contextlib.suppress(ExchangeError):
            for round_id in self.worker.pending_rounds():
                question = self.worker.load_question(round_id)
                self.worker.load_core(round_id)
                if question.pairs is not None:
                    self.worker.write_data(round_id, question.pairs, {"device": "CPU"})
                else:
                    self.worker.write_rows(round_id, question.program, question.rows, {"device": "CPU"})
                self.worker.create_ok(round_id)

    def look(self) -> None:
        worker = self.worker
        for attempt in (worker.stop_requested, lambda: worker.announce(state="ready"), self.look_at_indexes):
            with contextlib.suppress(ExchangeError):
                attempt()

    def look_at_indexes(self) -> None:
        for name in self.worker.pending_indexes():
            self.worker.indexed_size(name)
            self.worker.load_indexed_core(name)
            self.worker.write_index(name, np.zeros((K, K), np.uint8), {"core": K})

    # -------------------------------------------------------------------------------------- somebody else

    def meddle(self) -> None:
        if not self.busy and self.rng.random() < self.often:
            self.busy = True
            try:
                self.spoil()
            finally:
                self.busy = False

    def spoil(self) -> None:
        """Put something of a random kind under a random name."""
        rng = self.rng
        folders = [self.directory]
        with contextlib.suppress(OSError):
            folders += [self.directory / name for name in sorted(os.listdir(self.directory)) if "-" in name]
        folder = rng.choice(folders)
        names = TOP + [path.name for path in folders[1:]] if folder == self.directory else INSIDE
        path = folder / rng.choice(names).replace("0000abcd", self.token)
        with contextlib.suppress(OSError):
            if rng.random() < 0.02:
                os.rename(self.directory, _base / "aside")
                shutil.rmtree(_base / "aside", ignore_errors=True)
            if os.path.realpath(folder).startswith(str(self.private)):
                return  # a link that was put here before: nobody else can write where it leads
            if rng.random() < 0.8:
                remove(path)
            rng.choice(self.kinds())(path)

    def kinds(self) -> list[Callable[[Path], object]]:
        rng, secret = self.rng, self.private / "secret"
        return [
            remove,
            Path.mkdir,
            lambda path: nest(path, rng.choice([1, 3, 60])),
            os.mkfifo,
            lambda path: path.symlink_to(rng.choice([self.private, secret, path.name, "missing", "/dev/zero", "."])),
            lambda path: os.link(rng.choice([secret, self.directory / "owner.lock"]), path),
            lambda path: write_new(path, self.content(path.name)),
            lambda path: write_new(path, self.content(path.name)),
            lambda path: write_new(path, b"", 1 << rng.choice([10, 17, 40])),
            lambda path: os.rename(path, path.with_name(rng.choice(INSIDE + TOP))),
            lambda path: path.chmod(rng.choice([0, 0o400, 0o777])),
            listen,
        ]

    def content(self, name: str) -> bytes:
        """Bytes for a file: noise, words of the format in any order, or a valid file with a few bytes changed."""
        rng = self.rng
        kind = rng.randrange(4)
        if kind == 0:
            return rng.randbytes(rng.choice([0, 1, 100, 5000]))
        if kind == 1:
            return " ".join(rng.choices(WORDS, k=rng.randint(1, 40))).encode("utf-8", "surrogateescape")
        if name.endswith(".json"):
            facts = {
                key: rng.choice([1, -1, 10**25, 1e308, "ready", "stopped", "\x1b[1m", None, [], {}, True, self.token])
                for key in rng.sample(["pid", "host", "state", "heartbeat", "device", "skipped_round", "error"], 4)
            }
            valid = json.dumps({**facts, "host": socket.gethostname()}).encode()
        elif name.endswith(".npy"):
            shape = rng.choice([(K, 2), (2, K), (1, K), (K, K), (0, 2), (K,)])
            valid = encode_array(np.zeros(shape, rng.choice([np.int64, np.int32, np.uint8, np.float32])))
        else:
            valid = b"# core 8\n" + b"".join(b"%d %d\n" % (v, rng.randint(0, 9)) for v in range(rng.randint(0, K)))
        return valid if kind == 2 else mutate(rng, valid)


def mutate(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed[: rng.randint(0, len(changed))] if rng.random() < 0.3 else changed)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_new(path: Path, data: bytes, size: int | None = None) -> None:
    """A file in the place of whatever is there; with ``size``, so large and empty."""
    remove(path)
    with path.open("xb") as file:
        file.write(data)
        file.truncate(size)


def nest(path: Path, depth: int) -> None:
    remove(path)
    os.makedirs(path / "/".join("d" * depth))


def listen(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
