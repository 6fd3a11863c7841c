"""Real graphs nobody here wrote: vertex and edge counts as their sources state them."""

from __future__ import annotations

import os

import numpy as np
import pytest

from cpu_engine.graph.formats import read_graph
from tests.conftest import NO_REAL_GRAPHS
from tests.conftest import SHARED_DATA as DATA

LDBC = DATA / "ldbc-validation"

pytestmark = [
    pytest.mark.skipif(not DATA.is_dir(), reason=NO_REAL_GRAPHS),
    pytest.mark.skipif(
        os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="real graphs take minutes without the compiler"
    ),
]


@pytest.mark.parametrize(
    ("name", "vertices", "edges", "weighted"),
    [
        ("wiki-Vote/wiki-Vote.txt", 7_115, 103_689, False),
        ("soc-Epinions1/soc-Epinions1.txt.gz", 75_879, 508_837, False),
        ("email-Enron/email-Enron.txt.gz", 36_692, 2 * 183_831, False),
        ("amazon0601/amazon0601.el.gz", 403_394, 3_387_388, False),
        ("luxembourg_osm/luxembourg_osm.mtx.gz", 114_599, 119_666, False),
        ("roads-rome/roads-rome.wel.gz", 234_496, 258_206, True),
    ],
)
def test_counts(name, vertices, edges, weighted):
    found = read_graph(DATA / name)
    assert found.format == "edge-list"
    assert found.edge_count == edges
    assert len(np.union1d(found.src, found.dst)) == vertices
    assert (found.weight is not None) == weighted
    assert found.weight is None or found.weight.dtype == np.int64


def test_enron_header_is_noted():
    found = read_graph(DATA / "email-Enron/email-Enron.txt.gz")
    assert found.notes == ("first line '36692 367662' read as a header: vertices edges",)
    assert found.id_range == (0, 36_692)


@pytest.mark.parametrize(
    ("name", "directed", "vertices", "edges", "weighted"),
    [
        ("example-directed", True, 10, 17, True),
        ("example-undirected", False, 9, 12, True),
        ("test-bfs-directed", True, 10, 17, False),
        ("test-bfs-undirected", False, 10, 14, False),
        ("test-cdlp-directed", True, 8, 18, False),
        ("test-lcc-undirected", False, 9, 12, False),
        ("test-pr-directed", True, 50, 246, False),
        ("test-sssp-directed", True, 10, 13, True),
        ("test-sssp-undirected", False, 12, 14, True),
        ("test-wcc-directed", True, 8, 10, False),
    ],
)
@pytest.mark.parametrize("part", ["properties", "e", "v"])
def test_ldbc_example_data_sets(name, part, directed, vertices, edges, weighted):
    found = read_graph(LDBC / "example-data-sets" / f"{name}.{part}")
    assert (found.format, found.directed) == ("ldbc", directed)
    assert (len(found.vertices), found.edge_count) == (vertices, edges)
    assert (found.weight is not None) == weighted


@pytest.mark.parametrize("kind", ["dir", "undir"])
@pytest.mark.parametrize("folder", ["bfs", "cdlp", "ffm", "lcc", "pr", "wcc"])
def test_ldbc_adjacency_lists(folder, kind):
    path = LDBC / "validation-graphs" / folder / f"{kind}-input"
    found = read_graph(path)
    assert found.format == "adjacency"
    lines = [list(map(int, line.split())) for line in path.read_text().splitlines()]
    assert found.edge_count == sum(len(line) - 1 for line in lines)
    assert found.vertices.tolist() == sorted({v for line in lines for v in line})


def test_ldbc_pair_without_properties():
    found = read_graph(LDBC / "validation-graphs/sssp/dir-input.e")
    assert (found.format, found.directed, len(found.vertices), found.edge_count) == ("ldbc", None, 10, 13)
    assert found.weight.tolist()[:3] == [0.5, 5.0, 5.0]
