"""CONTRIBUTING's checklist holds: a class and one line make an algorithm that jobs, validate and the service have."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

import hybrid
from tests.service.conftest import GRAPH, running

TOY = ("-m", "tests.toy")


def tandem(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *TOY, *words], cwd=root, capture_output=True, text=True, timeout=100)


def test_a_job_and_its_proof(project_root: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "star.el", tmp_path / "out"
    file.write_text("7 1\n7 2\n7 3\n2 3\n9 9\n")
    words = ("--set", "algorithm=degrees", "--set", f"graph.path={file}", "--set", "result.forms=[ldbc]")
    done = tandem(project_root, "run", *words, "--output", str(out))
    assert done.returncode == 0, done.stderr
    assert "the largest degree is 3" in done.stdout
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["algorithm"], summary["certified"], summary["facts"]) == ("degrees", True, {"largest": 3})
    degree = dict(zip(np.load(out / "vertex.npy").tolist(), np.load(out / "degree.npy").tolist(), strict=True))
    assert degree == {1: 0, 2: 1, 3: 0, 7: 3, 9: 0}
    assert "Degrees" in (out / "report.html").read_text()
    proven = tandem(project_root, "validate", str(out))
    assert proven.returncode == 0, proven.stderr
    wrong = np.load(out / "degree.npy")
    wrong[1] += 1
    np.save(out / "degree.npy", wrong)
    refused = tandem(project_root, "validate", str(out))
    assert refused.returncode == 5
    assert "a degree is wrong" in refused.stderr


def test_mistakes_know_it(project_root: Path) -> None:
    near = tandem(project_root, "run", "--set", "algorithm=degree")
    assert near.returncode == 2
    assert "did you mean degrees?" in near.stderr
    ranks = tandem(project_root, "run", "--set", "algorithm=degrees", "--set", "ranks=2")
    assert ranks.returncode == 2
    assert "degrees runs on one rank" in ranks.stderr


def test_a_job_of_the_service(tmp_path: Path) -> None:
    with running(tmp_path, "npu.mode=off", program=TOY) as service:
        job = service.client.submit(GRAPH, "degrees")
        assert service.client.wait(job)["summary"]["facts"]
        found = service.client.result(job)
    graph = hybrid.generate("kronecker", scale=10, edge_factor=8, seed=1)
    assert found["vertex"].tolist() == graph.vertices.tolist()
    assert found["degree"].sum() == graph.rows.m
