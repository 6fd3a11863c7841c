"""The core's index gives what iterating on the core gives; one that is wrong, foreign or damaged does no harm."""

from __future__ import annotations

import hashlib
import os
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from hybrid.algorithms.bfs import make_engine
from hybrid.devices.profiles import PROFILES, fixed_delay
from hybrid.job.proof import prove_or_repair_many
from hybrid.offload.many_sources import ManyEngine
from hybrid.offload.traverse import traverse_alone, traverse_together
from hybrid.results.trace import Trace
from hybrid.worker.index import CoreIndex, compute_index, core_digest, index_path, load_index, store_index
from hybrid.worker.index_keeper import IndexKeeper, IndexSolver
from hybrid.worker.simulated import SimulatedSolver
from tests import naive

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
dense = st.integers(2, 14).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=8 * n)
)


def built(pairs: list[tuple[int, int]], directed: bool) -> Graph:
    src, dst = (np.array(column, np.int64) for column in zip(*[*pairs, (0, 1)], strict=True))
    return build_graph(EdgeList(src, dst), directed=directed)


def core_edges(graph: Graph, k: int) -> list[tuple[int, int]]:
    source = np.repeat(np.arange(graph.n), np.diff(graph.out_offsets))
    inside = (source < k) & (graph.out_targets < k)
    return list(zip(source[inside].tolist(), graph.out_targets[inside].tolist(), strict=True))


def index_of(graph: Graph, k: int) -> CoreIndex:
    found = compute_index(graph.out_offsets, graph.out_targets, k)
    assert found is not None
    return found


def by_iteration(edges: list[tuple[int, int]], values: np.ndarray) -> np.ndarray:
    closed = np.full_like(values, -1)
    known = {int(v): int(values[v]) for v in np.flatnonzero(values >= 0)}
    for vertex, value in naive.close_core(edges, known).items():
        closed[vertex] = value
    return closed


@pytest.mark.jitless
@given(pairs=dense, directed=st.booleans(), data=st.data())
@quick
def test_closing_by_the_index_is_iterating(pairs: list[tuple[int, int]], directed: bool, data: st.DataObject) -> None:
    graph = built(pairs, directed)
    k = data.draw(st.integers(1, graph.n))
    index, edges = index_of(graph, k), core_edges(graph, k)
    rows = data.draw(st.integers(1, 4))
    numbers = st.lists(st.integers(-1, 6), min_size=rows * k, max_size=rows * k)
    values = np.array(data.draw(numbers), np.int32).reshape(rows, k)
    expected = np.stack([by_iteration(edges, row) for row in values])
    assert np.array_equal(index.close(values), expected)
    assert np.array_equal(index.close(values[0]), expected[0])
    for u in range(k):
        alone = np.full(k, -1, np.int32)
        alone[u] = 0
        hops = by_iteration(edges, alone)
        assert np.array_equal(np.where(index.distance[u] == 255, -1, index.distance[u]), hops)


@given(k=st.integers(1, 40), data=st.data())
@quick
def test_the_closed_form_is_the_row_minima(k: int, data: st.DataObject) -> None:
    """A star has a diameter of 2; the same values by both ways."""
    graph = built([(0, v) for v in range(1, 40)] + data.draw(st.lists(st.tuples(*[st.integers(0, 39)] * 2))), False)
    index = index_of(graph, k)
    assert index.within_two
    values = np.array(data.draw(st.lists(st.integers(-1, 5), min_size=k, max_size=k)), np.int32)
    minima = CoreIndex(index.distance)
    minima.__dict__["diameter"] = None  # as if nothing were known of it
    assert not minima.within_two
    assert np.array_equal(index.close(values), minima.close(values))
    assert np.array_equal(index.close(values[np.newaxis]), minima.close(values[np.newaxis]))


def test_a_core_too_deep_for_bytes_has_no_index() -> None:
    graph = build_graph(grid(1, 400), directed=False)
    assert compute_index(graph.out_offsets, graph.out_targets, graph.n) is None
    solver = SimulatedSolver(fixed_delay("oracle", 0.0))
    solver.publish_edges(graph.out_offsets, graph.out_targets, graph.n)
    assert not solver.request_index()
    assert "does not fit" in solver.index_failure
    assert solver.poll_index() is None


# ---------------------------------------------------------------------------------------------------- as a solver


@pytest.fixture(scope="module")
def graph() -> Graph:
    return build_graph(kronecker(9, 8, 1), directed=False)


@pytest.mark.parametrize("engine_name", ["async", "level"])
@pytest.mark.parametrize("mode", ["share", "race"])
@pytest.mark.parametrize("k", [1, 40, 300])
def test_searches_with_an_index(graph: Graph, engine_name: str, mode: str, k: int) -> None:
    solver = IndexSolver(index_of(graph, k))
    split = CoreSplit(graph, k)
    engine, many = make_engine(engine_name, split), ManyEngine(split)
    roots = np.arange(0, graph.n, 29)
    batch = many.together(roots, mode, solver, Trace())
    for i, root in enumerate(roots.tolist()):
        alone = traverse_alone(engine, root).level.copy()
        assert np.array_equal(traverse_together(engine, root, mode, solver, Trace()).level, alone)
        assert np.array_equal(batch.found.of(i)[0], alone)
    assert solver.usable


