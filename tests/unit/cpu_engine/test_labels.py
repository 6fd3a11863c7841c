"""Label propagation equals LDBC's expected outputs, and the check on real graphs."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.communities.check_labels import check_labels
from cpu_engine.communities.kernels.check_labels import SHORT, repeat_round_step
from cpu_engine.communities.label_propagation import label_propagation
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.generators import grid, kronecker

needs_compiler = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too long without the compiler")


def ldbc_cases(shared: Path) -> list[tuple[Path, Path, bool, int]]:
    """(graph, expected output, directed, rounds) of every LDBC graph with a CDLP output."""
    folder = shared / "ldbc-validation"
    cases = []
    for expected in sorted(folder.glob("example-data-sets/*-CDLP")):
        properties = expected.with_name(expected.name.removesuffix("-CDLP") + ".properties")
        rounds = next(line.split("=")[1] for line in properties.read_text().splitlines() if "max-iterations" in line)
        cases.append((properties, expected, "undirected" not in properties.name, int(rounds)))
    plain = folder / "validation-graphs" / "cdlp"
    cases += [(plain / f"{kind}-input", plain / f"{kind}-output", kind == "dir", 5) for kind in ("dir", "undir")]
    return cases


@pytest.mark.jitless
def test_ldbc_outputs(shared_data: Path) -> None:
    cases = ldbc_cases(shared_data)
    assert len(cases) >= 6
    for path, output, directed, rounds in cases:
        graph = build_graph(read_graph(path), directed=directed)
        found = label_propagation(graph, iterations=rounds)
        everyone = graph.user_ids.copy()
        everyone[graph.user_position] = found.label
        lines = [line.split() for line in output.read_text().splitlines() if line.strip()]
        assert dict(zip(graph.user_ids.tolist(), everyone.tolist(), strict=True)) == {int(v): int(x) for v, x in lines}


@needs_compiler
@pytest.mark.parametrize(
    ("name", "directed"),
    [("wiki-Vote/wiki-Vote.txt", True), ("wiki-Vote/wiki-Vote.txt", False), ("email-Enron/email-Enron.txt.gz", False)],
)
def test_real_graphs(name: str, directed: bool, shared_data: Path) -> None:
    graph = build_graph(read_graph(shared_data / name), directed=directed)
    found = label_propagation(graph)
    check = check_labels(graph, found.label)
    assert check.holds, check.explain(graph)
    assert found.count == np.unique(found.label).size


@needs_compiler
def test_hubs_and_swapping_labels() -> None:
    """A Kronecker graph has rows of every length; on a grid labels never come to rest."""
    for graph in (build_graph(kronecker(12, 16, 2)), build_graph(grid(30, 40))):
        for rounds in (1, 2, 10):
            found = label_propagation(graph, iterations=rounds)
            assert found.iterations <= rounds
            assert check_labels(graph, found.label, iterations=rounds).holds


@pytest.mark.jitless
@pytest.mark.parametrize("directed", [False, True])
def test_check_repeats_rounds_of_short_and_long_rows(directed: bool) -> None:
    """Rows around the length at which the check changes from sorting to counting, with ties, against a plain count."""
    rng = np.random.default_rng(3)
    hubs = [np.full(size, hub) for hub, size in enumerate((1, 2, 3, SHORT - 1, SHORT, SHORT + 1, 3 * SHORT))]
    src = np.concatenate(hubs)
    edges = EdgeList(src, rng.integers(0, 60, src.size), id_range=(0, 61))
    graph = build_graph(edges, directed=directed, duplicates="keep", self_loops="keep")
    label = rng.integers(0, 7, graph.n).astype(np.int32)
    fresh, counts, changed = np.empty_like(label), np.zeros((1, 61), np.int32), np.zeros(1, np.int64)
    rows = (graph.out_offsets, graph.out_targets, graph.in_offsets, graph.in_sources, directed)
    repeat_round_step(*rows, label, fresh, counts, changed, np.zeros(1, np.int64))
    for v in range(graph.n):
        near = graph.out_targets[graph.out_offsets[v] : graph.out_offsets[v + 1]].tolist()
        near += graph.in_sources[graph.in_offsets[v] : graph.in_offsets[v + 1]].tolist() if directed else []
        found = Counter(label[near].tolist())
        assert fresh[v] == (min(found, key=lambda x: (-found[x], x)) if found else label[v])
    assert changed[0] == np.count_nonzero(fresh != label)
    assert not counts.any()


@pytest.mark.jitless
def test_small_graphs() -> None:
    none = np.empty(0, np.int64)
    empty = build_graph(EdgeList(none, none, id_range=(0, 3)), directed=False)
    found = label_propagation(empty)
    assert (found.label.size, found.count, found.iterations) == (0, 0, 0)
    pair = build_graph(EdgeList(np.array([9]), np.array([4])), directed=False)
    odd, even = label_propagation(pair, iterations=1), label_propagation(pair, iterations=2)
    assert odd.label.tolist() == pair.user_ids[pair.user_position].tolist()[::-1]
    assert even.label.tolist() == odd.label.tolist()[::-1]
    assert even.changed == 2
    clique = [(u, v) for u in range(5) for v in range(u)]
    rested = label_propagation(
        build_graph(EdgeList(*(np.array(c) for c in zip(*clique, strict=True))), directed=False), iterations=50
    )
    assert set(rested.label.tolist()) == {0}
    assert rested.iterations < 50
    assert rested.changed == 0


def test_negative_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        label_propagation(build_graph(grid(2, 2)), iterations=-1)


@pytest.mark.jitless
def test_check_names_what_is_wrong() -> None:
    graph = build_graph(EdgeList(np.array([5, 6, 7, 7]), np.array([6, 7, 5, 8])), directed=True)
    right = label_propagation(graph, iterations=3).label
    assert "same labels" in check_labels(graph, right, iterations=3).explain(graph)
    for v in range(graph.n):
        changed = right.copy()
        changed[v] += 1
        check = check_labels(graph, changed, iterations=3)
        assert f"1 label differs from those of 3 rounds made again (vertex {graph.user_id_of[v]}" in check.explain(
            graph
        )
    assert not check_labels(graph, right[:1]).holds
