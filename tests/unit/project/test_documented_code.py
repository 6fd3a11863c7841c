"""Code blocks of the documentation, run as they stand on a small graph."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

import hybrid


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def graph_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``graph.txt.gz`` in the current folder: a path 42-7-30-5, and an edge apart."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    with gzip.open(tmp_path / "graph.txt.gz", "wt") as file:
        file.write("42 7\n7 30\n30 5\n100 101\n")
    return tmp_path / "graph.txt.gz"


def test_vertex_programs_answer_in_the_users_ids(
    project_root: Path, graph_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = python_blocks(project_root / "docs" / "how-to" / "vertex-programs.md")
    names: dict[str, Any] = {}
    exec(block, names)
    printed = eval(capsys.readouterr().out)
    assert printed == {42: 0, 7: 1, 30: 2, 5: 3}
    assert printed == hybrid.load(graph_file, directed=False).bfs(42).to_dict()
    assert names["graph"].internal_id(42) in range(names["graph"].n)


def test_the_own_algorithm_prints_what_the_page_shows(project_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = project_root / "docs" / "tutorials" / "own-algorithm.md"
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    shown = [text for language, text in blocks if not language]
    names: dict[str, Any] = {}
    for block in python_blocks(page):
        exec(block, names)
    assert capsys.readouterr().out == "".join(shown)


# Blocks of a page are run one after the other, as a reader would; those that begin with a sketch are left out.
PAGES = {
    "explanation/components.md": 1,
    "explanation/devices.md": 1,
    "how-to/graph500.md": 1,
    "index.md": 1,
    "explanation/k-core.md": 1,
    "how-to/loops.md": 2,
    "explanation/many-sources.md": 1,
    "explanation/pagerank.md": 1,
    "how-to/python-api.md": 2,
    "tutorials/one-machine.md": 3,
}


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run_as_they_stand(project_root: Path, graph_file: Path, page: str) -> None:
    names: dict[str, Any] = {}
    for at, block in enumerate(python_blocks(project_root / "docs" / page)[: PAGES[page]]):
        exec(compile(block, f"{page}, block {at + 1}", "exec"), names)
    if page == "explanation/many-sources.md":
        assert not names["changed"].any()
        assert names["done"].npu.rounds_merged > 0
