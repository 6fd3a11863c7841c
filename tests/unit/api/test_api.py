"""The Python interface: results in the user's ids, checked, readable; what it costs to import."""

from __future__ import annotations

import doctest
import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hybrid
from cpu_engine.errors import InputError
from cpu_engine.sssp.rows import prepare_rows
from hybrid.api.results import Result
from hybrid.errors import ConfigError, EnvironmentProblem, NotCertified

PATHS = [(0, 1), (1, 2), (2, 3), (0, 4), (7, 8)]
TRIANGLES = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "f"), ("f", "d")]


@pytest.fixture(scope="module")
def graph() -> hybrid.Graph:
    return hybrid.from_edges(*map(list, zip(*PATHS, strict=True)), directed=False, vertices=[9])


@pytest.fixture(scope="module")
def named() -> hybrid.Graph:
    return hybrid.from_edges(TRIANGLES, directed=False)


@pytest.mark.parametrize("name", ["algorithms", "graph", "opening", "results"])
def test_examples_in_the_documentation(name: str, project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root)
    module = importlib.import_module(f"hybrid.api.{name}")
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.failed == 0
    assert found.attempted or name == "results"


def test_import_brings_nothing_heavy(project_root: Path) -> None:
    program = (
        "import sys, hybrid; dir(hybrid);"
        "heavy = {'numpy', 'numba', 'mindspore', 'mpi4py', 'networkx', 'pandas', 'pyarrow', 'yaml'} & set(sys.modules);"
        "assert not heavy, heavy; assert hybrid.__version__; hybrid.bfs([(0, 1)], 0);"
        "heavy = {'mindspore', 'mpi4py', 'networkx', 'pandas', 'pyarrow', 'matplotlib'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=project_root, env=os.environ)


def test_everything_promised_is_there() -> None:
    for name in hybrid.__all__:
        assert getattr(hybrid, name) is not None
    assert set(hybrid.__all__) <= set(dir(hybrid))
    with pytest.raises(AttributeError, match="no attribute 'bsf'"):
        hybrid.bsf  # noqa: B018


def test_bfs(graph: hybrid.Graph) -> None:
    found = graph.bfs(0)
    assert found.to_dict() == {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
    assert found.vertex.tolist() == [0, 1, 2, 3, 4, 7, 8, 9]
    assert found.level.tolist() == [0, 1, 2, 3, 1, -1, -1, -1]
    assert found.parent.tolist() == [0, 0, 1, 2, 0, -1, -1, -1]
    assert found.path(3) == [0, 1, 2, 3]
    assert found.path(0) == [0]
    assert found[3] == 3
    assert found.source == 0
    assert found.facts == {"reached": 5, "max_level": 3}
    assert found.certified
    assert found.certificate is not None
    assert found.certificate.kind == "proof"
    for absent in (7, 99, "x"):
        with pytest.raises(KeyError):
            found.path(absent)
        with pytest.raises(KeyError):
            found[absent]


def test_a_second_search_leaves_the_first_result_alone(graph: hybrid.Graph) -> None:
    first = graph.bfs(0)
    assert graph.bfs(8).to_dict() == {7: 1, 8: 0}
    assert first.to_dict() == {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
    nearest = graph.sssp(0)
    assert graph.sssp(8).to_dict() == {7: 1, 8: 0}
    assert nearest.to_dict() == first.to_dict()
    assert graph.searcher is graph.searcher
    assert len(prepare_rows(graph.rows).engines) == 1


def test_a_source_without_edges(graph: hybrid.Graph) -> None:
    assert graph.bfs(9).to_dict() == {9: 0}
    assert graph.bfs(9).path(9) == [9]
    assert graph.sssp(9).to_dict() == {9: 0}
    assert graph.personalised_pagerank(9, check=False).certificate is None
    with pytest.raises(InputError, match="vertex 5 is not in the graph"):
        graph.bfs(5)
    with pytest.raises(InputError, match="whole numbers"):
        graph.bfs("0")


def test_unchecked_results_say_so(graph: hybrid.Graph) -> None:
    found = graph.bfs(0, check=False)
    assert not found.certified
    assert found.certificate is None
    assert "not checked" in repr(found)


def test_names(named: hybrid.Graph) -> None:
    assert named.vertices.tolist() == list("abcdef")
    found = named.bfs("a")
    assert found.to_dict() == {"a": 0, "b": 1, "c": 1, "d": 2, "e": 3, "f": 3}
    assert found.path("f") == ["a", "c", "d", "f"]
    assert found.parent.tolist()[:4] == ["a", "a", "a", "c"]
    assert named.components().component.tolist() == ["a"] * 6
    assert named.label_propagation().sizes() == {"a": 3, "c": 3}
    assert named.louvain().groups() == [["a", "b", "c"], ["d", "e", "f"]]
    assert named.betweenness().facts["largest_vertex"] in ("c", "d")
    assert "from a:" in repr(found)
    with pytest.raises(InputError, match="'x' is not in the graph"):
        named.bfs("x")
    with pytest.raises(InputError, match="names apart"):
        named.save("nowhere")
    lonely = hybrid.from_edges(["a"], ["b"], vertices=["c"]).bfs("c")
    assert lonely.to_dict() == {"c": 0}
    assert lonely.parent.tolist() == [None, None, "c"]


def test_values(named: hybrid.Graph) -> None:
    assert named.triangles().total == 2
    assert named.k_core().to_dict() == dict.fromkeys("abcdef", 2)
    assert named.clustering().average == pytest.approx((4 * 1 + 2 / 3) / 6)
    assert sum(named.pagerank().to_dict().values()) == pytest.approx(1)
    assert named.pagerank(definition="gap").top(1)[0][0] in ("c", "d")
    assert named.pagerank(definition="gap").converged
    short = named.pagerank(definition="gap", iterations=1)
    assert not short.converged
    assert "not converged: after 1 iteration " in repr(short)
    assert named.personalised_pagerank("a").facts["sum"] == pytest.approx(1, abs=1e-5)
    assert named.closeness(vertices=["a", "c"]).to_dict() == pytest.approx({"a": 5 / 10, "c": 5 / 7})
    assert len(named.closeness(sample=3, harmonic=True).to_dict()) == 3
    assert named.betweenness(sources=["a"], normalised=False).certified
    directed = hybrid.from_edges([(0, 1), (1, 0), (1, 2)])
    assert directed.strong_components().count == 2


def test_personalised_pagerank_is_the_fixpoint() -> None:
    graph = hybrid.from_edges([(0, 1), (0, 2), (1, 0), (2, 3), (3, 3), (4, 0)])
    walk = np.array([[0, 0.5, 0.5, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 1, 0], [1, 0, 0, 0, 0], [1, 0, 0, 0, 0]])
    expected = np.linalg.solve(np.eye(5) - 0.85 * walk.T, 0.15 * np.eye(5)[0])
    found = graph.personalised_pagerank(0, tolerance=1e-6)
    assert found.rank == pytest.approx(expected, abs=1e-4)
    with pytest.raises(NotCertified, match="raise iterations"):
        graph.personalised_pagerank(0, iterations=1)
    with pytest.raises(ConfigError, match="damping"):
        graph.personalised_pagerank(0, damping=1)


def test_the_check_of_personalised_pagerank_finds_what_is_wrong() -> None:
    from cpu_engine.pagerank.check_personalised import check_personalised

    graph = hybrid.from_edges([(5, 6), (6, 7), (7, 5)], directed=False)
    found, root = graph.personalised_pagerank(5), graph.rows.internal_id(5)
    rank = found.rank[graph.rows.user_position]
    assert check_personalised(graph.rows, root, rank).holds
    assert "one more iteration" in check_personalised(graph.rows, root, rank).explain()
    swapped = rank[::-1].copy()
    assert not check_personalised(graph.rows, (root + 1) % 3, rank).holds
    swapped[0] = np.nan
    wrong = check_personalised(graph.rows, root, swapped)
    assert not wrong.holds
    assert "1 impossible rank; vertex 5" in wrong.explain(graph.rows)


def test_options_are_checked_as_in_a_configuration(graph: hybrid.Graph) -> None:
    with pytest.raises(ConfigError, match=r"pagerank\.definition") as told:
        graph.pagerank(definition="nobody")  # type: ignore[arg-type]
    assert "command line" not in str(told.value)
    with pytest.raises(ConfigError, match=r"cdlp\.iterations"):
        graph.label_propagation(iterations=-1)
    with pytest.raises(ConfigError, match=r"graph\.generator\.kind"):
        hybrid.generate("tree")
    with pytest.raises(InputError, match="least, most"):
        hybrid.generate("grid", rows=2, cols=2, weights=(3, 1))


def test_generated_weights() -> None:
    graph = hybrid.generate("grid", rows=4, cols=4, weights=(2, 9))
    assert graph.weighted
    weight = graph.rows.weight
    assert weight is not None
    assert 2 <= weight.min() <= weight.max() <= 9
    assert "weighted" in repr(graph)


def test_stores(graph: hybrid.Graph, tmp_path: Path) -> None:
    graph.save(tmp_path / "stored")
    assert hybrid.bfs(tmp_path / "stored", 0).to_dict() == graph.bfs(0).to_dict()
    assert hybrid.load(tmp_path / "stored").edge_count == 5


def test_text_and_html() -> None:
    shown = repr(hybrid.generate("grid", rows=4, cols=4).bfs(0))
    assert shown.startswith(
        "Breadth-first search from 0: 16 reached, depth 6\ncertified: proof\nvertex  level  parent\n"
    )
    assert shown.endswith("... 8 more")
    page = hybrid.from_edges([("<b>", "&")]).pagerank()._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>&" not in page
    assert "PageRank" in page


def test_arrow(graph: hybrid.Graph) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    found = graph.bfs(0)
    table = found.to_arrow()
    assert table.column_names == ["vertex", "level", "parent"]
    assert table["level"].to_pylist() == found.level.tolist()
    assert table["level"].chunk(0).buffers()[1].address == found.level.ctypes.data  # not a copy
    assert pyarrow.table(found).equals(table)


def test_without_pyarrow_or_matplotlib(graph: hybrid.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found: Result = graph.bfs(0)
    with pytest.raises(EnvironmentProblem, match=r"pip install -c constraints\.txt pyarrow"):
        found.to_arrow()
    with pytest.raises(EnvironmentProblem, match=r"pip install -c constraints\.txt matplotlib"):
        found.plot_distribution()


def test_plots() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    graph = hybrid.generate(scale=6, edge_factor=4)
    source = graph.pagerank().top(1)[0][0]
    axes = [
        graph.bfs(source).plot_distribution(),
        graph.bfs(source).plot_reach(),
        graph.components().plot_distribution(),
    ]
    axes.append(graph.pagerank().plot_distribution(axes[0]))
    assert axes[-1] is axes[0]
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in axes)
    pyplot.close("all")
