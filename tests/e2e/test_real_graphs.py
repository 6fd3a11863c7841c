"""Graphs that nobody here wrote: levels equal scipy's, for both engines, with and without the real worker."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse.csgraph import dijkstra

from cpu_engine.graph.formats import read_graph
from hybrid.config import load_config
from hybrid.job.driver import run_job
from tests.conftest import sweep

GRAPHS = {
    "wiki-Vote/wiki-Vote.txt": True,
    "soc-Epinions1/soc-Epinions1.txt.gz": True,
    "email-Enron/email-Enron.txt.gz": False,
    "amazon0601/amazon0601.el.gz": True,
    "luxembourg_osm/luxembourg_osm.mtx.gz": False,
    "roads-rome/roads-rome.wel.gz": False,
}
SOURCES = 3


def reference_levels(path: Path, directed: bool, sources: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Vertex ids and, per source, distances by scipy (-1 where there is none)."""
    edges = read_graph(path)
    ids, flat = np.unique(np.concatenate((edges.src, edges.dst)), return_inverse=True)
    if edges.id_range is not None:
        first, count = edges.id_range
        ids = np.arange(first, first + count)
        flat = np.concatenate((edges.src, edges.dst)) - first
    u, v = flat[: edges.src.size], flat[edges.src.size :]
    matrix = sparse.coo_matrix((np.ones(u.size, np.int8), (u, v)), (ids.size, ids.size)).tocsr()
    rows = dijkstra(matrix, directed=directed, indices=np.searchsorted(ids, sources), unweighted=True)
    return ids, np.where(np.isinf(rows), -1, rows).astype(np.int32)


@pytest.mark.parametrize("name", sweep(GRAPHS))
def test_levels_equal_scipy(name: str, shared_data: Path, exchange_directory: Path, tmp_path: Path) -> None:
    path, directed = shared_data / name, GRAPHS[name]
    common = [f"graph.path={path}", f"graph.directed={str(directed).lower()}", f"source=random:{SOURCES}"]
    common += ["compare.enabled=false", f"output={tmp_path / 'out'}", "result.report=false"]
    external = ["npu.worker=external", "npu.keep_worker=true", f"exchange.dir={exchange_directory}"]
    expected: np.ndarray | None = None
    for engine in ("async", "level"):
        for mode in ("off", "share", "race"):
            finished = run_job(load_config(None, [*common, *external, f"engine={engine}", f"npu.mode={mode}"]))
            if expected is None:
                ids, expected = reference_levels(path, directed, finished.summary["sources"])
                assert np.array_equal(np.load(finished.folder / "vertex.npy"), ids)
            assert np.array_equal(np.load(finished.folder / "level.npy"), expected), (engine, mode)
            assert finished.summary["certified"]
            npu = finished.summary["npu"]
            if mode == "share" and finished.summary["core"]["edges"] > 0:  # a road map's core has none
                assert npu["rounds_merged"] >= 1, npu["outcome"]


def ldbc_cases(shared: Path) -> list[tuple[Path, Path, bool, int]]:
    """(graph, expected output, directed, source) of every LDBC graph with a BFS output."""
    folder = shared / "ldbc-validation"
    cases = []
    for expected in sorted(folder.glob("example-data-sets/*-BFS")):
        properties = expected.with_name(expected.name.removesuffix("-BFS") + ".properties")
        text = properties.read_text()
        source = next(line.split("=")[1] for line in text.splitlines() if "bfs.source-vertex" in line)
        cases.append((properties, expected, "undirected" not in properties.name, int(source)))
    bfs = folder / "validation-graphs" / "bfs"
    cases += [(bfs / f"{kind}-input", bfs / f"{kind}-output", kind == "dir", 1) for kind in ("dir", "undir")]
    return cases


@pytest.mark.parametrize("engine", ["async", "level"])
def test_ldbc_outputs(engine: str, shared_data: Path, exchange_directory: Path, tmp_path: Path) -> None:
    cases = ldbc_cases(shared_data)
    assert len(cases) >= 6
    for graph, expected, directed, source in cases:
        settings = [f"graph.path={graph}", f"source={source}", f"engine={engine}", f"output={tmp_path / 'out'}"]
        settings += ["result.forms=[ldbc]", "compare.enabled=false", "core.size=4"]
        settings += ["npu.worker=external", "npu.keep_worker=true", f"exchange.dir={exchange_directory}"]
        if graph.suffix != ".properties":
            settings += ["graph.format=adjacency", f"graph.directed={str(directed).lower()}"]
        finished = run_job(load_config(None, settings))
        assert finished.summary["graph"]["directed"] is directed
        assert rows(finished.folder / "ldbc.txt") == rows(expected), graph.name


def rows(path: Path) -> list[list[str]]:
    return sorted(line.split() for line in path.read_text().splitlines() if line.strip())
