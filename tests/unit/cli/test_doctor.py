"""``doctor`` writes, reads and opens what a job would, and leaves nothing behind."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cpu_engine.graph import memory
from hybrid.checkout import MPI, install_packages
from hybrid.cli import main
from hybrid.cli.commands.doctor import Finding, check_folders, check_graph, check_mpi, check_packages
from hybrid.config import load_config
from hybrid.config.schema import Config
from hybrid.errors import EXIT_OK

Check = Callable[[Config], Iterator[Finding]]


def findings(check: Check, *settings: str) -> dict[str, Finding]:
    return {one.subject: one for one in check(load_config(None, settings))}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch) -> Path:
    """A working folder of its own."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TANDEM_CACHE", str(tmp_path / "not" / "yet"))
    return folder


def test_folders_that_work_are_as_they_were_afterwards(tmp_path, here):
    before = sorted(tmp_path.rglob("*"))
    found = findings(check_folders, f"exchange.dir={tmp_path / 'exchange' / 'a'}", f"output={tmp_path / 'r' / 'one'}")
    assert {subject: one.state for subject, one in found.items()} == {
        "graph cache": "ok", "results": "ok", "exchange": "ok",
    }  # fmt: skip
    assert all("written and read" in one.detail for one in found.values())
    assert findings(check_folders)["results"].state == "ok"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("place", ["/etc/passwd", "/etc/passwd/below", "/proc/nope", "/proc/nope/deeper"])
def test_places_that_cannot_be_written_fail(place, monkeypatch):
    monkeypatch.setenv("TANDEM_CACHE", place)
    found = findings(check_folders, f"exchange.dir={place}", f"output={place}")
    assert {one.state for one in found.values()} == {"FAIL"}
    assert all(place in one.detail and one.fix for one in found.values())
    assert findings(check_folders, f"graph.cache_dir={place}")["graph cache"].state == "FAIL"


def test_a_result_folder_that_a_job_would_refuse_fails(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    found = findings(check_folders, f"output={tmp_path / 'thesis'}")["results"]
    assert found.state == "FAIL"
    assert [one.name for one in (tmp_path / "thesis").iterdir()] == ["chapter.txt"]


def test_a_disk_that_gives_back_something_else_fails(monkeypatch, tmp_path):
    monkeypatch.setattr(Path, "read_bytes", lambda self: b"")
    assert findings(check_folders)["graph cache"].state == "FAIL"


def test_the_configured_graph_is_opened(tmp_path, monkeypatch):
    file = tmp_path / "graph.el"
    file.write_text("0 1\n1 2\n")
    assert "2 edges read" in findings(check_graph, f"graph.path={file}")["graph"].detail
    assert main(["convert", str(file), str(tmp_path / "store"), "--to", "store"]) == EXIT_OK
    assert findings(check_graph, f"graph.path={tmp_path / 'store'}")["graph"].state == "ok"
    (tmp_path / "store" / "out_targets.npy").unlink()
    for wrong, told in (
        (tmp_path / "grap.el", "there is no such file"),
        (tmp_path / "store", "missing from the store"),
        (tmp_path, "is a directory"),
    ):
        found = findings(check_graph, f"graph.path={wrong}")["graph"]
        assert (found.state, told in found.detail, bool(found.fix)) == ("FAIL", True, True)
    file.write_text("0 1\n1 2\n2 x\n3 4\n")
    assert "line 3" in findings(check_graph, f"graph.path={file}")["graph"].detail
    monkeypatch.setattr("hybrid.cli.commands.doctor._READ_WHOLE", 4)
    assert "only its beginning was read" in findings(check_graph, f"graph.path={file}")["graph"].detail


def test_a_generated_graph_must_fit(monkeypatch):
    assert findings(check_graph)["graph"].state == "ok"
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 20)
    found = findings(check_graph, "graph.cache=false")["graph"]
    assert found.state == "FAIL"
    assert "needs about" in found.detail


def test_a_package_that_is_missing_or_unfit_is_installed_from_the_clone(monkeypatch):
    versions = {"numpy": "2.1", "mindspore": "2.10"}

    def version(package: str) -> str:
        if package not in versions:
            raise importlib.metadata.PackageNotFoundError(package)
        return versions[package]

    monkeypatch.setattr(importlib.metadata, "version", version)
    found = findings(check_packages)
    assert (found["mpi4py"].state, found["mpi4py"].fix) == ("FAIL", install_packages("mpi4py"))
    assert found["numpy"].fix.endswith(install_packages("numpy"))


def test_a_launcher_that_fails_and_one_that_does_not_answer(tmp_path, monkeypatch):
    launcher = tmp_path / "mpirun"
    launcher.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    launcher.chmod(0o755)
    found = findings(check_mpi, f"cluster.mpirun={launcher}")["mpi"]
    assert (found.detail, found.fix) == ("mpirun failed: broken", install_packages(*MPI, again=True))
    launcher.write_text("#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setattr("hybrid.cli.commands.doctor._MPI_TIMEOUT_S", 0.2)
    found = findings(check_mpi, f"cluster.mpirun={launcher}")["mpi"]
    assert found.state == "FAIL"
    assert found.detail.endswith("did not answer within 0.2 s and was ended")
    assert "install" not in found.fix
