"""A real service in a process of its own, one for all tests that do not need another."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hybrid.client import Client
from tests.conftest import ROOT, eventually

pytest.importorskip("fastapi", reason="the service is not installed: pip install -c constraints.txt -e '.[service]'")

SMALL = "graph.generator={scale: 10, edge_factor: 8, seed: 1}"
GRAPH = "kronecker-s10-ef8-seed1"


@dataclass
class Running:
    client: Client
    process: subprocess.Popen[str]
    log: Path
    port: int

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(100)
        finally:
            assert self.process.stdout is not None
            self.process.stdout.close()


@contextmanager
def running(
    folder: Path,
    *sets: str,
    token: str | None = None,
    program: Sequence[str] = ("run.py",),
    files: int | None = None,
) -> Iterator[Running]:
    """A service on a free port, its journal in ``folder``; ``files``: how many it may have open."""
    command = [] if files is None else ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh"]
    command += [sys.executable, *program, "serve", "--port", "0"]
    for one in (SMALL, f"service.journal_dir={folder / 'journal'}", *sets):
        command += ["--set", one]
    log = folder / "log.txt"
    with log.open("a") as errors:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "serves on" in line, log.read_text()
    port = int(line.rpartition(":")[2])
    found = Running(Client(f"http://127.0.0.1:{port}", token=token), process, log, port)
    try:
        eventually(found.client.ready, 200)
        yield found
    finally:
        found.stop()


def start_endless_job(service: Running) -> str:
    """A job that outlasts every test, on the graph ``big``, which is made for it."""
    big = service.client.generate(scale=15, id="big")
    return service.client.submit(big, "betweenness", centrality__sources="random:20000")


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("service")
    data = folder / "data"
    data.mkdir()
    (data / "path.el").write_text("0 1\n1 2\n2 3\n7 8\n")
    (data / "bad.el").write_text("0 1\nx y\n")
    (folder / "secret.el").write_text("0 1\n")
    (data / "link.el").symlink_to(folder / "secret.el")
    (data / "evil.properties").write_text("graph.e.vertex-file = ../secret.el\ngraph.e.edge-file = ../secret.el\n")
    with running(folder, f"service.data_roots=[{data}]", "service.max_upload_bytes=10000") as found:
        yield found
