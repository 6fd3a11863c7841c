"""Sources, graphs and directories that are not as one would wish: an exact answer, or an error that says what to do."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.errors import InputError
from exchange.errors import ExchangeError
from exchange.filesystem.disk import Disk
from hybrid.config import load_config
from hybrid.job.driver import run_job
from hybrid.results.record import Finished
from tests.e2e.conftest import assert_exact, kronecker_pairs


@pytest.fixture
def run_file(tmp_path: Path) -> Callable[..., Finished]:
    """Run a job on an edge list with the given text, CPU only unless told otherwise."""

    def run(text: str, *settings: str) -> Finished:
        path = tmp_path / "graph.el"
        path.write_text(text)
        common = [f"graph.path={path}", "graph.directed=false", "npu.mode=off", f"output={tmp_path / 'out'}"]
        return run_job(load_config(None, [*common, *settings]))

    return run


def arrays(finished: Finished) -> tuple[list[int], list[int], list[int]]:
    vertex, level, parent = (
        np.load(finished.folder / f"{name}.npy").tolist() for name in ("vertex", "level", "parent")
    )
    return vertex, level, parent


@pytest.mark.parametrize("engine", ["async", "level"])
def test_isolated_source_reaches_itself(run_file: Callable[..., Finished], engine: str) -> None:
    finished = run_file("1 2\n2 3\n7 7\n", "source=7", f"engine={engine}")
    assert arrays(finished) == ([1, 2, 3, 7], [-1, -1, -1, 0], [-1, -1, -1, 7])
    assert finished.summary["reached"] == 1


def test_isolated_source_beside_others(run_file: Callable[..., Finished]) -> None:
    finished = run_file("1 2\n2 3\n7 7\n", "source=[7, 3]", "npu.mode=off")
    assert np.load(finished.folder / "level.npy").tolist() == [[-1, -1, -1, 0], [2, 1, 0, -1]]


def test_source_that_is_not_there(run_file: Callable[..., Finished]) -> None:
    with pytest.raises(InputError, match=r"vertex 5 is not in the graph.*nearest 3 and 7.*Fix"):
        run_file("1 2\n2 3\n7 1\n", "source=5")


def test_one_vertex(run_file: Callable[..., Finished]) -> None:
    assert arrays(run_file("4 4\n", "source=4")) == ([4], [0], [4])


def test_empty_graph(run_file: Callable[..., Finished]) -> None:
    with pytest.raises(InputError, match="no vertices"):
        run_file("# nothing\n", "source=0")
    with pytest.raises(InputError, match="no vertex with an edge"):
        run_file("# nothing\n", "source=random:2")


def test_ids_of_two_to_the_forty(run_file: Callable[..., Finished]) -> None:
    far = 1 << 40
    finished = run_file(f"{far} {far + 5}\n{far + 5} 3\n", f"source={far}")
    assert arrays(finished) == ([3, far, far + 5], [2, 0, 1], [far + 5, far, far])


def test_directed_edges_are_not_walked_backwards(run_file: Callable[..., Finished]) -> None:
    finished = run_file("1 2\n2 3\n3 1\n4 1\n", "source=1", "graph.directed=true")
    assert arrays(finished)[1] == [0, 1, 2, -1]


def test_malformed_line_one_million(run_file: Callable[..., Finished]) -> None:
    lines = [f"{i} {i + 1}\n" for i in range(999_999)] + ["17 x\n"] + ["1 2\n"] * 10
    with pytest.raises(InputError, match=r"graph\.el:1000000: .*Fix"):
        run_file("".join(lines), "source=1")


def test_truncated_gzip(tmp_path: Path) -> None:
    whole = gzip.compress("".join(f"{i} {i + 1}\n" for i in range(50_000)).encode())
    path = tmp_path / "graph.el.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"graph\.el\.gz.*Fix"):
        run_job(load_config(None, [f"graph.path={path}", "npu.mode=off", f"output={tmp_path / 'out'}"]))
    assert not (tmp_path / "out").exists()


def test_exchange_directory_that_cannot_be_made(job: Callable[..., Finished], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExchangeError, match="Fix"):
        job(f"exchange.dir={tmp_path / 'file' / 'exchange'}")
    assert not (tmp_path / "out").exists()


def failing(operation: str, code: int, spare: int) -> Callable[..., object]:
    """``Disk.operation`` that fails with ``code`` from its ``spare``-th call on."""
    original = getattr(Disk, operation)
    calls = 0

    def fail(self: Disk, *arguments: object, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls > spare:
            raise OSError(code, os.strerror(code))
        return original(self, *arguments, **options)

    return fail


def test_read_only_exchange_directory(
    job: Callable[..., Finished], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Disk, "makedirs", failing("makedirs", errno.EROFS, 0))
    with pytest.raises(ExchangeError, match=r"[Rr]ead-only.*Fix"):
        job(f"exchange.dir={tmp_path / 'exchange'}")


@pytest.mark.parametrize("spare", [1, 2, 3])
def test_exchange_directory_gets_full(
    job: Callable[..., Finished], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spare: int
) -> None:
    """The core or a round cannot be written (or just can): the CPU goes on alone."""
    monkeypatch.setattr(Disk, "write", failing("write", errno.ENOSPC, spare))
    settings = ["npu.worker=external", f"exchange.dir={tmp_path / 'exchange'}", "npu.start_timeout_s=1"]
    finished = job(*settings, "result.report=false")  # which is written by the same hand
    assert_exact(finished, kronecker_pairs(), directed=False)
    assert ("no space left" if spare < 3 else "within 1 s") in finished.summary["npu"]["outcome"]
    assert not any(run["repaired"] for run in finished.summary["runs"]), "the core was taken back in time"