def test_a_wrong_index_is_thrown_away(graph: Graph, tmp_path: Path) -> None:
    k, path = 40, tmp_path / "x.index"
    distance = index_of(graph, k).distance.copy()
    distance[:] = 1  # everybody next to everybody
    np.fill_diagonal(distance, 0)
    assert store_index(path, CoreIndex(distance))
    keeper = IndexKeeper(path, k, None)
    solver = keeper.solver()
    assert solver is not None
    roots = np.arange(0, graph.n, 7)
    many = ManyEngine(CoreSplit(graph, k))
    done = many.together(roots, "share", solver, Trace())
    assert prove_or_repair_many(graph, done, k, Trace()).any()
    assert np.array_equal(done.found.level, many.alone(roots).found.level)
    solver.distrust("its values failed the certificate")
    assert keeper.solver() is None
    assert not path.exists()


# ------------------------------------------------------------------------------------------------ kept between jobs


def test_an_index_is_kept_and_found_again(graph: Graph, tmp_path: Path) -> None:
    path = index_path(tmp_path, graph, 40)
    assert load_index(path, 40) is None
    assert store_index(path, index_of(graph, 40))
    found = load_index(path, 40)
    assert found is not None
    assert np.array_equal(found.distance, index_of(graph, 40).distance)
    assert path != index_path(tmp_path, graph, 41)
    other = build_graph(kronecker(9, 8, 2), directed=False)
    assert core_digest(graph, 40) != core_digest(other, 40)


@pytest.mark.parametrize("damage", [
    "torn", "flipped", "foreign", "other core", "other layout", "nested", "pipe", "bomb",
])  # fmt: skip
def test_a_damaged_index_counts_as_none(graph: Graph, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "x.index"
    store_index(path, index_of(graph, 41 if damage == "other core" else 40))
    content = path.read_bytes()
    if damage == "torn":
        path.write_bytes(content[:-10])
    elif damage == "flipped":
        path.write_bytes(content[:-10] + bytes([content[-10] ^ 1]) + content[-9:])
    elif damage == "foreign":
        path.write_bytes(b"something else")
    elif damage == "other layout":
        path.write_bytes(content.replace(b'"version": 1', b'"version": 9'))
    elif damage == "nested":
        path.write_bytes(b"tandem-core-index\n" + b"[" * 60_000)
    elif damage == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif damage == "bomb":
        payload = zlib.compress(bytes(1 << 24))
        digest = hashlib.blake2b(payload, digest_size=16).hexdigest().encode()
        head = b'{"version": 1, "k": 40, "checksum": "%s"}\n' % digest
        path.write_bytes(b"tandem-core-index\n" + head + payload)
    assert load_index(path, 40) is None
    assert not path.exists()


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert not store_index(tmp_path / "file" / "x.index", index_of(graph, 4))


# ---------------------------------------------------------------------------------------------- simulated devices


def test_a_simulated_device_makes_the_index(graph: Graph, tmp_path: Path) -> None:
    solver = SimulatedSolver(fixed_delay("oracle", 0.0))
    solver.publish_edges(graph.out_offsets, graph.out_targets, 40)
    keeper = IndexKeeper(tmp_path / "x.index", 40, solver)
    indexed = keeper.solver()
    assert indexed is not None
    assert np.array_equal(indexed.index.distance, index_of(graph, 40).distance)
    assert load_index(tmp_path / "x.index", 40) is not None


def test_an_index_takes_time() -> None:
    graph = build_graph(kronecker(9, 8, 1), directed=False)
    solver = SimulatedSolver(fixed_delay("slow", 3600.0))
    solver.publish_edges(graph.out_offsets, graph.out_targets, 40)
    keeper = IndexKeeper(None, 40, solver)
    assert keeper.solver() is None
    model = PROFILES["910b2"]
    assert model.index_s(8192, 2) > 2 * model.matmul(8192, 8192)
    assert model.index_s(8192, 3) > model.index_s(8192, 2) > model.index_s(8192, 1)
    assert model.index_s(8192, 2) < 20e-3, "facts: about 6 ms a product on a 910B"


@pytest.mark.parametrize("mode", ["share", "race"])
def test_batches_with_a_simulated_device(graph: Graph, mode: str) -> None:
    k, roots = 60, np.arange(0, graph.n, 3)
    many = ManyEngine(CoreSplit(graph, k))
    solver = SimulatedSolver(PROFILES["910b2"], format="direct")
    solver.publish_edges(graph.out_offsets, graph.out_targets, k)
    solver.rehearse(lambda device: many.together(roots, mode, device, Trace()))
    assert solver.delivered == 0, "a rehearsal is in no account"
    done = many.together(roots, mode, solver, Trace())
    assert not prove_or_repair_many(graph, done, k, Trace()).any()
    assert np.array_equal(done.found.level, many.alone(roots).found.level)
    if mode == "share":
        assert solver.computed_on_clock == 0
        assert solver.modelled_s >= solver.model.round_s(k, 64, 1, "direct")
