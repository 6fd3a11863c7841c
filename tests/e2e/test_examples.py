"""The examples run as they are, and say what they promise; so do the cells of the notebook. The site builds."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROMISED = {
    "road_map.py": "fewest streets: ",
    "influence.py": "inner core: [1, 2, 3, 4, 8, 9, 14, 31, 33, 34]",
    "custom_operator.py": "edges inside: 0; maximal: True",
    "sssp_stages.py": "edges looked at; Dijkstra's algorithm looks at 96642",
    "cluster_job.py": "2 ranks sent",
    "external_worker.py": "certified: True",
}


@pytest.mark.heavy
@pytest.mark.parametrize("name", PROMISED)
def test_example(name: str, project_root: Path, tmp_path: Path) -> None:
    example = project_root / "examples" / name
    ended = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, cwd=project_root, timeout=100
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert PROMISED[name] in ended.stdout


def test_every_example_is_run(project_root: Path) -> None:
    assert {path.name for path in (project_root / "examples").glob("*.py")} == set(PROMISED)


@pytest.mark.heavy
def test_documentation_builds(project_root: Path, tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = {
        **os.environ,
        "NO_MKDOCS_2_WARNING": "1",
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }
    ended = subprocess.run(command, capture_output=True, text=True, cwd=project_root, env=environment, timeout=100)
    assert ended.returncode == 0, ended.stderr[-3000:]
    reference = [f"reference/{name}" for name in ("api-reference", "command-line", "configuration")]
    for name in ("index", "tutorials/one-machine", "how-to/examples", *reference):
        page = (tmp_path / "site" / f"{name}.html").read_text(encoding="utf-8")
        assert not re.search(r'<(script|link|img)[^>]*(src|href)="(https?:)?//', page), name  # nothing from elsewhere
    page = (tmp_path / "site" / "reference" / "api-reference.html").read_text(encoding="utf-8")
    assert all(f'id="hybrid.api.algorithms.{name}"' in page for name in ("bfs", "sssp", "betweenness"))


@pytest.mark.heavy
def test_notebook(monkeypatch: pytest.MonkeyPatch, project_root: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("networkx")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.close("all")  # another test may have left one open
    notebook = json.loads((project_root / "examples" / "tour.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = [
        run_cell("".join(cell["source"]), names, f"cell {number}")
        for number, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code"
    ]
    assert all(value._repr_html_() for value in shown if hasattr(value, "_repr_html_"))
    assert shown[-1] == (False, True)
    assert len(pyplot.get_fignums()) == 2
    pyplot.close("all")


def run_cell(source: str, names: dict[str, Any], place: str) -> Any:
    """As a notebook does: run it all, and show the value of the last line if that is an expression."""
    tree = ast.parse(source, place)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, place, "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), place, "eval"), names)
