"""The result folder is complete or absent, never somebody else's, and validate believes only what it can prove."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hybrid.cli.commands.validate import validate_result
from hybrid.config import load_config
from hybrid.errors import EnvironmentProblem, NotCertified
from hybrid.job.driver import run_job
from hybrid.results.folder import ResultFolder, sweep_partials
from hybrid.results.record import Finished


def test_jobs_that_start_together_get_different_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [ResultFolder(None, "bfs") for _ in range(5)]
    assert len({folder.final for folder in folders}) == 5
    folders[0].write_summary({})
    folders[0].commit()
    for folder in folders[1:]:
        folder.discard()
    assert [path.name for path in (tmp_path / "results").iterdir()] == [folders[0].final.name]


def test_an_older_result_is_replaced_only_by_a_finished_one(tmp_path: Path) -> None:
    for text in ("first", "second"):
        folder = ResultFolder(str(tmp_path / "out"), "bfs")
        folder.write_summary({"text": text})
        folder.commit()
    ResultFolder(str(tmp_path / "out"), "bfs").discard()
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["text"] == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_stays_when_the_job_fails(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    ResultFolder(str(tmp_path / "out"), "bfs").discard()
    assert (tmp_path / "out").is_dir()


def test_somebody_elses_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(EnvironmentProblem, match="not a Tandem result"):
        ResultFolder(str(tmp_path), "bfs")


def test_unfinished_folders_of_dead_jobs_are_swept(tmp_path: Path) -> None:
    here, dead = socket.gethostname(), 2**22 + 1  # beyond the largest pid
    left, foreign = tmp_path / f".a.{here}.{dead}.partial", tmp_path / f".a.elsewhere.{dead}.partial"
    mine = tmp_path / f".b.{here}.{os.getpid()}.partial"
    for folder in (left, foreign, mine):
        folder.mkdir()
    ResultFolder(str(tmp_path / "out"), "bfs").discard()
    assert sorted(tmp_path.iterdir()) == sorted([foreign, mine])


@pytest.fixture
def finished(tmp_path: Path) -> Finished:
    settings = ["graph.generator.scale=7", "source=random:2", "npu.mode=off", f"output={tmp_path / 'out'}"]
    return run_job(load_config(None, settings))


def test_validate_believes_a_right_result(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert validate_result(finished.folder, []) == 0


def change(folder: Path, name: str, how) -> None:
    np.save(folder / f"{name}.npy", how(np.load(folder / f"{name}.npy")))


HOSTILE: dict[str, Callable[[Path], object]] = {
    "an empty array": lambda folder: (folder / "level.npy").write_bytes(b""),
    "an archive": lambda folder: replace_by_archive(folder / "level.npy"),
    "a FIFO for an array": lambda folder: replace_by_fifo(folder / "level.npy"),
    "a false head": lambda folder: (folder / "level.npy").write_bytes(b"\x93NUMPY\x01\x00\x10\x00{'descr': (((((("),
    "an endless shape": lambda folder: (folder / "level.npy").write_bytes(false_head("(" + "9" * 900 + ",)")),
    "more than memory": lambda folder: (folder / "level.npy").write_bytes(false_head("(99999999999999,)")),
    "nested JSON": lambda folder: (folder / "summary.json").write_text("[" * 100_000),
    "more than memory, and there": lambda folder: make_sparse(folder / "level.npy", "(99999999999,)"),
    "more vertices than memory": lambda folder: make_sparse(folder / "vertex.npy", "(99999999999,)", "<i8"),
    "a FIFO for the configuration": lambda folder: replace_by_fifo(folder / "config.yaml"),
    "an endless summary": lambda folder: os.truncate(folder / "summary.json", 1 << 40),
    "a FIFO for the summary": lambda folder: replace_by_fifo(folder / "summary.json"),
}


def replace_by_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_archive(path: Path) -> None:
    with path.open("wb") as stream:
        np.savez(stream, level=np.arange(3))


def make_sparse(path: Path, shape: str, kind: str = "<i4") -> None:
    """A file that is as long as its head says, and takes no room."""
    path.write_bytes(false_head(shape, kind))
    os.truncate(path, 1 << 40)


def false_head(shape: str, kind: str = "<i4") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize("kind", HOSTILE)
def test_validate_explains_hostile_files(finished: Finished, kind: str) -> None:
    HOSTILE[kind](finished.folder)
    with pytest.raises((NotCertified, EnvironmentProblem), match="Fix: "):
        validate_result(finished.folder, [])


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("level", lambda level: level.astype(np.int64) + 2**32),
        ("level", lambda level: level + 0.5),
        ("level", lambda level: level.astype(str)),
        ("level", lambda level: level[:1]),
        ("level", lambda level: np.where(level == 1, 2, level).astype(np.int32)),
        ("parent", lambda parent: np.where(parent == parent.max(), 10**12, parent)),
        ("parent", lambda parent: np.roll(parent, 1, axis=0)),
        ("vertex", lambda vertex: vertex + 1),
    ],
)
def test_validate_refuses_arrays_that_are_wrong(finished: Finished, name: str, how) -> None:
    change(finished.folder, name, how)
    with pytest.raises(NotCertified, match="Fix: "):
        validate_result(finished.folder, [])


@pytest.mark.parametrize(
    "how",
    [
        lambda summary: summary.pop("sources"),
        lambda summary: summary.update(sources=["x", "y"]),
        lambda summary: summary["runs"][0].update(reached=999),
        lambda summary: summary["runs"][1].update(max_level=77),
    ],
)
def test_validate_refuses_a_summary_that_is_wrong(finished: Finished, how) -> None:
    path = finished.folder / "summary.json"
    summary = json.loads(path.read_text())
    how(summary)
    path.write_text(json.dumps(summary))
    with pytest.raises(NotCertified, match="Fix: "):
        validate_result(finished.folder, [])


def test_a_keeper_sweeps_what_it_was_to_keep(tmp_path: Path) -> None:
    folder = ResultFolder(str(tmp_path / "out"), "bfs", os.getpid())
    sweep_partials(tmp_path)
    assert folder.path.is_dir(), "the keeper lives"
    sweep_partials(tmp_path, os.getpid())
    assert not list(tmp_path.iterdir())
